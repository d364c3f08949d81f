// The platform of the kernels on NVIDIA GPUs: what kernels-common is written against, in PTX. sm_80 and later.
// Orders and scopes are the PTX memory model's; every access to a peer's memory is at system scope.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define PLATFORM_DEVICE static __device__ __forceinline__
#define PLATFORM_DEVICE_MEMBER __device__ __forceinline__
// What is hardly ever run: a call, so that it takes no room in the instruction cache and no register of the rest.
#define PLATFORM_COLD static __device__ __noinline__
#define PLATFORM_SHARED __shared__
// What a kernel wrote is visible to the whole system when it has ended.
#define PLATFORM_KERNEL_END_RELEASES true
#define PLATFORM_KERNEL(NAME, ARGS, MAX_THREADS) \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS, 1) NAME(const __grid_constant__ ARGS args)

PLATFORM_DEVICE uint32_t thread_id() { return threadIdx.x; }
PLATFORM_DEVICE uint32_t block_id() { return blockIdx.x; }
PLATFORM_DEVICE uint32_t block_size() { return blockDim.x; }
PLATFORM_DEVICE uint32_t grid_size() { return gridDim.x; }
PLATFORM_DEVICE void block_barrier() { __syncthreads(); }

struct alignas(16) Pack {
  uint32_t w[4];
};
struct alignas(16) Line {
  uint64_t a[2];
};

// Plain accesses to global memory, never by the non-coherent path: what peers wrote must be seen. They keep their order
// where they are issued and wait for nothing: several are on their way if they are loaded before one is used.
PLATFORM_DEVICE Pack load_pack(const void* from) {
  Pack p;
  asm volatile("ld.global.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(p.w[0]), "=r"(p.w[1]), "=r"(p.w[2]), "=r"(p.w[3])
               : "l"(from)
               : "memory");
  return p;
}
PLATFORM_DEVICE void store_pack(void* to, Pack p) {
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(p.w[0]), "r"(p.w[1]), "r"(p.w[2]), "r"(p.w[3])
               : "memory");
}
PLATFORM_DEVICE Pack load_pack_relaxed(const void* from) {
  Pack p;
  asm volatile("ld.relaxed.sys.global.v4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(p.w[0]), "=r"(p.w[1]), "=r"(p.w[2]), "=r"(p.w[3])
               : "l"(from)
               : "memory");
  return p;
}
PLATFORM_DEVICE void store_pack_relaxed(void* to, Pack p) {
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(p.w[0]), "r"(p.w[1]), "r"(p.w[2]),
               "r"(p.w[3])
               : "memory");
}
PLATFORM_DEVICE Line load_line_relaxed(const void* from) {
  Line l;
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0,%1}, [%2];" : "=l"(l.a[0]), "=l"(l.a[1]) : "l"(from) : "memory");
  return l;
}
PLATFORM_DEVICE void store_line_relaxed(void* to, Line l) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1,%2};" ::"l"(to), "l"(l.a[0]), "l"(l.a[1]) : "memory");
}

PLATFORM_DEVICE uint64_t load_acquire_u64(const uint64_t* from) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}
PLATFORM_DEVICE void store_release_u64(uint64_t* to, uint64_t v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}
PLATFORM_DEVICE uint64_t load_relaxed_u64(const uint64_t* from) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}
PLATFORM_DEVICE void store_relaxed_u64(uint64_t* to, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}
PLATFORM_DEVICE uint32_t load_relaxed_u32(const uint32_t* from) {
  uint32_t v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
PLATFORM_DEVICE void store_relaxed_u32(uint32_t* to, uint32_t v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
PLATFORM_DEVICE void store_release_u32(uint32_t* to, uint32_t v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
PLATFORM_DEVICE uint32_t compare_exchange_u32(uint32_t* at, uint32_t expected, uint32_t desired) {
  uint32_t was;
  asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(was)
               : "l"(at), "r"(expected), "r"(desired)
               : "memory");
  return was;
}

PLATFORM_DEVICE uint64_t clock_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
PLATFORM_DEVICE void pause() {}

// Programmatic dependent launch. The wait lasts until the kernel ahead in the stream has ended and all that it
// wrote is visible, however early that kernel let this one start.
PLATFORM_DEVICE void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
PLATFORM_DEVICE void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

PLATFORM_DEVICE float f32_from_bits(uint32_t bits) { return __uint_as_float(bits); }
PLATFORM_DEVICE uint32_t f32_to_bits(float x) { return __float_as_uint(x); }
PLATFORM_DEVICE float f16_to_f32(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
PLATFORM_DEVICE float bf16_to_f32(uint16_t bits) { return __uint_as_float(uint32_t(bits) << 16); }

// Two values rounded by one instruction, which gives 0x7FFF for a NaN and for nothing else: that is brought to the canonical
// one by arithmetic, since a choice for each value would take it to pieces again.
PLATFORM_DEVICE uint32_t canonical(uint32_t pair, uint32_t less) {
  const uint32_t is_nan = ((pair & 0x7FFF7FFFu) + 0x00010001u) >> 15 & 0x00010001u;
  return pair - is_nan * less;
}
PLATFORM_DEVICE uint32_t f16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return canonical(pair, 0x7FFFu - 0x7E00u);
}
PLATFORM_DEVICE uint32_t bf16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return canonical(pair, 0x7FFFu - 0x7FC0u);
}
