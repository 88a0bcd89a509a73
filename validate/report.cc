#include "validate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collectives/timing/time_model.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "validate/repeats.h"

namespace windtunnel::validate {
namespace {

using Select = std::function<bool(const ScoredRun&)>;

std::string Cell(const Summary& summary) {
  if (summary.points == 0) return fmt::format("{:>24}", "-");
  return fmt::format(
      "{:>24}", fmt::format("{:.1f}/{:.0f}/{:.0f} {:+.1f}", 100 * summary.median, 100 * summary.p90,
                            100 * summary.worst, 100 * summary.bias));
}

std::string GoalCell(const Goal& goal) {
  if (goal.median == 0) return fmt::format("{:>24}", "report");
  return fmt::format("{:>24}", fmt::format("{:.0f}/{:.0f}", 100 * goal.median, 100 * goal.p90));
}

std::string Line(const std::string& name, std::size_t runs, const Bands& bands) {
  std::string line = fmt::format("{:<42} {:>4}", name, runs);
  for (const Summary& band : bands) line += Cell(band);
  return line + "\n";
}

std::string Head(const std::string& title) {
  std::string line = fmt::format("{:<42} {:>4}", title, "runs");
  for (const std::string_view band : kBandNames) line += fmt::format("{:>24}", band);
  return line + "\n";
}

std::size_t CountRuns(const std::vector<ScoredRun>& runs, const Select& select) {
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), select));
}

std::string GroupTable(const std::vector<ScoredRun>& runs) {
  std::string text = Head("group, median/p90/worst bias in %");
  for (const Group group :
       {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport, Group::kOtherHarness}) {
    const Select in_group = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const std::size_t count = CountRuns(runs, in_group);
    if (count == 0) continue;
    text += Line(std::string(ToString(group)), count,
                 Summarise(runs, Predictor::kWindtunnel, in_group));
    std::set<std::string> sets;
    for (const ScoredRun& run : runs)
      if (in_group(run)) sets.insert(run.run.set);
    if (sets.size() > 1) {
      for (const std::string& set : sets) {
        const Select in_set = [&](const ScoredRun& run) {
          return in_group(run) && run.run.set == set;
        };
        text += Line("  set " + set, CountRuns(runs, in_set),
                     Summarise(runs, Predictor::kWindtunnel, in_set));
      }
    }
    if (group != Group::kOtherHarness) {
      text += fmt::format("{:<42} {:>4}", "  goal", "");
      for (const Goal& goal : GoalsOf(group)) text += GoalCell(goal);
      text += "\n";
    }
    text += Line("  NCCL's own estimate", count, Summarise(runs, Predictor::kNccl, in_group));
    text += Line("  data sheet", count, Summarise(runs, Predictor::kDataSheet, in_group));
    const Bands noise = NoiseFloor(runs, in_group);
    std::size_t pairs = 0;
    for (const Summary& band : noise) pairs = std::max(pairs, band.runs);
    text += Line("  noise: pairs of real runs", pairs, noise);
  }
  return text;
}

std::string TableBy(const std::vector<ScoredRun>& runs, const std::string& title,
                    const std::function<std::string(const ScoredRun&)>& key) {
  std::set<std::string> keys;
  for (const ScoredRun& run : runs)
    if (run.counted) keys.insert(key(run));
  std::string text = "\n" + Head(title);
  for (const std::string& one : keys) {
    const Select select = [&](const ScoredRun& run) { return run.counted && key(run) == one; };
    text += Line(one, CountRuns(runs, select), Summarise(runs, Predictor::kWindtunnel, select));
  }
  return text;
}

std::string SizeText(std::uint64_t bytes) { return FormatSize(Bytes(bytes)); }

}  // namespace

