#pragma once
// What one TCP connection may have under way. Source: RFC 5681 (slow start, congestion avoidance,
// halving after a loss), RFC 6928 (initial window of 10 segments), RFC 9293 (receive window).

#include <algorithm>
#include <cstdint>

#include "sim/units.h"

namespace windtunnel {

struct TcpOptions {
  bool enabled = false;
  std::uint32_t initial_segments = 10;
  /// The receiver's window: no more than this is ever under way. 6 MiB is the largest receive
  /// buffer that Linux grows to by itself (net.ipv4.tcp_rmem).
  Bytes largest_window = MiB(6);
  /// A connection that slept for longer starts over with the initial window; 0 = never. Linux takes
  /// its retransmission time-out, 200 ms at least (net.ipv4.tcp_slow_start_after_idle,
  /// TCP_RTO_MIN).
  Picoseconds idle_restart = Milliseconds(200);
  /// What one core moves for one connection; 0 = any rate. Source of 42 Gb/s: Cai et al.,
  /// "Understanding Host Network Stack Overheads", SIGCOMM 2021 (one flow, all optimisations;
  /// recalled).
  BitsPerSecond cpu_rate = GigabitsPerSecond(42);
  /// Further CPU time of each 64 KiB that the stack hands to the NIC as one piece. ASSUMED.
  Picoseconds cpu_per_segment;
  /// Loss of the last frames is noticed by the timer: Linux' smallest, TCP_RTO_MIN.
  Picoseconds smallest_timeout = Milliseconds(200);
};

/// Largest piece that Linux hands to a NIC: 64 KiB (GSO_MAX_SIZE).
constexpr Bytes kTcpPiece = KiB(64);

/// CPU time of `size` bytes of one connection; a part of a piece costs its share of it.
constexpr Picoseconds TcpCpuTime(const TcpOptions& options, Bytes size) {
  const Picoseconds bytes =
      options.cpu_rate.count() == 0 ? Picoseconds(0) : SerializationTime(size, options.cpu_rate);
  return bytes + size.count() * options.cpu_per_segment / kTcpPiece.count();
}

class TcpWindow {
 public:
  TcpWindow() = default;
  /// `segment`: payload of a full frame.
  TcpWindow(const TcpOptions& options, Bytes segment)
      : options_(options),
        segment_(segment),
        window_(std::min(options.initial_segments * segment, options.largest_window)),
        threshold_(options.largest_window) {}

  Bytes window() const { return window_; }
  bool slow_start() const { return window_ < threshold_; }
  /// Doubles per round trip below the threshold, then one segment per round trip.
  void OnAck(Bytes size) {
    credit_ += slow_start() ? size.count() * window_.count() : size.count() * segment_.count();
    window_ = std::min(window_ + Bytes(credit_ / window_.count()), options_.largest_window);
    credit_ %= window_.count();
  }
  /// A gap was seen: half the window, at least two segments.
  void OnLoss() {
    threshold_ = window_ = std::max(window_ / 2, 2 * segment_);
    credit_ = 0;
  }
  /// The timer ran out: one segment, and slow start to half of what was.
  void OnTimeout() {
    threshold_ = std::max(window_ / 2, 2 * segment_);
    window_ = segment_;
    credit_ = 0;
  }
  /// Contract: nothing under way since `idle`.
  void OnIdle(Picoseconds idle) {
    if (options_.idle_restart.count() == 0 || idle < options_.idle_restart) return;
    window_ = std::min(window_, options_.initial_segments * segment_);
  }

 private:
  TcpOptions options_;
  Bytes segment_;
  Bytes window_;
  Bytes threshold_;
  std::uint64_t credit_ = 0;  ///< Acknowledged bytes times growth, not yet a whole byte of window.
};

}  // namespace windtunnel
