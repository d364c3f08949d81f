// Kernels that only the emulator's own tests run.
#include <platform.h>

struct ConvertArgs {
  uint64_t f32;   // bits of numbers to narrow
  uint64_t f16;   // their halves
  uint64_t bf16;
  uint64_t wide;  // every half and bfloat widened, 65536 of each
  uint64_t count;
};

PLATFORM_KERNEL(probe_convert, ConvertArgs, 256) {
  const uint32_t *f32 = reinterpret_cast<const uint32_t *>(args.f32);
  uint16_t *f16 = reinterpret_cast<uint16_t *>(args.f16);
  uint16_t *bf16 = reinterpret_cast<uint16_t *>(args.bf16);
  uint32_t *wide = reinterpret_cast<uint32_t *>(args.wide);
  const uint32_t first = block_id() * block_size() + thread_id();
  const uint32_t stride = grid_size() * block_size();
  for (uint64_t at = first; at < args.count; at += stride) {
    f16[at] = f32_to_f16(f32_from_bits(f32[at]));
    bf16[at] = f32_to_bf16(f32_from_bits(f32[at]));
  }
  for (uint32_t bits = first; bits < 65536; bits += stride) {
    wide[bits] = f32_to_bits(f16_to_f32(static_cast<uint16_t>(bits)));
    wide[65536 + bits] = f32_to_bits(bf16_to_f32(static_cast<uint16_t>(bits)));
  }
}

// Adds up `words` of every rank, after a flag barrier between the ranks' blocks.
struct SumArgs {
  uint64_t flags[8];  // of each rank: a word for each (block, rank)
  uint64_t inputs[8];
  uint64_t output;
  uint32_t words;
  uint32_t rank;
  uint32_t world;
  uint32_t epoch;
};

PLATFORM_DEVICE void wait_for(const uint64_t *flag, uint32_t epoch) {
  while (load_acquire_u64(flag) < epoch) pause();
}

PLATFORM_KERNEL(probe_sum, SumArgs, 256) {
  PLATFORM_SHARED uint32_t doubled[256];
  const uint32_t at = block_id() * block_size() + thread_id();
  uint32_t *mine = reinterpret_cast<uint32_t *>(args.inputs[args.rank]);
  if (at < args.words) mine[at] *= 2;
#ifndef PROBE_NO_BARRIER
  block_barrier();
#endif
  if (thread_id() < args.world) {
    const uint64_t place = block_id() * 8;
    uint64_t *theirs = reinterpret_cast<uint64_t *>(args.flags[thread_id()]) + place + args.rank;
#ifdef PROBE_RELAXED_FLAG
    store_relaxed_u64(theirs, args.epoch);
#else
    store_release_u64(theirs, args.epoch);
#endif
    wait_for(reinterpret_cast<uint64_t *>(args.flags[args.rank]) + place + thread_id(), args.epoch);
  }
  block_barrier();
  uint32_t sum = 0;
  for (uint32_t rank = 0; rank < args.world && at < args.words; ++rank)
    sum += reinterpret_cast<const uint32_t *>(args.inputs[rank])[at];
  // By way of a neighbour, through memory of the block.
  doubled[thread_id()] = sum;
  block_barrier();
  const uint32_t neighbour = thread_id() ^ 1u;
  if (at < args.words)
    reinterpret_cast<uint32_t *>(args.output)[at ^ 1u] = doubled[neighbour];
}

// A step of a chain: each adds 1 to what the step before it left. `late` waits too late.
struct StepArgs {
  uint64_t cell;
  uint32_t late;
  uint32_t early;
};

PLATFORM_KERNEL(probe_step, StepArgs, 64) {
  if (args.early) let_next_kernel_start();
  uint32_t *cell = reinterpret_cast<uint32_t *>(args.cell) + thread_id();
  if (!args.late) wait_for_previous_kernel();
  const uint32_t before = load_relaxed_u32(cell);
  for (int turn = 0; turn < 20; ++turn) pause();
  store_relaxed_u32(cell, before + 1);
  if (args.late) wait_for_previous_kernel();
}

// Waits for a word that nobody writes.
struct HangArgs {
  uint64_t flag;
};

PLATFORM_KERNEL(probe_hang, HangArgs, 64) {
  if (thread_id() == 5) wait_for(reinterpret_cast<const uint64_t *>(args.flag), 1);
  block_barrier();
}

// Stores 16 bytes whose words all say the same, and counts how often a reader sees two things.
struct TearArgs {
  uint64_t pack;
  uint64_t line;
  uint64_t torn;  // packs, lines, halves of lines
};

PLATFORM_KERNEL(probe_tear, TearArgs, 64) {
  void *pack = reinterpret_cast<void *>(args.pack), *line = reinterpret_cast<void *>(args.line);
  uint32_t *torn = reinterpret_cast<uint32_t *>(args.torn);
  for (uint32_t turn = 0; turn < 500; ++turn) {
    const uint32_t v = turn * 64 + thread_id();
    if (thread_id() % 2 == 0) {
      store_pack_relaxed(pack, Pack{{v, v, v, v}});
      const uint64_t twice = static_cast<uint64_t>(v) << 32 | v;
      store_line_relaxed(line, Line{{twice, twice}});
      continue;
    }
    const Pack p = load_pack_relaxed(pack);
    const Line l = load_line_relaxed(line);
    if (p.w[0] != p.w[1] || p.w[0] != p.w[2] || p.w[0] != p.w[3]) store_relaxed_u32(torn, 1);
    if (l.a[0] != l.a[1]) store_relaxed_u32(torn + 1, 1);
    for (const uint64_t half : l.a)
      if (static_cast<uint32_t>(half) != half >> 32) store_relaxed_u32(torn + 2, 1);
  }
}
