#pragma once
// Errors of simulated against measured times: sim/meas - 1 by run, group and size band, every run
// weighted equally, with the same figures for NCCL's own estimate and for a data sheet beside.

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/timing/constants.h"
#include "validate/decision_source.h"
#include "validate/platform.h"
#include "validate/run.h"

namespace windtunnel::validate {

constexpr std::size_t kBandCount = 5;
/// Upper ends, inclusive: 4 KiB, 256 KiB, 8 MiB, 256 MiB, none.
constexpr std::array<std::string_view, kBandCount> kBandNames{
    "<=4 KiB", "4-256 KiB", "256 KiB-8 MiB", "8-256 MiB", ">256 MiB"};
std::size_t BandOf(std::uint64_t bytes);

enum class Predictor : std::uint8_t { kWindtunnel, kNccl, kDataSheet };

/// One size of one run. Microseconds; 0 where a predictor has no answer.
struct Point {
  std::uint64_t bytes = 0;
  double measured_us = 0;
  std::array<double, 3> predicted_us{};  ///< By Predictor.
  timing::CallFacts facts;               ///< The decision.
  timing::Cause bound{};
  bool extrapolated = false;
  double error(Predictor predictor) const {
    return predicted_us[static_cast<std::size_t>(predictor)] / measured_us - 1;
  }
  bool has(Predictor predictor) const {
    return predicted_us[static_cast<std::size_t>(predictor)] > 0;
  }
};

/// Which goal a run is held to.
enum class Group : std::uint8_t { kOneNode, kInfinibandRoce, kCloudTransport, kOtherHarness };
std::string_view ToString(Group group);

struct ScoredRun {
  MeasuredRun run;
  Platform platform;
  Group group = Group::kOneNode;
  bool counted = false;  ///< In the bands.
  std::string why_not;   ///< Why it is not: quality, harness, no mapping.
  std::vector<Point> points;
};

/// Quantiles of |error| and the signed median, as fractions. Weighted so that every run counts the
/// same in each band it reaches.
struct Summary {
  std::size_t runs = 0, points = 0;
  double median = 0, p90 = 0, worst = 0, bias = 0;
};
using Bands = std::array<Summary, kBandCount>;

/// A goal of the project for one group and band, fractions; 0: reported without a goal.
struct Goal {
  double median = 0, p90 = 0;
};
const std::array<Goal, kBandCount>& GoalsOf(Group group);

/// Maps a run, decides and predicts every size.
ScoredRun ScoreRun(const MeasuredRun& run, const DecisionSource& decisions,
                   const timing::TimingConstants& constants);
/// The same for all. `progress(done, total)` is called after each run.
std::vector<ScoredRun> Score(const std::vector<MeasuredRun>& runs, const DecisionSource& decisions,
                             const timing::TimingConstants& constants,
                             const std::function<void(std::size_t, std::size_t)>& progress = {});

/// Errors of the runs that `select` accepts.
Bands Summarise(const std::vector<ScoredRun>& runs, Predictor predictor,
                const std::function<bool(const ScoredRun&)>& select);
Summary SummariseRun(const ScoredRun& run, Predictor predictor);

/// How far two real runs of the same call on alike boards are apart: the floor under every error.
/// Pairs of equal platform (name, topology, board text, rates, NICs), collective, type class and
/// launch, size by size where NCCL decides the same for both (algorithm, protocol, channels,
/// chunk): releases and variables that change the call are no noise.
Bands NoiseFloor(const std::vector<ScoredRun>& runs,
                 const std::function<bool(const ScoredRun&)>& select);

/// Of all pairs of counted runs of one collective and size whose measured times differ by more than
/// 15 %: how many, and how many are in the right order.
struct PairOrder {
  std::size_t pairs = 0, right = 0;
};
PairOrder OrderOfPairs(const std::vector<ScoredRun>& runs);

/// Geometric-mean error of all-reduce on one node of eight GPUs from 1 MiB on, a fraction: exp of
/// the mean |ln(simulated/measured)|, every run weighing the same. The figure by which simulators
/// of collectives are compared; goal of the project: kLargeAllReduceGoal for A100 and H100.
struct GeometricError {
  std::size_t runs = 0;
  double error = 0;
};
inline constexpr double kLargeAllReduceGoal = 0.05;
/// Classes that the goal names; H200 is of class h100.
inline constexpr std::array<const char*, 2> kLargeAllReduceClasses = {"a100", "h100"};
GeometricError LargeAllReduceError(const std::vector<ScoredRun>& runs, std::string_view gpu_class);

/// A step in a measured curve that the predicted curve does not have: the time of neighbouring
/// sizes is more than 25 % off the local trend.
struct Step {
  std::string run;
  std::uint64_t bytes = 0;  ///< Size behind the step.
  double measured = 0;      ///< Height against the trend, as a factor.
  double predicted = 0;
};
std::vector<Step> UnexplainedSteps(const std::vector<ScoredRun>& runs);

/// A fall of the measured rate at large sizes that stays and that the model, whose curve is smooth
/// there, does not have: reported with size and height, never fitted.
struct Cliff {
  std::string run;
  std::uint64_t bytes = 0;  ///< First size behind the fall.
  double height = 0;        ///< Of the rate against the model: -0.13 is 13 % lower than before.
};
std::vector<Cliff> Cliffs(const std::vector<ScoredRun>& runs);

/// One goal missed: what, by how much; also runs of a band farther off than three times its goal.
struct Miss {
  Group group;
  std::size_t band;
  std::string what;  ///< "median 6.2 % > 5 %"
};
std::vector<Miss> MissedGoals(const std::vector<ScoredRun>& runs);

}  // namespace windtunnel::validate
