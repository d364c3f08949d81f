// all_gather, broadcast and all_to_all, push: every rank writes into each peer's arena what that peer is to receive, each
// value beside its flag. One trip; every bit pattern, whatever the elements are.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>
#include <crossover/own_part.h>
#include <crossover/token.h>

// Every peer receives the same, which is read once, and every rank gives as much: all lines of a place in the
// concatenation are awaited together.
template <uint32_t N, Work WORK>
PLATFORM_DEVICE void gather_push(const PartsArgs& a) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const Common& c = a.common;
  const uint64_t bytes = a.send_bytes[c.rank];
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const Tensor<WORK> input{a.input + a.send_at[c.rank], bytes};
  Given<uint64_t, WORK> given(input);
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  given.load_first();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  push_given<N>(c, e, p, given);
  advance_push(c, e);
  scrub<N>(c, p, e.flag, e.slot);
  Wait wait;
  given.template each<Group<N>::HELD_FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Line come[FLIGHT][COUNT];
      collect<N>(wait, c, e, p, e.slot, e.flag, base, i, given.stride, STEP_DATA, come);
#pragma unroll
      for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
        const uint32_t f = k % FLIGHT, rank = base + k / FLIGHT;
        if (!has_rank<N>(c, rank)) break;
        const Tensor<WORK> output{a.output + a.receive_at[rank], bytes};
        output.store8(i + f * given.stride, rank == c.rank ? own[f] : payload_of(come[f][k / FLIGHT]));
      }
    }
  });
}

// Parts may differ, and be empty.
template <uint32_t N, Work WORK>
PLATFORM_DEVICE void push_each(const PartsArgs& a) {
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const uint32_t first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  push_parts<N, WORK>(c, e, p, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  copy_own_part(a, first, stride);
  advance_push(c, e);
  scrub<N>(c, p, e.flag, e.slot);
  Wait wait;
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const Tensor<WORK> output{a.output + a.receive_at[peer], a.receive_bytes[peer]};
    for_units<WORK, 1>(first, uint32_t(units(output.bytes, LINE_BYTES)), stride, [&](uint32_t i, auto) {
      Line come[1][1];
      collect<N>(wait, c, e, p, e.slot, e.flag, peer, i, 0, STEP_DATA, come);
      output.store8(i, payload_of(come[0][0]));
    });
  }
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
}

#define IS_WHOLE(a) are_parts_whole(a, LINE_BYTES)
PUSH_ENTRY(gather_push_2, PartsArgs, IS_WHOLE, gather_push, 2)
PUSH_ENTRY(gather_push_4, PartsArgs, IS_WHOLE, gather_push, 4)
PUSH_ENTRY(gather_push_8, PartsArgs, IS_WHOLE, gather_push, 8)
PUSH_ENTRY(gather_push_any, PartsArgs, IS_WHOLE, gather_push, ANY)
PUSH_ENTRY(parts_push, PartsArgs, IS_WHOLE, push_each, ANY)
