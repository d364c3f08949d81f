// NCCL's types and reductions. A sum runs over ranks 0, 1, .., in f32 for 16- and 8-bit floats, and
// is rounded once; this order is the stand-in's, not NCCL's.
#pragma once

#include <vector>

#include "abi.h"

// Bytes of an element; zero if this version does not know the type.
size_t size_of(int dtype);

// Of `count` elements of every rank, at any alignment. `out` may be one of the inputs.
void reduce(int dtype, int op, const std::vector<const unsigned char *> &ranks, unsigned char *out,
            size_t count);
