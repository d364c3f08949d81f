// all_gather, broadcast and all_to_all, push: every rank writes into each peer's arena what that peer is to receive, each
// value beside its flag. One trip; every bit pattern, whatever the elements are.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/own_part.h>
#include <crossover/token.h>

// SAME: all peers receive the same part, which is read once.
template <bool SAME, uint32_t ROOM>
PLATFORM_DEVICE void copy_push(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  const Slot slot = flagged_slot(c, e, a.region, a.place);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  if (SAME) {
    const uint64_t bytes = a.send_bytes[c.rank], part = a.input + a.send_at[c.rank];
    for (uint64_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
      push_to_all<ROOM>(c, slot, i, flagged(load_unit8(part, i, bytes), e.flag()));
    }
  } else {
#pragma unroll
    for (uint32_t peer = 0; peer < ROOM; ++peer) {
      if (peer >= c.world || peer == c.rank) continue;
      for (uint64_t i = first; i < units(a.send_bytes[peer], LINE_BYTES); i += stride) {
        store_line_relaxed(reinterpret_cast<void*>(slot.line(c.arenas[peer], c.rank, i)),
                           flagged(load_unit8(a.input + a.send_at[peer], i, a.send_bytes[peer]), e.flag()));
      }
    }
  }
  if (a.tokens) send_token(c, e, a.barrier);
  copy_own_part(a, first, stride);
  scrub(c, e, a.region, a.place);
  arrive(c, e);
  Wait wait;
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const uint64_t bytes = a.receive_bytes[peer], to = a.output + a.receive_at[peer];
    for (uint64_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
      uint64_t payload;
      collect<1>(wait, c, e, slot, peer, i, 0, STEP_DATA, &payload);
      store_unit8(to, i, bytes, payload);
    }
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
}

#define COPY_PUSH_ENTRIES(ROOM)                                                                \
  PLATFORM_KERNEL(copy_push_same_##ROOM, PartsArgs, MAX_THREADS) { copy_push<true, ROOM>(args); } \
  PLATFORM_KERNEL(copy_push_each_##ROOM, PartsArgs, MAX_THREADS) { copy_push<false, ROOM>(args); }

COPY_PUSH_ENTRIES(2)
COPY_PUSH_ENTRIES(4)
COPY_PUSH_ENTRIES(8)
COPY_PUSH_ENTRIES(16)
