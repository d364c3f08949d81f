// Reads bytes and writes them elsewhere, as soon as the kernel ahead has ended: what memory, or a link to a peer's,
// takes for them. Behind another kernel it is that one's consumer, who reads at once.
#include <platform.h>

#include <crossover/tensor.h>

PLATFORM_KERNEL(floor_copy, CopyArgs, MAX_THREADS) {
  wait_for_previous_kernel();
  if (args.early) let_next_kernel_start();
  copy_units(args.to, args.from, args.bytes, block_id() * block_size() + thread_id(), grid_size() * block_size());
}
