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

// The Lamport part of the state.
struct Turn {
  uint32_t slot;
  uint32_t before;    // the slot of the Lamport call before
  uint32_t dirty[3];  // packs of each rank in each slot

  PLATFORM_DEVICE_MEMBER uint32_t dirty_before() const { return before == 0 ? dirty[0] : before == 1 ? dirty[1] : dirty[2]; }
};

PLATFORM_DEVICE Turn read_turn(const Common& c) {
  const Pack p = load_pack_relaxed(&state_of(c, block_id())->lamport_slot);
  return Turn{p.w[0], p.w[0] == 0 ? 2 : p.w[0] - 1, {p.w[1], p.w[2], p.w[3]}};
}

// Behind a call of so many packs of each rank.
PLATFORM_DEVICE void advance_lamport(const Common& c, const Epoch& e, const Turn& t, uint32_t packs) {
  const auto dirty = [&](uint32_t slot) { return slot == t.slot ? packs : slot == t.before ? 0 : t.dirty[slot]; };
  advance_states(c, [&](State* state) {
    write_epoch(state, e.number + 1, e.flag, e.slot);
    store_pack_relaxed(&state->lamport_slot, Pack{{next_of_three(t.slot), dirty(0), dirty(1), dirty(2)}});
  });
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
struct Unmarked {
  PLATFORM_DEVICE_MEMBER static Pack of(Pack p) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) p.w[i] = unmarked<T>(p.w[i]);
    return p;
  }
};
template <class T, Work WORK>
using GivenUnmarked = Given<Pack, WORK, Unmarked<T>>;

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

template <uint32_t N, class T, Work WORK>
PLATFORM_DEVICE void send_given(const Common& c, const Places<N>& p, const Turn& t, GivenUnmarked<T, WORK>& given) {
  given.form_first();
  given.template each<Group<N>::FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
#pragma unroll
    for (uint32_t f = 0; f < decltype(flight)::SIZE; ++f) send_lamport<N>(c, p, t, i + f * given.stride, own[f]);
  });
}

// Marks what the Lamport call before received, from every peer. Threads begin at the other end: where there is little,
// those do it that have nothing to send.
template <uint32_t N>
PLATFORM_DEVICE void clear_before(const Common& c, const Places<N>& p, const Turn& t, uint32_t first, uint32_t stride) {
#ifndef SABOTAGE_SKIP_CLEAR
  const Pack mark = {{LAMPORT_EMPTY, LAMPORT_EMPTY, LAMPORT_EMPTY, LAMPORT_EMPTY}};
  const uint32_t dirty = t.dirty_before();
  for (uint32_t i = stride - 1 - first; i < dirty; i += stride) {
#pragma unroll
    for (uint32_t peer = 0; peer < N; ++peer) {
      if (has_rank<N>(c, peer) && peer != c.rank) {
        store_pack_relaxed(reinterpret_cast<void*>(p.own + p.to(c, t.before, peer, i)), mark);
      }
    }
  }
#endif
}

// Packs `i`, `i + stride`, ... of `COUNT` ranks from `base` on, once those that are peers' have come: all are loaded before one is
// looked at, as in flagged.h.
template <uint32_t N, uint32_t FLIGHT, uint32_t COUNT>
PLATFORM_DEVICE void collect_lamport(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, const Turn& t,
                                     uint32_t base, uint32_t i, uint32_t stride, Pack (&packs)[FLIGHT][COUNT]) {
  const uint64_t mine = p.own + p.to(c, t.slot, 0, i);
  const auto is_missing = [&](uint32_t f, uint32_t n) {
    return (some_rank<N>(c, base + n) != c.rank) & is_marked(packs[f][n]);
  };
  wait_until(
      wait, c, e, STEP_LAMPORT,
      [&] {
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
          const uint32_t f = k / COUNT, n = k % COUNT;
          const uint64_t at = mine + uint64_t(some_rank<N>(c, base + n)) * p.place + uint64_t(f * stride) * 16;
          packs[f][n] = load_pack_relaxed(reinterpret_cast<const void*>(at));
        }
        bool all = true;
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) all &= !is_missing(k / COUNT, k % COUNT);
        return all;
      },
      [&] {
        uint32_t rank = c.rank;
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) rank = is_missing(k / COUNT, k % COUNT) ? base + k % COUNT : rank;
        return Missing{rank, LAMPORT_EMPTY};
      });
}
