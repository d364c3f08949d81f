// The platform header of the CPU: the kernels' dialect over the emulator. It is as weak as the
// dialect allows: what may tear is torn, in any order, with others' turns between the pieces.
#pragma once

#include <stdint.h>
#include <string.h>

#include "emulator.h"

#define PLATFORM_DEVICE static inline __attribute__((always_inline, unused))
// For what is seldom needed and would cost registers inline.
#define PLATFORM_COLD static __attribute__((noinline, unused))
#define PLATFORM_DEVICE_MEMBER inline __attribute__((always_inline))
// A block is an OS thread, and its fibres stay on it.
#define PLATFORM_SHARED static thread_local

// The C++ memory model knows no kernels.
#define PLATFORM_KERNEL_END_RELEASES false
#define PLATFORM_KERNEL(NAME, ARGS, MAX_THREADS) PLATFORM_KERNEL_NAMED(NAME, ARGS, MAX_THREADS)
#define PLATFORM_KERNEL_NAMED(NAME, ARGS, MAX_THREADS)                                   \
  extern "C" void NAME(const ARGS &args);                                               \
  static const ::emulator::Kernel NAME##_made_known{                                    \
      #NAME, [](const void *args) { NAME(*static_cast<const ARGS *>(args)); }, MAX_THREADS, \
      sizeof(ARGS)};                                                                    \
  extern "C" void NAME(const ARGS &args)

#define EMULATOR_TEXT_OF(x) #x
#define EMULATOR_TEXT(x) EMULATOR_TEXT_OF(x)
#define EMULATOR_HERE __FILE__ ":" EMULATOR_TEXT(__LINE__)

// Macros, so that a hang is told with the kernel's own line.
#define pause() ::emulator::spin(EMULATOR_HERE)
#define block_barrier() ::emulator::barrier(EMULATOR_HERE)
#define wait_for_previous_kernel() ::emulator::await_previous(EMULATOR_HERE)

PLATFORM_DEVICE uint32_t thread_id() { return emulator::thread(); }
PLATFORM_DEVICE uint32_t block_id() { return emulator::block(); }
PLATFORM_DEVICE uint32_t block_size() { return emulator::threads(); }
PLATFORM_DEVICE uint32_t grid_size() { return emulator::blocks(); }
PLATFORM_DEVICE uint64_t clock_ns() { return emulator::now(); }
PLATFORM_DEVICE void let_next_kernel_start() { emulator::let_next_start(); }

struct alignas(16) Pack {
  uint32_t w[4];
};
struct alignas(16) Line {
  uint64_t a[2];
};

namespace emulator {
// Addresses are cast from integers: what lies there has been written as other types.
typedef uint32_t __attribute__((may_alias)) Word;
typedef uint64_t __attribute__((may_alias)) Double;
}  // namespace emulator

// Ordinary accesses: for the sanitizer they race with anything not ordered with them.
PLATFORM_DEVICE Pack load_pack(const void *from) {
  emulator::access();
  Pack pack;
  memcpy(&pack, __builtin_assume_aligned(from, 16), 16);
  return pack;
}
PLATFORM_DEVICE void store_pack(void *to, Pack pack) {
  emulator::access();
  memcpy(__builtin_assume_aligned(to, 16), &pack, 16);
  emulator::stored();
}

// Four accesses in any order.
PLATFORM_DEVICE Pack load_pack_relaxed(const void *from) {
  const uint32_t first = emulator::random(4), step = 1 + 2 * emulator::random(2);
  Pack pack;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t at = (first + step * i) % 4;
    emulator::access();
    pack.w[at] = __atomic_load_n(static_cast<const emulator::Word *>(from) + at, __ATOMIC_RELAXED);
  }
  return pack;
}
PLATFORM_DEVICE void store_pack_relaxed(void *to, Pack pack) {
  const uint32_t first = emulator::random(4), step = 1 + 2 * emulator::random(2);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t at = (first + step * i) % 4;
    emulator::access();
    __atomic_store_n(static_cast<emulator::Word *>(to) + at, pack.w[at], __ATOMIC_RELAXED);
  }
  emulator::stored();
}

