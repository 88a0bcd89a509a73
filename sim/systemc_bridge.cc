#include "sim/systemc_bridge.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <systemc>
#include <utility>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

using sc_core::sc_time;

sc_time ToKernelTime(Picoseconds span) { return sc_time::from_value(span.count()); }

class DrainModule final : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(DrainModule);
  explicit DrainModule(const sc_core::sc_module_name& name) : sc_module(name) {
    SC_METHOD(Drain);
    sensitive << kick_;
    dont_initialize();
  }

  void Run(EventQueue& queue, KernelPace pace) {
    WT_CHECK(queue_ == nullptr) << "a run inside a run";
    WT_CHECK(sc_core::sc_get_time_resolution() == sc_time(1, sc_core::SC_PS))
        << "kernel time resolution was changed";
    queue_ = &queue;
    pace_ = pace;
    failure_ = nullptr;
    start_kernel_ = sc_core::sc_time_stamp();
    start_queue_ = queue.now();
    kick_.notify(sc_core::SC_ZERO_TIME);
    sc_core::sc_start();
    queue_ = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void Wake() {
    // From within a handler the drain looks at the queue again anyway.
    if (queue_ != nullptr && pace_ == KernelPace::kExact && !draining_) {
      kick_.notify(sc_core::SC_ZERO_TIME);
    }
  }

  SimTime KernelNow() const {
    return start_queue_ + Picoseconds((sc_core::sc_time_stamp() - start_kernel_).value());
  }

  std::uint64_t wakeups() const { return wakeups_; }

 private:
  void Drain() {
    ++wakeups_;
    draining_ = true;
    try {
      if (pace_ == KernelPace::kExact) {
        DrainExact();
      } else {
        DrainDecoupled();
      }
    } catch (...) {
      // The kernel would turn it into a report of its own and lose the type.
      failure_ = std::current_exception();
      if (pace_ == KernelPace::kExact) sc_core::sc_pause();  // A user's modules would run on.
    }
    draining_ = false;
  }

  void DrainDecoupled() {
    if (queue_->empty()) return;
    // A quantum begins at the next event, so that long idle spans cost one wake-up.
    queue_->RunUntil(queue_->next_time() + SystemcBridge::kQuantum);
    if (!queue_->empty()) next_trigger(KernelDelay(queue_->now()));
  }

  void DrainExact() {
    queue_->RunUntil(KernelNow());
    if (!queue_->empty()) next_trigger(KernelDelay(queue_->next_time()), kick_);
  }

  /// From the kernel's now to the queue's `at`, never below zero.
  sc_time KernelDelay(SimTime at) const {
    const Picoseconds target = at - start_queue_;
    const Picoseconds reached((sc_core::sc_time_stamp() - start_kernel_).value());
    if (target.count() > SimTime::kMaxPicoseconds - start_kernel_.value()) {
      throw SimulationError("simulated time of all runs in this process passes " +
                            FormatTime(Picoseconds(SimTime::kMaxPicoseconds)) +
                            ", the range of the SystemC kernel; use a fresh process");
    }
    return ToKernelTime(target > reached ? target - reached : Picoseconds(0));
  }

  sc_core::sc_event kick_;
  EventQueue* queue_ = nullptr;
  KernelPace pace_ = KernelPace::kDecoupled;
  sc_time start_kernel_;
  SimTime start_queue_;
  std::exception_ptr failure_;
  std::uint64_t wakeups_ = 0;
  bool draining_ = false;
};

}  // namespace

struct SystemcBridge::Impl {
  DrainModule drain{"windtunnel_drain"};
};

SystemcBridge::SystemcBridge() {
  // The library's banner would stand above every table on stdout.
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
  impl_ = new Impl;
}

SystemcBridge::~SystemcBridge() = default;

SystemcBridge& SystemcBridge::Instance() {
  // Never destroyed: the kernel's own globals go away in an order that is not ours.
  static SystemcBridge* const bridge = new SystemcBridge;
  return *bridge;
}

void SystemcBridge::Run(EventQueue& queue, KernelPace pace) { impl_->drain.Run(queue, pace); }
void SystemcBridge::Wake() { impl_->drain.Wake(); }
SimTime SystemcBridge::KernelNow() const { return impl_->drain.KernelNow(); }
std::uint64_t SystemcBridge::wakeups() const { return impl_->drain.wakeups(); }

}  // namespace windtunnel
