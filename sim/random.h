#pragma once
// Random streams, one per module: seed x module path. The distributions are ours, since those of
// std differ between libraries.

#include <cstdint>
#include <string_view>

namespace windtunnel {

/// 64-bit FNV-1a; also the digest of inputs that results carry.
constexpr std::uint64_t HashBytes(std::string_view bytes,
                                  std::uint64_t state = 14695981039346656037ULL) {
  for (const char c : bytes) {
    state ^= static_cast<unsigned char>(c);
    state *= 1099511628211ULL;
  }
  return state;
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): passes BigCrush, 64-bit state, no table.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view module_path)
      : state_(seed ^ HashBytes(module_path)) {}
  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound); `bound` > 0. Bias below 2^-64 x bound.
  std::uint64_t Below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{Next()} * bound) >> 64);
  }
  /// Uniform in [0, 1), 53 bits.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace windtunnel
