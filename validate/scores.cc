#include "validate/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "collectives/timing/time_model.h"
#include "sim/error.h"
#include "validate/topology_facts.h"

namespace windtunnel::validate {
namespace {

constexpr std::array<std::uint64_t, kBandCount - 1> kBandEnds{4ull << 10, 256ull << 10, 8ull << 20,
                                                              256ull << 20};
constexpr double kClearlyApart = 1.15;  // Pairs of runs closer than this have no order.
constexpr double kStepHeight = 1.25;
constexpr double kCliff = 0.08;  // Fall of the rate against the model from one size to the next,
constexpr double kCliffStays = 0.05;     // of which so much is left at every larger size,
constexpr double kCliffFalls = 0.02;     // while the measured rate itself falls.
constexpr double kNoMoreThanBias = 0.6;  // Signed median, as a share of the median's goal.

struct Weighted {
  double value;
  double weight;
};

/// Smallest value whose cumulated weight reaches the share `q`.
double Quantile(std::vector<Weighted> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double total = 0;
  for (const Weighted& value : values) total += value.weight;
  double sum = 0;
  for (const Weighted& value : values) {
    sum += value.weight;
    if (sum >= q * total * (1 - 1e-12)) return value.value;
  }
  return values.back().value;
}

Summary Summed(const std::vector<Weighted>& errors, std::size_t runs) {
  std::vector<Weighted> magnitudes;
  Summary summary{.runs = runs, .points = errors.size()};
  for (const Weighted& error : errors) {
    magnitudes.push_back({std::abs(error.value), error.weight});
    summary.worst = std::max(summary.worst, std::abs(error.value));
  }
  summary.median = Quantile(magnitudes, 0.5);
  summary.p90 = Quantile(magnitudes, 0.9);
  summary.bias = Quantile(errors, 0.5);
  return summary;
}

Group GroupOf(const MeasuredRun& run, const Platform& platform) {
  if (!run.harness.empty()) return Group::kOtherHarness;
  switch (platform.group) {
    case FabricGroup::kOneNode:
      return Group::kOneNode;
    case FabricGroup::kInfinibandRoce:
      return Group::kInfinibandRoce;
    case FabricGroup::kCloudTransport:
      return Group::kCloudTransport;
  }
  return Group::kOneNode;
}

/// "NVIDIA H100 80GB HBM3", "H100 SXM (4 per node)": the first word with a digit tells boards
/// apart.
std::string BoardText(const std::string& gpu) {
  std::string word;
  for (const char c : gpu + " ") {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    if (std::any_of(word.begin(), word.end(),
                    [](char d) { return std::isdigit(static_cast<unsigned char>(d)); }))
      return word;
    word.clear();
  }
  return word;
}

/// NCCL decides the same: runs may differ in release and variables.
bool SameCall(const timing::CallFacts& a, const timing::CallFacts& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels &&
         a.threads == b.threads && a.chunk == b.chunk && a.peer_parts == b.peer_parts;
}

/// Log-height of the step behind point i against the trend around it.
double StepAt(const std::vector<Point>& points, std::size_t i,
              const std::function<double(const Point&)>& time) {
  const auto slope = [&](std::size_t k) {
    const double sizes =
        std::log(static_cast<double>(points[k + 1].bytes) / static_cast<double>(points[k].bytes));
    return std::log(time(points[k + 1]) / time(points[k])) / sizes;
  };
  const double sizes =
      std::log(static_cast<double>(points[i + 1].bytes) / static_cast<double>(points[i].bytes));
  return (slope(i) - 0.5 * (slope(i - 1) + slope(i + 1))) * sizes;
}

}  // namespace

std::size_t BandOf(std::uint64_t bytes) {
  std::size_t band = 0;
  while (band < kBandEnds.size() && bytes > kBandEnds[band]) ++band;
  return band;
}

std::string_view ToString(Group group) {
  constexpr std::array<std::string_view, 4> names{"one node", "several nodes, IB and RoCE",
                                                  "several nodes, Slingshot, EFA, TCPX, TCP",
                                                  "other harness (XLA)"};
  return names[static_cast<std::size_t>(group)];
}

const std::array<Goal, kBandCount>& GoalsOf(Group group) {
  static const std::array<Goal, kBandCount> one_node{
      {{.05, .11}, {.05, .15}, {.06, .18}, {.04, .12}, {.02, .06}}};
  static const std::array<Goal, kBandCount> infiniband{
      {{.03, .18}, {.06, .30}, {.08, .20}, {.05, .18}, {.03, .07}}};
  static const std::array<Goal, kBandCount> cloud{
      {{.15, .40}, {0, 0}, {0, 0}, {.05, .20}, {.03, .08}}};
  static const std::array<Goal, kBandCount> none{};
  switch (group) {
    case Group::kOneNode:
      return one_node;
    case Group::kInfinibandRoce:
      return infiniband;
    case Group::kCloudTransport:
      return cloud;
    case Group::kOtherHarness:
      return none;
  }
  return none;
}

ScoredRun ScoreRun(const MeasuredRun& run, const DecisionSource& decisions,
                   const timing::TimingConstants& constants) {
  ScoredRun result{.run = run};
  Mapping mapping = MapRunWithTopology(run, constants);
  if (!mapping.mapped) {
    result.why_not = "not mapped: " + mapping.reason;
    return result;
  }
  result.platform = std::move(mapping.platform);
  result.group = GroupOf(run, result.platform);
  for (const MeasuredRow& row : run.rows) {
    const Decision decision = decisions.Decide(result.platform, run, Bytes(row.bytes));
    const timing::TimeBreakdown time = timing::PredictTime(decision.facts, constants);
    Point point{.bytes = row.bytes,
                .measured_us = *row.scored_us(),
                .facts = decision.facts,
                .bound = time.bound(),
                .extrapolated = time.extrapolated};
    point.predicted_us = {time.us(), decision.nccl_estimate_us,
                          timing::DataSheetTimeUs(decision.facts, constants)};
    result.points.push_back(std::move(point));
  }
  if (run.quality == Quality::kMisconfigured) {
    result.why_not = "misconfigured: " + (run.fault.empty() ? "not stated" : run.fault);
  } else if (run.quality == Quality::kUnknown) {
    result.why_not = "hardware or setting in doubt";
  } else {
    result.counted = true;
  }
  return result;
}

std::vector<ScoredRun> Score(const std::vector<MeasuredRun>& runs, const DecisionSource& decisions,
                             const timing::TimingConstants& constants,
                             const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<ScoredRun> scored;
  scored.reserve(runs.size());
  for (const MeasuredRun& run : runs) {
    scored.push_back(ScoreRun(run, decisions, constants));
    if (progress) progress(scored.size(), runs.size());
  }
  return scored;
}

Bands Summarise(const std::vector<ScoredRun>& runs, Predictor predictor,
                const std::function<bool(const ScoredRun&)>& select) {
  std::array<std::vector<Weighted>, kBandCount> errors;
  std::array<std::size_t, kBandCount> reached{};
  for (const ScoredRun& run : runs) {
    if (!select(run)) continue;
    std::array<std::size_t, kBandCount> count{};
    for (const Point& point : run.points)
      if (point.has(predictor)) ++count[BandOf(point.bytes)];
    for (std::size_t band = 0; band < kBandCount; ++band)
      if (count[band] > 0) ++reached[band];
    for (const Point& point : run.points) {
      if (!point.has(predictor)) continue;
      const std::size_t band = BandOf(point.bytes);
      errors[band].push_back({point.error(predictor), 1.0 / static_cast<double>(count[band])});
    }
  }
  Bands bands;
  for (std::size_t band = 0; band < kBandCount; ++band)
    bands[band] = Summed(errors[band], reached[band]);
  return bands;
}

Summary SummariseRun(const ScoredRun& run, Predictor predictor) {
  std::vector<Weighted> errors;
  for (const Point& point : run.points)
    if (point.has(predictor)) errors.push_back({point.error(predictor), 1});
  return Summed(errors, 1);
}

Bands NoiseFloor(const std::vector<ScoredRun>& runs,
                 const std::function<bool(const ScoredRun&)>& select) {
  std::map<std::string, std::vector<const ScoredRun*>> alike;
  for (const ScoredRun& run : runs) {
    if (!run.counted || !select(run)) continue;
    const timing::CallFacts& facts = run.platform.facts;
    alike[fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", run.platform.name, run.platform.topology,
                      BoardText(run.run.gpu), facts.link_rate.count(), facts.nic_rate.count(),
                      facts.nics_per_node, run.run.collective, facts.eight_bit_integer,
                      static_cast<int>(facts.launch))]
        .push_back(&run);
  }
  std::array<std::vector<Weighted>, kBandCount> errors;
  std::array<std::size_t, kBandCount> pairs{};
  for (const auto& [key, group] : alike) {
    for (std::size_t a = 0; a < group.size(); ++a) {
      for (std::size_t b = a + 1; b < group.size(); ++b) {
        std::array<std::vector<double>, kBandCount> differences;
        for (const Point& left : group[a]->points) {
          for (const Point& right : group[b]->points) {
            if (left.bytes != right.bytes || !SameCall(left.facts, right.facts)) continue;
            differences[BandOf(left.bytes)].push_back(
                std::max(left.measured_us, right.measured_us) /
                    std::min(left.measured_us, right.measured_us) -
                1);
          }
        }
        for (std::size_t band = 0; band < kBandCount; ++band) {
          if (differences[band].empty()) continue;
          ++pairs[band];
          for (const double difference : differences[band])
            errors[band].push_back(
                {difference, 1.0 / static_cast<double>(differences[band].size())});
        }
      }
    }
  }
  Bands bands;
  for (std::size_t band = 0; band < kBandCount; ++band)
    bands[band] = Summed(errors[band], pairs[band]);
  return bands;
}

