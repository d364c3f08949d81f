// all_gather, lamport: every rank writes its part into every peer's arena; each value is its own flag. Floats of 32 or 16
// bits, whose -0.0 is flushed to +0.0, the own part's too: all ranks receive the same bits.
#include <platform.h>

#include <crossover/lamport.h>

template <class T, uint32_t N>
PLATFORM_DEVICE void gather_lamport(const PartsArgs& a) {
  // All packs are kept until they are stored: fewer at a time where the number is not known.
  constexpr uint32_t COUNT = N == ANY ? 4 : Group<N>::SIZE;
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  // Parts are equal and not empty: a rank that has them all knows that all have begun.
  const uint64_t bytes = a.send_bytes[c.rank], part = a.input + a.send_at[c.rank], packs = units(bytes, 16);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  // On its way together with the state.
  Pack mine = {};
  if (first < packs) mine = load_unit16(part, first, bytes);
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  mine = unmarked_pack<T>(mine);
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = i == first ? mine : unmarked_pack<T>(load_unit16(part, i, bytes));
    send_lamport<N>(c, t, a.region, a.place, i, own);
  }
  clear_before<N>(c, t, a.region, a.place, first, stride);
  const uint32_t arrived = say_arrived(c);
  Wait wait;
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = i == first ? mine : unmarked_pack<T>(load_unit16(part, i, bytes));
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Pack come[COUNT];
      collect_lamport<N, COUNT>(wait, c, e, t, a.region, a.place, base, i, come);
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint32_t rank = base + n;
        if (!has_rank<N>(c, rank)) break;
        if (rank == c.rank) store_unit16(a.output + a.receive_at[rank], i, bytes, own);
        else store_unit16(a.output + a.receive_at[rank], i, bytes, come[n]);
      }
    }
  }
  if (advance(c, e, arrived)) advance_turn(c, t, packs);
}

#define GATHER_LAMPORT_ENTRIES(N, n)                                                                   \
  PLATFORM_KERNEL(gather_lamport_f32_##n, PartsArgs, MAX_THREADS) { gather_lamport<F32, N>(args); }    \
  PLATFORM_KERNEL(gather_lamport_half_##n, PartsArgs, MAX_THREADS) { gather_lamport<Bf16, N>(args); }

GATHER_LAMPORT_ENTRIES(2, 2)
GATHER_LAMPORT_ENTRIES(4, 4)
GATHER_LAMPORT_ENTRIES(8, 8)
GATHER_LAMPORT_ENTRIES(ANY, any)
