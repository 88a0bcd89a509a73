#pragma once
// The sending side of DCQCN: the rate of one queue pair. Source: Zhu et al., "Congestion Control
// for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3; constants recalled, not read again.

#include <algorithm>
#include <cstdint>

#include "sim/units.h"

namespace windtunnel {

struct DcqcnOptions {
  bool enabled = true;
  /// Weight of one answer in the estimate alpha: g.
  double gain = 1.0 / 256;
  double initial_alpha = 1;
  /// A receiver sends at most one congestion notification (CNP) per queue pair in this time: N.
  Picoseconds cnp_interval = Microseconds(50);
  /// Of a CNP beyond the way back: the receiver's and the sender's own time.
  Picoseconds cnp_delay;
  /// Alpha falls once per this time without a CNP: K.
  Picoseconds alpha_timer = Microseconds(55);
  /// The rate rises once per this time: T.
  Picoseconds rate_timer = Microseconds(55);
  /// And once per these bytes sent: B.
  Bytes byte_counter{10'000'000};
  /// Rises back towards the old rate before the target itself grows: F.
  std::uint32_t fast_recovery = 5;
  /// Growth of the target per rise: R_AI; 0 = a thousandth of the line rate (40 Mb/s of 40 Gb/s).
  BitsPerSecond additive_increase;
  /// When timer and bytes both agree that the network is free; 0 = ten times the former, as in
  /// IEEE 802.1Qau (R_AI 5, R_HAI 50 Mb/s).
  BitsPerSecond hyper_increase;
  /// 0 = a thousandth of the line rate (100 Mb/s of 100 Gb/s in HPCC's simulation).
  BitsPerSecond minimum_rate;
  /// No second cut within this time. The paper needs none, since CNPs are apart.
  Picoseconds decrease_interval;
  /// One cut leaves at least this share of the rate.
  double smallest_cut_to = 0;

  /// As ConnectX adapters ship: g = 5/1024, alpha updated every 1 us, cuts 4 us apart and to half
  /// at most, CNPs 4 us apart, rise every 300 us or 32,767 bytes, one fast step, 5 and 50 Mb/s, 1
  /// Mb/s at least. Source: NVIDIA, "DCQCN CC Parameters" (gain, timers of alpha and cuts, limits);
  /// recalled and not read again: CNP interval, time and bytes between rises, steps, increases.
  static DcqcnOptions ConnectX();
};

/// Rate of one queue pair. Timers are caught up with when somebody asks, so no events are needed.
/// Contract: times never go back.
class DcqcnRate {
 public:
  DcqcnRate() = default;
  DcqcnRate(const DcqcnOptions& options, BitsPerSecond line);

  /// A congestion notification reaches the sender.
  void OnCnp(SimTime now);
  /// `wire` bytes leave from `start` on. Returns the earliest start of the next ones, taking the
  /// rises of the rate until then into account.
  SimTime Send(SimTime start, Bytes wire);
  /// Present rate.
  BitsPerSecond Rate(SimTime now);
  double alpha() const { return alpha_; }
  /// Slower than the line.
  bool limited() const { return limited_; }
  std::uint64_t cuts() const { return cuts_; }

 private:
  void AdvanceTo(SimTime now);
  void Rise();
  void FadeAlpha();
  SimTime NextTimer() const { return std::min(next_alpha_, next_rise_); }

  DcqcnOptions options_;
  double line_ = 0;
  double current_ = 0;  ///< Bits per second.
  double target_ = 0;
  double additive_ = 0;
  double hyper_ = 0;
  double minimum_ = 0;
  double alpha_ = 1;
  bool limited_ = false;
  bool cut_before_ = false;
  SimTime next_alpha_;
  SimTime next_rise_;
  SimTime last_cut_;
  std::uint64_t bytes_ = 0;  ///< Since the last rise by bytes.
  std::uint32_t timer_rises_ = 0;
  std::uint32_t byte_rises_ = 0;
  std::uint64_t cuts_ = 0;
};

}  // namespace windtunnel
