// Entry points of a reduction: one for each element type, with rooms for 2, 4, 8 and 16 ranks where the op is a sum, and
// room for 16 where it is another. A group takes the smallest room that holds it. The name says which:
// `one_shot_push_bf16_sum_8`.
#pragma once
#include <crossover/numerics.h>

#define REDUCTION_ENTRY(NAME, ARGS, TYPE, type, OP, op, ROOM) \
  PLATFORM_KERNEL(NAME##_##type##_##op##_##ROOM, ARGS, MAX_THREADS) { NAME<TYPE, OP, ROOM>(args); }

#define REDUCTION_ENTRIES_OF(NAME, ARGS, TYPE, type)     \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 2)   \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 4)   \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 8)   \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 16)  \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Other, other, 16)

#define REDUCTION_ENTRIES(NAME, ARGS)         \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F32, f32)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F16, f16)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, Bf16, bf16)
