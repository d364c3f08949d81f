// Where units of 16 bytes wait that peers have sent: a region of each arena has three slots, and a slot a place for each
// sender. A kernel makes this before the one ahead of it has ended: a call of few bytes lasts as long as its instructions, and a
// kernel's parameters come from afar.
#pragma once
#include <crossover/world.h>

template <uint32_t N>
struct Places {
  uint64_t region;
  uint64_t own;                     // the region in this rank's arena
  uint64_t held[N == ANY ? 1 : N];  // in everybody's, in registers where their number is known
  uint32_t place;                   // bytes of one, at most 2 GiB

  PLATFORM_DEVICE_MEMBER Places(const Common& c, uint64_t region, uint64_t place)
      : region(region), own(c.arenas[c.rank] + region), place(uint32_t(place)) {
    if constexpr (N != ANY) {
#pragma unroll
      for (uint32_t rank = 0; rank < N; ++rank) held[rank] = c.arenas[rank] + region;
    }
  }

  PLATFORM_DEVICE_MEMBER uint64_t of(const Common& c, uint32_t rank) const {
    return N == ANY ? c.arenas[rank] + region : held[N == ANY ? 0 : rank];
  }

  // From a region's start to unit `i` that `sender` sent into `slot`.
  PLATFORM_DEVICE_MEMBER uint64_t to(const Common& c, uint32_t slot, uint32_t sender, uint32_t i) const {
    return uint64_t(slot * (N == ANY ? c.world : N) + sender) * place + uint64_t(i) * 16;
  }
};
