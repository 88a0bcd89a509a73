#pragma once
// What the errors of a set were at a known state, so that a change of the model, of a topology or
// of NCCL's decisions is noticed by a job of continuous integration.

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "validate/scores.h"

namespace windtunnel::validate {

/// The signed median error of every counted run, by band.
struct Baseline {
  struct Run {
    std::array<double, kBandCount> bias{};  ///< Fractions.
    std::array<std::size_t, kBandCount> points{};
  };
  std::map<std::string, Run> runs;  ///< By "set/id".
};

Baseline BaselineOf(const std::vector<ScoredRun>& runs);
/// JSON, runs sorted by name, fractions with five decimals.
std::string WriteBaseline(const Baseline& baseline);
/// @throws ConfigError naming file and field.
Baseline ReadBaseline(const std::filesystem::path& file);

/// One run and band whose signed median error moved, in either direction: a baseline says what the
/// model answers, not how good the answer is.
struct Move {
  std::string run;
  std::size_t band = 0;
  double was = 0, now = 0;
};
struct Comparison {
  std::vector<Move> moves;           ///< By more than the tolerance.
  std::vector<std::string> missing;  ///< In the baseline, not counted now.
  std::vector<std::string> added;    ///< Counted now, not in the baseline.
  std::size_t compared = 0;          ///< Bands of runs in both.
  bool same() const { return moves.empty() && missing.empty(); }
};
/// `tolerance` in fractions: 0.03 is three points of per cent.
Comparison Compare(const Baseline& baseline, const std::vector<ScoredRun>& runs, double tolerance);
std::string TextComparison(const Comparison& comparison, double tolerance);

/// The plateau of every platform: the signed median error above 256 MiB over its counted runs. No
/// record is needed: on the right topology it is near zero whatever the sizes below it do.
struct Plateau {
  std::string platform;
  std::size_t runs = 0;
  double bias = 0;
};
std::vector<Plateau> Plateaus(const std::vector<ScoredRun>& runs);
/// Lines of the platforms whose plateau is off by more than `tolerance` (fraction); "" when none.
std::string TextPlateaus(const std::vector<Plateau>& plateaus, double tolerance);

}  // namespace windtunnel::validate
