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

// The same of kernels that are short where tensors are WHOLE, which `IS_WHOLE(args)` says; what others take is kept out of
// their way where PLATFORM_COLD can.
#define PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, OP, op, N, n)                                            \
  PLATFORM_COLD void NAME##_##type##_##op##_##n##_ragged(const ARGS& args) { NAME<TYPE, OP, N, false>(args); } \
  PLATFORM_KERNEL(NAME##_##type##_##op##_##n, ARGS, MAX_THREADS) {                                            \
    if (IS_WHOLE(args)) NAME<TYPE, OP, N, true>(args);                                                        \
    else NAME##_##type##_##op##_##n##_ragged(args);                                                           \
  }

#define PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, TYPE, type)           \
  PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, Sum, sum, 2, 2)      \
  PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, Sum, sum, 4, 4)      \
  PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, Sum, sum, 8, 8)      \
  PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, Sum, sum, ANY, any)  \
  PUSH_ENTRY(NAME, ARGS, IS_WHOLE, TYPE, type, Other, other, ANY, any)

#define PUSH_ENTRIES(NAME, ARGS, IS_WHOLE)         \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, F32, f32)  \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, F16, f16)  \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, Bf16, bf16)
