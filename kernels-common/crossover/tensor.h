// The engine's tensors: any alignment, any length. A unit of 8 or 16 bytes is read or written whole where that can be,
// else byte by byte; what lies beyond the end reads as zero and is not written.
#pragma once
#include <crossover/abi.h>

// A thread has units `first_unit()`, and every `unit_stride()` from there on.
PLATFORM_DEVICE uint32_t first_unit() { return block_id() * block_size() + thread_id(); }
PLATFORM_DEVICE uint32_t unit_stride() { return grid_size() * block_size(); }

PLATFORM_DEVICE uint64_t units(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit; }

// What is known of a call's tensors. What a short call does not need is kept out of its way: it lasts as long as its instructions,
// which processes that share a device fetch each for themselves.
enum class Work {
  Short,   // every unit is whole and lies where one access takes it, and a thread has one at most
  Long,    // the same but for the last
  Ragged,  // nothing
};

// So many units of a thread, a stride apart.
template <uint32_t COUNT>
struct Flight {
  static constexpr uint32_t SIZE = COUNT;
};

// `body(i, flight)` for the thread's units from `i` on that are below `end`, MOST of them at a time, then half as many.
template <Work WORK, uint32_t MOST, class Body>
PLATFORM_DEVICE void for_units(uint32_t i, uint32_t end, uint32_t stride, Body body) {
  if constexpr (WORK == Work::Short) {
    if (i < end) body(i, Flight<1>{});
  } else if constexpr (WORK == Work::Ragged && MOST > 1) {
    for_units<WORK, 1>(i, end, stride, body);
  } else {
    for (; i + (MOST - 1) * stride < end; i += MOST * stride) body(i, Flight<MOST>{});
    if constexpr (MOST > 1) for_units<WORK, MOST / 2>(i, end, stride, body);
  }
}

PLATFORM_COLD uint64_t load_bytes(const uint8_t* from, uint64_t left) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < 8 && i < left; ++i) value |= uint64_t(from[i]) << (8 * i);
  return value;
}

PLATFORM_COLD void store_bytes(uint8_t* to, uint64_t value, uint64_t left) {
  for (uint32_t i = 0; i < 8 && i < left; ++i) to[i] = uint8_t(value >> (8 * i));
}

// Unit `i` of 8 bytes of a tensor of `bytes`.
PLATFORM_DEVICE uint64_t load_unit8(uint64_t tensor, uint64_t i, uint64_t bytes) {
  const uint8_t* from = reinterpret_cast<const uint8_t*>(tensor) + i * 8;
  const uint64_t left = bytes - i * 8;
  if (left >= 8 && (reinterpret_cast<uint64_t>(from) & 7) == 0) return *reinterpret_cast<const uint64_t*>(from);
  return load_bytes(from, left);
}

PLATFORM_DEVICE void store_unit8(uint64_t tensor, uint64_t i, uint64_t bytes, uint64_t value) {
  uint8_t* to = reinterpret_cast<uint8_t*>(tensor) + i * 8;
  const uint64_t left = bytes - i * 8;
  if (left >= 8 && (reinterpret_cast<uint64_t>(to) & 7) == 0) {
    *reinterpret_cast<uint64_t*>(to) = value;
  } else {
    store_bytes(to, value, left);
  }
}

// Unit `i` of 16 bytes of a tensor of `bytes`.
PLATFORM_DEVICE Pack load_unit16(uint64_t tensor, uint64_t i, uint64_t bytes) {
  const uint8_t* from = reinterpret_cast<const uint8_t*>(tensor) + i * 16;
  const uint64_t left = bytes - i * 16;
  if (left >= 16 && (reinterpret_cast<uint64_t>(from) & 15) == 0) return load_pack(from);
  const uint64_t low = load_bytes(from, left), high = left > 8 ? load_bytes(from + 8, left - 8) : 0;
  return Pack{{uint32_t(low), uint32_t(low >> 32), uint32_t(high), uint32_t(high >> 32)}};
}

PLATFORM_DEVICE void store_unit16(uint64_t tensor, uint64_t i, uint64_t bytes, Pack p) {
  uint8_t* to = reinterpret_cast<uint8_t*>(tensor) + i * 16;
  const uint64_t left = bytes - i * 16;
  if (left >= 16 && (reinterpret_cast<uint64_t>(to) & 15) == 0) {
    store_pack(to, p);
  } else {
    store_bytes(to, uint64_t(p.w[0]) | uint64_t(p.w[1]) << 32, left);
    if (left > 8) store_bytes(to + 8, uint64_t(p.w[2]) | uint64_t(p.w[3]) << 32, left - 8);
  }
}

template <Work WORK>
struct Tensor {
  static constexpr bool WHOLE = WORK != Work::Ragged;
  uint64_t at;
  uint64_t bytes;

