#include "sim/watchdog.h"

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {

std::string Watchdog::Open() const {
  std::string text;
  for (const Describe& described : described_) {
    std::string part = described();
    if (part.empty()) continue;
    if (part.back() != '\n') part += '\n';
    text += part;
  }
  return text;
}

void Watchdog::CheckIdle(SimTime now) const {
  const std::string open = Open();
  if (open.empty()) return;
  throw SimulationError("at " + FormatTime(now.since_start()) +
                        " nothing moves any more and work is open\n" + open);
}

void Watchdog::CheckProgress(const EventQueue& queue) {
  if (patience_ == 0 || progress_.empty()) return;
  std::uint64_t sum = 0;
  for (const Progress& progress : progress_) sum += progress();
  if (sum != last_sum_) {
    last_sum_ = sum;
    last_events_ = queue.executed();
    return;
  }
  if (queue.executed() - last_events_ <= patience_) return;
  throw SimulationError("at " + FormatTime(queue.now().since_start()) + " " +
                        std::to_string(queue.executed() - last_events_) +
                        " events have run without progress\n" + Open());
}

void Watchdog::Reset() {
  last_sum_ = 0;
  last_events_ = 0;
}

}  // namespace windtunnel
