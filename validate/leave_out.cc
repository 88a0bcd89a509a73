#include "validate/leave_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "collectives/timing/time_model.h"
#include "sim/check.h"
#include "validate/parallel.h"

namespace windtunnel::validate {
namespace {

using timing::FabricConstants;
using timing::GpuConstants;
using timing::NamedConstant;
using timing::SharedConstants;
using timing::TimingConstants;

// Generations whose constants come from runs of their own, oldest first.
constexpr std::array<std::string_view, 4> kGenerations{"v100", "a100", "h100", "b200"};
// What stands in for a transport: the others of its family; every class of
// catalogue/timing/fabric.yaml stands here. GPUDirect-TCPX runs Simple only and has no LL hop, so
// TCPXO takes the other transport that moves messages in user space.
struct StandInOf {
  std::string_view transport;
  std::array<std::string_view, 2> others;  // The second may be empty.
};
constexpr StandInOf kFamilies[] = {{"ib-ndr", {"ib-hdr", "roce"}},
                                   {"ib-hdr", {"ib-ndr", "roce"}},
                                   {"roce", {"ib-ndr", "ib-hdr"}},
                                   {"roce-host", {"roce", ""}},
                                   {"ib-pcie3", {"ib-hdr", ""}},
                                   {"nvl72-ib", {"ib-ndr", ""}},
                                   {"slingshot-grace", {"slingshot-cpu", ""}},
                                   {"slingshot-cpu", {"slingshot-grace", ""}},
                                   {"efa-p4d", {"efa-p5", "efa-host"}},
                                   {"efa-p5", {"efa-p4d", "efa-host"}},
                                   {"efa-host", {"efa-p4d", "efa-p5"}},
                                   {"tcpxo", {"efa-p5", ""}},
                                   {"tcpx", {"tcpxo", ""}},
                                   {"sockets", {"tcpx", ""}}};
constexpr std::array<double, 3> kSteps{1.25, 1.08, 1.02};
constexpr int kSweeps = 3;  // Per step size.
constexpr double kWorthwhile = 1e-5;

/// Channels of a full board, by generation: NCCL's own rule, no measurement.
constexpr std::array<double, 4> kChannels{12, 24, 24, 32};
/// Rates that hold at the raw link and scale with it.
constexpr std::string_view kLinkRates[] = {"link_gbps", "nvls_limit_gbps", "p2p_link_gbps"};

struct Donor {
  GpuConstants constants;
  std::string names;
};

bool IsTime(std::string_view constant) { return constant.ends_with("_us"); }

/// One constant of a generation as it would be on links of `raw_gbps` with `channels`: rates of the
/// link are shares of the raw link, a round of LL takes as long as a channel's share of it needs.
/// `channels` 0: PCIe, where the closed form lets the wire overlap with the round.
double Carried(const NamedConstant& constant, double own_raw, double own_channels, double raw_gbps,
               double channels) {
  if (std::find(std::begin(kLinkRates), std::end(kLinkRates), constant.name) !=
      std::end(kLinkRates))
    return *constant.value * raw_gbps / own_raw;
  if (constant.name == "ll_round_us" && channels > 0)
    return *constant.value * (channels / raw_gbps) / (own_channels / own_raw);
  return *constant.value;
}

/// Geometric mean of what is there; 0 means "has none".
double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (value <= 0) continue;
    sum += std::log(value);
    count += 1;
  }
  return count == 0 ? 0 : std::exp(sum / count);
}

/// The class as other generations suggest it; its boards and raw link are its own. Rates come from
/// the neighbours, times from all others: they follow no order of the generations.
Donor GpuFromOthers(const TimingConstants& all, const GpuConstants& own) {
  const auto at = std::find(kGenerations.begin(), kGenerations.end(), own.name);
  // Boards that are no such generation (PCIe, Pascal) stand beside Volta.
  const std::ptrdiff_t place =
      at == kGenerations.end() ? 0 : std::distance(kGenerations.begin(), at);
  const bool is_generation = at != kGenerations.end();
  Donor donor;
  donor.constants = own;
  std::vector<std::vector<double>> near(timing::NamedConstants(donor.constants).size());
  std::vector<std::vector<double>> far = near;
  for (std::size_t g = 0; g < kGenerations.size(); ++g) {
    if (kGenerations[g] == own.name) continue;
    const auto distance = std::abs(static_cast<std::ptrdiff_t>(g) - place);
    const bool neighbour = is_generation ? distance == 1 : distance == 0;
    GpuConstants other = all.Gpu(kGenerations[g]);
    if (neighbour) donor.names += (donor.names.empty() ? "" : " and ") + other.name;
    const auto named = timing::NamedConstants(other);
    const double channels = own.name == "pcie" ? 0 : kChannels[static_cast<std::size_t>(place)];
    for (std::size_t i = 0; i < named.size(); ++i) {
      const double value =
          Carried(named[i], other.link_raw_gbps, kChannels[g], own.link_raw_gbps, channels);
      if (neighbour) near[i].push_back(value);
      // Boards beside Volta take Volta's times: later generations are further away in all of them.
      if (neighbour || is_generation) far[i].push_back(value);
    }
  }
  const auto target = timing::NamedConstants(donor.constants);
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i].name == "link_raw_gbps") continue;
    const double mean = MeanOf(IsTime(target[i].name) ? far[i] : near[i]);
    *target[i].value = mean > 0 ? mean : MeanOf(far[i]);
  }
  return donor;
}

