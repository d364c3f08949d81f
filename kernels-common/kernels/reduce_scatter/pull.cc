// reduce_scatter, pull: every rank meets its peers and reduces its part of every tensor, where that is if the group exchanged
// the addresses (a row), or as it is staged, a piece at a time. In place is safe both ways: of this rank's input peers read
// their own parts alone, and only the part that this rank keeps is written.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void reduce_scatter_pull(const PartsArgs& a) {
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
    if (!row) stage_parts(c, e, a, begin, first, stride);
    if (!meet(wait, c, e, a.barrier, 0, STEP_BARRIER, !row)) break;
    const uint64_t bytes = piece_of(a.send_bytes[c.rank], begin, most), output = a.output + begin;
    const auto from = [&](uint32_t rank) { return part_from(a, e, row, rank, begin); };
    const auto store = [&](uint64_t i, const Pack& p, bool whole) {
      if (whole) store_pack(reinterpret_cast<void*>(output + i * 16), p);
      else store_unit16(output, i, bytes, p);
    };
    reduce_tensors<T, Op, N>(c, from, bytes, output, first, units(bytes, 16), stride, store);
  }
  if (row) leave_inputs(wait, c, e, a.barrier);
}

REDUCTION_ENTRIES(reduce_scatter_pull, PartsArgs)
