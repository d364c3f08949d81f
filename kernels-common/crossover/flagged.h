// Data beside its flag: eight bytes of payload travel as two atoms of 64 bits, each half payload, half flag. An atom
// arrives whole, so a flag that has come vouches for its payload: no barrier, no fence, no reserved value.
//
// Three slots in rotation, of calls that push. In such a call a rank writes the slot of its peers that is due; the first
// to write there again is a peer three such calls later, which has finished the second, for which this rank had to finish the first
// and so to have read its slot of this one. A flag counts such calls and so comes again after 2^32 of them: `scrub` clears
// every place long before, in some 12,000 calls where a place has 1 MiB.
#pragma once
#include <crossover/numerics.h>
#include <crossover/tensor.h>
#include <crossover/wait.h>
#include <crossover/world.h>

// Payload bytes of a line.
constexpr uint64_t LINE_BYTES = 8;

// Where a region's slot of this call starts in an arena; `place` are payload bytes of one rank's place.
struct Slot {
  uint64_t at;
  uint64_t place;

  PLATFORM_DEVICE_MEMBER uint64_t line(uint64_t arena, uint32_t sender, uint64_t i) const {
    return arena + at + (sender * place + i * LINE_BYTES) * 2;
  }
};

// What the state says of the slots of calls that push.
struct Slots {
  uint32_t slot;
  uint32_t share_flag;
  uint32_t share_slot;
};

PLATFORM_DEVICE Slots read_slots(const Common& c) {
  const Pack p = load_pack_relaxed(reinterpret_cast<const void*>(c.state + 32));
  return Slots{p.w[0], p.w[1], p.w[2]};
}

PLATFORM_DEVICE Slot slot_of(const Common& c, uint32_t slot, uint64_t region, uint64_t place) {
#ifdef SABOTAGE_ONE_SLOT
  return Slot{region, place};
#else
  return Slot{region + slot * (c.world * place * 2), place};
#endif
}

// For the thread that advances the epoch of a call that pushed.
PLATFORM_DEVICE void advance_push(const Common& c, const Epoch& e, const Slots& s) {
  State* state = reinterpret_cast<State*>(c.state);
  store_relaxed_u32(&state->flag, next_flag(e.flag));
  store_relaxed_u32(&state->slot, next_of_three(s.slot));
}

// And of one that pushed shares.
PLATFORM_DEVICE void advance_shares(const Common& c, const Slots& s) {
  State* state = reinterpret_cast<State*>(c.state);
  store_relaxed_u32(&state->share_flag, next_flag(s.share_flag));
  store_relaxed_u32(&state->share_slot, next_of_three(s.share_slot));
}

PLATFORM_DEVICE Line flagged(uint64_t payload, uint32_t flag) {
  const uint64_t high = uint64_t(flag) << 32;
  return Line{{(payload & 0xFFFFFFFFu) | high, (payload >> 32) | high}};
}

PLATFORM_DEVICE bool has_come(const Line& line, uint32_t flag) {
  return uint32_t(line.a[0] >> 32) == flag && uint32_t(line.a[1] >> 32) == flag;
}

PLATFORM_DEVICE uint64_t payload_of(const Line& line) { return (line.a[0] & 0xFFFFFFFFu) | line.a[1] << 32; }

// To every peer, the same.
template <uint32_t N>
PLATFORM_DEVICE void push_to_all(const Common& c, const Slot& slot, uint64_t i, Line line) {
#pragma unroll
  for (uint32_t peer = 0; peer < N; ++peer) {
    if (has_rank<N>(c, peer) && peer != c.rank) {
      store_line_relaxed(reinterpret_cast<void*>(slot.line(c.arenas[peer], c.rank, i)), line);
    }
  }
}

// To each peer its part.
PLATFORM_DEVICE void push_parts(const Common& c, const Epoch& e, const Slot& slot, const PartsArgs& a, uint64_t first,
                                uint64_t stride) {
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const uint64_t bytes = a.send_bytes[peer], part = a.input + a.send_at[peer];
    for (uint64_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
      store_line_relaxed(reinterpret_cast<void*>(slot.line(c.arenas[peer], c.rank, i)),
                         flagged(load_unit8(part, i, bytes), e.flag));
    }
  }
}

// Line `i` of `COUNT` ranks from `base` on, once those that are peers have come. All are loaded before one is looked at,
// so that they cost one trip and not one each; this rank's own place is loaded for nothing, since a branch would part them.
template <uint32_t N, uint32_t COUNT>
PLATFORM_DEVICE void collect(Wait& wait, const Common& c, const Epoch& e, const Slot& slot, uint32_t flag, uint32_t base,
                             uint64_t i, uint32_t step, Line* lines) {
  for (;;) {
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      const uint32_t rank = some_rank<N>(c, base + n);
      lines[n] = load_line_relaxed(reinterpret_cast<const void*>(slot.line(c.arenas[c.rank], rank, i)));
    }
    uint32_t missing = MAX_WORLD;
    uint64_t seen = 0;
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      const uint32_t rank = some_rank<N>(c, base + n);
      if (rank != c.rank && !has_come(lines[n], flag)) {
        missing = rank;
        seen = lines[n].a[0];
      }
    }
    if (missing == MAX_WORLD) return;
    if (!look_again(wait, c, e, missing, step, seen)) return;
  }
}

// Lines that a call clears in every rank's place of the slot that the call before used, which nobody writes before the
// next one has begun.
constexpr uint32_t SCRUBBED = 32;

// `flag` counts the calls of this region, and `slot` is the one of this call. A place has a power of two of lines and there are
// three slots, so that all lines of all slots have their turn.
PLATFORM_DEVICE void scrub(const Common& c, uint32_t flag, uint32_t slot, uint64_t region, uint64_t place) {
#ifndef SABOTAGE_NO_SCRUB
  if (block_id() != 0 || thread_id() >= SCRUBBED) return;
  const Slot before = slot_of(c, slot == 0 ? 2 : slot - 1, region, place);
  const uint64_t i = (uint64_t(flag) * SCRUBBED + thread_id()) & (place / LINE_BYTES - 1);
  for (uint32_t sender = 0; sender < c.world; ++sender) {
    store_line_relaxed(reinterpret_cast<void*>(before.line(c.arenas[c.rank], sender, i)), Line{{0, 0}});
  }
#endif
}

// Line `i` of all ranks, reduced, in the order of ranks, a group at a time; `own` is this rank's payload.
template <class T, class Op, uint32_t N>
PLATFORM_DEVICE uint64_t reduce_lines(Wait& wait, const Common& c, const Epoch& e, const Slot& slot, uint64_t i,
                                      uint64_t own) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  Accumulator<T, Op, 2> sum;
#pragma unroll
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Line lines[COUNT];
    collect<N, COUNT>(wait, c, e, slot, e.flag, base, i, STEP_DATA, lines);
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      const uint64_t payload = base + n == c.rank ? own : payload_of(lines[n]);
      const uint32_t words[2] = {uint32_t(payload), uint32_t(payload >> 32)};
      if (base + n == 0) sum.start(words);
      else if (has_rank<N>(c, base + n)) sum.add(words, c.reduce_op);
    }
  }
  uint32_t words[2];
  sum.finish(words, c);
  return uint64_t(words[0]) | uint64_t(words[1]) << 32;
}
