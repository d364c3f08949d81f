// reduce_scatter, push: every rank writes the part of each peer into that peer's arena, each value beside its flag, and
// reduces what arrives for it. One trip.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>
#include <crossover/token.h>

template <class T, class Op, uint32_t N, bool WHOLE>
PLATFORM_DEVICE void reduce_scatter_push(const PartsArgs& a) {
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const uint64_t bytes = a.send_bytes[c.rank];
  const Tensor<WHOLE> input{a.input + a.send_at[c.rank], bytes}, output{a.output, bytes};
  const uint32_t first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  push_parts<N, WHOLE>(c, e, p, slots.slot, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  const uint32_t arrived = say_arrived(c);
  scrub<N>(c, p, e.flag, slots.slot);
  Wait wait;
  for (uint32_t i = first; i < units(bytes, LINE_BYTES); i += stride) {
    output.store8(i, reduce_lines<T, Op, N>(wait, c, e, p, slots.slot, i, input.load8(i)));
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

#define ARE_WHOLE(a) are_parts_whole(a, LINE_BYTES)
PUSH_ENTRIES(reduce_scatter_push, PartsArgs, ARE_WHOLE)
