// A barrier between block b of every rank. Words of 64 bits that only grow, each with one writer: they are never
// cleared, never wrap, and a block that a call does not use lags behind, harmlessly.
#pragma once
#include <crossover/wait.h>

// At most so many barriers in a call.
constexpr uint64_t BARRIERS = 4;

PLATFORM_DEVICE uint64_t* barrier_word(uint64_t arena, uint64_t table, uint32_t rank) {
  return reinterpret_cast<uint64_t*>(arena + table) + uint64_t(block_id()) * MAX_WORLD + rank;
}

// What this block wrote before, every peer's block sees after; `nth` counts the barriers of the call from 0. `wrote`: did
// this kernel write what peers read behind it? What earlier kernels wrote is visible without a release.
PLATFORM_DEVICE void meet(Wait& wait, const Common& c, const Epoch& e, uint64_t table, uint32_t nth, uint32_t step,
                          bool wrote) {
#ifndef SABOTAGE_NO_BARRIER
  block_barrier();
#endif
  const uint32_t peer = thread_id();
  if (peer < c.world && peer != c.rank) {
    const uint64_t value = e.number * BARRIERS + nth;
    uint64_t* theirs = barrier_word(c.arenas[peer], table, c.rank);
#ifdef SABOTAGE_RELAXED_FLAG
    wrote = false;
#endif
    if (wrote) store_release_u64(theirs, value);
    else store_relaxed_u64(theirs, value);
    const uint64_t* mine = barrier_word(c.arenas[c.rank], table, peer);
    uint64_t seen;
    while (int64_t((seen = load_acquire_u64(mine)) - value) < 0) {
      if (!look_again(wait, c, e, peer, step, seen)) break;
    }
  }
  block_barrier();
}
