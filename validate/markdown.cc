#include "validate/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "sim/check.h"
#include "validate/report.h"

namespace windtunnel::validate {
namespace {

using Select = std::function<bool(const ScoredRun&)>;

std::string Cell(const Summary& s) {
  if (s.points == 0) return " - |";
  return fmt::format(" {:.1f} / {:.0f} {:+.1f} |", 100 * s.median, 100 * s.p90, 100 * s.bias);
}

std::string Row(const std::string& name, std::size_t runs, const Bands& bands) {
  std::string line = fmt::format("| {} | {} |", name, runs == 0 ? "" : std::to_string(runs));
  for (const Summary& band : bands) line += Cell(band);
  return line + "\n";
}

std::string GoalRow(const std::string& name, const std::array<Goal, kBandCount>& goals) {
  std::string line = fmt::format("| {} | |", name);
  for (const Goal& goal : goals)
    line += goal.median == 0 ? std::string(" report |")
                             : fmt::format(" {:.0f} / {:.0f} |", 100 * goal.median, 100 * goal.p90);
  return line + "\n";
}

std::string Head(const std::string& first) {
  std::string line = fmt::format("| {} | runs |", first);
  for (const std::string_view band : kBandNames) line += fmt::format(" {} |", band);
  return line + "\n| --- | --- | --- | --- | --- | --- | --- |\n";
}

std::size_t CountOf(const std::vector<ScoredRun>& runs, const Select& select) {
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), select));
}

std::string Groups(const std::vector<ScoredRun>& runs) {
  std::string text = Head("group, median / p90 and signed median in %");
  for (const Group group :
       {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport, Group::kOtherHarness}) {
    const Select in_group = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const std::size_t count = CountOf(runs, in_group);
    if (count == 0) continue;
    text += Row(fmt::format("**{}**", ToString(group)), count,
                Summarise(runs, Predictor::kWindtunnel, in_group));
    std::set<std::string> sets;
    for (const ScoredRun& run : runs)
      if (in_group(run)) sets.insert(run.run.set);
    for (const std::string& set : sets) {
      if (sets.size() < 2) break;
      const Select in_set = [&](const ScoredRun& run) {
        return in_group(run) && run.run.set == set;
      };
      text += Row("set `" + set + "`", CountOf(runs, in_set),
                  Summarise(runs, Predictor::kWindtunnel, in_set));
    }
    text += Row("NCCL's own estimate", 0, Summarise(runs, Predictor::kNccl, in_group));
    text += Row("data sheet", 0, Summarise(runs, Predictor::kDataSheet, in_group));
    text += Row("noise between alike runs", 0, NoiseFloor(runs, in_group));
    if (group != Group::kOtherHarness) text += GoalRow("goal", GoalsOf(group));
  }
  const PairOrder order = OrderOfPairs(runs);
  text += fmt::format("\n{:.1f} % of {} pairs of runs are in the right order (goal 97).\n\n",
                      100.0 * static_cast<double>(order.right) /
                          static_cast<double>(std::max<std::size_t>(1, order.pairs)),
                      order.pairs);
  if (const std::string large = TextLargeAllReduce(runs); !large.empty())
    text += "```\n" + large + "```\n\n";
  const std::vector<Miss> misses = MissedGoals(runs);
  text += misses.empty() ? "All goals are met.\n" : "Goals missed:\n\n";
  for (const Miss& miss : misses)
    text += fmt::format("- {}, {}: {}\n", ToString(miss.group), kBandNames[miss.band], miss.what);
  return text;
}

std::string LeftOutTables(const std::vector<LeftOut>& results) {
  std::string text;
  for (const LeaveLevel level : {LeaveLevel::kClass, LeaveLevel::kPlatform}) {
    text += "\n" + Head(level == LeaveLevel::kClass ? "class left out (constants of)"
                                                    : "platform left out (constants of)");
    for (const bool network : {false, true}) {
      std::vector<ScoredRun> pooled;
      const Select all = [](const ScoredRun&) { return true; };
      for (const LeftOut& result : results) {
        if (result.level != level || result.network != network) continue;
        pooled.insert(pooled.end(), result.scored.begin(), result.scored.end());
        text += Row(fmt::format("{} ({})", result.left_out, result.constants_of), result.runs,
                    Summarise(result.scored, Predictor::kWindtunnel, all));
      }
      text += Row(network ? "**several nodes, all left out**" : "**one node, all left out**",
                  pooled.size(), Summarise(pooled, Predictor::kWindtunnel, all));
      text += GoalRow("goal for unseen platforms", UnseenGoalsOf(network));
    }
  }
  return text;
}

std::string Causes(const std::vector<ScoredRun>& runs, const std::vector<Diagnosis>& diagnoses) {
  struct Count {
    std::size_t runs = 0, first = 0, second = 0;
  };
  std::map<std::string, Count> by_label;
  std::map<std::string, std::size_t> alarms;
  std::size_t healthy = 0, alarm = 0;
  for (std::size_t i = 0; i < diagnoses.size(); ++i) {
    const Diagnosis& diagnosis = diagnoses[i];
    if (diagnosis.causes.empty()) continue;
    if (!diagnosis.label.empty()) {
      Count& count = by_label[diagnosis.label];
      ++count.runs;
      if (diagnosis.place_of_label() == 1) ++count.first;
      if (diagnosis.place_of_label() == 2) ++count.second;
    } else if (runs[i].counted && runs[i].group != Group::kOtherHarness) {
      ++healthy;
      if (diagnosis.causes.front().fault == "healthy") continue;
      ++alarm;
      ++alarms[diagnosis.causes.front().fault];
    }
  }
  std::string text = "\n| label | runs | first | second |\n| --- | --- | --- | --- |\n";
  Count sum;
  for (const auto& [label, count] : by_label) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", label, count.runs, count.first, count.second);
    sum.runs += count.runs;
    sum.first += count.first;
    sum.second += count.second;
  }
  text += fmt::format("| all | {} | {} | {} |\n", sum.runs, sum.first, sum.second);
  text += fmt::format("\nOf {} healthy runs {} have another cause first", healthy, alarm);
  std::string list;
  for (const auto& [fault, count] : alarms)
    list += fmt::format("{}`{}` {}", list.empty() ? "" : ", ", fault, count);
  return text + (list.empty() ? "" : ": " + list) + ".\n";
}

}  // namespace

std::string MarkdownReport(const std::vector<ScoredRun>& runs, const std::vector<LeftOut>& left_out,
                           const std::vector<Diagnosis>& diagnoses) {
  WT_CHECK(runs.size() == diagnoses.size()) << "a diagnosis for each run";
  return "### Errors\n\n" + Groups(runs) + "\n### Platforms left out\n" + LeftOutTables(left_out) +
         "\n### Causes found\n" + Causes(runs, diagnoses);
}

}  // namespace windtunnel::validate
