// The kernels' dialect on AMD GPUs: gfx90a and the gfx94x and gfx95x families. It needs a compiler
// and nothing of ROCm: `clang++ -x hip -nogpuinc -nogpulib --cuda-device-only`.
//
// Every address is of global memory (device, peer or mapped host memory), never block-shared: so
// accesses are `global_*` instructions, which unlike `flat_*` leave the counter of LDS alone.
//
// A release at system scope writes dirty lines of the L2 back and waits for that, an acquire
// invalidates, and a relaxed access goes past the caches (`sc0 sc1` on gfx94x, `glc` on gfx90a). A
// chip of several dies has several L2 caches, so no access between ranks may do with less. What
// ranks share inside a kernel must be uncached or fine-grained memory.
#pragma once

#include <stdint.h>

#if defined(__HIP_DEVICE_COMPILE__) && !defined(__GFX9__)
#error "this header knows wave-64 devices of the gfx9 family: gfx90a, gfx942, gfx950"
#endif

#define PLATFORM_DEVICE static inline __attribute__((device, always_inline))
#define PLATFORM_DEVICE_MEMBER inline __attribute__((device, always_inline))
// What is hardly ever run. Calls need a stack on these devices, so it is in line all the same.
#define PLATFORM_COLD PLATFORM_DEVICE
#define PLATFORM_SHARED __attribute__((shared))
// A kernel may end with a release to its device alone, which has several L2 caches.
#define PLATFORM_KERNEL_END_RELEASES false
#define PLATFORM_KERNEL(NAME, ARGS, MAX_THREADS) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, MAX_THREADS))) void NAME(const ARGS args)

// ---- who and where

PLATFORM_DEVICE uint32_t thread_id() { return __builtin_amdgcn_workitem_id_x(); }
PLATFORM_DEVICE uint32_t block_id() { return __builtin_amdgcn_workgroup_id_x(); }
PLATFORM_DEVICE uint32_t block_size() { return __builtin_amdgcn_workgroup_size_x(); }
PLATFORM_DEVICE uint32_t grid_size() {
  // The launch states its blocks in the first hidden argument (code objects since version 5), which
  // saves the division of threads by threads of a block.
  using Hidden = const __attribute__((address_space(4))) uint32_t;
  return *(Hidden*)__builtin_amdgcn_implicitarg_ptr();
}

// Waits until this wave's loads have arrived and its stores are done. The compiler leaves it out
// where its own model of one wave needs none.
PLATFORM_DEVICE void platform_drain() {
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0), and no wait for the other two counters
}

// A barrier alone orders what waves do in the cache of their compute unit. A wave that then
// releases to another device counts its own accesses only, so each wave drains its own before: a
// flag raised after a barrier speaks for the whole block, of its loads as of its stores.
PLATFORM_DEVICE void block_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  platform_drain();
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// ---- memory

struct alignas(16) Pack {
  uint32_t w[4];
};
struct alignas(16) Line {
  uint64_t a[2];
};

template <typename T>
using PlatformGlobal = __attribute__((address_space(1))) T;

template <typename T>
PLATFORM_DEVICE PlatformGlobal<T>* platform_global(const void* address) {
  return (PlatformGlobal<T>*)(address);
}

