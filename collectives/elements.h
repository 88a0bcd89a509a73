#pragma once
// Arithmetic on arrays of NCCL's element types. No dispatch per element: one table of functions per
// type, loops the compiler can vectorise.

#include <cstddef>
#include <cstdint>

#include "collectives/types.h"

namespace windtunnel {

/// fp16 to fp32, exact.
float HalfToFloat(std::uint16_t bits);
/// fp32 to fp16, to nearest even; beyond 65,504 + half a unit: infinity.
std::uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(std::uint16_t bits);
/// fp32 to bfloat16, to nearest even; a NaN stays one.
std::uint16_t FloatToBfloat16(float value);

/// The functions of one type. Pointers need the alignment of the type.
struct ElementFunctions {
  /// accumulator[i] = accumulator[i] op other[i], rounded in the type. kAvg adds.
  void (*combine[5])(void* accumulator, const void* other, std::size_t count);
  /// out[i] = in[i] * (1/n rounded to the type). Null for integers.
  void (*scale)(void* out, const void* in, std::size_t count, std::uint32_t n);
  /// values[i] /= n, towards zero. Null for floating types.
  void (*divide)(void* values, std::size_t count, std::uint32_t n);
  /// A wide accumulator as a switch has: 8 bytes per element.
  void (*widen)(void* wide, const void* in, std::size_t count);
  void (*combine_wide[5])(void* wide, const void* other, std::size_t count);
  void (*narrow)(void* out, const void* wide, std::size_t count);
  /// out[i] = value[i], small integers into the type.
  void (*from_integers)(void* out, const std::int64_t* values, std::size_t count);
  /// Elements of `got` that differ from `expected` by more than `ulps` units in the last place
  /// (integers: by anything).
  std::size_t (*differing)(const void* got, const std::int64_t* expected, std::size_t count,
                           double divisor, double ulps);
};

/// @throws ConfigError for fp8: not supported, never a wrong number.
const ElementFunctions& FunctionsOf(DataType type);

}  // namespace windtunnel
