#pragma once
// The runs of the set at flow or packet level: NCCL's search on the run's topology, the plan moved
// over simulated links, beside the closed form of the same decisions.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/simulation.h"
#include "validate/scores.h"

namespace windtunnel::validate {

struct FidelityOptions {
  Fidelity level = Fidelity::kFlow;
  std::uint32_t max_ranks = 64;    ///< Larger runs are left out and listed.
  std::size_t sizes_per_band = 1;  ///< Of each run, the middle ones of a band; 0: all.
  unsigned processes = 0;          ///< 0: one per core. The answer does not depend on it.
};

/// Times of one size, microseconds.
struct LevelTimes {
  double level = 0;     ///< At the level asked for.
  double flow = 0;      ///< At flow level; 0 unless packet level was asked for.
  double analytic = 0;  ///< Closed form of the same decisions on the same topology.
};

struct LevelRun {
  std::size_t index = 0;                      ///< Of the scored run.
  std::string why_not;                        ///< Why it is not simulated; empty when it is.
  std::map<std::uint64_t, LevelTimes> times;  ///< By size of the run's rows that were taken.
};

/// Simulates the counted runs. Runs of one machine, collective, type, release and variables share
/// one simulation. A run is left out, with the reason, when its topology is not shipped, when the
/// topology says something else of the machine than the run does (GPU, links, NICs, fabric), when
/// it is too large, or when it is no run of NCCL's own harness.
std::vector<LevelRun> SimulateRuns(
    const std::vector<ScoredRun>& runs, const FidelityOptions& options,
    const std::function<void(std::size_t, std::size_t)>& progress = {});

/// For people: errors of the level against measured times by group and band, those of the closed
/// form at the same sizes, how far the levels are apart, what was left out and why.
std::string TextLevels(const std::vector<ScoredRun>& runs, const std::vector<LevelRun>& levels,
                       const FidelityOptions& options);
/// For machines: every time of every run.
std::string JsonLevels(const std::vector<ScoredRun>& runs, const std::vector<LevelRun>& levels,
                       const FidelityOptions& options);

}  // namespace windtunnel::validate
