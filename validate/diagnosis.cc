#include "validate/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "collectives/timing/time_model.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "validate/faults.h"
#include "validate/parallel.h"
#include "validate/topology_facts.h"

namespace windtunnel::validate {
namespace {

// Width of the model's own error in ln(measured / predicted), by where the run was: about the
// median errors of docs/validation.md plus what single platforms differ.
constexpr double kNodeWidth = 0.10;
constexpr double kInfinibandWidth = 0.18;
constexpr double kCloudWidth = 0.25;
constexpr double kAnything = 0.03;    // Rows that are off for no reason of the machine.
constexpr double kMostDelay = 4.605;  // ln 100.
constexpr double kRowsThatCount = 8;
constexpr double kSettingCost = 1.04;  // Half of ln 8: a value chosen after the curve was seen.
constexpr double kSameCurve = 0.05;
constexpr double kOff = 1.5;          // A row counts as off from this factor,
constexpr double kPlateauOff = 1.15;  // a plateau, which is steadier, from this one.
constexpr std::uint64_t kSmall = 4096;
constexpr std::size_t kPlateauRows = 3;
constexpr std::size_t kCausesShown = 6;

double WidthOf(FabricGroup group) {
  switch (group) {
    case FabricGroup::kOneNode:
      return kNodeWidth;
    case FabricGroup::kInfinibandRoce:
      return kInfinibandWidth;
    case FabricGroup::kCloudTransport:
      return kCloudWidth;
  }
  return kCloudWidth;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double LaplaceDensity(double error, double width) {
  const double any = 1 / (2 * kMostDelay);
  return (1 - kAnything) * std::exp(-std::abs(error) / width) / (2 * width) + kAnything * any;
}

/// Late by any factor with chance `share`, else the model's own error.
double StallDensity(double error, double width, double share) {
  const double late = error >= 0 && error <= kMostDelay ? 1 / kMostDelay : 0;
  return (1 - share) * LaplaceDensity(error, width) + share * late;
}

class Diagnostician {
 public:
  Diagnostician(const MeasuredRun& run, const DecisionSource& decisions,
                const timing::TimingConstants& constants)
      : run_(run), decisions_(decisions), constants_(constants) {}

  Diagnosis Run() {
    Diagnosis result{.run = run_.id, .label = run_.fault};
    const Mapping mapping = MapRunWithTopology(run_, constants_);
    if (!mapping.mapped) {
      result.why_not = mapping.reason;
      return result;
    }
    platform_ = mapping.platform;
    result.platform = platform_.name;
    width_ = WidthOf(platform_.group);
    for (const MeasuredRow& row : run_.rows) {
      result.bytes.push_back(row.bytes);
      result.measured_us.push_back(*row.scored_us());
    }
    std::vector<timing::CallFacts> healthy_calls;
    result.healthy_us = Predict(platform_, {}, &healthy_calls);
    result.evidence = EvidenceOf(result, healthy_calls);
    std::map<std::string, std::vector<Explanation>> by_fault;
    std::map<std::string, std::size_t> settings;
    const std::vector<Fault> faults = FaultsOf(platform_, run_, healthy_calls, constants_);
    for (const Fault& fault : faults) ++settings[fault.name];
    std::vector<std::string> order;
    // A run that does not count its NICs may have any number of them, whatever else is wrong.
    std::vector<Platform> machines{platform_};
    if (platform_.nics_assumed) {
      for (const std::uint32_t nics : {1u, 2u, 4u, 8u}) {
        if (nics == platform_.facts.nics_per_node) continue;
        machines.push_back(platform_);
        machines.back().facts.nics_per_node = nics;
        machines.back().name += fmt::format(" [{} NICs]", nics);
      }
    }
    for (const Platform& machine : machines) {
      for (const Fault& fault : faults) {
        Explanation cause{.fault = fault.name,
                          .setting = fault.setting,
                          .meaning = fault.meaning,
                          .check = fault.check,
                          .statistical = fault.statistical};
        const bool other = &machine != &machines.front();
        if (other) {
          if (fault.statistical) continue;  // Judged against the machine as it is described.
          const std::uint32_t nics = machine.facts.nics_per_node;
          cause.setting +=
              fmt::format("{}if a node has {} NIC{}", cause.setting.empty() ? "" : ", ", nics,
                          nics == 1 ? "" : "s");
        }
        try {
          cause.predicted_us = Predict(machine, fault, nullptr);
        } catch (const ConfigError&) {
          continue;  // NCCL has no answer for this machine (nothing left to choose).
        }
        const double fit = fault.statistical ? StallFit(result) : Fit(result, cause.predicted_us);
        cause.score = fit + fault.prior -
                      kSettingCost * ((settings[fault.name] > 1 ? 1 : 0) + (other ? 1 : 0));
        std::vector<double> errors;
        for (std::size_t i = 0; i < result.bytes.size(); ++i)
          errors.push_back(std::abs(cause.predicted_us[i] / result.measured_us[i] - 1));
        cause.median_error = Median(errors);
        if (!by_fault.contains(fault.name)) order.push_back(fault.name);
        by_fault[fault.name].push_back(std::move(cause));
      }
    }
    for (const std::string& name : order) {
      auto& all = by_fault[name];
      result.causes.push_back(*std::max_element(
          all.begin(), all.end(),
          [](const Explanation& a, const Explanation& b) { return a.score < b.score; }));
    }
    std::stable_sort(result.causes.begin(), result.causes.end(),
                     [](const Explanation& a, const Explanation& b) { return a.score > b.score; });
    double sum = 0;
    for (Explanation& cause : result.causes)
      sum += cause.weight = std::exp(cause.score - result.causes.front().score);
    for (Explanation& cause : result.causes) cause.weight /= sum;
    FindSameCurves(result.causes);
    return result;
  }

 private:
  std::vector<double> Predict(const Platform& machine, const Fault& fault,
                              std::vector<timing::CallFacts>* calls) const {
    Platform platform = machine;
    MeasuredRun run = run_;
    if (fault.machine) fault.machine(platform, run);
    std::vector<double> times;
    for (const MeasuredRow& row : run.rows) {
      timing::CallFacts facts = decisions_.Decide(platform, run, Bytes(row.bytes)).facts;
      if (calls != nullptr) calls->push_back(facts);
      if (!fault.call) {
        times.push_back(timing::PredictTime(facts, constants_).us());
        continue;
      }
      timing::FabricConstants fabric;
      if (facts.nodes > 1) fabric = constants_.Fabric(facts.fabric_class);
      fault.call(facts, fabric);
      times.push_back(
          timing::PredictTime(facts, facts.nodes > 1 ? constants_.With(fabric) : constants_).us());
    }
    return times;
  }

  /// Mean log density over rows, as if at most eight of them were independent.
  template <class Density>
  double Likelihood(const Diagnosis& d, const std::vector<double>& predicted,
                    Density&& density) const {
    double sum = 0;
    const auto rows = static_cast<double>(d.bytes.size());
    for (std::size_t i = 0; i < d.bytes.size(); ++i)
      sum += std::log(density(i, std::log(d.measured_us[i] / predicted[i])));
    return sum / rows * std::min(rows, kRowsThatCount);
  }

  double Fit(const Diagnosis& d, const std::vector<double>& predicted) const {
    return Likelihood(d, predicted,
                      [&](std::size_t, double error) { return LaplaceDensity(error, width_); });
  }

  /// The best of several shares of late rows; the ends of the curve are held to the model.
  double StallFit(const Diagnosis& d) const {
    const std::size_t rows = d.bytes.size();
    if (rows < 2 * kPlateauRows) return -1e9;
    double best = -1e9;
    for (const double share : {0.25, 0.5, 0.75}) {
      best = std::max(best, Likelihood(d, d.healthy_us, [&](std::size_t i, double error) {
                        const bool end = d.bytes[i] <= kSmall || i + kPlateauRows >= rows;
                        return end ? LaplaceDensity(error, width_)
                                   : StallDensity(error, width_, share);
                      }));
    }
    return best;
  }

  static void FindSameCurves(std::vector<Explanation>& causes) {
    for (Explanation& cause : causes) {
      for (const Explanation& other : causes) {
        if (&other == &cause || other.statistical || cause.statistical) continue;
        double apart = 0;
        for (std::size_t i = 0; i < cause.predicted_us.size(); ++i)
          apart = std::max(apart, std::abs(cause.predicted_us[i] / other.predicted_us[i] - 1));
        if (apart < kSameCurve) cause.same_curve.push_back(other.fault);
      }
    }
  }

  static Evidence EvidenceOf(const Diagnosis& d, const std::vector<timing::CallFacts>& calls) {
    Evidence evidence;
    std::vector<double> factors, small, large;
    for (std::size_t i = 0; i < d.bytes.size(); ++i) {
      const double factor = d.measured_us[i] / d.healthy_us[i];
      factors.push_back(factor);
      if (d.bytes[i] <= kSmall) small.push_back(factor);
      if (i + kPlateauRows >= d.bytes.size()) large.push_back(factor);
      if (i == 0 || factor > evidence.worst_factor) {
        evidence.worst_factor = factor;
        evidence.worst_bytes = d.bytes[i];
      }
    }
    evidence.has_small = !small.empty();
    evidence.latency_factor = small.empty() ? factors.front() : Median(small);
    evidence.plateau_factor = Median(large);
    std::vector<double> bends;
    for (std::size_t i = 1; i + 1 < factors.size(); ++i)
      bends.push_back(std::abs(std::log(factors[i] / std::sqrt(factors[i - 1] * factors[i + 1]))));
    evidence.scatter = std::exp(Median(bends));
    // The last size from which all larger ones are off.
    std::size_t from = factors.size();
    while (from > 0 && factors[from - 1] > kOff) --from;
    if (from < factors.size() && from > 0) {
      evidence.break_bytes = d.bytes[from];
      evidence.break_at_protocol = calls[from].protocol != calls[from - 1].protocol ||
                                   calls[from].algorithm != calls[from - 1].algorithm;
    }
    evidence.text = Words(evidence);
    return evidence;
  }

  static std::string Words(const Evidence& e) {
    const bool late = e.latency_factor > kOff;
    const bool slow = e.plateau_factor > kPlateauOff;
    const std::string figures =
        fmt::format("{} x {:.2f}, plateau x {:.2f}, worst x {:.2f} at {}",
                    e.has_small ? "latency" : "smallest size", e.latency_factor, e.plateau_factor,
                    e.worst_factor, FormatSize(Bytes(e.worst_bytes)));
    std::string what;
    if (late && slow) {
      what = "latency and plateau are both off: transport or path";
    } else if (slow && e.break_at_protocol) {
      what = fmt::format("off from {} on, where the decision changes: the path of that protocol",
                         FormatSize(Bytes(e.break_bytes)));
    } else if (slow) {
      what = "only the plateau is off: a rate";
    } else if (late) {
      what = "only small sizes are off: latency, launch or distance";
    } else if (e.worst_factor > 2) {
      what = "both ends are right, sizes between are late: loss, stalls, or a choice of protocol";
    } else {
      what = "no size is far off";
    }
    return what + " (" + figures + ")";
  }

  const MeasuredRun& run_;
  const DecisionSource& decisions_;
  const timing::TimingConstants& constants_;
  Platform platform_;
  double width_ = kCloudWidth;
};

std::string CauseName(const Explanation& cause) {
  return cause.setting.empty() ? cause.fault : cause.fault + " (" + cause.setting + ")";
}

}  // namespace

std::size_t Diagnosis::place_of_label() const {
  if (label.empty()) return 0;
  const std::vector<std::string> wanted = FaultsOfLabel(label);
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), causes[i].fault) != wanted.end()) return i + 1;
  return 0;
}

