// Leaves a mark with every rank, by the stores that collectives use. Each owner then looks into its own memory: a writer
// that reads back what it wrote proves nothing, since the path may end in a copy of its own.
#include <platform.h>

#include <crossover/barrier.h>

PLATFORM_KERNEL(probe, ProbeArgs, MAX_THREADS) {
  const Common& c = args.common;
  const uint32_t peer = thread_id();
  if (block_id() == 0 && peer < c.world) {
    store_release_u64(barrier_word(c.arenas[peer], args.barrier, c.rank), args.mark);
  }
}
