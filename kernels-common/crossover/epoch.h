// Which call this is. The number lives in device memory and is advanced by the device, so that a graph that is
// replayed counts as its calls do. It is one number for all protocols: a rank that has finished call k knows that every
// peer has started it, and so has finished call k-1; slots are reused on that ground alone.
#pragma once
#include <crossover/abi.h>

struct Epoch {
  uint64_t number;
  uint32_t slot;      // of three, for data beside flags
  uint32_t poisoned;  // a kernel before this one gave up

  // The word beside data. Never 0, which is what a cleared place holds.
  PLATFORM_DEVICE_MEMBER uint32_t flag() const { return uint32_t(number); }
  // Of two, for staged data behind a barrier.
  PLATFORM_DEVICE_MEMBER uint32_t parity() const { return uint32_t(number) & 1; }
};

PLATFORM_DEVICE Epoch read_epoch(const Common& c) {
  const Pack p = load_pack(reinterpret_cast<const void*>(c.state));
  Epoch e;
  e.number = uint64_t(p.w[0]) | uint64_t(p.w[1]) << 32;
  e.slot = p.w[2];
  e.poisoned = p.w[3];
  return e;
}

// Every block says that it has read the state; the last one advances it for the next call. Before a block waits for
// peers, so that the way there and back is hidden behind the wait. All threads of the block call it. `is_last` tells one
// thread of one block that it may write the rest of the state.
PLATFORM_DEVICE bool arrive(const Common& c, const Epoch& e) {
  block_barrier();
  if (thread_id() != 0) return false;
  State* state = reinterpret_cast<State*>(c.state);
  if (grid_size() > 1) {
    if (fetch_add_device_u32(&state->arrived, 1) != grid_size() - 1) return false;
    state->arrived = 0;
  }
  const uint64_t next = e.number + 1;
  // 0 marks a cleared place: it is skipped. Parity must keep turning, and two is even.
  state->epoch = uint32_t(next) == 0 ? next + 2 : next;
  state->slot = e.slot == 2 ? 0 : e.slot + 1;
  return true;
}