/// Constants that are searched: what all share and, for a platform of a known class, the class.
struct Candidate {
  TimingConstants base;
  SharedConstants shared;
  std::optional<GpuConstants> gpu;
  std::optional<FabricConstants> fabric;

  TimingConstants Whole() const {
    TimingConstants whole = base.With(shared);
    if (gpu) whole = whole.With(*gpu);
    if (fabric) whole = whole.With(*fabric);
    return whole;
  }
  std::vector<NamedConstant> Named() {
    std::vector<NamedConstant> all = timing::NamedConstants(shared);
    const auto append = [&](const std::vector<NamedConstant>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    if (gpu) append(timing::NamedConstants(*gpu));
    if (fabric) append(timing::NamedConstants(*fabric));
    return all;
  }
};

/// Mean over runs of the mean |ln(simulated/measured)|.
double ErrorOf(const std::vector<const ScoredRun*>& runs, const Candidate& candidate) {
  const TimingConstants constants = candidate.Whole();
  double sum = 0;
  for (const ScoredRun* run : runs) {
    double of_run = 0;
    for (const Point& point : run->points)
      of_run +=
          std::abs(std::log(timing::PredictTime(point.facts, constants).us() / point.measured_us));
    sum += of_run / static_cast<double>(run->points.size());
  }
  return sum / static_cast<double>(runs.size());
}

/// Searches all constants of `candidate` but the `frozen` ones.
void Search(const std::vector<const ScoredRun*>& runs, const std::set<std::string_view>& frozen,
            Candidate& candidate, LeftOut& result) {
  if (runs.empty()) return;
  double best = ErrorOf(runs, candidate);
  result.fit_before = best;
  const std::vector<NamedConstant> named = candidate.Named();
  std::vector<double> start;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < named.size(); ++i) {
    start.push_back(*named[i].value);
    if (frozen.contains(named[i].name) || start[i] == 0) continue;
    *named[i].value = start[i] * kSteps.front();
    if (std::abs(ErrorOf(runs, candidate) - best) > kWorthwhile) free.push_back(i);
    *named[i].value = start[i];
  }
  result.free_constants = free.size();
  for (const double step : kSteps) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool moved = false;
      for (const std::size_t i : free) {
        for (const double factor : {step, 1 / step}) {
          const double value = *named[i].value;
          *named[i].value = value * factor;
          const double error = ErrorOf(runs, candidate);
          if (error < best - kWorthwhile) {
            best = error;
            moved = true;
            break;
          }
          *named[i].value = value;
        }
      }
      if (!moved) break;
    }
  }
  result.fit_after = best;
  for (const std::size_t i : free) {
    if (start[i] != *named[i].value)
      result.refitted.push_back(
          fmt::format("{} {:.4g} -> {:.4g}", named[i].name, start[i], *named[i].value));
  }
}

ScoredRun ScoredAgain(const ScoredRun& run, const TimingConstants& constants) {
  ScoredRun again = run;
  for (Point& point : again.points) {
    const timing::TimeBreakdown time = timing::PredictTime(point.facts, constants);
    point.predicted_us[0] = time.us();
    point.bound = time.bound();
  }
  return again;
}

bool Takes(const ScoredRun& run) {
  return run.counted && run.group != Group::kOtherHarness && !run.points.empty();
}

std::string ClassOf(const ScoredRun& run, bool network) {
  return network ? run.platform.facts.fabric_class : run.platform.facts.gpu_class;
}

