// Reductions, rank-ordered: from rank 0's value over ranks 1..N-1 in f32, rounded once. Every algorithm on every platform
// and the host backend give the same bits. A NaN result is the type's canonical quiet NaN, since which payload survives
// an addition depends on the hardware.
#pragma once
#include <crossover/abi.h>

// Element types. `PER_WORD` elements lie in a word of 32 bits, the first in the low bits.
struct F32 {
  static constexpr uint32_t PER_WORD = 1;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t) { return f32_from_bits(word); }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return x[0] == x[0] ? f32_to_bits(x[0]) : 0x7FC00000u; }
};
struct F16 {
  static constexpr uint32_t PER_WORD = 2;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t i) { return f16_to_f32(uint16_t(word >> (16 * i))); }
  PLATFORM_DEVICE_MEMBER static uint32_t one(float x) {
    const uint32_t rounded = f32_to_f16(x);
    return x == x ? rounded : 0x7E00u;  // a choice, where a branch would split the code of eight elements
  }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return one(x[0]) | one(x[1]) << 16; }
};
struct Bf16 {
  static constexpr uint32_t PER_WORD = 2;
  PLATFORM_DEVICE_MEMBER static float decode(uint32_t word, uint32_t i) { return bf16_to_f32(uint16_t(word >> (16 * i))); }
  PLATFORM_DEVICE_MEMBER static uint32_t one(float x) {
    const uint32_t rounded = f32_to_bf16(x);
    return x == x ? rounded : 0x7FC0u;
  }
  PLATFORM_DEVICE_MEMBER static uint32_t encode(const float* x) { return one(x[0]) | one(x[1]) << 16; }
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
  PLATFORM_DEVICE_MEMBER void finish(uint32_t* words, const Common& c) {
    if (c.reduce_op == AVG) {
#pragma unroll
      for (uint32_t i = 0; i < COUNT; ++i) x[i] = x[i] / float(c.world);
    }
#pragma unroll
    for (uint32_t i = 0; i < WORDS; ++i) words[i] = T::encode(x + i * T::PER_WORD);
  }
};
