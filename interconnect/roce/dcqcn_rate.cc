#include "interconnect/roce/dcqcn_rate.h"

namespace windtunnel {

DcqcnOptions DcqcnOptions::ConnectX() {
  DcqcnOptions options;
  options.gain = 5.0 / 1024;
  options.cnp_interval = Microseconds(4);
  options.alpha_timer = Microseconds(1);
  options.rate_timer = Microseconds(300);
  options.byte_counter = Bytes(32'767);
  options.fast_recovery = 1;
  options.additive_increase = BitsPerSecond(5'000'000);
  options.hyper_increase = BitsPerSecond(50'000'000);
  options.minimum_rate = BitsPerSecond(1'000'000);
  options.decrease_interval = Microseconds(4);
  options.smallest_cut_to = 0.5;
  return options;
}

DcqcnRate::DcqcnRate(const DcqcnOptions& options, BitsPerSecond line) : options_(options) {
  const auto or_share = [&line](BitsPerSecond given, double share) {
    return given.count() != 0 ? static_cast<double>(given.count())
                              : share * static_cast<double>(line.count());
  };
  line_ = current_ = target_ = static_cast<double>(line.count());
  additive_ = or_share(options.additive_increase, 1e-3);
  hyper_ = options.hyper_increase.count() != 0 ? static_cast<double>(options.hyper_increase.count())
                                               : 10 * additive_;
  minimum_ = std::min(or_share(options.minimum_rate, 1e-3), line_);
  alpha_ = options.initial_alpha;
}

void DcqcnRate::OnCnp(SimTime now) {
  AdvanceTo(now);
  // At line rate alpha fades on, once there is one; below a millionth it makes no difference.
  while (cut_before_ && next_alpha_ <= now && alpha_ > 1e-6) FadeAlpha();
  if (!cut_before_ || now >= last_cut_ + options_.decrease_interval) {
    cut_before_ = true;
    last_cut_ = now;
    ++cuts_;
    target_ = current_;
    const double keep = std::max(1 - alpha_ / 2, options_.smallest_cut_to);
    current_ = std::max(current_ * keep, minimum_);
    bytes_ = 0;
    timer_rises_ = byte_rises_ = 0;
    next_rise_ = now + options_.rate_timer;
  }
  alpha_ = (1 - options_.gain) * alpha_ + options_.gain;
  next_alpha_ = now + options_.alpha_timer;
  limited_ = current_ < line_;
}

void DcqcnRate::AdvanceTo(SimTime now) {
  while (limited_ && NextTimer() <= now) {
    if (next_alpha_ <= next_rise_) {
      FadeAlpha();
    } else {
      ++timer_rises_;
      next_rise_ = next_rise_ + options_.rate_timer;
      Rise();
    }
  }
}

void DcqcnRate::FadeAlpha() {
  alpha_ = (1 - options_.gain) * alpha_;
  next_alpha_ = next_alpha_ + options_.alpha_timer;
}

/// Fast recovery halves the distance to the old rate; afterwards the old rate grows too, faster
/// when timer and bytes have both come that far.
void DcqcnRate::Rise() {
  const std::uint32_t fewest = std::min(timer_rises_, byte_rises_);
  if (fewest > options_.fast_recovery) {
    target_ += hyper_ * (fewest - options_.fast_recovery);
  } else if (std::max(timer_rises_, byte_rises_) > options_.fast_recovery) {
    target_ += additive_;
  }
  target_ = std::min(target_, line_);
  current_ = (target_ + current_) / 2;
  // Halving never arrives: within a thousandth the limiter lets go, as rates are whole steps.
  if (target_ >= line_ && current_ > line_ * (1 - 1e-3)) {
    current_ = line_;
    limited_ = false;
  }
}

SimTime DcqcnRate::Send(SimTime start, Bytes wire) {
  if (!limited_) return start;
  AdvanceTo(start);
  if (!limited_) return start;
  bytes_ += wire.count();
  while (limited_ && bytes_ >= options_.byte_counter.count()) {
    bytes_ -= options_.byte_counter.count();
    ++byte_rises_;
    Rise();
  }
  // What the timers will make of the rate while the bytes leave, on a copy.
  DcqcnRate ahead = *this;
  SimTime at = start;
  double bits = static_cast<double>(wire.count()) * 8;
  for (;;) {
    const SimTime end = at + FromMicroseconds(bits / ahead.current_ * 1e6);
    if (!ahead.limited_ || end <= ahead.NextTimer()) return end;
    const SimTime timer = ahead.NextTimer();
    bits -= ahead.current_ * ToMicroseconds(timer - at) * 1e-6;
    at = timer;
    ahead.AdvanceTo(timer);
    if (bits <= 0) return at;
  }
}

BitsPerSecond DcqcnRate::Rate(SimTime now) {
  AdvanceTo(now);
  return BitsPerSecond(static_cast<std::uint64_t>(current_));
}

}  // namespace windtunnel
