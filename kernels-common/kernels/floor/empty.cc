// Nothing: what a launch costs by itself.
#include <platform.h>

#include <crossover/abi.h>

PLATFORM_KERNEL(floor_empty, EmptyArgs, MAX_THREADS) {
  wait_for_previous_kernel();
  if (args.early) let_next_kernel_start();
}
