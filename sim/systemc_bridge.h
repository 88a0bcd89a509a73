#pragma once
// The one place where an EventQueue meets the SystemC kernel: a single SC_METHOD drains the queue.
// The kernel lives once per process, so the bridge does too; any number of queues may be run
// through it, one after another, each as often as wanted.

#include <cstdint>

#include "sim/event_queue.h"

namespace windtunnel {

/// How closely kernel time follows the queue.
enum class KernelPace : std::uint8_t {
  /// The queue runs ahead of the kernel by at most one quantum (as loosely timed TLM models do).
  /// Right when no module but ours waits for time: one kernel event per quantum.
  kDecoupled,
  /// `sc_time_stamp()` minus the start of the run equals `queue.now()` at every event. Needed when
  /// a user's own modules are bound. One kernel event per distinct time.
  kExact,
};

/// Contract: one thread. The first call elaborates: modules of the user's own are constructed
/// before it.
class SystemcBridge {
 public:
  /// Longest span the queue runs ahead at KernelPace::kDecoupled.
  static constexpr Picoseconds kQuantum = Microseconds(100);

  static SystemcBridge& Instance();
  SystemcBridge(const SystemcBridge&) = delete;
  SystemcBridge& operator=(const SystemcBridge&) = delete;

  /// Runs `queue` until it is empty, and with KernelPace::kExact until the user's modules are idle
  /// too. What a handler throws comes out here; the queue then still holds its events.
  /// @throws SimulationError if the run would pass the range of kernel time, 2^63 ps counted over
  /// all runs of the process at KernelPace::kExact.
  void Run(EventQueue& queue, KernelPace pace = KernelPace::kDecoupled);

  /// Tells a running KernelPace::kExact drain that an event was scheduled from outside a handler
  /// (a user's module). No effect at other times.
  void Wake();
  /// Time of the running queue at the kernel's present time. Contract: within Run.
  SimTime KernelNow() const;
  /// Times the kernel woke the draining process, over the life of the process.
  std::uint64_t wakeups() const;

 private:
  SystemcBridge();
  ~SystemcBridge();
  struct Impl;
  Impl* impl_;
};

}  // namespace windtunnel
