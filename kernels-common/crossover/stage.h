// Staged data behind a barrier: a rank copies what peers want into its own arena, meets them, and reads theirs. Two
// stages by parity: a stage is written again two calls later, when every peer has met this rank once more and so has
// finished reading. That is why no barrier is needed at the end. A kernel that stages its tensors in pieces counts each of
// them as a call. Where inputs are read where they are nothing is staged, and a barrier at the end is needed.
#pragma once
#include <crossover/barrier.h>
#include <crossover/numerics.h>
#include <crossover/tensor.h>
#include <crossover/world.h>

// This call's stage in an arena; `place` are the bytes of one.
PLATFORM_DEVICE uint64_t stage_of(uint64_t arena, const Epoch& e, uint64_t region, uint64_t place) {
#ifdef SABOTAGE_ONE_SLOT
  return arena + region;
#else
  return arena + region + e.parity() * place;
#endif
}

// The addresses of all ranks' inputs, if this call may read them where they are; null if inputs are staged. The row is
// filled when the graph that this call was captured into is committed, the same way on every rank.
PLATFORM_DEVICE const uint64_t* committed_row(Wait& wait, const Common& c, const Epoch& e, uint64_t row) {
  if (row == 0) return nullptr;
  const uint64_t* addresses = reinterpret_cast<const uint64_t*>(row);
  if (addresses[0] == ROW_NOT_COMMITTED) {
    give_up(c, e, CODE_NOT_COMMITTED, c.rank, STEP_BARRIER, 0);
    wait.given_up = true;
  }
  return addresses[0] <= ROW_STAGED ? nullptr : addresses;
}

// Peers have read this rank's input where it is: what is behind this kernel may overwrite it.
PLATFORM_DEVICE void leave_inputs(Wait& wait, const Common& c, const Epoch& e, uint64_t table) {
#ifndef SABOTAGE_NO_END_BARRIER
  meet(wait, c, e, table, 1, STEP_SECOND_BARRIER, false);
#endif
}

// Bytes of a part from `begin` on, at most `most`.
PLATFORM_DEVICE uint64_t piece_of(uint64_t part, uint64_t begin, uint64_t most) {
  const uint64_t left = begin < part ? part - begin : 0;
  return left < most ? left : most;
}

// The piece from `begin` on of each peer's part into this rank's stage.
PLATFORM_DEVICE void stage_parts(const Common& c, const Epoch& e, const PartsArgs& a, uint64_t begin, uint64_t first,
                                 uint64_t stride) {
  const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
  for (uint32_t peer = 0; peer < c.world; ++peer) {
    if (peer == c.rank) continue;
    const uint64_t bytes = piece_of(a.send_bytes[peer], begin, a.piece);
    copy_units(mine + a.stage_at[peer], a.input + a.send_at[peer] + begin, bytes, first, stride);
  }
}

// Where the piece from `begin` on of the part that `rank` has for this one is: in its input, this rank's own among them, or
// in its stage.
PLATFORM_DEVICE uint64_t part_from(const PartsArgs& a, const Epoch& e, const uint64_t* row, uint32_t rank, uint64_t begin) {
  const Common& c = a.common;
  const uint64_t at = a.send_at[c.rank] + begin;
  if (rank == c.rank) return a.input + at;
  return row ? row[rank] + at : stage_of(c.arenas[rank], e, a.region, a.place) + a.fetch_at[rank];
}

// Packs `i`, `i + stride`, ... of all ranks' tensors, each reduced in the order of ranks, a group at a time. `from(rank)` is
// where a rank's tensor is. WHOLE: those packs are, and lie at multiples of 16. No branch is between loads then, so that all
// of them are on their way before one is looked at.
template <class T, class Op, uint32_t N, uint32_t FLIGHT, bool WHOLE, class From>
PLATFORM_DEVICE void reduce_packs(const Common& c, From from, uint64_t i, uint64_t stride, uint64_t bytes,
                                  Pack (&results)[FLIGHT]) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  Accumulator<T, Op, 4> sums[FLIGHT];
  // Unrolled, more than eight ranks would not fit into registers.
#pragma unroll 1
  for (uint32_t base = 0; base < N; base += COUNT) {
    if (!has_rank<N>(c, base)) break;
    Pack packs[FLIGHT][COUNT];
#pragma unroll
    for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
      const uint32_t f = k / COUNT, n = k % COUNT;
      const uint64_t tensor = from(some_rank<N>(c, base + n)), at = i + f * stride;
      packs[f][n] = WHOLE ? load_pack(reinterpret_cast<const void*>(tensor + at * 16)) : load_unit16(tensor, at, bytes);
    }
#pragma unroll
    for (uint32_t k = 0; k < FLIGHT * COUNT; ++k) {
      const uint32_t f = k / COUNT, n = k % COUNT;
      if (base + n == 0) sums[f].start(packs[f][n].w);
      else if (has_rank<N>(c, base + n)) sums[f].add(packs[f][n].w, c.reduce_op);
    }
  }
#pragma unroll
  for (uint32_t f = 0; f < FLIGHT; ++f) sums[f].template finish<N>(results[f].w, c);
}

// Reduces packs `first`, `first + stride`, ... below `end` of all ranks' tensors of `bytes`, as many at a time as keep eight
// loads of a thread on their way. `store(i, pack, whole)` is told whether all of the pack is within the tensor, and may be
// written in one piece to where `outputs` is a multiple of 16.
template <class T, class Op, uint32_t N, class From, class Store>
PLATFORM_DEVICE void reduce_tensors(const Common& c, From from, uint64_t bytes, uint64_t outputs, uint64_t first,
                                    uint64_t end, uint64_t stride, Store store) {
  constexpr uint32_t FLIGHT = N < 8 ? 8 / N : 1;
  // Where the number of ranks is known their addresses are held, or each would be loaded again behind every store.
  uint64_t held[N == ANY ? 1 : N], bits = outputs;
#pragma unroll
  for (uint32_t rank = 0; rank < N; ++rank) {
    const uint64_t tensor = from(some_rank<N>(c, rank));
    if (N != ANY) held[N == ANY ? 0 : rank] = tensor;
    bits |= tensor;
  }
  const auto at = [&](uint32_t rank) { return N == ANY ? from(rank) : held[N == ANY ? 0 : rank]; };
  const uint64_t inside = bytes / 16 < end ? bytes / 16 : end, whole = (bits & 15) == 0 ? inside : 0;
  uint64_t i = first;
  for (; i + (FLIGHT - 1) * stride < whole; i += FLIGHT * stride) {
    Pack results[FLIGHT];
    reduce_packs<T, Op, N, FLIGHT, true>(c, at, i, stride, bytes, results);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) store(i + f * stride, results[f], true);
  }
  for (; i < end; i += stride) {
    Pack result[1];
    reduce_packs<T, Op, N, 1, false>(c, at, i, stride, bytes, result);
    store(i, result[0], false);
  }
}