PairOrder OrderOfPairs(const std::vector<ScoredRun>& runs) {
  std::map<std::pair<std::string, std::uint64_t>, std::vector<const Point*>> by_call;
  for (const ScoredRun& run : runs) {
    if (!run.counted || run.group == Group::kOtherHarness) continue;
    for (const Point& point : run.points)
      by_call[{run.run.collective, point.bytes}].push_back(&point);
  }
  PairOrder order;
  for (const auto& [call, points] : by_call) {
    for (std::size_t a = 0; a < points.size(); ++a) {
      for (std::size_t b = a + 1; b < points.size(); ++b) {
        const double apart = points[a]->measured_us / points[b]->measured_us;
        if (std::max(apart, 1 / apart) <= kClearlyApart) continue;
        ++order.pairs;
        if ((points[a]->predicted_us[0] > points[b]->predicted_us[0]) == (apart > 1)) ++order.right;
      }
    }
  }
  return order;
}

GeometricError LargeAllReduceError(const std::vector<ScoredRun>& runs, std::string_view gpu_class) {
  constexpr std::uint64_t kFrom = 1U << 20;
  GeometricError result;
  double sum = 0;
  for (const ScoredRun& run : runs) {
    const timing::CallFacts& facts = run.platform.facts;
    if (!run.counted || run.group != Group::kOneNode || facts.gpu_class != gpu_class) continue;
    if (facts.function != Function::kAllReduce || facts.ranks != 8) continue;
    double of_run = 0;
    std::size_t points = 0;
    for (const Point& point : run.points) {
      if (point.bytes < kFrom || !point.has(Predictor::kWindtunnel)) continue;
      of_run += std::abs(std::log1p(point.error(Predictor::kWindtunnel)));
      ++points;
    }
    if (points == 0) continue;
    sum += of_run / static_cast<double>(points);
    ++result.runs;
  }
  if (result.runs > 0) result.error = std::expm1(sum / static_cast<double>(result.runs));
  return result;
}

