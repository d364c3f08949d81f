// all_reduce, two_shot_pull: every rank reads its share of every peer's tensor, staged or where it is, reduces it into its
// arena, and reads the others' shares from theirs. Bandwidth's algorithm. In place is safe both ways: outputs are written
// after the second barrier, when all inputs have been read, but for the own share, which nobody else reads.
//
// Where the group exchanged the addresses of inputs and outputs, a share is written where everybody wants it, and nobody
// reads it again. In place is safe that way too: nobody else reads or writes that share of any tensor.
#include <platform.h>

#include <crossover/instantiate.h>
#include <crossover/stage.h>

// This rank's share, from all inputs into all outputs, between two barriers.
template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void reduce_into_outputs(Wait& wait, const Common& c, const Epoch& e, const AllReduceArgs& a,
                                     const uint64_t* inputs, const uint64_t* outputs, uint64_t begin, uint64_t end) {
  // Who gives up leaves alone what a peer may not have come to yet.
  if (!meet(wait, c, e, a.barrier, 0, STEP_BARRIER, false)) return;
  uint64_t to[N == ANY ? 1 : N], bits = 0;
#pragma unroll
  for (uint32_t rank = 0; rank < N; ++rank) {
    if (!has_rank<N>(c, rank)) break;
    if (N != ANY) to[N == ANY ? 0 : rank] = outputs[rank];
    bits |= outputs[rank];
  }
  const auto share = [&](uint64_t i, const Pack& p, bool whole) {
#pragma unroll
    for (uint32_t rank = 0; rank < N; ++rank) {
      if (!has_rank<N>(c, rank)) break;
      const uint64_t output = N == ANY ? outputs[rank] : to[N == ANY ? 0 : rank];
      if (whole) store_pack(reinterpret_cast<void*>(output + i * 16), p);
      else store_unit16(output, i, a.bytes, p);
    }
  };
  const auto from = [&](uint32_t rank) { return inputs[rank]; };
  reduce_tensors<T, Op, N>(c, from, a.bytes, bits, begin + first_unit(), end, unit_stride(), share);
#ifndef SABOTAGE_NO_END_BARRIER
  meet(wait, c, e, a.barrier, 1, STEP_SECOND_BARRIER, true);
#endif
}

template <class T, class Op, uint32_t N>
PLATFORM_DEVICE void two_shot_pull(const AllReduceArgs& a) {
  constexpr uint32_t COUNT = Group<N>::SIZE;
  const Common& c = a.common;
  wait_for_previous_kernel();
  if (c.early) let_next_kernel_start();
  const uint64_t packs = units(a.bytes, 16), share = units(packs, c.world);
  const uint64_t first = block_id() * block_size() + thread_id(), stride = grid_size() * block_size();
  const Epoch e = read_epoch(c);
  if (e.poisoned) return;
  Wait wait;
  const uint64_t* row = committed_row(wait, c, e, a.row);
  const uint64_t* outputs = row ? committed_row(wait, c, e, a.output_row) : nullptr;
  const uint64_t begin = c.rank * share, end = begin + share < packs ? begin + share : packs;
  if (outputs) {
    advance(c, e, 1);
    reduce_into_outputs<T, Op, N>(wait, c, e, a, row, outputs, begin, end);
    return;
  }
  // Block b of every rank has the same packs of every share: barriers are between equal blocks.
  if (!row) {
    const uint64_t mine = stage_of(c.arenas[c.rank], e, a.region, a.place);
    const uint64_t whole = (a.input & 15) == 0 ? a.bytes / 16 : 0;
    for (uint64_t j = first; j < share; j += stride) {
#pragma unroll
      for (uint32_t base = 0; base < N; base += COUNT) {
        if (!has_rank<N>(c, base)) break;
        Pack parts[COUNT];
        if ((base + COUNT - 1) * share + j < whole) {
#pragma unroll
          for (uint32_t n = 0; n < COUNT; ++n) {
            parts[n] = load_pack(reinterpret_cast<const void*>(a.input + ((base + n) * share + j) * 16));
          }
        } else {
#pragma unroll
          for (uint32_t n = 0; n < COUNT; ++n) {
            const uint64_t i = (base + n) * share + j;
            if (i < packs) parts[n] = load_unit16(a.input, i, a.bytes);
          }
        }
#pragma unroll
        for (uint32_t n = 0; n < COUNT; ++n) {
          const uint64_t i = (base + n) * share + j;
          if (i < packs) store_pack(reinterpret_cast<void*>(mine + i * 16), parts[n]);
        }
      }
    }
  }
  advance(c, e, 1);
  meet(wait, c, e, a.barrier, 0, STEP_BARRIER, !row);
  const auto from = [&](uint32_t rank) {
    return rank == c.rank ? a.input : row ? row[rank] : stage_of(c.arenas[rank], e, a.region, a.place);
  };
  const uint64_t my_results = stage_of(c.arenas[c.rank], e, a.second, a.second_place);
  const auto keep = [&](uint64_t i, const Pack& p, bool whole) {
    store_pack(reinterpret_cast<void*>(my_results + (i - begin) * 16), p);
    if (whole) store_pack(reinterpret_cast<void*>(a.output + i * 16), p);
    else store_unit16(a.output, i, a.bytes, p);
  };
  reduce_tensors<T, Op, N>(c, from, a.bytes, a.output, begin + first, end, stride, keep);
  meet(wait, c, e, a.barrier, 1, STEP_SECOND_BARRIER, true);
  for (uint64_t j = first; j < share; j += stride) {
#pragma unroll
    for (uint32_t base = 0; base < N; base += COUNT) {
      if (!has_rank<N>(c, base)) break;
      // All are on their way before one is written.
      Pack results[COUNT];
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint64_t theirs = stage_of(c.arenas[some_rank<N>(c, base + n)], e, a.second, a.second_place);
        results[n] = load_pack(reinterpret_cast<const void*>(theirs + j * 16));
      }
#pragma unroll
      for (uint32_t n = 0; n < COUNT; ++n) {
        const uint64_t i = (base + n) * share + j;
        if (has_rank<N>(c, base + n) && base + n != c.rank && i < packs) store_unit16(a.output, i, a.bytes, results[n]);
      }
    }
  }
}

REDUCTION_ENTRIES(two_shot_pull, AllReduceArgs)
