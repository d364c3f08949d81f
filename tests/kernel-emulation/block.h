// A launch and its blocks, as the scheduler and the queues share them.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator.h"
#include "fibre.h"

namespace emulator {

// A turn ends at one access of so many, and one turn of so many of a delayed block is followed by
// a sleep.
constexpr uint32_t ACCESSES_A_TURN = 8;
constexpr uint32_t TURNS_A_DELAY = 16;

// So many rounds of looks in vain yield; those after them sleep.
constexpr size_t YIELD_ROUNDS = 2;
// After so many rounds nothing else gets ahead, and slow fibres have their turn.
constexpr size_t SLOW_ROUNDS = 12;

extern std::atomic<uint64_t> progress;

// The runtime is built without the sanitizer, so that its atomics order nothing in the sanitizer's
// eyes: what orders kernels is said with tokens alone.
struct Launch {
  const Kernel *kernel = nullptr;
  // The parameter's copy: the caller's may be gone.
  std::vector<uint8_t> storage;
  const void *parameter = nullptr;
  std::string who;
  uint64_t seed = 0;
  uint32_t blocks = 0;
  uint32_t threads = 0;
  uint32_t delay_us = 0;
  uint32_t hang_ms = 0;
  // The kernel ahead, if this one was let in before its end.
  std::shared_ptr<Launch> previous;

  std::atomic<uint32_t> left{0};
  std::atomic<uint32_t> let_next{0};
  std::atomic<bool> ended{false};
  std::atomic<bool> given_up{false};
  char end_token = 0;

  void tell(const std::string &lines) {
    const std::lock_guard<std::mutex> guard(report_lock);
    report += lines;
  }
  std::mutex report_lock;
  std::string report;
};

enum class State : uint8_t { Ready, Barrier, Done };

struct Fibre {
  Context context;
  State state = State::Ready;
  const char *where = "its start";
  bool slow = false;
};

struct Block {
  Launch *launch = nullptr;
  uint32_t index = 0;
  // The fibre whose turn it is.
  uint32_t turn = 0;
  uint64_t random = 0;
  // Counts what got ahead.
  uint64_t steps = 0;
  // Counts barriers.
  uint64_t phase = 0;
  bool let_next = false;
  bool oversleep = false;
  char *stacks = nullptr;
  Context scheduler;
  std::vector<Fibre> fibres;
  char start_token = 0;
  char end_token = 0;
  char barrier_tokens[2] = {0, 0};
};

// Runs one block of a launch on the calling thread.
void run_block(Launch &launch, uint32_t index);
void sleep_us(uint64_t microseconds);

}  // namespace emulator
