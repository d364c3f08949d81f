// A barrier between block b of every rank. Words of 64 bits that only grow, each with one writer: they are never
// cleared, never wrap, and a block that a call does not use lags behind, harmlessly.
#pragma once
#include <crossover/wait.h>

// At most so many barriers in a call.
constexpr uint64_t BARRIERS = 4;

PLATFORM_DEVICE uint64_t* barrier_word(uint64_t arena, uint64_t table, uint32_t rank) {
  return reinterpret_cast<uint64_t*>(arena + table) + uint64_t(block_id()) * MAX_WORLD + rank;
}

// Waits until a word of the table has reached `value`.
PLATFORM_DEVICE bool await_word(Wait& wait, const Common& c, const Epoch& e, const uint64_t* word, uint64_t value,
                                uint32_t peer, uint32_t step) {
  uint64_t seen;
  return wait_until(
      wait, c, e, step, [&] { return int64_t((seen = load_acquire_u64(word)) - value) >= 0; },
      [&] { return Missing{peer, seen}; });
}

// What this block wrote before, every peer's block sees after; `nth` counts the barriers of the call from 0. `wrote`: did
// this kernel write what peers read behind it? What earlier kernels wrote needs no release where the end of a kernel is one; and
// what a peer is to leave alone after the barrier has been read before it, since what was read has been used.
//
// Where a thread of the block gave up at one barrier, those behind it in the kernel are not raised: what the block has done
// since is nobody else's. False if one gave up, the same for all threads of the block. `wait` is the kernel's only one.
PLATFORM_DEVICE bool meet(Wait& wait, const Common& c, const Epoch& e, uint64_t table, uint32_t nth, uint32_t step,
                          bool wrote) {
  // Written between the barriers of the block alone, but for the first time, and read behind them alone.
  PLATFORM_SHARED uint32_t gave_up;
  if (!wait.has_met && thread_id() == 0) gave_up = 0;
#ifndef SABOTAGE_NO_BARRIER
  block_barrier();
#endif
  const uint32_t peer = thread_id();
  if (peer < c.world && peer != c.rank && !wait.block_gave_up) {
    // Each wait has the budget: between two there may be a long copy.
    wait.began = 0;
    const uint64_t value = e.number * BARRIERS + nth;
    uint64_t* theirs = barrier_word(c.arenas[peer], table, c.rank);
#ifdef SABOTAGE_RELAXED_FLAG
    store_relaxed_u64(theirs, value);
#else
    if (wrote || !PLATFORM_KERNEL_END_RELEASES) store_release_u64(theirs, value);
    else store_relaxed_u64(theirs, value);
#endif
    const bool has_come = await_word(wait, c, e, barrier_word(c.arenas[c.rank], table, peer), value, peer, step);
    if (!has_come || wait.given_up) gave_up = 1;
  }
  block_barrier();
  wait.has_met = true;
  wait.block_gave_up = gave_up;
  return !wait.block_gave_up;
}
