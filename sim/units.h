#pragma once
// Typed quantities: integers only, so results agree on every machine. Rates and sizes in decimal
// units as vendors quote them; KiB, MiB, GiB are powers of two.

#include <compare>
#include <cstdint>

namespace windtunnel {

/// A non-negative count of one unit. Quantities of different units do not mix.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::uint64_t count) : count_(count) {}
  constexpr std::uint64_t count() const { return count_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.count_ + b.count_);
  }
  /// Contract: `b <= a`.
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.count_ - b.count_);
  }
  friend constexpr Quantity operator*(Quantity a, std::uint64_t n) {
    return Quantity(a.count_ * n);
  }
  friend constexpr Quantity operator*(std::uint64_t n, Quantity a) {
    return Quantity(a.count_ * n);
  }
  friend constexpr Quantity operator/(Quantity a, std::uint64_t n) {
    return Quantity(a.count_ / n);
  }
  constexpr Quantity& operator+=(Quantity b) {
    count_ += b.count_;
    return *this;
  }

 private:
  std::uint64_t count_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Picoseconds =
    Quantity<struct PicosecondsTag>;  ///< A span. `SimTime`, a point, is a class apart.
using BitsPerSecond = Quantity<struct BitsPerSecondTag>;

constexpr Bytes KiB(std::uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(std::uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(std::uint64_t n) { return Bytes(n << 30); }
constexpr Picoseconds Nanoseconds(std::uint64_t n) { return Picoseconds(n * 1'000); }
constexpr Picoseconds Microseconds(std::uint64_t n) { return Picoseconds(n * 1'000'000); }
constexpr Picoseconds Milliseconds(std::uint64_t n) { return Picoseconds(n * 1'000'000'000); }
constexpr Picoseconds Seconds(std::uint64_t n) { return Picoseconds(n * 1'000'000'000'000); }
/// 1 GB = 10^9 bytes.
constexpr BitsPerSecond GigabytesPerSecond(std::uint64_t n) {
  return BitsPerSecond(n * 8'000'000'000);
}
constexpr BitsPerSecond GigabitsPerSecond(std::uint64_t n) {
  return BitsPerSecond(n * 1'000'000'000);
}

/// Real-valued views for printing and for closed forms; never fed back into event times unrounded.
constexpr double ToMicroseconds(Picoseconds t) { return static_cast<double>(t.count()) * 1e-6; }
constexpr double ToGigabytesPerSecond(BitsPerSecond r) {
  return static_cast<double>(r.count()) / 8e9;
}
/// Rounded up to whole picoseconds; negative values count as zero.
constexpr Picoseconds FromMicroseconds(double us) {
  if (!(us > 0)) return Picoseconds(0);
  const double ps = us * 1e6;
  const auto whole = static_cast<std::uint64_t>(ps);
  return Picoseconds(static_cast<double>(whole) < ps ? whole + 1 : whole);
}
constexpr BitsPerSecond FromGigabytesPerSecond(double gb) {
  return BitsPerSecond(static_cast<std::uint64_t>(gb * 8e9 + 0.5));
}

/// Time to put `size` on a wire of `rate` (never zero), rounded up: error below 1 ps per call.
/// Divides the whole size once: a rounded "ps per byte" is 10 % off at 450 GB/s (2.22 ps).
constexpr Picoseconds SerializationTime(Bytes size, BitsPerSecond rate) {
  __extension__ using Wide = unsigned __int128;  // 16 GiB in bit-picoseconds overflows 64 bits.
  const Wide scaled = Wide{size.count()} * 8 * 1'000'000'000'000;
  return Picoseconds(static_cast<std::uint64_t>((scaled + rate.count() - 1) / rate.count()));
}
static_assert(SerializationTime(Bytes(450), GigabytesPerSecond(450)) == Picoseconds(1000));

/// A point of simulated time, picoseconds since the start. Range: 2^63 - 1 ps = 106.75 days.
class SimTime {
 public:
  static constexpr std::uint64_t kMaxPicoseconds = (std::uint64_t{1} << 63) - 1;
  constexpr SimTime() = default;
  constexpr explicit SimTime(Picoseconds since_start) : ps_(since_start.count()) {}
  constexpr Picoseconds since_start() const { return Picoseconds(ps_); }
  friend constexpr auto operator<=>(SimTime, SimTime) = default;
  /// @throws SimulationError if the sum is beyond the range.
  friend constexpr SimTime operator+(SimTime t, Picoseconds d) {
    if (d.count() > kMaxPicoseconds - t.ps_) ThrowTimeOverflow();
    return SimTime(Picoseconds(t.ps_ + d.count()));
  }
  /// Contract: `a >= b`.
  friend constexpr Picoseconds operator-(SimTime a, SimTime b) {
    return Picoseconds(a.ps_ - b.ps_);
  }

 private:
  [[noreturn]] static void ThrowTimeOverflow();
  std::uint64_t ps_ = 0;
};

}  // namespace windtunnel
