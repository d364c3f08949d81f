// all_reduce, lamport: every rank writes its tensor into every peer's arena and reduces what arrives; each value is its own
// flag. One trip and no byte but the payload's. -0.0 is flushed to +0.0.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/lamport.h>

// Pack `i` of all ranks, reduced, in the order of ranks, a group at a time; `own` is this rank's.
template <class T, class Op, uint32_t N>
PLATFORM_DEVICE Pack reduce_lamport(Wait& wait, const Common& c, const Epoch& e, const Turn& t, const AllReduceArgs& a,
                                    uint64_t i, const Pack& own) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  Accumulator<T, Op, 4> sum;
#pragma unroll
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Pack packs[COUNT];
    collect_lamport<N, COUNT>(wait, c, e, t, a.region, a.place, base, i, packs);
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
#pragma unroll
      for (uint32_t w = 0; w < 4; ++w) packs[n].w[w] = base + n == c.rank ? own.w[w] : packs[n].w[w];
      if (base + n == 0) sum.start(packs[n].w);
      else if (has_rank<N>(c, base + n)) sum.add(packs[n].w, c.reduce_op);
    }
  }
  Pack result;
  sum.finish(result.w, c);
  return result;
}

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void lamport(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t packs = units(a.bytes, 16);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  // On its way together with the state.
  Pack mine = {};
  if (first < packs) mine = load_unit16(a.input, first, a.bytes);
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  mine = unmarked_pack<T>(mine);
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = i == first ? mine : unmarked_pack<T>(load_unit16(a.input, i, a.bytes));
    send_lamport<N>(c, t, a.region, a.place, i, own);
  }
  clear_before<N>(c, t, a.region, a.place, first, stride);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = i == first ? mine : unmarked_pack<T>(load_unit16(a.input, i, a.bytes));
    store_unit16(a.output, i, a.bytes, reduce_lamport<T, Op, N>(wait, c, e, t, a, i, own));
  }
  if (advance(c, e, arrived)) advance_turn(c, t, packs);
}

REDUCTION_ENTRIES(lamport, AllReduceArgs)
