// all_gather, broadcast and all_to_all, pull: every rank stages what its peers are to receive, meets them, and reads what
// they staged for it. Everybody meets everybody, so parts may be empty.
#include <platform.h>

#include <crossover/own_part.h>
#include <crossover/stage.h>

// SAME: all peers receive the same part, which is staged once, at the stage's start.
template <bool SAME, uint32_t ROOM>
PLATFORM_DEVICE void copy_pull(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
  if (SAME) {
    const uint64_t bytes = a.send_bytes[c.rank], part = a.input + a.send_at[c.rank];
    for (uint64_t i = first; i < units(bytes, 16); i += stride) {
      store_pack(reinterpret_cast<void*>(mine + i * 16), load_unit16(part, i, bytes));
    }
  } else {
#pragma unroll
    for (uint32_t peer = 0; peer < ROOM; ++peer) {
      if (peer >= c.world || peer == c.rank) continue;
      for (uint64_t i = first; i < units(a.send_bytes[peer], 16); i += stride) {
        store_pack(reinterpret_cast<void*>(mine + a.stage_at[peer] + i * 16),
                   load_unit16(a.input + a.send_at[peer], i, a.send_bytes[peer]));
      }
    }
  }
  copy_own_part(a, first, stride);
  arrive(c, e);
  Wait wait;
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER);
#pragma unroll
  for (uint32_t peer = 0; peer < ROOM; ++peer) {
    if (peer >= c.world || peer == c.rank) continue;
    const uint64_t bytes = a.receive_bytes[peer], to = a.output + a.receive_at[peer];
    const uint64_t from = stage_of(c.arenas[peer], e, a.region, a.place) + a.fetch_at[peer];
    for (uint64_t i = first; i < units(bytes, 16); i += stride) {
      store_unit16(to, i, bytes, load_pack(reinterpret_cast<const void*>(from + i * 16)));
    }
  }
}

#define COPY_PULL_ENTRIES(ROOM)                                                                \
  PLATFORM_KERNEL(copy_pull_same_##ROOM, PartsArgs, MAX_THREADS) { copy_pull<true, ROOM>(args); } \
  PLATFORM_KERNEL(copy_pull_each_##ROOM, PartsArgs, MAX_THREADS) { copy_pull<false, ROOM>(args); }

COPY_PULL_ENTRIES(2)
COPY_PULL_ENTRIES(4)
COPY_PULL_ENTRIES(8)
COPY_PULL_ENTRIES(16)
