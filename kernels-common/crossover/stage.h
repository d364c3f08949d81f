// Staged data behind a barrier: a rank copies what peers want into its own arena, meets them, and reads theirs. Two
// stages by parity: a stage is written again two calls later, when every peer has met this rank once more and so has
// finished reading. That is why no barrier is needed at the end.
#pragma once
#include <crossover/barrier.h>
#include <crossover/numerics.h>
#include <crossover/tensor.h>

// This call's stage in an arena; `place` are the bytes of one.
PLATFORM_DEVICE uint64_t stage_of(uint64_t arena, const Epoch& e, uint64_t region, uint64_t place) {
#ifdef SABOTAGE_ONE_SLOT
  return arena + region;
#else
  return arena + region + e.parity() * place;
#endif
}

// The addresses of all ranks' inputs, if this call may read them where they are; null if inputs are staged. The row is
// filled when the graph that this call was captured into is committed, the same way on every rank.
PLATFORM_DEVICE const uint64_t* committed_row(Wait& wait, const Common& c, const Epoch& e, uint64_t row) {
  if (row == 0) return nullptr;
  const uint64_t* addresses = reinterpret_cast<const uint64_t*>(row);
  if (addresses[0] == ROW_NOT_COMMITTED) give_up(wait, c, e, CODE_NOT_COMMITTED, c.rank, STEP_BARRIER, 0);
  return addresses[0] <= ROW_STAGED ? nullptr : addresses;
}

// Pack `i` of all ranks' tensors, which are at `from`, reduced in the order of ranks, a group at a time.
template <class T, class Op, uint32_t ROOM>
PLATFORM_DEVICE Pack reduce_packs(const Common& c, const uint64_t* from, uint64_t i, uint64_t bytes) {
  constexpr uint32_t GROUP = ROOM < 8 ? ROOM : 8;
  Accumulator<T, Op, 4> sum;
#pragma unroll
  for (uint32_t base = 0; base < ROOM; base += GROUP) {
    if (base >= c.world) break;
    Pack packs[GROUP];
#pragma unroll
    for (uint32_t n = 0; n < GROUP; ++n) {
      if (base + n < c.world) packs[n] = load_unit16(from[base + n], i, bytes);
    }
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
