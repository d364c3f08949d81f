// Staged data behind a barrier: a rank copies what peers want into its own arena, meets them, and reads theirs. Two
// stages by parity: a stage is written again two calls later, when every peer has met this rank once more and so has
// finished reading. That is why no barrier is needed at the end.
#pragma once
#include <crossover/barrier.h>
#include <crossover/numerics.h>
#include <crossover/tensor.h>
#include <crossover/world.h>

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
  if (addresses[0] == ROW_NOT_COMMITTED) {
    give_up(c, e, CODE_NOT_COMMITTED, c.rank, STEP_BARRIER, 0);
    wait.given_up = true;
  }
  return addresses[0] <= ROW_STAGED ? nullptr : addresses;
}

// Each peer's part into this rank's stage.
PLATFORM_DEVICE void stage_parts(const Common& c, const Epoch& e, const PartsArgs& a, uint64_t first, uint64_t stride) {
  const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    copy_units(mine + a.stage_at[peer], a.input + a.send_at[peer], a.send_bytes[peer], first, stride);
  }
}

// Pack `i` of all ranks' tensors, reduced in the order of ranks, a group at a time. `from(rank)` is where a rank's tensor is.
template <class T, class Op, uint32_t N, class From>
PLATFORM_DEVICE Pack reduce_packs(const Common& c, From from, uint64_t i, uint64_t bytes) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  Accumulator<T, Op, 4> sum;
#pragma unroll
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Pack packs[COUNT];
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) packs[n] = load_unit16(from(some_rank<N>(c, base + n)), i, bytes);
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      if (base + n == 0) sum.start(packs[n].w);
      else if (has_rank<N>(c, base + n)) sum.add(packs[n].w, c.reduce_op);
    }
  }
  Pack result;
  sum.finish(result.w, c);
  return result;
}
