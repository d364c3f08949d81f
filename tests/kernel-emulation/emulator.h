// What the CPU's platform header asks of the runtime. A block is an OS thread, a thread of it a fibre.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace emulator {

using Body = void (*)(const void *);

// An entry point, found by its name. Each makes itself known when its object is loaded.
struct Kernel {
  Kernel(const char *name, Body body, uint32_t max_threads, uint32_t parameter_bytes);

  const char *name;
  Body body;
  uint32_t max_threads;
  uint32_t parameter_bytes;
  const Kernel *next;
};

// The last one made known; the others follow by `next`.
const Kernel *kernels();

// The place of the calling fibre.
uint32_t thread();
uint32_t block();
uint32_t threads();
uint32_t blocks();

// The turn goes to another fibre of the block. `where` is told if the kernel hangs.
void spin(const char *where);
// Until every fibre of the block that has not ended is here.
void barrier(const char *where);
// Called at every access, so that any two can have others between them: now and then a turn ends.
void access();
// Called when something was written: the watchdog takes it for progress.
void stored();
// Below `limit`, from the block's own sequence, so that a seed gives the same choices again.
uint32_t random(uint32_t limit);
// Monotonic nanoseconds.
uint64_t now();

// Until the kernel ahead in the stream has ended, where this one was let in before that.
void await_previous(const char *where);
// This block has no objection to the next kernel's start.
void let_next_start();

}  // namespace emulator

extern "C" {

struct EmulatorLaunch {
  const emulator::Kernel *kernel;
  const void *parameter;
  // Told if it hangs, such as "rank 3".
  const char *who;
  uint64_t seed;
  uint32_t blocks;
  uint32_t threads;
  // May it start before the kernel ahead has ended?
  uint32_t programmatic;
  // The longest that its blocks oversleep, microseconds; 0 is none.
  uint32_t delay_us;
  // It hangs if no kernel of the process made progress for so long.
  uint32_t hang_ms;
};

// A stream's kernels in order. One thread uses it.
struct EmulatorQueue;

const emulator::Kernel *emulator_find(const char *name);
EmulatorQueue *emulator_queue_new();
// Starts a kernel; waits for those ahead unless it is programmatic. False: one of them hung.
bool emulator_queue_launch(EmulatorQueue *queue, const EmulatorLaunch *launch);
// Waits for all. False: one hung.
bool emulator_queue_drain(EmulatorQueue *queue);
// Why it hung: lines that name blocks, threads and places. Valid until the queue is gone.
const char *emulator_queue_report(EmulatorQueue *queue);
void emulator_queue_delete(EmulatorQueue *queue);
// Runs a scenario (scenario.rs writes it); 0 done, 1 wrong, 2 hung, 3 malformed, and why.
int32_t emulator_play(const uint8_t *scenario, size_t bytes, char *report, size_t capacity);
}