std::string TextReport(const std::vector<ScoredRun>& runs, const std::string& decisions,
                       const ReportOptions& options,
                       const std::vector<std::string>& decision_notes) {
  std::string text = fmt::format(
      "decisions: {}\nerrors are simulated/measured - 1; every run has "
      "the same weight in each band it reaches\n\n",
      decisions);
  for (const std::string& note : decision_notes)
    text += "on the usual graph of the board: " + note + "\n";
  if (!decision_notes.empty()) text += "\n";
  text += GroupTable(runs);
  text += TableBy(runs, "platform", [](const ScoredRun& run) {
    return (run.group == Group::kOtherHarness ? "XLA " : "") + run.platform.name;
  });
  text += TableBy(runs, "collective", [](const ScoredRun& run) {
    return run.run.collective + (run.platform.facts.nodes > 1 ? ", several nodes" : ", one node");
  });
  if (options.runs) {
    text += "\n" + Head("run");
    for (const ScoredRun& run : runs) {
      if (run.points.empty()) continue;
      const Select one = [&](const ScoredRun& other) { return &other == &run; };
      text += Line((run.counted ? "" : "(") + run.run.id + (run.counted ? "" : ")"), 1,
                   Summarise(runs, Predictor::kWindtunnel, one));
    }
  }
  const PairOrder order = OrderOfPairs(runs);
  if (order.pairs > 0) {
    text += fmt::format(
        "\norder: {:.1f} % of {} pairs of runs that differ by more than 15 % are in the right "
        "order (goal 97 %)\n",
        100.0 * static_cast<double>(order.right) / static_cast<double>(order.pairs), order.pairs);
  }
  text += TextLargeAllReduce(runs);
  const std::vector<Step> steps = UnexplainedSteps(runs);
  text += fmt::format("steps of the measured curves above 4 KiB that the model does not have: {}\n",
                      steps.size());
  if (options.steps) {
    for (const Step& step : steps)
      text += fmt::format("  {:<42} at {:>9}: x {:.2f} measured, x {:.2f} simulated\n", step.run,
                          SizeText(step.bytes), step.measured, step.predicted);
  }
  text += TextCliffs(runs);
  std::vector<MeasuredRun> measured;
  for (const ScoredRun& run : runs) measured.push_back(run.run);
  text += TextRepeats(measured, options.repeats);
  std::map<std::string, std::vector<std::string>> left_out;
  for (const ScoredRun& run : runs)
    if (!run.counted) left_out[run.why_not].push_back(run.run.id);
  if (!left_out.empty()) text += "\nnot counted:\n";
  for (const auto& [why, ids] : left_out)
    text += fmt::format("  {} ({}): {}\n", why, ids.size(), JoinNames(ids));
  const std::vector<Miss> misses = MissedGoals(runs);
  text += misses.empty() ? "\nall goals met\n" : "\ngoals missed:\n";
  for (const Miss& miss : misses)
    text += fmt::format("  {}, {}: {}\n", ToString(miss.group), kBandNames[miss.band], miss.what);
  return text;
}

std::string BandTable(const ScoredRun& run) {
  const Bands bands =
      Summarise({run}, Predictor::kWindtunnel, [](const ScoredRun&) { return true; });
  std::string text;
  for (std::size_t band = 0; band < kBandCount; ++band) {
    const Summary& s = bands[band];
    if (s.points == 0) continue;
    text += fmt::format(
        "{:>14}: {:>2} sizes, median {:.1f} %, p90 {:.1f} %, worst {:.1f} %, bias {:+.1f} %\n",
        kBandNames[band], s.points, 100 * s.median, 100 * s.p90, 100 * s.worst, 100 * s.bias);
  }
  return text;
}

std::string TextLargeAllReduce(const std::vector<ScoredRun>& runs) {
  std::string text;
  for (const char* gpu_class : kLargeAllReduceClasses) {
    const GeometricError large = LargeAllReduceError(runs, gpu_class);
    if (large.runs == 0) continue;
    text += fmt::format(
        "all-reduce of 8 GPUs from 1 MiB, class {}: geometric-mean error {:.1f} % over {} runs "
        "(goal "
        "{:.0f} %{})\n",
        gpu_class, 100 * large.error, large.runs, 100 * kLargeAllReduceGoal,
        large.error > kLargeAllReduceGoal ? ", missed" : "");
  }
  return text;
}

std::string TextCliffs(const std::vector<ScoredRun>& runs) {
  std::string text;
  for (const Cliff& cliff : Cliffs(runs)) {
    text += fmt::format(
        "cliff without a cause in the model: {} at {}: rate {:+.0f} % and stays; not fitted\n",
        cliff.run, SizeText(cliff.bytes), 100 * cliff.height);
  }
  return text;
}

