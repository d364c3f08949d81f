// Entry points. Of a reduction: one for each element type, for exactly 2, 4 and 8 ranks where the op is a sum, and for any
// number of them, whatever the op. The name says which: `one_shot_push_bf16_sum_8`, `one_shot_push_f32_other_any`.
#pragma once
#include <crossover/numerics.h>
#include <crossover/world.h>

#define REDUCTION_ENTRY(NAME, ARGS, TYPE, type, OP, op, N, n)  \
  PLATFORM_KERNEL(NAME##_##type##_##op##_##n, ARGS, MAX_THREADS) { NAME<TYPE, OP, N>(args); }

#define REDUCTION_ENTRIES_OF(NAME, ARGS, TYPE, type)           \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 2, 2)      \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 4, 4)      \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, 8, 8)      \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Sum, sum, ANY, any)  \
  REDUCTION_ENTRY(NAME, ARGS, TYPE, type, Other, other, ANY, any)

#define REDUCTION_ENTRIES(NAME, ARGS)         \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F32, f32)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, F16, f16)  \
  REDUCTION_ENTRIES_OF(NAME, ARGS, Bf16, bf16)

// An entry point that pushes: BODY with the arguments in the end and what is known of the tensors, of which `IS_WHOLE(args)` tells.
#define PLAIN_ENTRY(NAME, ARGS, IS_WHOLE, BODY, ...)                                             \
  PLATFORM_COLD void NAME##_ragged(const ARGS& args) { BODY<__VA_ARGS__, Work::Ragged>(args); }  \
  PLATFORM_KERNEL(NAME, ARGS, MAX_THREADS) {                                                     \
    if (IS_WHOLE(args)) BODY<__VA_ARGS__, Work::Long>(args);                                     \
    else NAME##_ragged(args);                                                                    \
  }

// And one for short calls alone, named `_short`, which has so few registers and instructions as they need.
#define PUSH_ENTRY(NAME, ARGS, IS_WHOLE, BODY, ...)                                           \
  PLATFORM_KERNEL(NAME##_short, ARGS, MAX_THREADS) { BODY<__VA_ARGS__, Work::Short>(args); }  \
  PLAIN_ENTRY(NAME, ARGS, IS_WHOLE, BODY, __VA_ARGS__)

// All of a reduction that pushes. Ops that are rare have no kernel for short calls.
#define PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, TYPE, type)                    \
  PUSH_ENTRY(NAME##_##type##_sum_2, ARGS, IS_WHOLE, NAME, TYPE, Sum, 2)      \
  PUSH_ENTRY(NAME##_##type##_sum_4, ARGS, IS_WHOLE, NAME, TYPE, Sum, 4)      \
  PUSH_ENTRY(NAME##_##type##_sum_8, ARGS, IS_WHOLE, NAME, TYPE, Sum, 8)      \
  PUSH_ENTRY(NAME##_##type##_sum_any, ARGS, IS_WHOLE, NAME, TYPE, Sum, ANY)  \
  PLAIN_ENTRY(NAME##_##type##_other_any, ARGS, IS_WHOLE, NAME, TYPE, Other, ANY)

#define PUSH_ENTRIES(NAME, ARGS, IS_WHOLE)         \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, F32, f32)  \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, F16, f16)  \
  PUSH_ENTRIES_OF(NAME, ARGS, IS_WHOLE, Bf16, bf16)
