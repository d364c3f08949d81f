// The part that a rank keeps for itself.
#pragma once
#include <crossover/tensor.h>

PLATFORM_DEVICE void copy_own_part(const PartsArgs& a, uint64_t first, uint64_t stride) {
  const uint32_t rank = a.common.rank;
  const uint64_t from = a.input + a.send_at[rank], to = a.output + a.receive_at[rank];
  const uint64_t bytes = a.receive_bytes[rank];
  if (from == to) return;
  copy_units(to, from, bytes, first, stride);
}