std::string PlatformOf(const ScoredRun& run, bool network, const TimingConstants& constants) {
  return network ? run.platform.facts.fabric_class + " with " + run.platform.facts.gpu_class
                 : BoardOf(run.run.gpu, constants.Gpu(run.platform.facts.gpu_class));
}

std::string KeyOf(const ScoredRun& run, LeaveLevel level, bool network,
                  const TimingConstants& constants) {
  return level == LeaveLevel::kClass ? ClassOf(run, network) : PlatformOf(run, network, constants);
}

/// Start values that know nothing of the class.
Candidate StandIn(const TimingConstants& constants, bool network, const std::string& name,
                  std::set<std::string_view>& frozen, std::string& names) {
  if (network) {
    const auto family =
        std::find_if(std::begin(kFamilies), std::end(kFamilies),
                     [&](const StandInOf& entry) { return entry.transport == name; });
    WT_CHECK(family != std::end(kFamilies)) << "no stand-in for fabric class " << name;
    FabricConstants fabric = constants.Fabric(family->others[0]);
    fabric.name = name;
    names = family->others[0];
    if (!family->others[1].empty()) {
      names += " and " + std::string(family->others[1]);
      FabricConstants second = constants.Fabric(family->others[1]);
      const auto of_second = timing::NamedConstants(second);
      const auto of_fabric = timing::NamedConstants(fabric);
      // A limit or handshake that only one of them has is that one's own.
      for (std::size_t i = 0; i < of_fabric.size(); ++i)
        *of_fabric[i].value = std::sqrt(*of_fabric[i].value * *of_second[i].value);
    }
    return {constants.With(fabric), constants.shared(), {}, {}};
  }
  const Donor donor = GpuFromOthers(constants, constants.Gpu(name));
  names = donor.names;
  SharedConstants shared = constants.shared();
  if (name == "pcie") {
    shared.pcie_peer_share = donor.constants.link_gbps / donor.constants.link_raw_gbps;
    shared.pcie_host_share = shared.pcie_peer_share / 2;
    frozen = {"pcie_peer_share", "pcie_host_share"};
  }
  return {constants.With(donor.constants), shared, {}, {}};
}

LeftOut LeaveOut(const std::vector<ScoredRun>& runs, const TimingConstants& constants,
                 LeaveLevel level, bool network, const std::string& name) {
  LeftOut result{.level = level, .network = network, .left_out = name};
  std::vector<const ScoredRun*> left_in, left_out;
  for (const ScoredRun& run : runs) {
    if (!Takes(run) || (run.platform.facts.nodes > 1) != network) continue;
    (KeyOf(run, level, network, constants) == name ? left_out : left_in).push_back(&run);
  }
  result.runs = left_out.size();
  std::set<std::string_view> frozen;
  Candidate candidate{constants, constants.shared(), {}, {}};
  if (level == LeaveLevel::kClass) {
    candidate = StandIn(constants, network, name, frozen, result.constants_of);
  } else {
    const std::string of = ClassOf(*left_out.front(), network);
    result.constants_of = of + " without it";
    frozen = {"link_raw_gbps"};  // A data sheet's figure.
    if (network) {
      candidate.fabric = constants.Fabric(of);
    } else {
      candidate.gpu = constants.Gpu(of);
    }
  }
  Search(left_in, frozen, candidate, result);
  const TimingConstants found = candidate.Whole();
  for (const ScoredRun* run : left_out) result.scored.push_back(ScoredAgain(*run, found));
  return result;
}

std::string Cells(const Bands& bands) {
  std::string line;
  for (const Summary& band : bands) {
    line += fmt::format("{:>16}", band.points == 0
                                      ? std::string("-")
                                      : fmt::format("{:.1f}/{:.0f} {:+.0f}", 100 * band.median,
                                                    100 * band.p90, 100 * band.bias));
  }
  return line + "\n";
}

const auto kAll = [](const ScoredRun&) { return true; };

std::vector<ScoredRun> Pooled(const std::vector<LeftOut>& results, LeaveLevel level, bool network) {
  std::vector<ScoredRun> all;
  for (const LeftOut& result : results) {
    if (result.level != level || result.network != network) continue;
    all.insert(all.end(), result.scored.begin(), result.scored.end());
  }
  return all;
}

}  // namespace