Diagnosis Diagnose(const MeasuredRun& run, const DecisionSource& decisions,
                   const timing::TimingConstants& constants) {
  return Diagnostician(run, decisions, constants).Run();
}

std::vector<Diagnosis> DiagnoseAll(const std::vector<MeasuredRun>& runs,
                                   const DecisionSource& decisions,
                                   const timing::TimingConstants& constants, unsigned threads,
                                   const std::function<void(std::size_t)>& progress) {
  std::vector<Diagnosis> all(runs.size());
  ForEachIndex(
      runs.size(), threads,
      [&](std::size_t i) { all[i] = Diagnose(runs[i], decisions, constants); }, progress);
  return all;
}

std::string TextDiagnosis(const Diagnosis& d) {
  if (!d.why_not.empty()) return fmt::format("{}: not mapped: {}\n", d.run, d.why_not);
  std::string text = fmt::format("{} on {}\n", d.run, d.platform);
  if (!d.label.empty()) text += fmt::format("labelled: {}\n", d.label);
  text += fmt::format("evidence: {}; scatter from row to row x {:.2f}\n\n", d.evidence.text,
                      d.evidence.scatter);
  text += fmt::format("{:>3} {:<62} {:>7} {:>13}\n", "", "cause", "weight", "median error");
  for (std::size_t i = 0; i < std::min(kCausesShown, d.causes.size()); ++i) {
    const Explanation& cause = d.causes[i];
    text += fmt::format("{:>3} {:<62} {:>6.1f}% {:>12.1f}%\n", i + 1, CauseName(cause),
                        100 * cause.weight, 100 * cause.median_error);
    if (!cause.same_curve.empty())
      text += fmt::format("    same curve: {}\n", JoinNames(cause.same_curve));
  }
  // The best cause that is a fault and has a curve of its own; stalls only where they come first.
  const auto shown = std::find_if(d.causes.begin(), d.causes.end(), [&](const Explanation& cause) {
    return cause.fault != "healthy" && (!cause.statistical || &cause == &d.causes.front());
  });
  if (shown == d.causes.end()) return text;
  text += fmt::format("\n{:>12} {:>12} {:>12} {:>8} {:>12} {:>8}\n", "bytes", "measured us",
                      "healthy us", "error", shown->fault.substr(0, 12), "error");
  for (std::size_t i = 0; i < d.bytes.size(); ++i) {
    text += fmt::format("{:>12} {:>12.2f} {:>12.2f} {:>+7.1f}% {:>12.2f} {:>+7.1f}%\n", d.bytes[i],
                        d.measured_us[i], d.healthy_us[i],
                        100 * (d.healthy_us[i] / d.measured_us[i] - 1), shown->predicted_us[i],
                        100 * (shown->predicted_us[i] / d.measured_us[i] - 1));
  }
  if (shown->statistical)
    text += "stalls have no curve of their own: the healthy one stands there, late sizes scatter\n";
  text += "\n";
  std::size_t told = 0;
  for (const Explanation& cause : d.causes) {
    if (told == 2) break;
    if (cause.check.empty()) {
      if (told == 0) text += fmt::format("{}: {}\n", cause.fault, cause.meaning);
      ++told;
      continue;
    }
    text += fmt::format("{}: {}\n  check: {}\n", cause.fault, cause.meaning, cause.check);
    ++told;
  }
  return text;
}

