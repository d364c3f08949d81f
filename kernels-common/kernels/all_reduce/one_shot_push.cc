// all_reduce, one_shot_push: every rank writes its tensor into every peer's arena, each value beside its flag, and
// reduces what arrives. One trip; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

template <class T, class Op, uint32_t N, Work WORK>
PLATFORM_DEVICE void one_shot_push(const AllReduceArgs& a) {
  constexpr uint32_t MOST = Group<N>::FLIGHT;
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const Tensor<WORK> input{a.input, a.bytes}, output{a.output, a.bytes};
  const uint32_t lines = uint32_t(units(a.bytes, LINE_BYTES)), first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  // On its way together with the state.
  const uint64_t mine = first < lines ? input.load8(first) : 0;
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  const auto load = [&](uint32_t i, auto& own) {
#pragma unroll
    for (uint32_t f = 0; f < sizeof(own) / sizeof(own[0]); ++f) {
      own[f] = f == 0 && i == first ? mine : input.load8(i + f * stride);
    }
  };
  for_units<WORK, MOST>(first, lines, stride, [&](uint32_t i, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
    uint64_t own[FLIGHT];
    load(i, own);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) push_to_all<N>(c, p, e.slot, i + f * stride, flagged(own[f], e.flag));
  });
  advance_push(c, e);
  scrub<N>(c, p, e.flag, e.slot);
  Wait wait;
  for_units<WORK, MOST>(first, lines, stride, [&](uint32_t i, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
    uint64_t own[FLIGHT], results[FLIGHT];
    load(i, own);
    reduce_lines<T, Op, N>(wait, c, e, p, i, stride, own, results);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) output.store8(i + f * stride, results[f]);
  });
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, LINE_BYTES)
PUSH_ENTRIES(one_shot_push, AllReduceArgs, IS_WHOLE)