const std::array<Goal, kBandCount>& UnseenGoalsOf(bool network) {
  static const std::array<Goal, kBandCount> one_node{
      {{.08, .25}, {.10, .30}, {.12, .30}, {.08, .22}, {.04, .12}}};
  static const std::array<Goal, kBandCount> several{
      {{.15, .40}, {.15, .40}, {.12, .30}, {.08, .25}, {.03, .10}}};
  return network ? several : one_node;
}

std::vector<LeftOut> LeaveEachOut(const std::vector<ScoredRun>& runs,
                                  const TimingConstants& constants, unsigned threads,
                                  const std::function<void(std::size_t)>& progress) {
  std::vector<LeftOut> results;
  for (const LeaveLevel level : {LeaveLevel::kClass, LeaveLevel::kPlatform}) {
    for (const bool network : {false, true}) {
      // Platforms by class: one that is its whole class has nothing to learn from.
      std::map<std::string, std::set<std::string>> by_class;
      for (const ScoredRun& run : runs) {
        if (!Takes(run) || (run.platform.facts.nodes > 1) != network) continue;
        by_class[ClassOf(run, network)].insert(KeyOf(run, level, network, constants));
      }
      for (const auto& [of, names] : by_class) {
        if (level == LeaveLevel::kPlatform && names.size() < 2) continue;
        for (const std::string& name : names)
          results.push_back({.level = level, .network = network, .left_out = name});
      }
    }
  }
  ForEachIndex(
      results.size(), threads,
      [&](std::size_t i) {
        const LeftOut what = results[i];
        results[i] = LeaveOut(runs, constants, what.level, what.network, what.left_out);
      },
      progress);
  return results;
}

std::string TextLeaveOut(const std::vector<LeftOut>& results) {
  std::string text = "errors of runs left out, median/p90 bias in %\n";
  for (const LeaveLevel level : {LeaveLevel::kClass, LeaveLevel::kPlatform}) {
    text +=
        level == LeaveLevel::kClass
            ? "\nwhole classes left out: rates of the neighbouring generations and times of all "
              "others, or the transports of\nthe same family, scaled to the class's own nominal "
              "rates; constants that all classes share searched\nagain on the runs left in\n"
            : "\nplatforms of known classes left out: constants of the class and shared ones "
              "searched again on the runs left in\n";
    for (const bool network : {false, true}) {
      const std::vector<ScoredRun> pooled = Pooled(results, level, network);
      if (pooled.empty()) continue;
      text += fmt::format("\n{:<28} {:>4}  {:<24}", network ? "several nodes" : "one node", "runs",
                          "constants of");
      for (const std::string_view band : kBandNames) text += fmt::format("{:>16}", band);
      text += "\n";
      for (const LeftOut& result : results) {
        if (result.level != level || result.network != network) continue;
        text +=
            fmt::format("{:<28} {:>4}  {:<24}", result.left_out, result.runs, result.constants_of) +
            Cells(Summarise(result.scored, Predictor::kWindtunnel, kAll));
      }
      text += fmt::format("{:<28} {:>4}  {:<24}", "all left out", pooled.size(), "") +
              Cells(Summarise(pooled, Predictor::kWindtunnel, kAll));
      text += fmt::format("{:<59}", "  goal for unseen platforms");
      for (const Goal& goal : UnseenGoalsOf(network))
        text +=
            fmt::format("{:>16}", fmt::format("{:.0f}/{:.0f}", 100 * goal.median, 100 * goal.p90));
      text += "\n";
    }
  }
  return text +
         "\nthe search goes one constant at a time from the shipped values, which had seen the "
         "runs; decisions are NCCL's\n";
}

std::string JsonLeaveOut(const std::vector<LeftOut>& results) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const LeftOut& result : results) {
    Json bands = Json::array();
    const Bands all = Summarise(result.scored, Predictor::kWindtunnel, kAll);
    for (std::size_t band = 0; band < kBandCount; ++band) {
      if (all[band].points == 0) continue;
      bands.push_back({{"band", kBandNames[band]},
                       {"runs", all[band].runs},
                       {"median", all[band].median},
                       {"p90", all[band].p90},
                       {"bias", all[band].bias}});
    }
    list.push_back({{"level", result.level == LeaveLevel::kClass ? "class" : "platform"},
                    {"left_out", result.left_out},
                    {"several_nodes", result.network},
                    {"constants_of", result.constants_of},
                    {"runs", result.runs},
                    {"refitted", result.refitted},
                    {"fit_before", result.fit_before},
                    {"fit_after", result.fit_after},
                    {"errors", std::move(bands)}});
  }
  return list.dump(1);
}

}  // namespace windtunnel::validate
