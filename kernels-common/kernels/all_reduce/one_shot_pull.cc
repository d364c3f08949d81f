// all_reduce, one_shot_pull: every rank reads every peer's tensor, staged in its arena, or where it is if the group
// exchanged the addresses (a row). The second way copies nothing, needs a barrier at the end, and is not for calls in place:
// those write where peers still read.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void one_shot_pull(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t packs = units(a.bytes, 16);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  Wait wait;
  const uint64_t* row = committed_row(wait, c, e, a.row);
  if (!row) copy_units(stage_of(c.arenas[c.rank], e, a.region, a.place), a.input, a.bytes, first, stride);
  advance(c, e, 1);
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER, !row);
  const auto from = [&](uint32_t rank) {
    if (rank == c.rank) return a.input;
    return row ? row[rank] : stage_of(c.arenas[rank], e, a.region, a.place);
  };
  reduce_tensors<T, Op, N>(c, from, a.bytes, a.output, first, packs, stride, [&](uint64_t i, const Pack& p, bool whole) {
    if (whole) store_pack(reinterpret_cast<void*>(a.output + i * 16), p);
    else store_unit16(a.output, i, a.bytes, p);
  });
  // A stage is not written again before all have read it; an input may be, as soon as this kernel ends.
  if (row) meet(wait, c, e, a.barrier, 1, STEP_SECOND_BARRIER, false);
}

REDUCTION_ENTRIES(one_shot_pull, AllReduceArgs)
