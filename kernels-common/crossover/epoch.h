// Which call this is. The number lives in device memory and is advanced by the device, so that a graph that is
// replayed counts as its calls do. It is one number for all protocols: a rank that has finished call k knows that every
// peer has started it, and so has finished call k-1; slots are reused on that ground alone.
//
// Blocks have a state each, so that none waits until the others have read it: an atomic that counts them takes as long as a
// trip to a peer on the same device.
#pragma once
#include <crossover/abi.h>

// What a block reads of its state.
struct Epoch {
  uint64_t number;
  // Of calls that push.
  uint32_t flag;
  uint32_t slot;
  // Of calls that push shares.
  uint32_t share_flag;
  uint32_t share_slot;
  uint32_t poisoned;  // a kernel before this one gave up

  // Of two, for staged data behind a barrier.
  PLATFORM_DEVICE_MEMBER uint32_t parity() const { return uint32_t(number) & 1; }
};

PLATFORM_DEVICE State* state_of(const Common& c, uint32_t block) { return reinterpret_cast<State*>(c.states) + block; }

PLATFORM_DEVICE Epoch read_epoch(const Common& c) {
  const State* mine = state_of(c, block_id());
  const Pack p = load_pack_relaxed(&mine->epoch), q = load_pack_relaxed(&mine->share_flag);
  return Epoch{uint64_t(p.w[0]) | uint64_t(p.w[1]) << 32, p.w[2], p.w[3], q.w[0], q.w[1], q.w[2]};
}

// 0 marks a cleared place: no flag is.
PLATFORM_DEVICE uint32_t next_flag(uint32_t flag) { return flag + 1 == 0 ? 1 : flag + 1; }

PLATFORM_DEVICE uint32_t next_of_three(uint32_t slot) { return slot == 2 ? 0 : slot + 1; }

// `write(state)` on each state that is this block's to advance, once all of the block's threads have read its own. All of them
// call it, once in a kernel; what is written has until the end of the kernel.
template <class Write>
PLATFORM_DEVICE void advance_states(const Common& c, Write write) {
#ifndef SABOTAGE_ADVANCE_EARLY
  block_barrier();
#endif
#ifndef SABOTAGE_OWN_STATE_ALONE
  const uint32_t stride = grid_size() * block_size();
#else
  const uint32_t stride = c.blocks;
  if (thread_id() != 0) return;
#endif
  for (uint32_t block = block_id() + thread_id() * grid_size(); block < c.blocks; block += stride) write(state_of(c, block));
}

PLATFORM_DEVICE void write_epoch(State* state, uint64_t number, uint32_t flag, uint32_t slot) {
  store_pack_relaxed(&state->epoch, Pack{{uint32_t(number), uint32_t(number >> 32), flag, slot}});
}

// Behind a call that counts as so many.
PLATFORM_DEVICE void advance(const Common& c, const Epoch& e, uint64_t calls) {
  advance_states(c, [&](State* state) { write_epoch(state, e.number + calls, e.flag, e.slot); });
}
