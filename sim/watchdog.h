#pragma once
// Turns a run that ended with work open, or that runs without getting anywhere, into a diagnosis.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/event_queue.h"

namespace windtunnel {

/// Callers register what they wait for; the watchdog asks only when something is wrong.
class Watchdog {
 public:
  /// Says what is open, one line per item ("rank 3: all_reduce step 12 waits for data of rank 2");
  /// empty when nothing is.
  using Describe = std::function<std::string()>;
  /// A count that grows while the job advances: messages delivered, steps done.
  using Progress = std::function<std::uint64_t()>;

  /// `described` and what they capture outlive the watchdog.
  void Watch(Describe described) { described_.push_back(std::move(described)); }
  void WatchProgress(Progress progress) { progress_.push_back(std::move(progress)); }
  /// Events that may run without any progress. 0 = no limit.
  void set_patience(std::uint64_t events) { patience_ = events; }

  /// Contract: the queue is empty.
  /// @throws SimulationError with every description when any is not empty.
  void CheckIdle(SimTime now) const;
  /// Called now and then while running.
  /// @throws SimulationError when more than the patience of events ran since the last progress.
  void CheckProgress(const EventQueue& queue);
  /// Forgets how far the job was. For the next run.
  void Reset();

 private:
  std::string Open() const;

  std::vector<Describe> described_;
  std::vector<Progress> progress_;
  std::uint64_t patience_ = 100'000'000;
  std::uint64_t last_sum_ = 0;
  std::uint64_t last_events_ = 0;
};

}  // namespace windtunnel
