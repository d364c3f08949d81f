// How many ranks a kernel is compiled for: exactly 2, 4 or 8, or any number up to 16.
#pragma once
#include <crossover/abi.h>

constexpr uint32_t ANY = MAX_WORLD;

// Is there such a rank? Known at compile time where the number is.
template <uint32_t N>
PLATFORM_DEVICE bool has_rank(const Common& c, uint32_t rank) {
  return N == ANY ? rank < c.world : true;
}

// The rank, or this one where there is none: an address can be made of it without a branch.
template <uint32_t N>
PLATFORM_DEVICE uint32_t some_rank(const Common& c, uint32_t rank) {
  return has_rank<N>(c, rank) ? rank : c.rank;
}

// Ranks whose values a thread holds at a time, and units of each where it has several. All of them travel at once; more would not
// fit into registers.
template <uint32_t N>
struct Group {
  static constexpr uint32_t SIZE = N < 8 ? N : 8;
  static constexpr uint32_t FLIGHT = N == ANY ? 1 : N == 2 ? 4 : 2;
  // Where all are held until each is stored.
  static constexpr uint32_t HELD_FLIGHT = N == 8 ? 1 : FLIGHT;
};
