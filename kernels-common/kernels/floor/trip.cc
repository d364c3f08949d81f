// A word goes from rank 0 to rank 1 and back, again and again: what a value takes from the store that sends it to the
// load that sees it. The stores and loads are those of data beside its flag, whose flag needs no order but its own.
#include <platform.h>

#include <crossover/wait.h>

PLATFORM_KERNEL(floor_trip, TripArgs, MAX_THREADS) {
  const Common& c = args.common;
  wait_for_previous_kernel();
  const Epoch e = read_epoch(c);
  if (block_id() != 0 || thread_id() != 0 || e.poisoned) return;
  const uint32_t peer = 1 - c.rank;
  // Each word has one writer, the other rank.
  const uint64_t* mine = reinterpret_cast<const uint64_t*>(c.arenas[c.rank]);
  uint64_t* theirs = reinterpret_cast<uint64_t*>(c.arenas[peer]);
  Wait wait;
  uint64_t began = 0;
  for (uint64_t round = 0; round < args.rounds; ++round) {
    // In the first round one rank waits for the other's launch.
    if (round == 1) began = clock_ns();
    const uint64_t value = args.first + round;
    if (c.rank == 0) store_relaxed_u64(theirs, value);
    uint64_t seen;
    if (!wait_until(
            wait, c, e, STEP_DATA, [&] { return (seen = load_relaxed_u64(mine)) == value; },
            [&] { return Missing{peer, seen}; })) {
      return;
    }
    if (c.rank != 0) store_relaxed_u64(theirs, value);
  }
  store_relaxed_u64(reinterpret_cast<uint64_t*>(args.took), clock_ns() - began);
}
