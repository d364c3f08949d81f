// all_reduce, two_shot_push: every rank writes the share of each peer into that peer's arena, reduces its own share, and
// writes the result into every arena. Two trips, two shares of the bytes; exact for every bit pattern.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>

// Where line j of a peer's share is in the tensor; shares are equal but for the last, which may be shorter or empty.
struct Shares {
  uint32_t share;
  uint32_t lines;

  PLATFORM_DEVICE_MEMBER uint32_t line(uint32_t peer, uint32_t j) const { return peer * share + j; }
  // Of a line that is not there nothing is sent or awaited.
  PLATFORM_DEVICE_MEMBER bool has(uint32_t peer, uint32_t j) const { return line(peer, j) < lines; }
};

// Line j of every peer's share into that peer's arena: all are loaded before one is stored.
template <uint32_t N, Work WORK>
PLATFORM_DEVICE void push_shares(const Common& c, const Epoch& e, const Places<N>& parts,
                                 const Tensor<WORK>& input, const Shares& s, uint32_t j) {
  const uint64_t to = parts.to(c, slot_in_use(e.slot), c.rank, j);
#pragma unroll
  for (uint32_t base = 0; base < N; base += Group<N>::SIZE) {
    if (!has_rank<N>(c, base)) break;
    uint64_t own[Group<N>::SIZE];
    const auto is_sent = [&](uint32_t peer) { return has_rank<N>(c, peer) && peer != c.rank && s.has(peer, j); };
#pragma unroll
    for (uint32_t n = 0; n < Group<N>::SIZE; ++n) own[n] = is_sent(base + n) ? input.load8(s.line(base + n, j)) : 0;
#pragma unroll
    for (uint32_t n = 0; n < Group<N>::SIZE; ++n) {
      const uint32_t peer = base + n;
      if (is_sent(peer)) store_line_relaxed(reinterpret_cast<void*>(parts.of(c, peer) + to), flagged(own[n], e.flag));
    }
  }
}

// Line j of the shares that peers have reduced, into the output.
template <uint32_t N, Work WORK>
PLATFORM_DEVICE void collect_shares(Wait& wait, const Common& c, const Epoch& e, const Places<N>& p,
                                    const Tensor<WORK>& output, const Shares& s, uint32_t j) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const bool is_everywhere = s.has(c.world - 1, j);
#pragma unroll
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Line come[1][COUNT];
    if (is_everywhere) collect<N>(wait, c, e, p, e.share_slot, e.share_flag, base, j, 0, STEP_SHARE, come);
#pragma unroll
    for (uint32_t n = 0; n < COUNT; ++n) {
      const uint32_t peer = base + n;
      if (has_rank<N>(c, peer) && peer != c.rank && s.has(peer, j)) {
        Line one[1][1] = {{come[0][n]}};
        if (!is_everywhere) collect<N>(wait, c, e, p, e.share_slot, e.share_flag, peer, j, 0, STEP_SHARE, one);
        output.store8(s.line(peer, j), payload_of(one[0][0]));
      }
    }
  }
}

template <class T, class Op, uint32_t N, Work WORK>
PLATFORM_DEVICE void two_shot_push(const AllReduceArgs& a) {
  const Common& c = a.common;
  const Places<N> parts = line_places<N>(c, a.region, a.place), results = line_places<N>(c, a.second, a.second_place);
  const Tensor<WORK> input{a.input, a.bytes}, output{a.output, a.bytes};
  const uint32_t lines = uint32_t(units(a.bytes, LINE_BYTES));
  const Shares s{uint32_t(units(lines, N == ANY ? c.world : N)), lines};
  const uint32_t first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  // A thread has line j of every share, from here to the end: in place, nobody writes what another has yet to read.
  for_units<WORK, 1>(first, s.share, stride, [&](uint32_t j, auto) { push_shares<N>(c, e, parts, input, s, j); });
  scrub<N>(c, parts, e.flag, e.slot);
  scrub<N>(c, results, e.share_flag, e.share_slot);
  advance_shares(c, e);
  Wait wait;
  for_units<WORK, 1>(first, s.share, stride, [&](uint32_t j, auto) {
    // A sum that something is missing of is nobody else's.
    if (!s.has(c.rank, j) || wait.given_up) return;
    const uint32_t i = s.line(c.rank, j);
    const uint64_t own[1] = {input.load8(i)};
    uint64_t result[1];
    reduce_lines<T, Op, N>(wait, c, e, parts, j, 0, own, result);
    if (wait.given_up) return;
    push_to_all<N>(c, results, e.share_slot, j, flagged(result[0], e.share_flag));
    output.store8(i, result[0]);
  });
  for_units<WORK, 1>(first, s.share, stride, [&](uint32_t j, auto) {
    collect_shares<N>(wait, c, e, results, output, s, j);
  });
}

#define IS_WHOLE(a) are_whole(a.input | a.output | a.bytes, LINE_BYTES)
PUSH_ENTRIES(two_shot_push, AllReduceArgs, IS_WHOLE)
