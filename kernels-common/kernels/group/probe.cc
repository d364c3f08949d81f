// Leaves a mark with every rank, by the stores that collectives use, and reads it back by their loads. Each owner then
// looks into its own memory: a writer that reads back what it wrote proves nothing alone, since the path may end in a
// copy of its own.
#include <platform.h>

#include <crossover/barrier.h>

PLATFORM_KERNEL(probe, ProbeArgs, MAX_THREADS) {
  const Common& c = args.common;
  const uint32_t peer = thread_id();
  if (block_id() == 0 && peer < c.world) {
    uint64_t* theirs = barrier_word(c.arenas[peer], args.barrier, c.rank);
    store_release_u64(theirs, args.mark);
    // What was read is left in this rank's own words of block 1, which nobody else writes meanwhile.
    store_relaxed_u64(barrier_word(c.arenas[c.rank], args.barrier, peer) + MAX_WORLD, load_acquire_u64(theirs));
  }
}
