// all_reduce, one_shot_push: every rank writes its tensor into every peer's arena, each value beside its flag, and
// reduces what arrives. One trip; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void one_shot_push(const AllReduceArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t lines = units(a.bytes, LINE_BYTES);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  // On its way together with the state.
  const uint64_t mine = first < lines ? load_unit8(a.input, first, a.bytes) : 0;
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  const Slot slot = slot_of(c, slots.slot, a.region, a.place);
  for (uint64_t i = first; i < lines; i += stride) {
    const uint64_t own = i == first ? mine : load_unit8(a.input, i, a.bytes);
    push_to_all<N>(c, slot, i, flagged(own, e.flag));
  }
  scrub(c, e.flag, slots.slot, a.region, a.place);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint64_t i = first; i < lines; i += stride) {
    const uint64_t own = i == first ? mine : load_unit8(a.input, i, a.bytes);
    store_unit8(a.output, i, a.bytes, reduce_lines<T, Op, N>(wait, c, e, slot, i, own));
  }
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

REDUCTION_ENTRIES(one_shot_push, AllReduceArgs)