// Two accesses in any order.
PLATFORM_DEVICE Line load_line_relaxed(const void *from) {
  const uint32_t first = emulator::random(2);
  const emulator::Double *halves = static_cast<const emulator::Double *>(from);
  Line line;
  emulator::access();
  line.a[first] = __atomic_load_n(halves + first, __ATOMIC_RELAXED);
  emulator::access();
  line.a[1 - first] = __atomic_load_n(halves + 1 - first, __ATOMIC_RELAXED);
  return line;
}
PLATFORM_DEVICE void store_line_relaxed(void *to, Line line) {
  const uint32_t first = emulator::random(2);
  emulator::Double *halves = static_cast<emulator::Double *>(to);
  emulator::access();
  __atomic_store_n(halves + first, line.a[first], __ATOMIC_RELAXED);
  emulator::access();
  __atomic_store_n(halves + 1 - first, line.a[1 - first], __ATOMIC_RELAXED);
  emulator::stored();
}

PLATFORM_DEVICE uint64_t load_acquire_u64(const uint64_t *from) {
  emulator::access();
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
PLATFORM_DEVICE void store_release_u64(uint64_t *to, uint64_t value) {
  emulator::access();
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
  emulator::stored();
}
PLATFORM_DEVICE uint64_t load_relaxed_u64(const uint64_t *from) {
  emulator::access();
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
PLATFORM_DEVICE void store_relaxed_u64(uint64_t *to, uint64_t value) {
  emulator::access();
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
  emulator::stored();
}
PLATFORM_DEVICE uint32_t load_relaxed_u32(const uint32_t *from) {
  emulator::access();
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
PLATFORM_DEVICE void store_relaxed_u32(uint32_t *to, uint32_t value) {
  emulator::access();
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
  emulator::stored();
}
PLATFORM_DEVICE uint32_t load_acquire_u32(const uint32_t *from) {
  emulator::access();
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
PLATFORM_DEVICE void store_release_u32(uint32_t *to, uint32_t value) {
  emulator::access();
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
  emulator::stored();
}
PLATFORM_DEVICE uint32_t compare_exchange_u32(uint32_t *at, uint32_t expected, uint32_t desired) {
  emulator::access();
  if (__atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    emulator::stored();
  return expected;
}

PLATFORM_DEVICE float f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
PLATFORM_DEVICE uint32_t f32_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

PLATFORM_DEVICE float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return f32_from_bits(sign | 0x7f800000u | mantissa << 13);
  // A subnormal half is a whole number of 2^-24, which f32 holds as a normal number.
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return f32_from_bits(sign | f32_to_bits(value));
  }
  return f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}
PLATFORM_DEVICE uint16_t f32_to_f16(float value) {
  const uint32_t bits = f32_to_bits(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  // From 65520 on the nearest half is infinity.
  if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  // Below 2^-14 halves are whole numbers of 2^-24: adding 0.5 leaves them in the last bits, rounded.
  if (size < 0x38800000u)
    return static_cast<uint16_t>(sign | (f32_to_bits(f32_from_bits(size) + 0.5f) - 0x3f000000u));
  const uint32_t even = size >> 13 & 1u;
  return static_cast<uint16_t>(sign | ((size - (112u << 23) + 0xfffu + even) >> 13));
}

PLATFORM_DEVICE float bf16_to_f32(uint16_t bits) {
  return f32_from_bits(static_cast<uint32_t>(bits) << 16);
}
PLATFORM_DEVICE uint16_t f32_to_bf16(float value) {
  const uint32_t bits = f32_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// Two values, the first in the low bits. A choice, where a branch would split the code of eight elements.
PLATFORM_DEVICE uint32_t f16_pair(float low, float high) {
  const uint32_t first = low == low ? f32_to_f16(low) : 0x7E00u, second = high == high ? f32_to_f16(high) : 0x7E00u;
  return first | second << 16;
}
PLATFORM_DEVICE uint32_t bf16_pair(float low, float high) {
  const uint32_t first = low == low ? f32_to_bf16(low) : 0x7FC0u, second = high == high ? f32_to_bf16(high) : 0x7FC0u;
  return first | second << 16;
}
