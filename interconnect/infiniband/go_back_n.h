#pragma once
// Sequence numbers of a reliable connection that goes back to the lost frame. Source: InfiniBand
// Architecture Specification vol. 1, 9.7 (packet sequence numbers, NAK of a sequence error, local
// ACK time-out, retry count).

#include <cstdint>

#include "sim/check.h"
#include "sim/units.h"

namespace windtunnel {

/// Both ends of one connection. The receiver takes frames in order only; a frame after a gap is
/// thrown away and answered once; the sender starts over at the gap.
class GoBackN {
 public:
  static constexpr std::uint64_t kNone = UINT64_MAX;
  enum class Verdict : std::uint8_t {
    kAccept,
    kGap,     ///< Thrown away; the first since the last frame in order, so the receiver says so.
    kDiscard  ///< Thrown away in silence: behind a gap that was reported, or here already.
  };

  /// Frame `number` is in.
  Verdict Arrive(std::uint64_t number) {
    if (number == expected_) {
      ++expected_;
      retries_ = 0;
      reported_ = false;
      return Verdict::kAccept;
    }
    if (number < expected_ || reported_) return Verdict::kDiscard;
    reported_ = true;
    return Verdict::kGap;
  }
  /// Frame `number` is gone; the sender's timer for it ends at `timer`. Returns whether that timer
  /// is one to wait for: no earlier frame is known to be missing.
  [[nodiscard]] bool Lose(std::uint64_t number, SimTime timer) {
    // A copy from before the last restart may be lost too, and be in by its repetition.
    const bool known = lost_ != kNone && lost_ >= expected_;
    if (number < expected_ || (known && lost_ <= number)) return false;
    lost_ = number;
    timer_ = timer;
    return true;
  }
  /// Whether the sender has to start over when its timer ends `now`.
  bool TimerFires(SimTime now) const {
    return lost_ != kNone && now >= timer_ && expected_ <= lost_;
  }
  /// The sender starts over at `expected()`. Returns the restarts without progress so far.
  std::uint32_t Restart() {
    lost_ = kNone;
    return ++retries_;
  }
  std::uint64_t expected() const { return expected_; }
  std::uint32_t retries() const { return retries_; }

 private:
  std::uint64_t expected_ = 0;
  std::uint64_t lost_ = kNone;  ///< Lowest frame known to be missing since the last restart.
  SimTime timer_;
  bool reported_ = false;
  std::uint32_t retries_ = 0;
};

}  // namespace windtunnel