std::string TextDiagnoses(const std::vector<Diagnosis>& diagnoses,
                          const std::vector<MeasuredRun>& runs) {
  std::string text = fmt::format("{:<42} {:<22} {:>5}  {}\n", "run with a known fault", "label",
                                 "place", "causes by weight");
  std::size_t labelled = 0, first = 0, second = 0, healthy = 0, alarms = 0;
  std::map<std::string, std::vector<std::string>> false_alarms, not_mapped;
  std::string doubtful;
  const auto heads = [](const Diagnosis& d) {
    std::string line;
    for (std::size_t k = 0; k < std::min<std::size_t>(2, d.causes.size()); ++k)
      line += fmt::format("{}{} {:.0f} %", k == 0 ? "" : ", ", CauseName(d.causes[k]),
                          100 * d.causes[k].weight);
    return line;
  };
  for (std::size_t i = 0; i < diagnoses.size(); ++i) {
    const Diagnosis& d = diagnoses[i];
    if (d.causes.empty()) {
      not_mapped[d.why_not].push_back(d.run);
      continue;
    }
    if (runs[i].quality == Quality::kMisconfigured) {
      const std::size_t place = d.place_of_label();
      ++labelled;
      if (place == 1) ++first;
      if (place == 2) ++second;
      text += fmt::format("{:<42} {:<22} {:>5}  {}\n", d.run, d.label,
                          place == 0 ? std::string("none") : std::to_string(place), heads(d));
    } else if (runs[i].quality == Quality::kHealthy && runs[i].harness.empty()) {
      ++healthy;
      if (d.causes.front().fault == "healthy") continue;
      ++alarms;
      false_alarms[d.causes.front().fault].push_back(d.run);
    } else if (runs[i].quality == Quality::kUnknown) {
      doubtful += fmt::format("{:<42} {:<28}  {}\n", d.run, "", heads(d));
    }
  }
  if (labelled == 0) text.clear();
  if (labelled > 0)
    text += fmt::format("\nof {} labelled runs the label's cause is first in {}, second in {}\n",
                        labelled, first, second);
  if (!doubtful.empty()) text += "\nruns in doubt:\n" + doubtful;
  if (healthy > 0) {
    text += fmt::format("\nof {} healthy runs {} have another cause first ({:.1f} %)\n", healthy,
                        alarms, 100.0 * static_cast<double>(alarms) / static_cast<double>(healthy));
    for (const auto& [fault, ids] : false_alarms)
      text += fmt::format("  {} ({}): {}\n", fault, ids.size(), JoinNames(ids));
  }
  if (!not_mapped.empty()) text += "\nnot mapped:\n";
  for (const auto& [why, ids] : not_mapped)
    text += fmt::format("  {} ({}): {}\n", why, ids.size(), JoinNames(ids));
  return text;
}

