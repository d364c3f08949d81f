// Data beside its flag: eight bytes of payload travel as two atoms of 64 bits, each half payload, half flag. An atom
// arrives whole, so a flag that has come vouches for its payload: no barrier, no fence, no reserved value.
//
// Three slots in rotation, of calls that push. In such a call a rank writes the slot of its peers that is due; the first
// to write there again is a peer three such calls later, which has finished the second, for which this rank had to finish the first
// and so to have read its slot of this one. A flag counts such calls and so comes again after 2^32 of them: `scrub` clears
// every place long before, in some 12,000 calls where a place has 1 MiB.
#pragma once
#include <crossover/numerics.h>
#include <crossover/places.h>
#include <crossover/tensor.h>
#include <crossover/wait.h>

// Payload bytes of a line.
constexpr uint64_t LINE_BYTES = 8;

// Where lines are; `place` are payload bytes of one rank's place.
template <uint32_t N>
PLATFORM_DEVICE Places<N> line_places(const Common& c, uint64_t region, uint64_t place) {
  return Places<N>(c, region, place * 2);
}

PLATFORM_DEVICE uint32_t slot_in_use(uint32_t slot) {
#ifdef SABOTAGE_ONE_SLOT
  return slot * 0;
#else
  return slot;
#endif
}

// Behind a call that pushed.
PLATFORM_DEVICE void advance_push(const Common& c, const Epoch& e) {
  advance_states(c, [&](State* state) { write_epoch(state, e.number + 1, next_flag(e.flag), next_of_three(e.slot)); });
}

// And behind one that pushed shares besides.
PLATFORM_DEVICE void advance_shares(const Common& c, const Epoch& e) {
  advance_states(c, [&](State* state) {
    write_epoch(state, e.number + 1, next_flag(e.flag), next_of_three(e.slot));
    store_relaxed_u32(&state->share_flag, next_flag(e.share_flag));
    store_relaxed_u32(&state->share_slot, next_of_three(e.share_slot));
  });
}

PLATFORM_DEVICE Line flagged(uint64_t payload, uint32_t flag) {
  const uint64_t high = uint64_t(flag) << 32;
  return Line{{(payload & 0xFFFFFFFFu) | high, (payload >> 32) | high}};
}

// Without a branch between.
PLATFORM_DEVICE bool has_come(const Line& line, uint32_t flag) {
  return (uint32_t(line.a[0] >> 32) == flag) & (uint32_t(line.a[1] >> 32) == flag);
}

PLATFORM_DEVICE uint64_t payload_of(const Line& line) { return (line.a[0] & 0xFFFFFFFFu) | line.a[1] << 32; }

// To every peer, the same.
template <uint32_t N>
PLATFORM_DEVICE void push_to_all(const Common& c, const Places<N>& p, uint32_t slot, uint32_t i, Line line) {
  const uint64_t to = p.to(c, slot_in_use(slot), c.rank, i);
#pragma unroll
  for (uint32_t peer = 0; peer < N; ++peer) {
    if (has_rank<N>(c, peer) && peer != c.rank) store_line_relaxed(reinterpret_cast<void*>(p.of(c, peer) + to), line);
  }
}

template <uint32_t N, Work WORK>
PLATFORM_DEVICE void push_given(const Common& c, const Epoch& e, const Places<N>& p, const Given<uint64_t, WORK>& given) {
  given.template each<Group<N>::FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
#pragma unroll
    for (uint32_t f = 0; f < decltype(flight)::SIZE; ++f) {
      push_to_all<N>(c, p, e.slot, i + f * given.stride, flagged(own[f], e.flag));
    }
  });
}

// To each peer its part, of which line `i` is loaded for as many peers as there is room for before one is stored.
template <uint32_t N, Work WORK>
PLATFORM_DEVICE void push_parts(const Common& c, const Epoch& e, const Places<N>& p, const PartsArgs& a, uint32_t first,
                                uint32_t stride) {
  uint64_t most = 0;
#pragma unroll
  for (uint32_t peer = 0; peer < N; ++peer) {
    if (has_rank<N>(c, peer) && peer != c.rank && a.send_bytes[peer] > most) most = a.send_bytes[peer];
  }
  for_units<WORK, 1>(first, uint32_t(units(most, LINE_BYTES)), stride, [&](uint32_t i, auto) {
    const uint64_t to = p.to(c, slot_in_use(e.slot), c.rank, i);
#pragma unroll
    for (uint32_t base = 0; base < N; base += Group<N>::SIZE) {
      if (!has_rank<N>(c, base)) break;
      uint64_t own[Group<N>::SIZE];
      const auto is_sent = [&](uint32_t peer) {
        return has_rank<N>(c, peer) && peer != c.rank && i < units(a.send_bytes[peer], LINE_BYTES);
      };
#pragma unroll
      for (uint32_t n = 0; n < Group<N>::SIZE; ++n) {
        const uint32_t peer = base + n;
        const Tensor<WORK> part{a.input + a.send_at[peer], a.send_bytes[peer]};
        own[n] = is_sent(peer) ? part.load8(i) : 0;
      }
#pragma unroll
      for (uint32_t n = 0; n < Group<N>::SIZE; ++n) {
        const uint32_t peer = base + n;
        if (is_sent(peer)) store_line_relaxed(reinterpret_cast<void*>(p.of(c, peer) + to), flagged(own[n], e.flag));
      }
    }
  });
}

