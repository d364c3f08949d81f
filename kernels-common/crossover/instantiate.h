// Entry points of a reduction: one for each element type, for exactly 2, 4 and 8 ranks where the op is a sum, and for any
// number of them, whatever the op. The name says which: `one_shot_push_bf16_sum_8`, `one_shot_push_f32_other_any`.
#pragma once
#include <crossover/numerics.h>
#include <crossover/world.h>

#define REDUCTION_ENTRY(NAME, ARGS, TYPE, type, OP, op, N, n) \
  PLATFORM_KERNEL(NAME##_##type##_##op##_##n, ARGS, MAX_THREADS) { NAME<TYPE, OP, N>(args); }

#define REDUCTION_ENTRIES_OF(NAME, ARGS, TYPE, type)     \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 2, 2) \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 4, 4) \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 8, 8) \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, ANY, any) \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Other, other, ANY, any)

#define REDUCTION_ENTRIES(NAME, ARGS)         \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F32, f32)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F16, f16)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, Bf16, bf16)