std::string JsonDiagnoses(const std::vector<Diagnosis>& diagnoses) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Diagnosis& d : diagnoses) {
    Json entry = {{"run", d.run}};
    if (!d.label.empty()) entry["label"] = d.label;
    if (!d.why_not.empty()) {
      entry["not_mapped"] = d.why_not;
      list.push_back(std::move(entry));
      continue;
    }
    entry["platform"] = d.platform;
    if (!d.label.empty()) entry["place_of_label"] = d.place_of_label();
    entry["evidence"] = {{"text", d.evidence.text},
                         {"latency_factor", d.evidence.latency_factor},
                         {"plateau_factor", d.evidence.plateau_factor},
                         {"worst_factor", d.evidence.worst_factor},
                         {"worst_bytes", d.evidence.worst_bytes},
                         {"scatter", d.evidence.scatter},
                         {"break_bytes", d.evidence.break_bytes},
                         {"break_at_protocol", d.evidence.break_at_protocol}};
    entry["bytes"] = d.bytes;
    entry["measured_us"] = d.measured_us;
    entry["healthy_us"] = d.healthy_us;
    Json causes = Json::array();
    for (const Explanation& cause : d.causes) {
      Json one = {{"fault", cause.fault},
                  {"setting", cause.setting},
                  {"meaning", cause.meaning},
                  {"check", cause.check},
                  {"weight", cause.weight},
                  {"score", cause.score},
                  {"median_error", cause.median_error}};
      if (!cause.same_curve.empty()) one["same_curve"] = cause.same_curve;
      if (!cause.statistical) one["predicted_us"] = cause.predicted_us;
      causes.push_back(std::move(one));
    }
    entry["causes"] = std::move(causes);
    list.push_back(std::move(entry));
  }
  Json result;
  result["diagnoses"] = std::move(list);
  return result.dump(1) + "\n";
}

}  // namespace windtunnel::validate
