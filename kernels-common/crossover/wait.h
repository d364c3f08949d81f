// Patience: no spin without a budget, and none that cannot be aborted.
#pragma once
#include <crossover/epoch.h>

// How many looks lie between two looks at the clock and the abort word, which is far away, in the host's memory.
constexpr uint32_t LOOKS = 1024;

// What was not there yet: whose it is, and what was seen in its place.
struct Missing {
  uint32_t rank;
  uint64_t observed;
};

// A wait of so many nanoseconds is long: the host is told. Calls take microseconds.
constexpr uint64_t LONG_WAIT = 10'000'000;

// One thread's waits in one kernel. Once it gave up it waits no more.
struct Wait {
  bool given_up = false;
  uint64_t began = 0;
  // Was there a barrier of the block with its peers', and did a thread of the block give up at one?
  bool has_met = false;
  bool block_gave_up = false;
};

PLATFORM_COLD void give_up(const Common& c, Epoch e, uint32_t code, uint32_t awaited, uint32_t step,
                           uint64_t observed) {
  if (compare_exchange_u32(&state_of(c, 0)->poisoned, 0, 1) != 0) return;
  // In no word that a block writes when it advances.
  for (uint32_t block = 1; block < c.blocks; ++block) store_relaxed_u32(&state_of(c, block)->poisoned, 1);
  Failure* f = reinterpret_cast<Failure*>(c.failure);
  f->awaited = awaited;
  f->step = step;
  f->block = block_id();
  f->thread = thread_id();
  f->flag = e.flag;
  f->epoch = e.number;
  f->observed = observed;
  store_release_u32(&f->code, code);
}

// Tells the host what is awaited now. Of several threads that wait any may be the one that is heard.
PLATFORM_COLD void tell(const Common& c, Epoch e, uint64_t now, uint32_t awaited, uint32_t step) {
  const uint64_t milliseconds = now / 1'000'000 & 0xFFFF;
  const uint64_t word = uint64_t(e.number) << 32 | milliseconds << 16 | (awaited & 0xFF) << 8 | (step & 0xFF);
  store_relaxed_u64(&reinterpret_cast<Failure*>(c.failure)->waiting, word);
}

// After many looks: is there still hope? Returns when the wait began, or 0 if it is given up.
PLATFORM_COLD uint64_t consider(const Common& c, Epoch e, uint64_t began, uint32_t awaited, uint32_t step,
                                uint64_t observed) {
  const uint64_t now = clock_ns();
  if (began == 0) return now;
  const bool aborted = load_relaxed_u32(reinterpret_cast<const uint32_t*>(c.abort)) != 0;
  if (!aborted && now - began > LONG_WAIT) tell(c, e, now, awaited, step);
  if (!aborted && now - began <= c.budget) return began;
  give_up(c, e, aborted ? CODE_ABORTED : CODE_LATE, awaited, step, observed);
  return 0;
}

// Looks until `has_come()`, which loads what is awaited, says so: as few instructions as can be, since a value is seen as
// late as the loop is long. `missing()` says of the last look what was not there. False if the wait was given up.
template <class HasCome, class WhatIsMissing>
PLATFORM_DEVICE bool wait_until(Wait& wait, const Common& c, const Epoch& e, uint32_t step, HasCome has_come,
                                WhatIsMissing missing) {
  for (;;) {
    for (uint32_t left = wait.given_up ? 1 : LOOKS; left != 0; --left) {
      if (has_come()) return true;
      pause();
    }
    if (wait.given_up) return false;
    const Missing m = missing();
    wait.began = consider(c, e, wait.began, m.rank, step, m.observed);
    wait.given_up = wait.began == 0;
  }
}