std::vector<Step> UnexplainedSteps(const std::vector<ScoredRun>& runs) {
  std::vector<Step> steps;
  const double threshold = std::log(kStepHeight);
  for (const ScoredRun& run : runs) {
    if (!run.counted) continue;
    const auto& points = run.points;
    for (std::size_t i = 1; i + 2 < points.size(); ++i) {
      if (points[i].bytes <= kBandEnds[0]) continue;
      const double measured = StepAt(points, i, [](const Point& p) { return p.measured_us; });
      if (std::abs(measured) <= threshold) continue;
      // Both ends of a step bend the curve back: its middle is the largest bend.
      const auto bend = [&](std::size_t k) {
        return k < 1 || k + 2 >= points.size()
                   ? 0.0
                   : std::abs(StepAt(points, k, [](const Point& p) { return p.measured_us; }));
      };
      if (bend(i - 1) > std::abs(measured) || bend(i + 1) > std::abs(measured)) continue;
      double nearest = 0;
      for (std::size_t k = i - 1; k <= i + 1; ++k) {
        if (k < 1 || k + 2 >= points.size()) continue;
        const double predicted =
            StepAt(points, k, [](const Point& p) { return p.predicted_us[0]; });
        if (predicted * measured > 0 && std::abs(predicted) > std::abs(nearest))
          nearest = predicted;
      }
      if (std::abs(nearest) > threshold / 2) continue;
      steps.push_back({run.run.id, points[i + 1].bytes, std::exp(measured), std::exp(nearest)});
    }
  }
  return steps;
}

