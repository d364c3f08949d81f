// all_reduce, one_shot_push: every rank writes its tensor into every peer's arena, each value beside its flag, and
// reduces what arrives. One trip; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

template <class T, class Op, uint32_t N, bool WHOLE>
PLATFORM_DEVICE void one_shot_push(const AllReduceArgs& a) {
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const Tensor<WHOLE> input{a.input, a.bytes}, output{a.output, a.bytes};
  const uint32_t lines = uint32_t(units(a.bytes, LINE_BYTES)), first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  // On its way together with the state.
  const uint64_t mine = first < lines ? input.load8(first) : 0;
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  uint64_t own = mine;
  for (uint32_t i = first; i < lines;) {
    push_to_all<N>(c, p, slots.slot, i, flagged(own, e.flag));
    i += stride;
    if (i < lines) own = input.load8(i);
  }
  const uint32_t arrived = say_arrived(c);
  scrub<N>(c, p, e.flag, slots.slot);
  Wait wait;
  own = mine;
  for (uint32_t i = first; i < lines;) {
    output.store8(i, reduce_lines<T, Op, N>(wait, c, e, p, slots.slot, i, own));
    i += stride;
    if (i < lines) own = input.load8(i);
  }
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, LINE_BYTES)
PUSH_ENTRIES(one_shot_push, AllReduceArgs, IS_WHOLE)
