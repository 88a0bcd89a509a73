#pragma once
// Which frames a congested queue marks. Source: RFC 3168 (the mark), Floyd and Jacobson, "Random
// Early Detection Gateways" (1993) on the present queue, as data-centre switches do it (Zhu et al.,
// SIGCOMM 2015, section 3.1).

#include <algorithm>
#include <cstdint>

#include "sim/random.h"
#include "sim/units.h"

namespace windtunnel {

struct EcnOptions {
  bool enabled = true;
  /// Below this queue nothing is marked; 0 = by the rate of the link (`EcnThresholds`).
  Bytes kmin;
  /// Above this everything is; between the two a share that grows to `pmax`. 0 = by the rate.
  Bytes kmax;
  /// Source of 0.2: PMAX_MAP of HPCC's simulation configuration (SIGCOMM 2019).
  double pmax = 0.2;
};

/// Queues at which a link of `rate` begins to mark and marks all. Source: KMIN_MAP and KMAX_MAP of
/// HPCC's simulation configuration: 100 and 400 KB at 25 Gb/s, 200/800 at 40, 400/1600 at 100,
/// 600/2400 at 200, 800/3200 at 400 Gb/s and above; in proportion below 25 Gb/s (ASSUMED).
constexpr EcnOptions EcnThresholds(EcnOptions options, BitsPerSecond rate) {
  struct Entry {
    std::uint64_t gigabits;
    std::uint64_t kmin;
  };
  constexpr Entry kEntries[] = {{400, 800}, {200, 600}, {100, 400}, {40, 200}, {25, 100}};
  std::uint64_t kmin = rate.count() / 1'000 * 100 / 25'000;
  for (const Entry& entry : kEntries) {
    if (rate >= GigabitsPerSecond(entry.gigabits)) {
      kmin = entry.kmin * 1000;
      break;
    }
  }
  if (options.kmin.count() == 0) options.kmin = Bytes(std::max<std::uint64_t>(kmin, 1));
  if (options.kmax.count() == 0) options.kmax = 4 * options.kmin;
  return options;
}

/// Share of the frames that leave a queue of `queue` bytes with a mark. Contract: kmin < kmax.
constexpr double MarkingShare(const EcnOptions& options, Bytes queue) {
  if (!options.enabled || queue <= options.kmin) return 0;
  if (queue >= options.kmax) return 1;
  return options.pmax * static_cast<double>((queue - options.kmin).count()) /
         static_cast<double>((options.kmax - options.kmin).count());
}

/// How many of `frames` are marked; draws only when the queue is above kmin.
inline std::uint64_t MarkedFrames(const EcnOptions& options, Bytes queue, std::uint64_t frames,
                                  RandomStream& random) {
  const double share = MarkingShare(options, queue);
  if (share <= 0) return 0;
  if (share >= 1) return frames;
  std::uint64_t marked = 0;
  for (std::uint64_t i = 0; i < frames; ++i) marked += random.Unit() < share ? 1 : 0;
  return marked;
}

}  // namespace windtunnel
