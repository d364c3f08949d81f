// all_reduce, lamport: every rank writes its tensor into every peer's arena and reduces what arrives; each value is its own
// flag. One trip and no byte but the payload's. -0.0 is flushed to +0.0.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/lamport.h>

// Pack `i` of all ranks, reduced, in the order of ranks, a group at a time.
template <class T, class Op, uint32_t ROOM>
PLATFORM_DEVICE Pack reduce_lamport(Wait& wait, const Common& c, const Epoch& e, const Turn& t, const AllReduceArgs& a,
                                    uint64_t i, const Pack& own) {
  constexpr uint32_t GROUP = ROOM < 8 ? ROOM : 8;
  Accumulator<T, Op, 4> sum;
#pragma unroll
  for (uint32_t base = 0; base < ROOM; base += GROUP) {
    if (base >= c.world) break;
    Pack packs[GROUP];
    collect_lamport<GROUP>(wait, c, e, t, a.region, a.place, base, i, own, packs);
#pragma unroll
    for (uint32_t n = 0; n < GROUP; ++n) {
      if (base + n == 0) sum.start(packs[n].w);
      else if (base + n < c.world) sum.add(packs[n].w, c.reduce_op);
    }
  }
  Pack result;
  sum.finish(result.w, c);
  return result;
}

template <class T, class Op, uint32_t ROOM>
PLATFORM_DEVICE void lamport(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  const uint64_t packs = units(a.bytes, 16);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = unmarked_pack<T>(load_unit16(a.input, i, a.bytes));
#pragma unroll
    for (uint32_t peer = 0; peer < ROOM; ++peer) {
      if (peer < c.world && peer != c.rank) {
        store_pack_relaxed(
            reinterpret_cast<void*>(lamport_at(c, t.slot, a.region, a.place, c.arenas[peer], c.rank, i)), own);
      }
    }
  }
  clear_before<ROOM>(c, t, a.region, a.place, first, stride);
  if (arrive(c, e)) advance_turn(c, t, packs);
  Wait wait;
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = unmarked_pack<T>(load_unit16(a.input, i, a.bytes));
    store_unit16(a.output, i, a.bytes, reduce_lamport<T, Op, ROOM>(wait, c, e, t, a, i, own));
  }
}

REDUCTION_ENTRIES(lamport, AllReduceArgs)
