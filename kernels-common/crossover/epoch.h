// Which call this is. The number lives in device memory and is advanced by the device, so that a graph that is
// replayed counts as its calls do. It is one number for all protocols: a rank that has finished call k knows that every
// peer has started it, and so has finished call k-1; slots are reused on that ground alone.
#pragma once
#include <crossover/abi.h>

struct Epoch {
  uint64_t number;
  uint32_t flag;      // beside data of this call, if it pushes
  uint32_t poisoned;  // a kernel before this one gave up

  // Of two, for staged data behind a barrier.
  PLATFORM_DEVICE_MEMBER uint32_t parity() const { return uint32_t(number) & 1; }
};

PLATFORM_DEVICE Epoch read_epoch(const Common& c) {
  const Pack p = load_pack_relaxed(reinterpret_cast<const void*>(c.state));
  Epoch e;
  e.number = uint64_t(p.w[0]) | uint64_t(p.w[1]) << 32;
  e.flag = p.w[2];
  e.poisoned = p.w[3];
  return e;
}

// Every block says that it has read the state; the last one to say so advances it for the next call, by `advance` at the
// end of the kernel: the way to the counter and back is hidden behind the wait for peers. All threads of a block call it.
// No order is needed but the one that values make: what has been used has been read.
PLATFORM_DEVICE uint32_t say_arrived(const Common& c) {
  block_barrier();
  if (thread_id() != 0) return 0;
  if (grid_size() == 1) return 1;
  return fetch_add_device_u32(&reinterpret_cast<State*>(c.state)->arrived, 1) + 1;
}

// True for one thread of one block, which may write the rest of the state.
PLATFORM_DEVICE bool advance(const Common& c, const Epoch& e, uint32_t arrived) {
  if (arrived != grid_size()) return false;
  State* state = reinterpret_cast<State*>(c.state);
  store_relaxed_u64(&state->epoch, e.number + 1);
  store_relaxed_u32(&state->arrived, 0);
  return true;
}

// 0 marks a cleared place: no flag is.
PLATFORM_DEVICE uint32_t next_flag(uint32_t flag) { return flag + 1 == 0 ? 1 : flag + 1; }

PLATFORM_DEVICE uint32_t next_of_three(uint32_t slot) { return slot == 2 ? 0 : slot + 1; }
