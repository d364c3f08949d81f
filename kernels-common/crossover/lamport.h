// Lamport's protocol: a value says by itself that it has arrived. Places hold a mark before; whoever sends replaces
// the mark in its payload, here every -0.0 of a float by +0.0, and whoever polls waits until no word is the mark. Words
// are compared as bits: as floats, a flushed subnormal would look like the mark for ever. A pack may tear between words,
// so every word is looked at.
//
// Three slots in rotation, of this protocol's own calls. Such a call clears what the one before it received; the first
// to write there is a peer in the Lamport call after next, which has finished the next, for which this rank had to finish
// this one. The extent that is cleared is the one that was written, whatever this call's is.
#pragma once
#include <crossover/numerics.h>
#include <crossover/places.h>
#include <crossover/tensor.h>
#include <crossover/wait.h>

// The Lamport half of the state.
struct Turn {
  uint32_t slot;
  uint32_t before;        // the slot of the Lamport call before
  uint32_t dirty_before;  // its packs of each rank
};

PLATFORM_DEVICE Turn read_turn(const Common& c) {
  const Pack p = load_pack_relaxed(reinterpret_cast<const void*>(c.state + 16));
  Turn t;
  t.slot = p.w[0];
  t.before = t.slot == 0 ? 2 : t.slot - 1;
  t.dirty_before = t.before == 0 ? p.w[1] : t.before == 1 ? p.w[2] : p.w[3];
  return t;
}

// For the thread that advances the epoch.
PLATFORM_DEVICE void advance_turn(const Common& c, const Turn& t, uint64_t packs) {
  State* state = reinterpret_cast<State*>(c.state);
  store_relaxed_u32(&state->lamport_dirty[t.before], 0);
  store_relaxed_u32(&state->lamport_dirty[t.slot], uint32_t(packs));
  store_relaxed_u32(&state->lamport_slot, t.slot == 2 ? 0 : t.slot + 1);
}

// What travels instead of the word: no -0.0, whichever of its halves it is in.
template <class T>
PLATFORM_DEVICE uint32_t unmarked(uint32_t word) {
  if (T::PER_WORD == 1) return word == LAMPORT_EMPTY ? 0 : word;
  if (word >> 16 == 0x8000u) word &= 0x0000FFFFu;
  if ((word & 0xFFFFu) == 0x8000u) word &= 0xFFFF0000u;
  return word;
}

template <class T>
PLATFORM_DEVICE Pack unmarked_pack(Pack p) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) p.w[i] = unmarked<T>(p.w[i]);
  return p;
}

PLATFORM_DEVICE bool is_marked(const Pack& p) {
  // Without a branch between.
  return (p.w[0] == LAMPORT_EMPTY) | (p.w[1] == LAMPORT_EMPTY) | (p.w[2] == LAMPORT_EMPTY) | (p.w[3] == LAMPORT_EMPTY);
}

// To every peer.
template <uint32_t N>
PLATFORM_DEVICE void send_lamport(const Common& c, const Places<N>& p, const Turn& t, uint32_t i, const Pack& own) {
  const uint64_t to = p.to(c, t.slot, c.rank, i);
#pragma unroll
  for (uint32_t peer = 0; peer < N; ++peer) {
    if (has_rank<N>(c, peer) && peer != c.rank) store_pack_relaxed(reinterpret_cast<void*>(p.of(c, peer) + to), own);
  }
}

// Marks what the Lamport call before received, from every peer. Threads begin at the other end: where there is little,
// those do it that have nothing to send.
template <uint32_t N>
PLATFORM_DEVICE void clear_before(const Common& c, const Places<N>& p, const Turn& t, uint32_t first, uint32_t stride) {
#ifndef SABOTAGE_SKIP_CLEAR
  const Pack mark = {{LAMPORT_EMPTY, LAMPORT_EMPTY, LAMPORT_EMPTY, LAMPORT_EMPTY}};
  for (uint32_t i = stride - 1 - first; i < t.dirty_before; i += stride) {
#pragma unroll
    for (uint32_t peer = 0; peer < N; ++peer) {
      if (has_rank<N>(c, peer) && peer != c.rank) {
        store_pack_relaxed(reinterpret_cast<void*>(p.own + p.to(c, t.before, peer, i)), mark);
      }
    }
  }
#endif
}

// Pack `i` of `COUNT` ranks from `base` on, once those that are peers have come: all are loaded before one is looked at, as
// in flagged.h.
template <uint32_t N, uint32_t COUNT>
PLATFORM_DEVICE void collect_lamport(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, const Turn& t,
                                     uint32_t base, uint32_t i, Pack (&packs)[COUNT]) {
  const uint64_t mine = p.own + p.to(c, t.slot, 0, i);
  const auto is_missing = [&](uint32_t n) { return (some_rank<N>(c, base + n) != c.rank) & is_marked(packs[n]); };
  wait_until(
      wait, c, e, STEP_LAMPORT,
      [&] {
#pragma unroll
        for (uint32_t n = 0; n < COUNT; ++n) {
          const uint64_t at = mine + uint64_t(some_rank<N>(c, base + n)) * p.place;
          packs[n] = load_pack_relaxed(reinterpret_cast<const void*>(at));
        }
        bool all = true;
#pragma unroll
        for (uint32_t n = 0; n < COUNT; ++n) all &= !is_missing(n);
        return all;
      },
      [&] {
        uint32_t rank = c.rank;
#pragma unroll
        for (uint32_t n = 0; n < COUNT; ++n) rank = is_missing(n) ? base + n : rank;
        return Missing{rank, LAMPORT_EMPTY};
      });
}
