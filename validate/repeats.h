#pragma once
// What the repeats of one size say beyond their median: spread and stalls.

#include <optional>
#include <string>
#include <vector>

#include "validate/run.h"

namespace windtunnel::validate {

/// Microseconds. The 99th percentile is the smallest repeat that 99 % do not exceed: with fewer
/// than 100 repeats it is the slowest.
struct Spread {
  std::size_t repeats = 0;
  double min = 0, median = 0, average = 0, p99 = 0, max = 0;
  /// The slowest took more than twice the median: an episode. Bytes over the average are then the
  /// goodput of that episode, not a bandwidth of the machine.
  bool stalled() const { return max > 2 * median; }
};
/// Nothing for fewer than two repeats.
std::optional<Spread> SpreadOf(const std::vector<double>& repeats_us);

/// The exponent x of an InfiniBand time-out, 4.096 us x 2^x, that a delay is as long as (within 10
/// %), 10 to 26: a lost last packet costs exactly that. Source: InfiniBand specification, local ack
/// timeout.
std::optional<int> TimeoutExponentOf(double delay_us);

/// For people: how far repeats of one size are apart over all runs, and each row that stalled.
/// `all`: every row with repeats. "" when no run has repeats.
std::string TextRepeats(const std::vector<MeasuredRun>& runs, bool all);

}  // namespace windtunnel::validate
