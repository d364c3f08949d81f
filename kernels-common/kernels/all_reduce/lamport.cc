// all_reduce, lamport: every rank writes its tensor into every peer's arena and reduces what arrives; each value is its own
// flag. One trip and no byte but the payload's. -0.0 is flushed to +0.0.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/lamport.h>

// Packs `i`, `i + stride`, ... of all ranks, reduced; `own` are this rank's.
template <class T, class Op, uint32_t N, uint32_t FLIGHT>
PLATFORM_DEVICE void reduce_packs(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, const Turn& t, uint32_t i,
                                  uint32_t stride, const Pack (&own)[FLIGHT], Pack (&results)[FLIGHT]) {
  uint32_t mine[FLIGHT][4], words[FLIGHT][4];
#pragma unroll
  for (uint32_t w = 0; w < FLIGHT * 4; ++w) mine[w / 4][w % 4] = own[w / 4].w[w % 4];
  reduce_ranks<T, Op, N>(c, mine, words, [&](uint32_t base, auto& come) {
    constexpr uint32_t COUNT = sizeof(come[0]) / sizeof(come[0][0]);
    Pack packs[FLIGHT][COUNT];
    collect_lamport<N>(wait, c, e, p, t, base, i, stride, packs);
#pragma unroll
    for (uint32_t w = 0; w < FLIGHT * COUNT * 4; ++w) {
      const uint32_t f = w / 4 / COUNT, n = w / 4 % COUNT;
      come[f][n][w % 4] = packs[f][n].w[w % 4];
    }
  });
#pragma unroll
  for (uint32_t w = 0; w < FLIGHT * 4; ++w) results[w / 4].w[w % 4] = words[w / 4][w % 4];
}

template <class T, class Op, uint32_t N, Work WORK>
PLATFORM_DEVICE void lamport(const AllReduceArgs& a) {
  const Common& c = a.common;
  const Places<N> p(c, a.region, a.place);
  const Tensor<WORK> input{a.input, a.bytes}, output{a.output, a.bytes};
  GivenUnmarked<T, WORK> given(input);
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  given.load_first();
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  send_given<N, T>(c, p, t, given);
  advance_lamport(c, e, t, given.end);
  clear_before<N>(c, p, t, given.first, given.stride);
  Wait wait;
  given.template each<Group<N>::FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
    Pack results[FLIGHT];
    reduce_packs<T, Op, N>(wait, c, e, p, t, i, given.stride, own, results);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) output.store16(i + f * given.stride, results[f]);
  });
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, 16)
PUSH_ENTRIES(lamport, AllReduceArgs, IS_WHOLE)
