// all_gather, lamport: every rank writes its part into every peer's arena; each value is its own flag. Floats of 32 or 16
// bits, whose -0.0 is flushed to +0.0, the own part's too: all ranks receive the same bits.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/lamport.h>

template <class T, uint32_t N, Work WORK>
PLATFORM_DEVICE void gather_lamport(const PartsArgs& a) {
  // All packs are kept until they are stored: fewer at a time where the number is not known.
  constexpr uint32_t COUNT = N == ANY ? 4 : Group<N>::SIZE;
  const Common& c = a.common;
  // Parts are equal and not empty: a rank that has them all knows that all have begun.
  const uint64_t bytes = a.send_bytes[c.rank];
  const Places<N> p(c, a.region, a.place);
  const Tensor<WORK> input{a.input + a.send_at[c.rank], bytes};
  GivenUnmarked<T, WORK> given(input);
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  given.load_first();
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  send_given<N, T>(c, p, t, given);
  advance_lamport(c, e, t, given.end);
  clear_before<N>(c, p, t, given.first, given.stride);
  Wait wait;
  given.template each<Group<N>::HELD_FLIGHT>([&](uint32_t i, const auto& own, auto flight) {
    constexpr uint32_t FLIGHT = decltype(flight)::SIZE;
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      Pack come[FLIGHT][COUNT];
      collect_lamport<N>(wait, c, e, p, t, base, i, given.stride, come);
#pragma unroll
      for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
        const uint32_t f = k % FLIGHT, rank = base + k / FLIGHT;
        if (!has_rank<N>(c, rank)) break;
        const Tensor<WORK> output{a.output + a.receive_at[rank], bytes};
        output.store16(i + f * given.stride, rank == c.rank ? own[f] : come[f][k / FLIGHT]);
      }
    }
  });
}

#define IS_WHOLE(a) are_parts_whole(a, 16)
#define GATHER_LAMPORT_ENTRIES(N, n)                                              \
  PUSH_ENTRY(gather_lamport_f32_##n, PartsArgs, IS_WHOLE, gather_lamport, F32, N)  \
  PUSH_ENTRY(gather_lamport_half_##n, PartsArgs, IS_WHOLE, gather_lamport, Bf16, N)

GATHER_LAMPORT_ENTRIES(2, 2)
GATHER_LAMPORT_ENTRIES(4, 4)
GATHER_LAMPORT_ENTRIES(8, 8)
GATHER_LAMPORT_ENTRIES(ANY, any)
