// all_gather, lamport: every rank writes its part into every peer's arena; each value is its own flag. Floats of 32 or 16
// bits, whose -0.0 is flushed to +0.0, the own part's too: all ranks receive the same bits.
#include <platform.h>

#include <crossover/lamport.h>

template <class T, uint32_t N, bool WHOLE>
PLATFORM_DEVICE void gather_lamport(const PartsArgs& a) {
  // All packs are kept until they are stored: fewer at a time where the number is not known.
  constexpr uint32_t COUNT = N == ANY ? 4 : Group<N>::SIZE;
  const Common& c = a.common;
  // Parts are equal and not empty: a rank that has them all knows that all have begun.
  const uint64_t bytes = a.send_bytes[c.rank];
  const Places<N> p(c, a.region, a.place);
  const Tensor<WHOLE> input{a.input + a.send_at[c.rank], bytes};
  const uint32_t packs = uint32_t(units(bytes, 16)), first = first_unit(), stride = unit_stride();
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  // On its way together with the state.
  Pack mine = {};
  if (first < packs) mine = input.load16(first);
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  mine = unmarked_pack<T>(mine);
  Pack own = mine;
  for (uint32_t i = first; i < packs;) {
    send_lamport<N>(c, p, t, i, own);
    i += stride;
    if (i < packs) own = unmarked_pack<T>(input.load16(i));
  }
  const uint32_t arrived = say_arrived(c);
  clear_before<N>(c, p, t, first, stride);
  Wait wait;
  own = mine;
  for (uint32_t i = first; i < packs;) {
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Pack come[COUNT];
      collect_lamport<N, COUNT>(wait, c, e, p, t, base, i, come);
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint32_t rank = base + n;
        if (!has_rank<N>(c, rank)) break;
        const Tensor<WHOLE> output{a.output + a.receive_at[rank], bytes};
        output.store16(i, rank == c.rank ? own : come[n]);
      }
    }
    i += stride;
    if (i < packs) own = unmarked_pack<T>(input.load16(i));
  }
  if (advance(c, e, arrived)) advance_turn(c, t, packs);
}

#define GATHER_LAMPORT_ENTRY(TYPE, type, N, n)                                                                          \
  PLATFORM_COLD void gather_lamport_##type##_##n##_ragged(const PartsArgs& a) { gather_lamport<TYPE, N, false>(a); }    \
  PLATFORM_KERNEL(gather_lamport_##type##_##n, PartsArgs, MAX_THREADS) {                                                \
    if (are_parts_whole(args, 16)) gather_lamport<TYPE, N, true>(args);                                                 \
    else gather_lamport_##type##_##n##_ragged(args);                                                                    \
  }

#define GATHER_LAMPORT_ENTRIES(N, n)        \
  GATHER_LAMPORT_ENTRY(F32, f32, N, n)      \
  GATHER_LAMPORT_ENTRY(Bf16, half, N, n)

GATHER_LAMPORT_ENTRIES(2, 2)
GATHER_LAMPORT_ENTRIES(4, 4)
GATHER_LAMPORT_ENTRIES(8, 8)
GATHER_LAMPORT_ENTRIES(ANY, any)