std::vector<Cliff> Cliffs(const std::vector<ScoredRun>& runs) {
  std::vector<Cliff> cliffs;
  for (const ScoredRun& run : runs) {
    const auto& points = run.points;
    const auto measured = [&](std::size_t k) {
      return static_cast<double>(points[k].bytes) / points[k].measured_us;
    };
    const auto against_model = [&](std::size_t k) {
      return points[k].predicted_us[0] / points[k].measured_us;
    };
    for (std::size_t i = 0; run.counted && i + 1 < points.size(); ++i) {
      if (points[i].bytes < kBandEnds[2]) continue;
      const double height = against_model(i + 1) / against_model(i) - 1;
      if (height > -kCliff || measured(i + 1) > (1 - kCliffFalls) * measured(i)) continue;
      bool stays = true;
      for (std::size_t k = i + 1; k < points.size(); ++k)
        stays = stays && against_model(k) < (1 - kCliffStays) * against_model(i);
      if (stays) cliffs.push_back({run.run.id, points[i + 1].bytes, height});
    }
  }
  return cliffs;
}

namespace {

// Runs whose own median error in the band is above three times the goal; "" when there are none.
std::string FarRuns(const std::vector<ScoredRun>& runs, Group group, std::size_t band,
                    const Goal& goal) {
  constexpr double kNoRunAbove = 3;
  std::size_t reached = 0;
  std::size_t above = 0;
  double farthest = 0;
  const ScoredRun* farthest_run = nullptr;
  for (const ScoredRun& run : runs) {
    if (!run.counted || run.group != group) continue;
    const Bands bands = Summarise({run}, Predictor::kWindtunnel, [](const auto&) { return true; });
    const Summary& got = bands[band];
    if (got.points == 0) continue;
    ++reached;
    if (got.median <= kNoRunAbove * goal.median) continue;
    ++above;
    if (got.median < std::abs(farthest)) continue;
    farthest = std::copysign(got.median, got.bias);
    farthest_run = &run;
  }
  if (above == 0) return "";
  return fmt::format("{} of {} runs above 3 times the goal ({:.0f} %), farthest {} ({:+.0f} %)",
                     above, reached, 100 * kNoRunAbove * goal.median, farthest_run->run.id,
                     100 * farthest);
}

}  // namespace

std::vector<Miss> MissedGoals(const std::vector<ScoredRun>& runs) {
  std::vector<Miss> misses;
  for (const Group group : {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport}) {
    const auto select = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const Bands bands = Summarise(runs, Predictor::kWindtunnel, select);
    const auto& goals = GoalsOf(group);
    for (std::size_t band = 0; band < kBandCount; ++band) {
      const Summary& got = bands[band];
      const Goal& goal = goals[band];
      if (got.points == 0 || goal.median == 0) continue;
      if (got.median > goal.median)
        misses.push_back(
            {group, band,
             fmt::format("median {:.1f} % > {:.0f} %", 100 * got.median, 100 * goal.median)});
      if (got.p90 > goal.p90)
        misses.push_back(
            {group, band, fmt::format("p90 {:.1f} % > {:.0f} %", 100 * got.p90, 100 * goal.p90)});
      if (std::abs(got.bias) > kNoMoreThanBias * goal.median)
        misses.push_back(
            {group, band,
             fmt::format("bias {:+.1f} %, more than 60 % of the median's goal", 100 * got.bias)});
      if (std::string far = FarRuns(runs, group, band, goal); !far.empty())
        misses.push_back({group, band, std::move(far)});
    }
  }
  return misses;
}

}  // namespace windtunnel::validate
