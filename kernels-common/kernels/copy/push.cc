// all_gather, broadcast and all_to_all, push: every rank writes into each peer's arena what that peer is to receive, each
// value beside its flag. One trip; every bit pattern, whatever the elements are.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/own_part.h>
#include <crossover/token.h>

// Every peer receives the same, which is read once, and every rank gives as much: all lines of a place in the
// concatenation are awaited together.
template <uint32_t N, bool WHOLE>
PLATFORM_DEVICE void gather_push(const PartsArgs& a) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const Common& c = a.common;
  const uint64_t bytes = a.send_bytes[c.rank];
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const Tensor<WHOLE> input{a.input + a.send_at[c.rank], bytes};
  const uint32_t lines = uint32_t(units(bytes, LINE_BYTES)), first = first_unit(), stride = unit_stride();
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
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Line come[COUNT];
      collect<N, COUNT>(wait, c, e, p, slots.slot, e.flag, base, i, STEP_DATA, come);
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint32_t rank = base + n;
        if (!has_rank<N>(c, rank)) break;
        const Tensor<WHOLE> output{a.output + a.receive_at[rank], bytes};
        output.store8(i, rank == c.rank ? own : payload_of(come[n]));
      }
    }
    i += stride;
    if (i < lines) own = input.load8(i);
  }
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

// Parts may differ, and be empty.
template <bool WHOLE>
PLATFORM_DEVICE void push_each(const PartsArgs& a) {
  const Common& c = a.common;
  const Places<ANY> p = line_places<ANY>(c, a.region, a.place);
  const uint32_t first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  const Slots slots = read_slots(c);
  if (e.poisoned) return;
  push_parts<ANY, WHOLE>(c, e, p, slots.slot, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  copy_own_part(a, first, stride);
  const uint32_t arrived = say_arrived(c);
  scrub<ANY>(c, p, e.flag, slots.slot);
  Wait wait;
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const Tensor<WHOLE> output{a.output + a.receive_at[peer], a.receive_bytes[peer]};
    for (uint32_t i = first; i < units(output.bytes, LINE_BYTES); i += stride) {
      Line come[1];
      collect<ANY, 1>(wait, c, e, p, slots.slot, e.flag, peer, i, STEP_DATA, come);
      output.store8(i, payload_of(come[0]));
    }
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
  if (advance(c, e, arrived)) advance_push(c, e, slots);
}

#define PUSH_COPY_ENTRY(NAME, WHOLE, RAGGED)                                   \
  PLATFORM_COLD void NAME##_ragged(const PartsArgs& args) { RAGGED(args); }    \
  PLATFORM_KERNEL(NAME, PartsArgs, MAX_THREADS) {                              \
    if (are_parts_whole(args, LINE_BYTES)) WHOLE(args);                        \
    else NAME##_ragged(args);                                                  \
  }

PUSH_COPY_ENTRY(gather_push_2, (gather_push<2, true>), (gather_push<2, false>))
PUSH_COPY_ENTRY(gather_push_4, (gather_push<4, true>), (gather_push<4, false>))
PUSH_COPY_ENTRY(gather_push_8, (gather_push<8, true>), (gather_push<8, false>))
PUSH_COPY_ENTRY(gather_push_any, (gather_push<ANY, true>), (gather_push<ANY, false>))
PUSH_COPY_ENTRY(parts_push, push_each<true>, push_each<false>)
