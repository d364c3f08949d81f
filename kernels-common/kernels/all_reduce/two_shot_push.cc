// all_reduce, two_shot_push: every rank writes the share of each peer into that peer's arena, reduces its own share, and
// writes the result into every arena. Two trips, two shares of the bytes; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

// Line j of the shares that peers have reduced, into the output. Shares are equal but for the last, which may be shorter
// or empty: of a line that is not there nothing is awaited.
template <uint32_t N>
PLATFORM_DEVICE void collect_shares(Wait& wait, const Common& c, const Epoch& e, const Slot& shares, uint32_t flag,
                                    const AllReduceArgs& a, uint64_t j, uint64_t share, uint64_t lines) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const bool is_everywhere = (c.world - 1) * share + j < lines;
#pragma unroll
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Line arrived[COUNT];
    if (is_everywhere) {
      collect<N, COUNT>(wait, c, e, shares, flag, base, j, STEP_SHARE, arrived);
    }
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      const uint32_t peer = base + n;
      const uint64_t i = peer * share + j;
      if (has_rank<N>(c, peer) && peer != c.rank && i < lines) {
        if (!is_everywhere) collect<N, 1>(wait, c, e, shares, flag, peer, j, STEP_SHARE, &arrived[n]);
        store_unit8(a.output, i, a.bytes, payload_of(arrived[n]));
      }
    }
  }
}

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void two_shot_push(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t lines = units(a.bytes, LINE_BYTES), share = units(lines, c.world);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  const Slot parts = slot_of(c, slots.slot, a.region, a.place);
  const Slot shares = slot_of(c, slots.share_slot, a.second, a.second_place);
  // A thread has line j of every share, from here to the end: in place, nobody writes what another has yet to read.
  for (uint64_t j = first; j < share; j += stride) {
#pragma unroll
    for (uint32_t peer = 0; peer < N; ++peer) {
      const uint64_t i = peer * share + j;
      if (has_rank<N>(c, peer) && peer != c.rank && i < lines) {
        store_line_relaxed(reinterpret_cast<void*>(parts.line(c.arenas[peer], c.rank, j)),
                           flagged(load_unit8(a.input, i, a.bytes), e.flag));
      }
    }
  }
  scrub(c, e.flag, slots.slot, a.region, a.place);
  scrub(c, slots.share_flag, slots.share_slot, a.second, a.second_place);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint64_t j = first; j < share; j += stride) {
    const uint64_t i = c.rank * share + j;
    if (i >= lines) break;
    const uint64_t result = reduce_lines<T, Op, N>(wait, c, e, parts, j, load_unit8(a.input, i, a.bytes));
    // A sum that something is missing of is nobody else's.
    if (wait.given_up) break;
    push_to_all<N>(c, shares, j, flagged(result, slots.share_flag));
    store_unit8(a.output, i, a.bytes, result);
  }
  for (uint64_t j = first; j < share; j += stride) {
    collect_shares<N>(wait, c, e, shares, slots.share_flag, a, j, share, lines);
  }
  if (advance(c, e, arrived)) {
    advance_push(c, e, slots);
    advance_shares(c, slots);
  }
}

REDUCTION_ENTRIES(two_shot_push, AllReduceArgs)
