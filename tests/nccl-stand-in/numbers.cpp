#include "numbers.h"

#include <math.h>
#include <string.h>

#include <limits>
#include <type_traits>

namespace {

// A float of 16 bits or fewer.
struct Small {
  int exponent_bits;
  int mantissa_bits;
  uint32_t greatest;  // finite code
  uint32_t overflow;  // code of what is greater
  uint32_t nan;
};

const Small HALF = {5, 10, 0x7bff, 0x7c00, 0x7e00};
const Small BRAIN = {8, 7, 0x7f7f, 0x7f80, 0x7fc0};
const Small E4M3 = {4, 3, 0x7e, 0x7e, 0x7f};
const Small E5M2 = {5, 2, 0x7b, 0x7b, 0x7f};

float decode(const Small &kind, uint32_t code) {
  uint32_t sign = code >> (kind.exponent_bits + kind.mantissa_bits);
  uint32_t magnitude = code & ((1u << (kind.exponent_bits + kind.mantissa_bits)) - 1);
  uint32_t implied = 1u << kind.mantissa_bits;
  uint32_t mantissa = magnitude & (implied - 1);
  int exponent = static_cast<int>(magnitude >> kind.mantissa_bits);
  int bias = (1 << (kind.exponent_bits - 1)) - 1;
  float value;
  if (magnitude > kind.greatest) {
    // Beyond the greatest is infinity, which has no mantissa, and else NaN.
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = ldexpf(static_cast<float>(mantissa), 1 - bias - kind.mantissa_bits);
  } else {
    value = ldexpf(static_cast<float>(implied + mantissa), exponent - bias - kind.mantissa_bits);
  }
  return sign != 0 ? -value : value;
}

// The nearest, ties to even.
uint32_t encode(const Small &kind, float value) {
  if (isnan(value)) return kind.nan;
  uint32_t sign = signbit(value) ? 1u << (kind.exponent_bits + kind.mantissa_bits) : 0;
  double magnitude = fabs(static_cast<double>(value));
  if (isinf(magnitude)) return sign | kind.overflow;
  int least = 2 - (1 << (kind.exponent_bits - 1));
  int exponent;
  frexp(magnitude, &exponent);
  exponent = magnitude == 0 || exponent - 1 < least ? least : exponent - 1;
  auto steps = static_cast<uint32_t>(nearbyint(ldexp(magnitude, kind.mantissa_bits - exponent)));
  // The implied bit of a normal number counts its exponent up from zero.
  uint32_t code = (static_cast<uint32_t>(exponent - least) << kind.mantissa_bits) + steps;
  return sign | (code > kind.greatest ? kind.overflow : code);
}

template <class Code, const Small &KIND>
struct Narrow {
  using Value = float;
  static const size_t bytes = sizeof(Code);
  static Value load(const unsigned char *from) {
    Code code;
    memcpy(&code, from, sizeof code);
    return decode(KIND, code);
  }
  static void store(unsigned char *to, Value value) {
    Code code = static_cast<Code>(encode(KIND, value));
    memcpy(to, &code, sizeof code);
  }
};

template <class Number>
struct Wide {
  using Value = Number;
  static const size_t bytes = sizeof(Number);
  static Value load(const unsigned char *from) {
    Value value;
    memcpy(&value, from, sizeof value);
    return value;
  }
  static void store(unsigned char *to, Value value) {
    if constexpr (std::is_floating_point_v<Value>) {
      if (isnan(value)) value = std::numeric_limits<Value>::quiet_NaN();
    }
    memcpy(to, &value, sizeof value);
  }
};

template <class Value>
Value combine(int op, Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    if (op == SUM || op == AVG) return a + b;
    if (op == PROD) return a * b;
    if (isnan(a) || isnan(b)) return std::numeric_limits<Value>::quiet_NaN();
  } else {
    // In an unsigned type that nothing is promoted from, so that it wraps.
    using Wrapping = std::conditional_t<sizeof(Value) < 4, uint32_t, std::make_unsigned_t<Value>>;
    auto x = static_cast<Wrapping>(a), y = static_cast<Wrapping>(b);
    if (op == SUM || op == AVG) return static_cast<Value>(x + y);
    if (op == PROD) return static_cast<Value>(x * y);
  }
  // Of equal values the lower rank's stays.
  return op == MIN ? (b < a ? b : a) : (b > a ? b : a);
}

template <class Type>
void reduce_as(int op, const std::vector<const unsigned char *> &ranks, unsigned char *out,
               size_t count) {
  using Value = typename Type::Value;
  for (size_t at = 0; at < count * Type::bytes; at += Type::bytes) {
    Value sum = Type::load(ranks[0] + at);
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      sum = combine<Value>(op, sum, Type::load(ranks[rank] + at));
    }
    // Of the sum's sign: an unsigned count would make a negative sum great.
    using Integer = std::conditional_t<std::is_signed_v<Value>, int64_t, uint64_t>;
    using Count = std::conditional_t<std::is_floating_point_v<Value>, Value, Integer>;
    if (op == AVG) sum = static_cast<Value>(sum / static_cast<Count>(ranks.size()));
    Type::store(out + at, sum);
  }
}

}  // namespace

size_t size_of(int dtype) {
  switch (dtype) {
    case I8:
    case U8:
      return 1;
    case F16:
      return 2;
    case I32:
    case U32:
    case F32:
      return 4;
    case I64:
    case U64:
    case F64:
      return 8;
    case BF16:
      return VERSION >= 21003 ? 2 : 0;
    case F8E4M3:
    case F8E5M2:
      return VERSION >= 22403 ? 1 : 0;
    default:
      return 0;
  }
}

void reduce(int dtype, int op, const std::vector<const unsigned char *> &ranks, unsigned char *out,
            size_t count) {
  if (ranks.size() == 1) {
    memmove(out, ranks[0], count * size_of(dtype));
    return;
  }
  switch (dtype) {
    case I8:
      return reduce_as<Wide<int8_t>>(op, ranks, out, count);
    case U8:
      return reduce_as<Wide<uint8_t>>(op, ranks, out, count);
    case I32:
      return reduce_as<Wide<int32_t>>(op, ranks, out, count);
    case U32:
      return reduce_as<Wide<uint32_t>>(op, ranks, out, count);
    case I64:
      return reduce_as<Wide<int64_t>>(op, ranks, out, count);
    case U64:
      return reduce_as<Wide<uint64_t>>(op, ranks, out, count);
    case F16:
      return reduce_as<Narrow<uint16_t, HALF>>(op, ranks, out, count);
    case F32:
      return reduce_as<Wide<float>>(op, ranks, out, count);
    case F64:
      return reduce_as<Wide<double>>(op, ranks, out, count);
    case BF16:
      return reduce_as<Narrow<uint16_t, BRAIN>>(op, ranks, out, count);
    case F8E4M3:
      return reduce_as<Narrow<uint8_t, E4M3>>(op, ranks, out, count);
    case F8E5M2:
      return reduce_as<Narrow<uint8_t, E5M2>>(op, ranks, out, count);
    default:
      return;
  }
}
