#include "validate/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/parse_units.h"

namespace windtunnel::validate {
namespace {

constexpr double kTimeoutUnitUs = 4.096;
constexpr int kFirstExponent = 10;
constexpr int kLastExponent = 26;
constexpr double kAsLong = 0.10;

/// Smallest value that the share `q` of the sorted list does not exceed.
double AtShare(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::string StallLine(const MeasuredRun& run, const MeasuredRow& row, const Spread& spread) {
  const double megabytes = static_cast<double>(row.bytes) / 1e6;
  std::string line = fmt::format(
      "  {:<42} {:>10}: slowest {:.1f} us, {:.1f} times the median; goodput {:.3g} GB/s over all "
      "repeats, {:.3g} GB/s in the median one",
      run.id, FormatSize(Bytes(row.bytes)), spread.max, spread.max / spread.median,
      megabytes / spread.average * 1000, megabytes / spread.median * 1000);
  if (const auto exponent = TimeoutExponentOf(spread.max - spread.median))
    line += fmt::format("; as late as an InfiniBand time-out of exponent {}", *exponent);
  return line + "\n";
}

}  // namespace

std::optional<Spread> SpreadOf(const std::vector<double>& repeats_us) {
  if (repeats_us.size() < 2) return std::nullopt;
  std::vector<double> sorted = repeats_us;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  return Spread{.repeats = sorted.size(),
                .min = sorted.front(),
                .median = AtShare(sorted, 0.5),
                .average = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count,
                .p99 = AtShare(sorted, 0.99),
                .max = sorted.back()};
}

std::optional<int> TimeoutExponentOf(double delay_us) {
  for (int exponent = kFirstExponent; exponent <= kLastExponent; ++exponent) {
    const double timeout = std::ldexp(kTimeoutUnitUs, exponent);
    if (std::abs(delay_us / timeout - 1) <= kAsLong) return exponent;
  }
  return std::nullopt;
}

std::string TextRepeats(const std::vector<MeasuredRun>& runs, bool all) {
  std::vector<double> apart;
  std::size_t with_repeats = 0, stalled = 0;
  std::string stalls, table;
  for (const MeasuredRun& run : runs) {
    bool any = false;
    for (const MeasuredRow& row : run.rows) {
      const auto spread = SpreadOf(row.repeats_us);
      if (!spread) continue;
      any = true;
      apart.push_back(spread->max / spread->min - 1);
      if (spread->stalled()) {
        ++stalled;
        stalls += StallLine(run, row, *spread);
      }
      if (all)
        table += fmt::format("  {:<42} {:>12} {:>4} {:>12.2f} {:>12.2f} {:>12.2f} {:>12.2f}{}\n",
                             run.id, row.bytes, spread->repeats, spread->min, spread->average,
                             spread->p99, spread->max, spread->stalled() ? " stalled" : "");
    }
    if (any) ++with_repeats;
  }
  if (apart.empty()) return {};
  std::sort(apart.begin(), apart.end());
  std::string text = fmt::format(
      "repeats: {} rows of {} runs; slowest over fastest {:.1f} % apart in the median, {:.0f} % at "
      "the 90th percentile; {} rows stalled\n",
      apart.size(), with_repeats, 100 * AtShare(apart, 0.5), 100 * AtShare(apart, 0.9), stalled);
  text += stalls;
  if (all)
    text += fmt::format("  {:<42} {:>12} {:>4} {:>12} {:>12} {:>12} {:>12}\n", "run", "bytes", "n",
                        "min us", "avg us", "p99 us", "max us") +
            table;
  return text;
}

}  // namespace windtunnel::validate
