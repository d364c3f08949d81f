// all_gather, broadcast and all_to_all, push: every rank writes into each peer's arena what that peer is to receive, each
// value beside its flag. One trip; every bit pattern, whatever the elements are.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/own_part.h>
#include <crossover/token.h>

// Every peer receives the same, which is read once, and every rank gives as much: all lines of a place in the
// concatenation are awaited together.
template <uint32_t N>
PLATFORM_DEVICE void gather_push(const PartsArgs& a) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t bytes = a.send_bytes[c.rank], part = a.input + a.send_at[c.rank];
  const uint64_t lines = units(bytes, LINE_BYTES);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  // On its way together with the state.
  const uint64_t mine = first < lines ? load_unit8(part, first, bytes) : 0;
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  const Slot slot = slot_of(c, slots.slot, a.region, a.place);
  for (uint64_t i = first; i < lines; i += stride) {
    push_to_all<N>(c, slot, i, flagged(i == first ? mine : load_unit8(part, i, bytes), e.flag));
  }
  scrub(c, e.flag, slots.slot, a.region, a.place);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint64_t i = first; i < lines; i += stride) {
    const uint64_t own = i == first ? mine : load_unit8(part, i, bytes);
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Line come[COUNT];
      collect<N, COUNT>(wait, c, e, slot, e.flag, base, i, STEP_DATA, come);
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint32_t rank = base + n;
        if (!has_rank<N>(c, rank)) break;
        store_unit8(a.output + a.receive_at[rank], i, bytes, rank == c.rank ? own : payload_of(come[n]));
      }
    }
  }
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

// Parts may differ, and be empty.
PLATFORM_DEVICE void push_each(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  const Slot slot = slot_of(c, slots.slot, a.region, a.place);
  push_parts(c, e, slot, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  copy_own_part(a, first, stride);
  scrub(c, e.flag, slots.slot, a.region, a.place);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const uint64_t bytes = a.receive_bytes[peer], to = a.output + a.receive_at[peer];
    for (uint64_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
      Line come;
      collect<ANY, 1>(wait, c, e, slot, e.flag, peer, i, STEP_DATA, &come);
      store_unit8(to, i, bytes, payload_of(come));
    }
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

PLATFORM_KERNEL(gather_push_2, PartsArgs, MAX_THREADS) { gather_push<2>(args); }
PLATFORM_KERNEL(gather_push_4, PartsArgs, MAX_THREADS) { gather_push<4>(args); }
PLATFORM_KERNEL(gather_push_8, PartsArgs, MAX_THREADS) { gather_push<8>(args); }
PLATFORM_KERNEL(gather_push_any, PartsArgs, MAX_THREADS) { gather_push<ANY>(args); }
PLATFORM_KERNEL(parts_push, PartsArgs, MAX_THREADS) { push_each(args); }
