#include "interconnect/background_traffic.h"

#include "sim/check.h"

namespace windtunnel {

double ExponentialDraw(RandomStream& random) {
  constexpr double kLn2 = 0.6931471805599453;
  double left = 1 - random.Unit();  // In (0, 1].
  double sum = 0;
  while (left <= 0.5) {
    left *= 2;
    sum += kLn2;
  }
  // -ln(x) = 2 atanh((1 - x) / (1 + x)); the argument is below 1/3, so 17 terms reach 1e-17.
  const double z = (1 - left) / (1 + left);
  double power = z;
  double series = 0;
  for (int k = 0; k < 17; ++k) {
    series += power / (2 * k + 1);
    power *= z * z;
  }
  return sum + 2 * series;
}

void BackgroundTraffic::AddSource(Source source) {
  WT_CHECK(pending_ == 0) << "a background source comes while others run";
  sources_.push_back({.source = std::move(source), .random = RandomStream(seed_, {})});
  Reset();
}

void BackgroundTraffic::Reset() {
  WT_CHECK(pending_ == 0) << pending_ << " background sources run";
  for (State& state : sources_) state.random = RandomStream(seed_, state.source.name);
}

void BackgroundTraffic::Start() {
  if (pending_ != 0) return;
  for (std::uint64_t i = 0; i < sources_.size(); ++i) ScheduleNext(i);
}

void BackgroundTraffic::ScheduleNext(std::uint64_t source) {
  State& state = sources_[source];
  const double wait =
      ExponentialDraw(state.random) * static_cast<double>(state.source.interval.count());
  queue_.Schedule(queue_.now() + Picoseconds(static_cast<std::uint64_t>(wait) + 1), *this, source);
  ++pending_;
}

void BackgroundTraffic::OnEvent(SimTime, std::uint64_t source) {
  --pending_;
  if (!others_active_(pending_)) return;
  sources_[source].source.send();
  ScheduleNext(source);
}

}  // namespace windtunnel
