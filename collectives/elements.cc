#include "collectives/elements.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "sim/error.h"

// The loops below gain four times from vectors, which -O2 alone uses only for known trip counts.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

namespace windtunnel {
namespace {

inline float HalfToFloatBits(std::uint16_t h) {
  const std::uint32_t exponent_mantissa = (h & 0x7fffU) << 13;
  // Scaling by 2^112 moves the exponent bias and normalises subnormals in one multiplication.
  const float scaled = std::bit_cast<float>(exponent_mantissa) * 0x1p112F;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled);
  bits = exponent_mantissa >= 0x0f800000U ? exponent_mantissa | 0x7f800000U : bits;
  return std::bit_cast<float>(bits | (h & 0x8000U) << 16);
}

inline std::uint16_t FloatToHalfBits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Below 2^-14: adding 0.5 lets the floating-point unit round at the last bit of a subnormal half.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t normal = (magnitude + 0xc8000fffU + (magnitude >> 13 & 1)) >> 13;
  std::uint32_t out = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  out = magnitude >= 0x47800000U ? special : out;
  return static_cast<std::uint16_t>(out | (bits >> 16 & 0x8000U));
}

inline float Bfloat16ToFloatBits(std::uint16_t b) {
  return std::bit_cast<float>(std::uint32_t{b} << 16);
}

inline std::uint16_t FloatToBfloat16Bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
}

// How a type is stored, in what it is computed, and what a switch accumulates it in.
template <class T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static constexpr bool kFloating = std::is_floating_point_v<T>;
  using Wide =
      std::conditional_t<kFloating, double,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  static Computed Load(T x) { return x; }
  static T Save(Computed x) { return x; }
  static T Narrow(Wide x) { return static_cast<T>(x); }
  static double Epsilon() {
    return kFloating ? static_cast<double>(std::numeric_limits<T>::epsilon()) : 0;
  }
};
struct Half {
  using Stored = std::uint16_t;
  using Computed = float;
  using Wide = double;
  static constexpr bool kFloating = true;
  static float Load(Stored x) { return HalfToFloatBits(x); }
  static Stored Save(float x) { return FloatToHalfBits(x); }
  // Rounding to single first, to odd, keeps the second rounding right.
  static Stored Narrow(double x);
  static double Epsilon() { return 0x1p-10; }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Computed = float;
  using Wide = double;
  static constexpr bool kFloating = true;
  static float Load(Stored x) { return Bfloat16ToFloatBits(x); }
  static Stored Save(float x) { return FloatToBfloat16Bits(x); }
  static Stored Narrow(double x);
  static double Epsilon() { return 0x1p-7; }
};

// fp64 to fp32, an inexact result ending in 1: what was cut off stays visible to the next rounding.
inline float RoundToOdd(double x) {
  const auto nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || std::isnan(x) || std::isinf(nearest)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = std::fabs(back) > std::fabs(x);
  if (away) --bits;  // Now truncated towards zero.
  return std::bit_cast<float>(bits | 1U);
}
Half::Stored Half::Narrow(double x) { return FloatToHalfBits(RoundToOdd(x)); }
Bfloat16::Stored Bfloat16::Narrow(double x) { return FloatToBfloat16Bits(RoundToOdd(x)); }

template <class C>
inline C CombineTwo(ReduceOp op, C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return a + b;
      case ReduceOp::kProd:
        return a * b;
      case ReduceOp::kMin: {
        const C zero = std::bit_cast<C>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
        const C least = (a < b) | (b != b) ? a : b;
        return a == b ? zero : least;
      }
      case ReduceOp::kMax: {
        const C zero = std::bit_cast<C>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
        const C most = (a > b) | (b != b) ? a : b;
        return a == b ? zero : most;
      }
    }
  } else {
    using Unsigned = std::make_unsigned_t<C>;
    using Sum =
        std::conditional_t<(sizeof(C) < 4), std::uint32_t, Unsigned>;  // Wraps, no overflow.
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        return static_cast<C>(static_cast<Sum>(a) + static_cast<Sum>(b));
      case ReduceOp::kProd:
        return static_cast<C>(static_cast<Sum>(a) * static_cast<Sum>(b));
      case ReduceOp::kMin:
        return b < a ? b : a;
      case ReduceOp::kMax:
        return a < b ? b : a;
    }
  }
  return a;
}

template <class Kind, ReduceOp kOp>
void CombineArrays(void* accumulator, const void* other, std::size_t count) {
  auto* __restrict a = static_cast<typename Kind::Stored*>(accumulator);
  const auto* __restrict b = static_cast<const typename Kind::Stored*>(other);
  for (std::size_t i = 0; i < count; ++i)
    a[i] = Kind::Save(CombineTwo<typename Kind::Computed>(kOp, Kind::Load(a[i]), Kind::Load(b[i])));
}

template <class Kind>
void ScaleArray(void* out, const void* in, std::size_t count, std::uint32_t n) {
  auto* o = static_cast<typename Kind::Stored*>(out);
  const auto* a = static_cast<const typename Kind::Stored*>(in);
  const typename Kind::Computed factor =
      Kind::Load(Kind::Save(static_cast<typename Kind::Computed>(1.0 / n)));
  for (std::size_t i = 0; i < count; ++i) o[i] = Kind::Save(Kind::Load(a[i]) * factor);
}

template <class Kind>
void DivideArray(void* values, std::size_t count, std::uint32_t n) {
  auto* a = static_cast<typename Kind::Stored*>(values);
  const auto divisor = static_cast<typename Kind::Wide>(n);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = static_cast<typename Kind::Stored>(static_cast<typename Kind::Wide>(a[i]) / divisor);
  }
}