std::string JsonReport(const std::vector<ScoredRun>& runs, const std::string& decisions,
                       const std::vector<LeftOut>& left_out) {
  using Json = nlohmann::ordered_json;
  const auto bands_json = [](const Bands& bands) {
    Json list = Json::array();
    for (std::size_t band = 0; band < kBandCount; ++band) {
      const Summary& s = bands[band];
      if (s.points == 0) continue;
      list.push_back({{"band", kBandNames[band]},
                      {"runs", s.runs},
                      {"points", s.points},
                      {"median", s.median},
                      {"p90", s.p90},
                      {"worst", s.worst},
                      {"bias", s.bias}});
    }
    return list;
  };
  Json result;
  result["decisions"] = decisions;
  Json groups = Json::array();
  for (const Group group :
       {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport, Group::kOtherHarness}) {
    const Select select = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const std::size_t count = CountRuns(runs, select);
    if (count == 0) continue;
    groups.push_back({{"group", ToString(group)},
                      {"runs", count},
                      {"windtunnel", bands_json(Summarise(runs, Predictor::kWindtunnel, select))},
                      {"nccl_estimate", bands_json(Summarise(runs, Predictor::kNccl, select))},
                      {"data_sheet", bands_json(Summarise(runs, Predictor::kDataSheet, select))},
                      {"noise", bands_json(NoiseFloor(runs, select))}});
  }
  result["groups"] = std::move(groups);
  const PairOrder order = OrderOfPairs(runs);
  result["order"] = {{"pairs", order.pairs}, {"right", order.right}};
  for (const char* gpu_class : kLargeAllReduceClasses) {
    const GeometricError large = LargeAllReduceError(runs, gpu_class);
    result["large_all_reduce"][gpu_class] = {{"runs", large.runs},
                                             {"geometric_mean_error", large.error}};
  }
  Json misses = Json::array();
  for (const Miss& miss : MissedGoals(runs))
    misses.push_back(
        {{"group", ToString(miss.group)}, {"band", kBandNames[miss.band]}, {"missed", miss.what}});
  Json cliffs = Json::array();
  for (const Cliff& cliff : Cliffs(runs))
    cliffs.push_back({{"run", cliff.run}, {"bytes", cliff.bytes}, {"height", cliff.height}});
  result["cliffs"] = std::move(cliffs);
  result["goals_missed"] = std::move(misses);
  if (!left_out.empty()) result["leave_out"] = Json::parse(JsonLeaveOut(left_out));
  Json list = Json::array();
  for (const ScoredRun& run : runs) {
    Json entry = {{"id", run.run.id},         {"set", run.run.set},
                  {"source", run.run.source}, {"collective", run.run.collective},
                  {"ranks", run.run.ranks},   {"counted", run.counted}};
    if (!run.counted) entry["why_not"] = run.why_not;
    if (!run.points.empty()) {
      entry["topology"] = run.platform.topology;
      entry["platform"] = run.platform.name;
      entry["group"] = ToString(run.group);
      entry["nccl"] = nccl::ToString(run.platform.facts.version);
      entry["nccl_assumed"] = run.platform.version_assumed;
      Json pairs = Json::array();
      for (const Point& point : run.points) {
        Json pair = {{"bytes", point.bytes},
                     {"measured_us", point.measured_us},
                     {"simulated_us", point.predicted_us[0]},
                     {"error", point.error(Predictor::kWindtunnel)},
                     {"data_sheet_us", point.predicted_us[2]},
                     {"algorithm", timing::ToString(point.facts.algorithm)},
                     {"protocol", Name(point.facts.protocol)},
                     {"channels", point.facts.channels},
                     {"bound", timing::ToString(point.bound)}};
        const auto row = std::find_if(run.run.rows.begin(), run.run.rows.end(),
                                      [&](const MeasuredRow& r) { return r.bytes == point.bytes; });
        if (row != run.run.rows.end()) {
          if (const auto spread = SpreadOf(row->repeats_us)) {
            pair["repeats"] = {{"count", spread->repeats},  {"min_us", spread->min},
                               {"avg_us", spread->average}, {"p99_us", spread->p99},
                               {"max_us", spread->max},     {"stalled", spread->stalled()}};
          }
        }
        if (point.has(Predictor::kNccl)) pair["nccl_estimate_us"] = point.predicted_us[1];
        pairs.push_back(std::move(pair));
      }
      entry["pairs"] = std::move(pairs);
    }
    list.push_back(std::move(entry));
  }
  result["runs"] = std::move(list);
  return result.dump(1) + "\n";
}

std::string CsvReport(const std::vector<ScoredRun>& runs) {
  std::string text =
      "set,run,group,platform,collective,ranks,counted,bytes,measured_us,simulated_us,error,"
      "nccl_estimate_us,data_sheet_us,algorithm,protocol,channels,chunk_bytes,bound\n";
  for (const ScoredRun& run : runs) {
    for (const Point& point : run.points) {
      text += fmt::format(
          "{},{},\"{}\",{},{},{},{},{},{:.6g},{:.6g},{:.5f},{:.6g},{:.6g},{},{},{},{},{}\n",
          run.run.set, run.run.id, ToString(run.group), run.platform.name, run.run.collective,
          run.run.ranks, run.counted ? 1 : 0, point.bytes, point.measured_us, point.predicted_us[0],
          point.error(Predictor::kWindtunnel), point.predicted_us[1], point.predicted_us[2],
          timing::ToString(point.facts.algorithm), Name(point.facts.protocol), point.facts.channels,
          point.facts.chunk.count(), timing::ToString(point.bound));
    }
  }
  return text;
}

}  // namespace windtunnel::validate
