// all_reduce, lamport: every rank writes its tensor into every peer's arena and reduces what arrives; each value is its own
// flag. One trip and no byte but the payload's. -0.0 is flushed to +0.0.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/lamport.h>

// Pack `i` of all ranks, reduced; `own` is this rank's.
template <class T, class Op, uint32_t N>
PLATFORM_DEVICE Pack reduce_packs(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, const Turn& t, uint32_t i,
                                  const Pack& own) {
  Pack result;
  reduce_ranks<T, Op, N>(c, own.w, result.w, [&](uint32_t base, auto& come) {
    constexpr uint32_t COUNT = sizeof(come) / sizeof(come[0]);
    Pack packs[COUNT];
    collect_lamport<N, COUNT>(wait, c, e, p, t, base, i, packs);
#pragma unroll
    for (uint32_t w = 0; w < COUNT * 4; ++w) come[w / 4][w % 4] = packs[w / 4].w[w % 4];
  });
  return result;
}

template <class T, class Op, uint32_t N, bool WHOLE>
PLATFORM_DEVICE void lamport(const AllReduceArgs& a) {
  const Common& c = a.common;
  const Places<N> p(c, a.region, a.place);
  const Tensor<WHOLE> input{a.input, a.bytes}, output{a.output, a.bytes};
  const uint32_t packs = uint32_t(units(a.bytes, 16)), first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  // On its way together with the state.
  Pack mine = {};
  if (first < packs) mine = input.load16(first);
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  mine = unmarked_pack<T>(mine);
  Pack own = mine;
  for (uint32_t i = first; i < packs;) {
    send_lamport<N>(c, p, t, i, own);
    i += stride;
    if (i < packs) own = unmarked_pack<T>(input.load16(i));
  }
  const uint32_t arrived = say_arrived(c);
  clear_before<N>(c, p, t, first, stride);
  Wait wait;
  own = mine;
  for (uint32_t i = first; i < packs;) {
    output.store16(i, reduce_packs<T, Op, N>(wait, c, e, p, t, i, own));
    i += stride;
    if (i < packs) own = unmarked_pack<T>(input.load16(i));
  }
  if (advance(c, e, arrived)) advance_turn(c, t, packs);
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, 16)
PUSH_ENTRIES(lamport, AllReduceArgs, IS_WHOLE)