template <class Kind>
void WidenArray(void* wide, const void* in, std::size_t count) {
  auto* __restrict w = static_cast<typename Kind::Wide*>(wide);
  const auto* __restrict a = static_cast<const typename Kind::Stored*>(in);
  for (std::size_t i = 0; i < count; ++i) w[i] = static_cast<typename Kind::Wide>(Kind::Load(a[i]));
}

template <class Kind, ReduceOp kOp>
void CombineWideArrays(void* wide, const void* other, std::size_t count) {
  auto* __restrict w = static_cast<typename Kind::Wide*>(wide);
  const auto* __restrict b = static_cast<const typename Kind::Stored*>(other);
  for (std::size_t i = 0; i < count; ++i) {
    w[i] = CombineTwo<typename Kind::Wide>(kOp, w[i],
                                           static_cast<typename Kind::Wide>(Kind::Load(b[i])));
  }
}

template <class Kind>
void NarrowArray(void* out, const void* wide, std::size_t count) {
  auto* __restrict o = static_cast<typename Kind::Stored*>(out);
  const auto* __restrict w = static_cast<const typename Kind::Wide*>(wide);
  for (std::size_t i = 0; i < count; ++i) o[i] = Kind::Narrow(w[i]);
}

template <class Kind>
void FromIntegers(void* out, const std::int64_t* values, std::size_t count) {
  auto* o = static_cast<typename Kind::Stored*>(out);
  for (std::size_t i = 0; i < count; ++i)
    o[i] = Kind::Save(static_cast<typename Kind::Computed>(values[i]));
}

template <class Kind>
std::size_t Differing(const void* got, const std::int64_t* expected, std::size_t count,
                      double divisor, double ulps) {
  const auto* g = static_cast<const typename Kind::Stored*>(got);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (Kind::kFloating) {
      const double want = static_cast<double>(expected[i]) / divisor;
      const double have = static_cast<double>(Kind::Load(g[i]));
      const double allowed = ulps * Kind::Epsilon() * std::fabs(want);
      wrong += !(std::fabs(have - want) <= allowed);
    } else {
      const std::int64_t divided =
          divisor == 1 ? expected[i] : expected[i] / static_cast<std::int64_t>(divisor);
      wrong += g[i] != static_cast<typename Kind::Stored>(divided);
    }
  }
  return wrong;
}

template <class Kind>
constexpr ElementFunctions MakeFunctions() {
  ElementFunctions f{};
  f.combine[0] = CombineArrays<Kind, ReduceOp::kSum>;
  f.combine[1] = CombineArrays<Kind, ReduceOp::kProd>;
  f.combine[2] = CombineArrays<Kind, ReduceOp::kMin>;
  f.combine[3] = CombineArrays<Kind, ReduceOp::kMax>;
  f.combine[4] = CombineArrays<Kind, ReduceOp::kAvg>;
  f.combine_wide[0] = CombineWideArrays<Kind, ReduceOp::kSum>;
  f.combine_wide[1] = CombineWideArrays<Kind, ReduceOp::kProd>;
  f.combine_wide[2] = CombineWideArrays<Kind, ReduceOp::kMin>;
  f.combine_wide[3] = CombineWideArrays<Kind, ReduceOp::kMax>;
  f.combine_wide[4] = CombineWideArrays<Kind, ReduceOp::kAvg>;
  if constexpr (Kind::kFloating) {
    f.scale = ScaleArray<Kind>;
  } else {
    f.divide = DivideArray<Kind>;
  }
  f.widen = WidenArray<Kind>;
  f.narrow = NarrowArray<Kind>;
  f.from_integers = FromIntegers<Kind>;
  f.differing = Differing<Kind>;
  return f;
}

template <class Kind>
const ElementFunctions& Table() {
  static constexpr ElementFunctions functions = MakeFunctions<Kind>();
  return functions;
}

}  // namespace

float HalfToFloat(std::uint16_t bits) { return HalfToFloatBits(bits); }
std::uint16_t FloatToHalf(float value) { return FloatToHalfBits(value); }
float Bfloat16ToFloat(std::uint16_t bits) { return Bfloat16ToFloatBits(bits); }
std::uint16_t FloatToBfloat16(float value) { return FloatToBfloat16Bits(value); }

const ElementFunctions& FunctionsOf(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return Table<Plain<std::int8_t>>();
    case DataType::kUint8:
      return Table<Plain<std::uint8_t>>();
    case DataType::kInt32:
      return Table<Plain<std::int32_t>>();
    case DataType::kUint32:
      return Table<Plain<std::uint32_t>>();
    case DataType::kInt64:
      return Table<Plain<std::int64_t>>();
    case DataType::kUint64:
      return Table<Plain<std::uint64_t>>();
    case DataType::kHalf:
      return Table<Half>();
    case DataType::kFloat:
      return Table<Plain<float>>();
    case DataType::kDouble:
      return Table<Plain<double>>();
    case DataType::kBfloat16:
      return Table<Bfloat16>();
    case DataType::kFp8E4m3:
    case DataType::kFp8E5m2:
      break;
  }
  throw ConfigError({.field = "type",
                     .value = std::string(Name(type)),
                     .problem = "element type is not supported",
                     .expected = "int8, uint8, int32, uint32, int64, uint64, half, float, double "
                                 "or bfloat16"});
}

}  // namespace windtunnel
