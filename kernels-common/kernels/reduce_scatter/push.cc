// reduce_scatter, push: every rank writes the part of each peer into that peer's arena, each value beside its flag, and
// reduces what arrives for it. One trip.
#include <platform.h>

#include <crossover/flagged.h>
#include <crossover/instantiate.h>
#include <crossover/token.h>

template <class T, class Op, uint32_t N, Work WORK>
PLATFORM_DEVICE void reduce_scatter_push(const PartsArgs& a) {
  const Common& c = a.common;
  const Places<N> p = line_places<N>(c, a.region, a.place);
  const uint64_t bytes = a.send_bytes[c.rank];
  const Tensor<WORK> input{a.input + a.send_at[c.rank], bytes}, output{a.output, bytes};
  const uint32_t first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  push_parts<N, WORK>(c, e, p, a, first, stride);
  if (a.tokens) send_token(c, e, a.barrier);
  advance_push(c, e);
  scrub<N>(c, p, e.flag, e.slot);
  Wait wait;
  for_units<WORK, 1>(first, uint32_t(units(bytes, LINE_BYTES)), stride, [&](uint32_t i, auto) {
    const uint64_t own[1] = {input.load8(i)};
    uint64_t result[1];
    reduce_lines<T, Op, N>(wait, c, e, p, i, 0, own, result);
    output.store8(i, result[0]);
  });
  if (a.tokens) await_tokens(wait, c, e, a.barrier);
}

#define IS_WHOLE(a) are_parts_whole(a, LINE_BYTES)
PUSH_ENTRIES(reduce_scatter_push, PartsArgs, IS_WHOLE)
