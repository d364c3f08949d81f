// all_gather, broadcast and all_to_all, pull: every rank stages what its peers are to receive, meets them, and reads what
// they staged for it. Everybody meets everybody, so parts may differ and be empty.
#include <platform.h>

#include <crossover/own_part.h>
#include <crossover/stage.h>

// SAME: all peers receive the same part, which is staged once, at the stage's start.
template <bool SAME>
PLATFORM_DEVICE void copy_pull(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  if (SAME) {
    const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
    copy_units(mine, a.input + a.send_at[c.rank], a.send_bytes[c.rank], first, stride);
  } else {
    stage_parts(c, e, a, first, stride);
  }
  copy_own_part(a, first, stride);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER, true);
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const uint64_t from = stage_of(c.arenas[peer], e, a.region, a.place) + a.fetch_at[peer];
    copy_units(a.output + a.receive_at[peer], from, a.receive_bytes[peer], first, stride);
  }
  advance(c, e, arrived);
}

PLATFORM_KERNEL(gather_pull, PartsArgs, MAX_THREADS) { copy_pull<true>(args); }
PLATFORM_KERNEL(parts_pull, PartsArgs, MAX_THREADS) { copy_pull<false>(args); }