template <typename T>
PLATFORM_DEVICE T platform_load_relaxed(const void* from) {
  return __scoped_atomic_load_n(platform_global<T>(from), __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}
template <typename T>
PLATFORM_DEVICE void platform_store_relaxed(void* to, T value) {
  __scoped_atomic_store_n(platform_global<T>(to), value, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
}

// A vector, so that a pack is one access of 16 bytes whatever the optimiser thinks of four.
typedef uint32_t PlatformVector __attribute__((ext_vector_type(4)));

PLATFORM_DEVICE Pack load_pack(const void* from) {
  return __builtin_bit_cast(Pack, *platform_global<PlatformVector>(from));
}
PLATFORM_DEVICE void store_pack(void* to, Pack pack) {
  *platform_global<PlatformVector>(to) = __builtin_bit_cast(PlatformVector, pack);
}

// No 16-byte access is atomic in the compiler's memory model, and a volatile one waits for each in
// turn. So a line is two relaxed atomics of 8 bytes, both on their way at once.
PLATFORM_DEVICE Line load_line_relaxed(const void* from) {
  const uint64_t* halves = static_cast<const uint64_t*>(from);
  Line line;
  line.a[0] = platform_load_relaxed<uint64_t>(halves);
  line.a[1] = platform_load_relaxed<uint64_t>(halves + 1);
  return line;
}
PLATFORM_DEVICE void store_line_relaxed(void* to, Line line) {
  uint64_t* halves = static_cast<uint64_t*>(to);
  platform_store_relaxed(halves, line.a[0]);
  platform_store_relaxed(halves + 1, line.a[1]);
}

PLATFORM_DEVICE Pack load_pack_relaxed(const void* from) {
  return __builtin_bit_cast(Pack, load_line_relaxed(from));
}
PLATFORM_DEVICE void store_pack_relaxed(void* to, Pack pack) {
  store_line_relaxed(to, __builtin_bit_cast(Line, pack));
}

// The write-back of the L2 (`buffer_wbl2`) counts as an access under way, but compilers before
// LLVM 23 did not know (llvm-project #178316) and dropped the wait for it where they saw no other.
PLATFORM_DEVICE void platform_release_system() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "", "global");  // "": system scope
  platform_drain();
}

PLATFORM_DEVICE uint64_t load_acquire_u64(const uint64_t* from) {
  return __scoped_atomic_load_n(platform_global<uint64_t>(from), __ATOMIC_ACQUIRE,
                                __MEMORY_SCOPE_SYSTEM);
}
PLATFORM_DEVICE void store_release_u64(uint64_t* to, uint64_t value) {
  platform_release_system();
  platform_store_relaxed(to, value);
}
PLATFORM_DEVICE void store_release_u32(uint32_t* to, uint32_t value) {
  platform_release_system();
  platform_store_relaxed(to, value);
}
PLATFORM_DEVICE uint64_t load_relaxed_u64(const uint64_t* from) {
  return platform_load_relaxed<uint64_t>(from);
}
PLATFORM_DEVICE void store_relaxed_u64(uint64_t* to, uint64_t value) {
  platform_store_relaxed(to, value);
}
PLATFORM_DEVICE uint32_t load_relaxed_u32(const uint32_t* from) {
  return platform_load_relaxed<uint32_t>(from);
}
PLATFORM_DEVICE void store_relaxed_u32(uint32_t* to, uint32_t value) {
  platform_store_relaxed(to, value);
}

PLATFORM_DEVICE uint32_t compare_exchange_u32(uint32_t* at, uint32_t expected, uint32_t desired) {
  platform_release_system();
  __scoped_atomic_compare_exchange_n(platform_global<uint32_t>(at), &expected, desired, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
  return expected;
}

// ---- time

// The constant-rate counter (`s_memrealtime`): 100 MHz on gfx94x and gfx95x. Where it is slower
// (25 MHz is known of older chips), a deadline comes later, never too early.
PLATFORM_DEVICE uint64_t clock_ns() { return __builtin_readsteadycounter() * 10; }

// Some 64 cycles without asking memory again.
PLATFORM_DEVICE void pause() { __builtin_amdgcn_s_sleep(1); }

// No kernel starts before the one ahead of it in the stream has ended.
PLATFORM_DEVICE void wait_for_previous_kernel() {}
PLATFORM_DEVICE void let_next_kernel_start() {}

// ---- numbers

PLATFORM_DEVICE float f32_from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
PLATFORM_DEVICE uint32_t f32_to_bits(float value) { return __builtin_bit_cast(uint32_t, value); }
PLATFORM_DEVICE float f16_to_f32(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
PLATFORM_DEVICE uint16_t f32_to_f16(float value) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
}
PLATFORM_DEVICE float bf16_to_f32(uint16_t bits) {
  return f32_from_bits(static_cast<uint32_t>(bits) << 16);
}
PLATFORM_DEVICE uint16_t f32_to_bf16(float value) {
  return __builtin_bit_cast(uint16_t, static_cast<__bf16>(value));
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
