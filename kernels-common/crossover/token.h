// Tokens, for collectives in which some rank receives nothing from some other: data cannot say then that a peer has
// begun, and slots could be reused too early. Block 0 of every rank meets block 0 of every peer, whose words in the
// barrier's table nothing else of the same call uses.
#pragma once
#include <crossover/barrier.h>

PLATFORM_DEVICE void send_token(const Common& c, const Epoch& e, uint64_t table) {
  const uint32_t peer = thread_id();
  if (block_id() == 0 && peer < c.world && peer != c.rank) {
    store_release_u64(barrier_word(c.arenas[peer], table, c.rank), e.number * BARRIERS);
  }
}

PLATFORM_DEVICE void await_tokens(Wait& wait, const Common& c, const Epoch& e, uint64_t table) {
  const uint32_t peer = thread_id();
  if (block_id() == 0 && peer < c.world && peer != c.rank) {
    await_word(wait, c, e, barrier_word(c.arenas[c.rank], table, peer), e.number * BARRIERS, peer, STEP_TOKEN);
  }
}
