// One primitive of the dialect a kernel, so that a test can read what a compiler makes of each.
#include <platform.h>

struct Args {
  uint64_t from, to;
};

// An address of the thread's own, as in the kernels: what is the same for all threads has other ways to be read.
#define FROM(TYPE) reinterpret_cast<const TYPE*>(args.from + thread_id() * 16)
#define TO(TYPE) reinterpret_cast<TYPE*>(args.to + thread_id() * 16)

PLATFORM_KERNEL(pack, Args, 512) { store_pack(TO(void), load_pack(FROM(void))); }
PLATFORM_KERNEL(pack_relaxed, Args, 512) { store_pack_relaxed(TO(void), load_pack_relaxed(FROM(void))); }
PLATFORM_KERNEL(line_relaxed, Args, 512) { store_line_relaxed(TO(void), load_line_relaxed(FROM(void))); }
PLATFORM_KERNEL(relaxed_u64, Args, 512) { store_relaxed_u64(TO(uint64_t), load_relaxed_u64(FROM(uint64_t))); }
PLATFORM_KERNEL(relaxed_u32, Args, 512) { store_relaxed_u32(TO(uint32_t), load_relaxed_u32(FROM(uint32_t))); }
PLATFORM_KERNEL(acquire_u64, Args, 512) {
  const uint64_t word = load_acquire_u64(FROM(uint64_t));
  store_pack(TO(void), Pack{{uint32_t(word), uint32_t(word >> 32)}});
}
PLATFORM_KERNEL(release_u64, Args, 512) { store_release_u64(TO(uint64_t), args.from); }
PLATFORM_KERNEL(release_u32, Args, 512) { store_release_u32(TO(uint32_t), uint32_t(args.from)); }
PLATFORM_KERNEL(exchange_u32, Args, 512) { compare_exchange_u32(TO(uint32_t), uint32_t(args.from), 1); }
PLATFORM_KERNEL(barrier, Args, 512) { block_barrier(); }
