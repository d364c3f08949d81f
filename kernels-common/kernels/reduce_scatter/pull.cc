// reduce_scatter, pull: every rank stages the parts of its peers, meets them, and reduces its part of every stage.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

template <class T, class Op, uint32_t ROOM>
PLATFORM_DEVICE void reduce_scatter_pull(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
#pragma unroll
  for (uint32_t peer = 0; peer < ROOM; ++peer) {
    if (peer >= c.world || peer == c.rank) continue;
    const uint64_t packs = units(a.send_bytes[peer], 16);
    for (uint64_t i = first; i < packs; i += stride) {
      store_pack(reinterpret_cast<void*>(mine + a.stage_at[peer] + i * 16),
                 load_unit16(a.input + a.send_at[peer], i, a.send_bytes[peer]));
    }
  }
  arrive(c, e);
  Wait wait;
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER);
  const uint64_t bytes = a.send_bytes[c.rank], packs = units(bytes, 16);
  uint64_t from[ROOM];
#pragma unroll
  for (uint32_t peer = 0; peer < ROOM; ++peer) {
    if (peer < c.world) {
      from[peer] = peer == c.rank ? a.input + a.send_at[peer]
                                  : stage_of(c.arenas[peer], e, a.region, a.place) + a.fetch_at[peer];
    }
  }
  for (uint64_t i = first; i < packs; i += stride) {
    store_unit16(a.output, i, bytes, reduce_packs<T, Op, ROOM>(c, from, i, bytes));
  }
}

REDUCTION_ENTRIES(reduce_scatter_pull, PartsArgs)
