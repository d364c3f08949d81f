// all_reduce, one_shot_push: every rank writes its tensor into every peer's arena, each value beside its flag, and
// reduces what arrives. One trip; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

template <class T, class Op, uint32_t N, Work WORK>
PLATFORM_DEVICE void one_shot_push(const AllReduceArgs& a) {
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const Tensor<WORK> input{a.input, a.bytes}, output{a.output, a.bytes};
  Given<uint64_t, WORK> given(input);
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  given.load_first();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  push_given<N>(c, e, p, given);
  advance_push(c, e);
  scrub<N>(c, p, e.flag, e.slot);
  Wait wait;
  given.template each<Group<N>::FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
    uint64_t results[FLIGHT];
    reduce_lines<T, Op, N>(wait, c, e, p, i, given.stride, own, results);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) output.store8(i + f * given.stride, results[f]);
  });
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, LINE_BYTES)
PUSH_ENTRIES(one_shot_push, AllReduceArgs, IS_WHOLE)