  PLATFORM_DEVICE_MEMBER uint64_t load8(uint32_t i) const {
    return WHOLE ? reinterpret_cast<const uint64_t*>(at)[i] : load_unit8(at, i, bytes);
  }
  PLATFORM_DEVICE_MEMBER Pack load16(uint32_t i) const {
    return WHOLE ? load_pack(reinterpret_cast<const Pack*>(at) + i) : load_unit16(at, i, bytes);
  }
  PLATFORM_DEVICE_MEMBER void store8(uint32_t i, uint64_t value) const {
    if (WHOLE) reinterpret_cast<uint64_t*>(at)[i] = value;
    else store_unit8(at, i, bytes, value);
  }
  PLATFORM_DEVICE_MEMBER void store16(uint32_t i, const Pack& p) const {
    if (WHOLE) store_pack(reinterpret_cast<Pack*>(at) + i, p);
    else store_unit16(at, i, bytes, p);
  }
};

// Units that travel as they are.
struct AsIs {
  template <class Unit>
  PLATFORM_DEVICE_MEMBER static Unit of(const Unit& unit) {
    return unit;
  }
};

// What a rank gives to everybody, in units of 8 or 16 bytes as FORM sends them, each read twice: when it is sent and when it is
// reduced. Made before the kernel ahead has ended, as all that does not look at its results.
template <class Unit, Work WORK, class FORM = AsIs>
struct Given {
  Tensor<WORK> tensor;
  uint32_t end, first, stride;
  Unit mine;

  PLATFORM_DEVICE_MEMBER explicit Given(const Tensor<WORK>& t)
      : tensor(t), end(uint32_t(units(t.bytes, sizeof(Unit)))), first(first_unit()), stride(unit_stride()), mine() {}

  PLATFORM_DEVICE_MEMBER void load_first() {
    if (first < end) mine = load(first);
  }
  // To be called once the state has come, which was on its way together with the value: to look at that is to wait for it.
  PLATFORM_DEVICE_MEMBER void form_first() { mine = FORM::of(mine); }

  PLATFORM_DEVICE_MEMBER Unit load(uint32_t i) const {
    if constexpr (sizeof(Unit) == 8) return tensor.load8(i);
    else return tensor.load16(i);
  }

  // `body(i, own, flight)` for the thread's units `i`, `i + stride`, ..., as many as `own` has, MOST at a time.
  template <uint32_t MOST, class Body>
  PLATFORM_DEVICE_MEMBER void each(Body body) const {
    for_units<WORK, MOST>(first, end, stride, [&](uint32_t i, auto flight) {
      Unit own[decltype(flight)::SIZE];
#pragma unroll
      for (uint32_t f = 0; f < decltype(flight)::SIZE; ++f) {
        own[f] = f == 0 && i == first ? mine : FORM::of(load(i + f * stride));
      }
      body(i, own, flight);
    });
  }
};

// Are tensors whole in units of so many bytes? `bits` are those of all their addresses and lengths.
PLATFORM_DEVICE bool are_whole(uint64_t bits, uint32_t unit) { return (bits & (unit - 1)) == 0; }

// Are the parts whole that a rank sends, and where it receives?
PLATFORM_DEVICE bool are_parts_whole(const PartsArgs& a, uint32_t unit) {
  uint64_t bits = a.input | a.output;
  for (uint32_t peer = 0; peer < a.common.world; ++peer) {
    bits |= a.send_at[peer] | a.send_bytes[peer] | a.receive_at[peer] | a.receive_bytes[peer];
  }
  return are_whole(bits, unit);
}

// How many packs of a thread are on their way at a time.
constexpr uint32_t FLIGHT = 4;

// Copies units `i`, `i + stride`, ... of a tensor, so many as are on their way at a time.
PLATFORM_DEVICE void copy_flight(uint64_t to, uint64_t from, uint64_t bytes, uint64_t i, uint64_t stride) {
  const uint64_t whole = ((to | from) & 15) == 0 ? bytes / 16 : 0, all = units(bytes, 16);
  const auto load = [&](uint32_t n) { return load_pack(reinterpret_cast<const void*>(from + (i + n * stride) * 16)); };
  const auto store = [&](uint32_t n, const Pack& p) { store_pack(reinterpret_cast<void*>(to + (i + n * stride) * 16), p); };
  Pack packs[FLIGHT];
  if (i + (FLIGHT - 1) * stride < whole) {
#pragma unroll
    for (uint32_t n = 0; n < FLIGHT; ++n) packs[n] = load(n);
#pragma unroll
    for (uint32_t n = 0; n < FLIGHT; ++n) store(n, packs[n]);
    return;
  }
#pragma unroll
  for (uint32_t n = 0; n < FLIGHT; ++n) {
    if (i + n * stride < whole) packs[n] = load(n);
  }
#pragma unroll
  for (uint32_t n = 0; n < FLIGHT; ++n) {
    if (i + n * stride < whole) store(n, packs[n]);
  }
  // What is misaligned, or the last bytes.
  for (uint64_t at = i; at < all && at <= i + (FLIGHT - 1) * stride; at += stride) {
    if (at >= whole) store_unit16(to, at, bytes, load_unit16(from, at, bytes));
  }
}

// Copies units `first`, `first + stride`, ... of a tensor.
PLATFORM_DEVICE void copy_units(uint64_t to, uint64_t from, uint64_t bytes, uint64_t first, uint64_t stride) {
  for (uint64_t i = first; i < units(bytes, 16); i += FLIGHT * stride) copy_flight(to, from, bytes, i, stride);
}
