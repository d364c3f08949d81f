// reduce_scatter, pull: every rank stages the parts of its peers, meets them, and reduces its part of every stage.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void reduce_scatter_pull(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  stage_parts(c, e, a, first, stride);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER, true);
  const auto from = [&](uint32_t rank) {
    return rank == c.rank ? a.input + a.send_at[rank]
                          : stage_of(c.arenas[rank], e, a.region, a.place) + a.fetch_at[rank];
  };
  const uint64_t bytes = a.send_bytes[c.rank];
  const auto store = [&](uint64_t i, const Pack& p, bool whole) {
    if (whole) store_pack(reinterpret_cast<void*>(a.output + i * 16), p);
    else store_unit16(a.output, i, bytes, p);
  };
  reduce_tensors<T, Op, N>(c, from, bytes, a.output, first, units(bytes, 16), stride, store);
  advance(c, e, arrived);
}

REDUCTION_ENTRIES(reduce_scatter_pull, PartsArgs)
