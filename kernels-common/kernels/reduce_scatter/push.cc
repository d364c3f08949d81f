// reduce_scatter, push: every rank writes the part of each peer into that peer's arena, each value beside its flag, and
// reduces what arrives for it. One trip.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>
#include <crossover/token.h>

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void reduce_scatter_push(const PartsArgs& a) {
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  const Slot slot = slot_of(c, slots.slot, a.region, a.place);
  push_parts(c, e, slot, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  scrub(c, e.flag, slots.slot, a.region, a.place);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  const uint64_t bytes = a.send_bytes[c.rank], part = a.input + a.send_at[c.rank];
  for (uint64_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
    store_unit8(a.output, i, bytes, reduce_lines<T, Op, N>(wait, c, e, slot, i, load_unit8(part, i, bytes)));
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

REDUCTION_ENTRIES(reduce_scatter_push, PartsArgs)
