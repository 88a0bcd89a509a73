#pragma once
// Traffic of others: messages that come by chance between given devices.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "interconnect/topology.h"
#include "sim/event_queue.h"
#include "sim/random.h"
#include "sim/units.h"

namespace windtunnel {

/// Messages of one size at times of a Poisson process, over the shortest way (fewest links, then
/// file order).
struct BackgroundFlow {
  DeviceId from = 0;
  DeviceId to = 0;
  double share = 0.1;      ///< Of the slowest wire on the way, above 0, at most 1.
  Bytes message = MiB(1);  ///< Above zero.
};

/// Exponentially distributed with mean 1: -ln(1 - u). By a series of our own, since the logarithm
/// of the C library differs between machines in its last digit.
double ExponentialDraw(RandomStream& random);

/// The sources. They run while somebody else has messages open or events pending, so a run ends.
class BackgroundTraffic final : public EventHandler {
 public:
  struct Source {
    std::string name;      ///< Of its random stream.
    Picoseconds interval;  ///< Mean time between messages.
    std::function<void()> send;
  };
  /// `others_active`: whether anybody else still has something to do; told how many events of ours
  /// are pending.
  BackgroundTraffic(EventQueue& queue, std::uint64_t seed,
                    std::function<bool(std::uint64_t)> others_active)
      : queue_(queue), seed_(seed), others_active_(std::move(others_active)) {}

  /// Contract: not running.
  void AddSource(Source source);
  /// Draws the first message of each source. No effect while running.
  void Start();
  /// Random streams back to their start. Contract: not running.
  void Reset();
  bool empty() const { return sources_.empty(); }
  void OnEvent(SimTime now, std::uint64_t payload) override;

 private:
  struct State {
    Source source;
    RandomStream random;
  };
  void ScheduleNext(std::uint64_t source);

  EventQueue& queue_;
  std::uint64_t seed_;
  std::function<bool(std::uint64_t)> others_active_;
  std::vector<State> sources_;
  std::uint64_t pending_ = 0;
};

}  // namespace windtunnel
