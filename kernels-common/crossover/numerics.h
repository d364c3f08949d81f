// Reductions, rank-ordered: from rank 0's value over ranks 1..N-1 in f32, rounded once. Every algorithm on every platform
// and the host backend give the same bits. A NaN result is the type's canonical quiet NaN, since which payload survives
// an addition depends on the hardware.
#pragma once
#include <crossover/world.h>

// Element types. `PER_WORD` elements lie in a word of 32 bits, the first in the low bits.
struct F32 {
  static constexpr uint32_t PER_WORD = 1;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t) { return f32_from_bits(word); }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return x[0] == x[0] ? f32_to_bits(x[0]) : 0x7FC00000u; }
};
struct F16 {
  static constexpr uint32_t PER_WORD = 2;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t i) { return f16_to_f32(uint16_t(word >> (16 * i))); }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return f16_pair(x[0], x[1]); }
};
struct Bf16 {
  static constexpr uint32_t PER_WORD = 2;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t i) { return bf16_to_f32(uint16_t(word >> (16 * i))); }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return bf16_pair(x[0], x[1]); }
};

// The order of core's vocabulary of reduce ops.
constexpr uint32_t PROD = 1, MIN = 2, MAX = 3, AVG = 4;

// Sum and average.
struct Sum {
  PLATFORM_DEVICE_MEMBER static float combine(float a, float b, uint32_t) { return a + b; }
};
// The others, chosen at run time: rare enough not to be compiled one by one. On equal values the lower rank's stays.
struct Other {
  PLATFORM_DEVICE_MEMBER static float combine(float a, float b, uint32_t op) {
    if (op == PROD) return a * b;
    const bool takes_b = op == MIN ? b < a : b > a;
    return takes_b || b != b ? b : a;
  }
};

// A division has many instructions; a sum goes past none of them.
PLATFORM_COLD float quotient(float sum, uint32_t world) { return sum / float(world); }

// The running result of `WORDS` words.
template <class T, class Op, uint32_t WORDS>
struct Accumulator {
  static constexpr uint32_t COUNT = WORDS * T::PER_WORD;
  float x[COUNT];

  PLATFORM_DEVICE_MEMBER void start(const uint32_t* words) {
#pragma unroll
    for (uint32_t i = 0; i < COUNT; ++i) x[i] = T::decode(words[i / T::PER_WORD], i % T::PER_WORD);
  }
  PLATFORM_DEVICE_MEMBER void add(const uint32_t* words, uint32_t op) {
#pragma unroll
    for (uint32_t i = 0; i < COUNT; ++i) x[i] = Op::combine(x[i], T::decode(words[i / T::PER_WORD], i % T::PER_WORD), op);
  }
  // Of `N` ranks.
  template <uint32_t N>
  PLATFORM_DEVICE_MEMBER void finish(uint32_t* words, const Common& c) {
    if (N != ANY) {
      // A division by a power of two, or by nothing: the same bits, without a branch.
      const float scale = c.reduce_op == AVG ? 1.0f / N : 1.0f;
#pragma unroll
      for (uint32_t i = 0; i < COUNT; ++i) x[i] *= scale;
    } else if (c.reduce_op == AVG) {
#pragma unroll
      for (uint32_t i = 0; i < COUNT; ++i) x[i] = quotient(x[i], c.world);
    }
#pragma unroll
    for (uint32_t i = 0; i < WORDS; ++i) words[i] = T::encode(x + i * T::PER_WORD);
  }
};

// The same units of all ranks, each in the order of ranks, a group at a time; `own` are this rank's. `collect(base, units)` gives
// those of as many ranks as there is room for, from `base` on, once they have come; this rank's are not looked at.
template <class T, class Op, uint32_t N, uint32_t FLIGHT, uint32_t WORDS, class Collect>
PLATFORM_DEVICE void reduce_ranks(const Common& c, const uint32_t (&own)[FLIGHT][WORDS], uint32_t (&results)[FLIGHT][WORDS],
                                  Collect collect) {
  Accumulator<T, Op, WORDS> sums[FLIGHT];
  if constexpr (N == 2) {
    // Two values have the same sum in either order.
    uint32_t come[FLIGHT][1][WORDS];
    collect(1 - c.rank, come);
#pragma unroll
    for (uint32_t f = 0; f < FLIGHT; ++f) {
      sums[f].start(own[f]);
      sums[f].add(come[f][0], c.reduce_op);
    }
  } else {
#pragma unroll
    for (uint32_t base = 0; base < N; base += Group<N>::SIZE) {
      if (!has_rank<N>(c, base)) break;
      uint32_t come[FLIGHT][Group<N>::SIZE][WORDS];
      collect(base, come);
#pragma unroll
      for (uint32_t k = 0; k < FLIGHT * Group<N>::SIZE; ++k) {
        const uint32_t f = k / Group<N>::SIZE, n = k % Group<N>::SIZE;
#pragma unroll
        for (uint32_t w = 0; w < WORDS; ++w) come[f][n][w] = base + n == c.rank ? own[f][w] : come[f][n][w];
        if (base + n == 0) sums[f].start(come[f][n]);
        else if (has_rank<N>(c, base + n)) sums[f].add(come[f][n], c.reduce_op);
      }
    }
  }
#pragma unroll
  for (uint32_t f = 0; f < FLIGHT; ++f) sums[f].template finish<N>(results[f], c);
}
