// all_gather, lamport: every rank writes its part into every peer's arena; each value is its own flag. Floats of 32 or 16
// bits, whose -0.0 is flushed to +0.0, the own part's too: all ranks receive the same bits.
#include <platform.h>

#include <crossover/lamport.h>

template <class T, uint32_t ROOM>
PLATFORM_DEVICE void copy_lamport(const PartsArgs& a) {
  constexpr uint32_t GROUP = ROOM < 4 ? ROOM : 4;
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const Epoch e = read_epoch(c);
  const Turn t = read_turn(c);
  if (e.poisoned) return;
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  // Parts are equal and not empty: a rank that has them all knows that all have begun.
  const uint64_t bytes = a.send_bytes[c.rank], packs = units(bytes, 16);
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = unmarked_pack<T>(load_unit16(a.input + a.send_at[c.rank], i, bytes));
#pragma unroll
    for (uint32_t peer = 0; peer < ROOM; ++peer) {
      if (peer < c.world && peer != c.rank) {
        store_pack_relaxed(
            reinterpret_cast<void*>(lamport_at(c, t.slot, a.region, a.place, c.arenas[peer], c.rank, i)), own);
      }
    }
  }
  clear_before<ROOM>(c, t, a.region, a.place, first, stride);
  if (arrive(c, e)) advance_turn(c, t, packs);
  Wait wait;
  for (uint64_t i = first; i < packs; i += stride) {
    const Pack own = unmarked_pack<T>(load_unit16(a.input + a.send_at[c.rank], i, bytes));
#pragma unroll
    for (uint32_t base = 0; base < ROOM; base += GROUP) {
      if (base >= c.world) break;
      Pack packs[GROUP];
      collect_lamport<GROUP>(wait, c, e, t, a.region, a.place, base, i, own, packs);
#pragma unroll
      for (uint32_t n = 0; n < GROUP; ++n) {
        if (base + n < c.world) store_unit16(a.output + a.receive_at[base + n], i, bytes, packs[n]);
      }
    }
  }
}

#define COPY_LAMPORT_ENTRIES(ROOM)                                                                    \
  PLATFORM_KERNEL(copy_lamport_32_##ROOM, PartsArgs, MAX_THREADS) { copy_lamport<F32, ROOM>(args); }  \
  PLATFORM_KERNEL(copy_lamport_16_##ROOM, PartsArgs, MAX_THREADS) { copy_lamport<Bf16, ROOM>(args); }

COPY_LAMPORT_ENTRIES(2)
COPY_LAMPORT_ENTRIES(4)
COPY_LAMPORT_ENTRIES(8)
COPY_LAMPORT_ENTRIES(16)
