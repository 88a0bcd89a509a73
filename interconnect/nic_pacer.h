#pragma once
// When a NIC or the software before it lets a message start.

#include <algorithm>
#include <cstdint>

#include "sim/units.h"

namespace windtunnel {

struct NicOptions {
  /// From the call to the NIC's first look at the work request: doorbell and fetch over PCIe. 0 =
  /// part of the caller's own constants, as for NCCL's executor.
  Picoseconds post;
  /// Messages a NIC starts per second; 0 = any number. Data sheets: 200 M/s (ConnectX-6 on).
  std::uint64_t message_rate = 0;
  /// Software time of one connection per message, before it may start: a proxy's step.
  Picoseconds step;
  /// Messages of one connection that may be under way; 0 = any number. With 1 a connection moves
  /// one message per step + flight + acknowledgement.
  std::uint32_t step_window = 0;
  /// Queue pairs that share the messages of one connection (NCCL_IB_QPS_PER_CONNECTION).
  std::uint32_t queue_pairs = 1;
  /// Each message is cut over all queue pairs; false: whole messages take turns
  /// (NCCL_IB_SPLIT_DATA_ON_QPS).
  bool split_messages = true;
};

/// Start times of one NIC's messages.
class NicPacer {
 public:
  NicPacer() = default;
  explicit NicPacer(const NicOptions& options)
      : post_(options.post),
        gap_(options.message_rate == 0
                 ? Picoseconds(0)
                 : Picoseconds((1'000'000'000'000 + options.message_rate - 1) /
                               options.message_rate)) {}
  /// A message posted `now`: when it may start. Later calls give no earlier times.
  SimTime Start(SimTime now) {
    const SimTime start = std::max(now + post_, next_);
    next_ = start + gap_;
    return start;
  }
  void Reset() { next_ = SimTime(); }

 private:
  Picoseconds post_;
  Picoseconds gap_;
  SimTime next_;
};

}  // namespace windtunnel
