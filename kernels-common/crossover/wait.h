// Patience: no spin without a budget, and none that cannot be aborted.
#pragma once
#include <crossover/epoch.h>

// How many looks lie between two looks at the clock and the abort word, which is far away, in the host's memory.
constexpr uint32_t LOOKS = 1024;

// One thread's waits in one kernel. Once it gave up it waits no more.
struct Wait {
  uint32_t looks = 0;
  bool given_up = false;
  uint64_t began = 0;
};

PLATFORM_DEVICE void give_up(Wait& wait, const Common& c, const Epoch& e, uint32_t code, uint32_t awaited, uint32_t step,
                             uint64_t observed) {
  wait.given_up = true;
  Failure* f = reinterpret_cast<Failure*>(c.failure);
  if (compare_exchange_u32(&f->claimed, 0, 1) == 0) {
    f->awaited = awaited;
    f->step = step;
    f->block = block_id();
    f->thread = thread_id();
    f->slot = e.slot;
    f->epoch = e.number;
    f->observed = observed;
    store_release_u32(&f->code, code);
  }
  store_relaxed_u32(&reinterpret_cast<State*>(c.state)->poisoned, 1);
}

// After a look that saw nothing: look again? `awaited` is the rank whose value did not come.
PLATFORM_DEVICE bool look_again(Wait& wait, const Common& c, const Epoch& e, uint32_t awaited, uint32_t step,
                                uint64_t observed) {
  if (wait.given_up) return false;
  pause();
  if (++wait.looks % LOOKS != 0) return true;
  const uint64_t now = clock_ns();
  if (wait.began == 0) wait.began = now;
  if (load_relaxed_u32(reinterpret_cast<const uint32_t*>(c.abort)) != 0) {
    give_up(wait, c, e, CODE_ABORTED, awaited, step, observed);
  } else if (now - wait.began > c.budget) {
    give_up(wait, c, e, CODE_LATE, awaited, step, observed);
  }
  return !wait.given_up;
}
