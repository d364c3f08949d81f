// all_reduce, one_shot_pull: every rank reads every peer's tensor, staged in its arena, or where it is if the group
// exchanged the addresses (a row). The second way copies nothing, needs a barrier at the end, and is not for calls in place:
// those write where peers still read.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

template <class T, class Op, uint32_t ROOM>
PLATFORM_DEVICE void one_shot_pull(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  Wait wait;
  const uint64_t* row = committed_row(wait, c, e, a.row);
  const uint64_t packs = units(a.bytes, 16);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  uint64_t from[ROOM];
#pragma unroll
  for (uint32_t peer = 0; peer < ROOM; ++peer) {
    if (peer < c.world) from[peer] = row ? row[peer] : stage_of(c.arenas[peer], e, a.region, a.place);
  }
  if (!row) {
    const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
    for (uint64_t i = first; i < packs; i += stride) {
      store_pack(reinterpret_cast<void*>(mine + i * 16), load_unit16(a.input, i, a.bytes));
    }
  }
  arrive(c, e);
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER);
  for (uint64_t i = first; i < packs; i += stride) {
    store_unit16(a.output, i, a.bytes, reduce_packs<T, Op, ROOM>(c, from, i, a.bytes));
  }
  // A stage is not written again before all have read it; an input may be, as soon as this kernel ends.
  if (row) meet(wait, c, e, a.barrier, 1, STEP_SECOND_BARRIER);
}

REDUCTION_ENTRIES(one_shot_pull, AllReduceArgs)