// Lines `i`, `i + stride`, ... of `COUNT` ranks from `base` on, once those that are peers' have come. All are loaded before one is
// looked at, so that they cost one trip and not one each; this rank's own place is loaded for nothing, since a branch would part
// them.
template <uint32_t N, uint32_t FLIGHT, uint32_t COUNT>
PLATFORM_DEVICE void collect(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, uint32_t slot, uint32_t flag,
                             uint32_t base, uint32_t i, uint32_t stride, uint32_t step, Line (&lines)[FLIGHT][COUNT]) {
  const uint64_t mine = p.own + p.to(c, slot_in_use(slot), 0, i);
  const auto is_missing = [&](uint32_t f, uint32_t n) {
    return (some_rank<N>(c, base + n) != c.rank) & !has_come(lines[f][n], flag);
  };
  wait_until(
      wait, c, e, step,
      [&] {
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
          const uint32_t f = k / COUNT, n = k % COUNT;
          const uint64_t at = mine + uint64_t(some_rank<N>(c, base + n)) * p.place + uint64_t(f * stride) * 16;
          lines[f][n] = load_line_relaxed(reinterpret_cast<const void*>(at));
        }
        bool all = true;
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) all &= !is_missing(k / COUNT, k % COUNT);
        return all;
      },
      [&] {
        Missing m{c.rank, 0};
#pragma unroll
        for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
          const uint32_t f = k / COUNT, n = k % COUNT;
          if (is_missing(f, n)) m = Missing{base + n, lines[f][n].a[0]};
        }
        return m;
      });
}

// Lines that a call clears in every rank's place of the slot that the call before used, which nobody writes before the
// next one has begun.
constexpr uint32_t SCRUBBED = 32;

// `flag` counts the calls of this region, and `slot` is the one of this call. A place has a power of two of lines and there are
// three slots, so that all lines of all slots have their turn.
template <uint32_t N>
PLATFORM_DEVICE void scrub(const Common& c, const Places<N>& p, uint32_t flag, uint32_t slot) {
#ifndef SABOTAGE_NO_SCRUB
  if (block_id() != 0 || thread_id() >= SCRUBBED) return;
  const uint32_t before = slot_in_use(slot == 0 ? 2 : slot - 1);
  const uint32_t i = (flag * SCRUBBED + thread_id()) & (p.place / 16 - 1);
  for (uint32_t sender = 0; sender < c.world; ++sender) {
    store_line_relaxed(reinterpret_cast<void*>(p.own + p.to(c, before, sender, i)), Line{{0, 0}});
  }
#endif
}

// Lines `i`, `i + stride`, ... of all ranks, reduced; `own` are this rank's payloads.
template <class T, class Op, uint32_t N, uint32_t FLIGHT>
PLATFORM_DEVICE void reduce_lines(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p, uint32_t i, uint32_t stride,
                                  const uint64_t (&own)[FLIGHT], uint64_t (&results)[FLIGHT]) {
  uint32_t mine[FLIGHT][2], words[FLIGHT][2];
#pragma unroll
  for (uint32_t f = 0; f < FLIGHT; ++f) {
    mine[f][0] = uint32_t(own[f]);
    mine[f][1] = uint32_t(own[f] >> 32);
  }
  reduce_ranks<T, Op, N>(c, mine, words, [&](uint32_t base, auto& come) {
    constexpr uint32_t COUNT = sizeof(come[0]) / sizeof(come[0][0]);
    Line lines[FLIGHT][COUNT];
    collect<N>(wait, c, e, p, e.slot, e.flag, base, i, stride, STEP_DATA, lines);
#pragma unroll
    for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
      const uint32_t f = k / COUNT, n = k % COUNT;
      come[f][n][0] = uint32_t(lines[f][n].a[0]);
      come[f][n][1] = uint32_t(lines[f][n].a[1]);
    }
  });
#pragma unroll
  for (uint32_t f = 0; f < FLIGHT; ++f) results[f] = uint64_t(words[f][0]) | uint64_t(words[f][1]) << 32;
}
