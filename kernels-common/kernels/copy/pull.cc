// all_gather, broadcast and all_to_all, pull: every rank meets its peers and reads what they have for it, where it is if the
// group exchanged the addresses (a row), or from their stages, a piece at a time. Everybody meets everybody, so parts may
// differ and be empty. What is read where it is must not be written meanwhile: a gather's own part is not, nor is what the
// root of a broadcast sends, but for all_to_all a call in place stages.
#include <platform.h>

#include <crossover/stage.h>

// The piece from `begin` on of every part that this rank receives, the ranks by turns, each rank beginning with another: all
// links are busy at a time, and the memory with this rank's own part, which comes last.
PLATFORM_DEVICE void copy_parts(const PartsArgs& a, const Epoch& e, const uint64_t* row, uint64_t begin, uint64_t most,
                                uint64_t first, uint64_t stride) {
  const Common& c = a.common;
  uint64_t longest = 0;
  for (uint32_t rank = 0; rank < c.world; ++rank) {
    const uint64_t bytes = piece_of(a.receive_bytes[rank], begin, most);
    if (bytes > longest) longest = bytes;
  }
  for (uint64_t i = first; i < units(longest, 16); i += FLIGHT * stride) {
    uint32_t rank = c.rank;
    for (uint32_t n = 0; n < c.world; ++n) {
      rank = rank + 1 == c.world ? 0 : rank + 1;
      const uint64_t to = a.output + a.receive_at[rank] + begin, from = part_from(a, e, row, rank, begin);
      if (to != from) copy_flight(to, from, piece_of(a.receive_bytes[rank], begin, most), i, stride);
    }
  }
}

// SAME: all peers receive the same part, which is staged once, at the stage's start.
template <bool SAME>
PLATFORM_DEVICE void copy_pull(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  Epoch e = read_epoch(c);
  if (e.poisoned) return;
  Wait wait;
  const uint64_t* row = committed_row(wait, c, e, a.row);
  const uint64_t pieces = row ? 1 : a.pieces, most = row ? ~uint64_t(0) : a.piece;
  advance(c, e, pieces);
  for (uint64_t n = 0; n < pieces; ++n) {
    const uint64_t begin = n * most;
    if (n > 0) ++e.number;
    if (!row && SAME) {
      const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
      const uint64_t bytes = piece_of(a.send_bytes[c.rank], begin, most);
      copy_units(mine, a.input + a.send_at[c.rank] + begin, bytes, first, stride);
    } else if (!row) {
      stage_parts(c, e, a, begin, first, stride);
    }
    if (!meet(wait, c, e, a.barrier, 0, STEP_BARRIER, !row)) break;
    copy_parts(a, e, row, begin, most, first, stride);
  }
  if (row) leave_inputs(wait, c, e, a.barrier);
}

PLATFORM_KERNEL(gather_pull, PartsArgs, MAX_THREADS) { copy_pull<true>(args); }
PLATFORM_KERNEL(parts_pull, PartsArgs, MAX_THREADS) { copy_pull<false>(args); }
