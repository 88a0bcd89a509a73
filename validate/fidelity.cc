#include "validate/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "collectives/job_facts.h"
#include "collectives/nccl/constants.h"
#include "collectives/paths_of_job.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "validate/board_decisions.h"
#include "validate/worker_processes.h"

namespace windtunnel::validate {
namespace {

using Json = nlohmann::ordered_json;
using timing::CallFacts;

constexpr double kSameRate = 0.02;  // Rates of text and topology within rounding.

/// Runs that one simulation answers.
struct SimulatedJob {
  const ScoredRun* example = nullptr;
  std::vector<std::size_t> runs;
  std::set<std::uint64_t> sizes;
};

bool TopologyIsKnown(const std::string& name) {
  const auto shipped = ShippedTopologyNames();
  const std::string base = name.substr(0, name.find('*'));
  return std::find(shipped.begin(), shipped.end(), base) != shipped.end() ||
         std::filesystem::exists(name);
}

/// The rows nearest to the middle of each band.
std::vector<std::uint64_t> SizesOf(const ScoredRun& run, std::size_t per_band) {
  std::array<std::vector<std::uint64_t>, kBandCount> by_band;
  for (const Point& point : run.points) by_band[BandOf(point.bytes)].push_back(point.bytes);
  std::vector<std::uint64_t> sizes;
  for (const auto& band : by_band) {
    const std::size_t taken = per_band == 0 ? band.size() : std::min(per_band, band.size());
    // Evenly spread: the middles of `taken` equal parts.
    for (std::size_t i = 0; i < taken; ++i)
      sizes.push_back(band[(2 * i + 1) * band.size() / (2 * taken)]);
  }
  return sizes;
}

std::string JobKey(const ScoredRun& run) {
  const CallFacts& facts = run.platform.facts;
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", run.platform.topology, facts.nodes, facts.ranks,
                  facts.fabric_class, static_cast<int>(facts.function),
                  static_cast<int>(DataTypeOf(run.run.dtype)), nccl::ToString(facts.version),
                  facts.launch == timing::Launch::kOneThread ? facts.gpus_per_thread : 1);
  const nccl::Environment environment = EnvironmentOf(run.platform, run.run);
  for (const auto& [name, value] : environment.variables()) key += "|" + name + "=" + value;
  return key;
}

/// Takes out what is beyond the first `count` NICs of each host: a job of one GPU per node that was
/// run on one NIC.
void LeaveNics(Topology& topology, std::uint32_t count) {
  std::vector<Device> devices;
  std::vector<std::optional<DeviceId>> renumbered(topology.devices.size());
  std::map<std::uint32_t, std::uint32_t> seen;
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    const Device& device = topology.devices[id];
    if (device.kind == DeviceKind::kNic && ++seen[device.node] > count) continue;
    renumbered[id] = static_cast<DeviceId>(devices.size());
    devices.push_back(device);
  }
  if (devices.size() == topology.devices.size()) return;
  std::vector<Link> links;
  for (Link link : topology.links) {
    if (!renumbered[link.from] || !renumbered[link.to]) continue;
    link.from = *renumbered[link.from];
    link.to = *renumbered[link.to];
    links.push_back(std::move(link));
  }
  topology.devices = std::move(devices);
  topology.links = std::move(links);
}

Topology TopologyOf(const ScoredRun& run) {
  const CallFacts& facts = run.platform.facts;
  const std::string& name = run.platform.topology;
  const bool counted = name.find('*') != std::string::npos;
  Topology topology = LoadTopology(name, {.nodes = counted || facts.nodes == 1 ? 0 : facts.nodes});
  // What carries the messages is a fact of the run: many boards are sold with either.
  if (facts.fabric_class == "roce") {
    for (Device& device : topology.devices) {
      if (device.kind == DeviceKind::kNic || device.kind == DeviceKind::kNetworkSwitch)
        device.attributes["protocol"] = "roce";
    }
  }
  if (facts.nodes > 1 && facts.gpus_per_node() == 1) LeaveNics(topology, facts.nics_per_node);
  return topology;
}

/// The first GPUs of each host, as many as the run uses there.
std::vector<std::uint32_t> GpusOf(const Cluster& cluster, const CallFacts& facts) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_host;
  const auto gpus = cluster.gpus();
  for (std::uint32_t i = 0; i < gpus.size(); ++i)
    by_host[cluster.topology().devices[gpus[i]].node].push_back(i);
  std::vector<std::uint32_t> chosen;
  if (facts.nodes == 1) {
    // An NVLink domain may span hosts: fill one after the other.
    for (const auto& [host, numbers] : by_host) {
      for (const std::uint32_t number : numbers)
        if (chosen.size() < facts.ranks) chosen.push_back(number);
    }
  } else {
    for (const auto& [host, numbers] : by_host) {
      const std::size_t taken = std::min<std::size_t>(numbers.size(), facts.gpus_per_node());
      chosen.insert(chosen.end(), numbers.begin(),
                    numbers.begin() + static_cast<std::ptrdiff_t>(taken));
    }
  }
  if (chosen.size() != facts.ranks)
    throw ConfigError({.problem = fmt::format("the topology has room for {} of {} ranks",
                                              chosen.size(), facts.ranks)});
  return chosen;
}

bool Near(BitsPerSecond a, BitsPerSecond b) {
  const double x = ToGigabytesPerSecond(a);
  const double y = ToGigabytesPerSecond(b);
  return std::abs(x - y) <= kSameRate * std::max(x, y);
}

/// What the topology says of the machine that the run does not; "" when they agree.
std::string Disagreement(const CallFacts& topology, const CallFacts& run) {
  if (topology.gpu_class != run.gpu_class)
    return fmt::format("GPUs are {}, the run's {}", topology.gpu_class, run.gpu_class);
  if (topology.nodes != run.nodes)
    return fmt::format("{} nodes, the run's {}", topology.nodes, run.nodes);
  if (run.ranks > run.nodes && topology.path != run.path) return "GPUs reach each other otherwise";
  if (run.ranks > run.nodes && run.path == timing::InNodePath::kNvlink &&
      run.link_rate.count() > 0 && !Near(topology.link_rate, run.link_rate))
    return fmt::format("links of a GPU carry {:g} GB/s, the run's {:g}",
                       ToGigabytesPerSecond(topology.link_rate),
                       ToGigabytesPerSecond(run.link_rate));
  if (run.nodes == 1) return {};
  if (topology.fabric_class != run.fabric_class)
    return fmt::format("the fabric is {}, the run's {}", topology.fabric_class, run.fabric_class);
  if (topology.nics_per_node != run.nics_per_node || !Near(topology.nic_rate, run.nic_rate))
    return fmt::format("{} NICs of {:g} GB/s a node, the run's {} of {:g}", topology.nics_per_node,
                       ToGigabytesPerSecond(topology.nic_rate), run.nics_per_node,
                       ToGigabytesPerSecond(run.nic_rate));
  return {};
}

/// In a child: all sizes of a job at all levels, as JSON.
std::string SimulateJob(const SimulatedJob& job, Fidelity level) {
  const ScoredRun& run = *job.example;
  const CallFacts& facts = run.platform.facts;
  const Topology topology = TopologyOf(run);
  const Cluster cluster(topology);
  SimulationOptions options;
  options.gpus = GpusOf(cluster, facts);
  options.environment = EnvironmentOf(run.platform, run.run);
  options.version = std::max(facts.version, nccl::kOldestNcclVersion);
  options.gpus_per_thread =
      facts.launch == timing::Launch::kOneThread ? std::max(1u, facts.gpus_per_thread) : 1;
  {
    std::vector<DeviceId> devices;
    for (const std::uint32_t number : options.gpus) devices.push_back(cluster.gpus()[number]);
    JobPaths paths(cluster, devices, {});
    const std::string apart =
        Disagreement(FactsOfJob(cluster, paths, options.gpus_per_thread, options.version), facts);
    if (!apart.empty()) throw ConfigError({.file = run.platform.topology, .problem = apart});
  }
  const std::vector<Fidelity> levels =
      level == Fidelity::kPacket
          ? std::vector<Fidelity>{Fidelity::kPacket, Fidelity::kFlow, Fidelity::kAnalytic}
          : std::vector<Fidelity>{level, Fidelity::kAnalytic};
  Json answer;
  for (const Fidelity one : levels) {
    options.fidelity = one;
    Simulation simulation(Cluster(topology), options);
    for (const std::uint64_t bytes : job.sizes) {
      CollectiveRequest request{
          .function = facts.function, .rank_count = facts.ranks, .type = DataTypeOf(run.run.dtype)};
      CollectiveRequest unit = request;
      unit.count = 1;
      request.count = std::max<std::uint64_t>(1, bytes / LogicalBytes(unit));
      answer[std::string(Name(one))][std::to_string(bytes)] =
          ToMicroseconds(simulation.Run(request).time);
    }
  }
  return answer.dump();
}

/// Work of a job, for handing out the long ones first.
double WorkOf(const SimulatedJob& job) {
  return static_cast<double>(job.example->platform.facts.ranks) *
         static_cast<double>(job.sizes.size());
}

/// The runs with `reference` for measured times and the level's for simulated ones.
std::vector<ScoredRun> Against(const std::vector<ScoredRun>& runs,
                               const std::vector<LevelRun>& levels, double LevelTimes::*simulated,
                               std::optional<double LevelTimes::*> reference) {
  std::vector<ScoredRun> result;
  for (const LevelRun& level : levels) {
    if (level.times.empty()) continue;
    ScoredRun run = runs[level.index];
    std::vector<Point> points;
    for (Point point : run.points) {
      const auto times = level.times.find(point.bytes);
      if (times == level.times.end() || times->second.*simulated <= 0) continue;
      point.predicted_us[0] = times->second.*simulated;
      if (reference) point.measured_us = times->second.**reference;
      points.push_back(std::move(point));
    }
    run.points = std::move(points);
    result.push_back(std::move(run));
  }
  return result;
}

/// The closed form on the board's usual graph, at the sizes that were simulated.
std::vector<ScoredRun> UsualForm(const std::vector<ScoredRun>& runs,
                                 const std::vector<LevelRun>& levels) {
  std::vector<ScoredRun> result;
  for (const LevelRun& level : levels) {
    if (level.times.empty()) continue;
    ScoredRun run = runs[level.index];
    std::erase_if(run.points,
                  [&](const Point& point) { return !level.times.contains(point.bytes); });
    result.push_back(std::move(run));
  }
  return result;
}

std::string Line(const std::string& name, std::size_t runs, const Bands& bands) {
  std::string line = fmt::format("{:<52} {:>4}", name, runs);
  for (const Summary& band : bands)
    line += fmt::format("{:>18}", band.points == 0
                                      ? std::string("-")
                                      : fmt::format("{:.1f}/{:.0f} {:+.1f}", 100 * band.median,
                                                    100 * band.p90, 100 * band.bias));
  return line + "\n";
}

}  // namespace

std::vector<LevelRun> SimulateRuns(const std::vector<ScoredRun>& runs,
                                   const FidelityOptions& options,
                                   const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<LevelRun> result;
  std::map<std::string, SimulatedJob> by_key;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ScoredRun& run = runs[i];
    if (!run.counted || run.group == Group::kOtherHarness || run.points.empty()) continue;
    LevelRun level{.index = i};
    if (run.platform.facts.ranks > options.max_ranks) {
      level.why_not = fmt::format("more than {} ranks", options.max_ranks);
    } else if (run.platform.facts.version < nccl::NcclVersion{2, 0, 0}) {
      level.why_not = "NCCL 1 has no plan here";
    } else if (!TopologyIsKnown(run.platform.topology)) {
      level.why_not = "no topology named " + run.platform.topology;
    } else {
      SimulatedJob& job = by_key[JobKey(run)];
      job.example = &run;
      job.runs.push_back(result.size());
      for (const std::uint64_t bytes : SizesOf(run, options.sizes_per_band))
        job.sizes.insert(bytes);
    }
    result.push_back(std::move(level));
  }
  std::vector<SimulatedJob> jobs;
  for (auto& [key, job] : by_key) jobs.push_back(std::move(job));
  std::stable_sort(jobs.begin(), jobs.end(), [](const SimulatedJob& a, const SimulatedJob& b) {
    return WorkOf(a) > WorkOf(b);
  });
  const auto answers = RunInProcesses(
      jobs.size(), options.processes,
      [&](std::size_t i) { return SimulateJob(jobs[i], options.level); },
      [&](std::size_t done) {
        if (progress) progress(done, jobs.size());
      });
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Json answer = answers[i].done ? Json::parse(answers[i].text) : Json();
    const std::string name(Name(options.level));
    for (const std::size_t r : jobs[i].runs) {
      LevelRun& level = result[r];
      if (!answers[i].done) {
        level.why_not = answers[i].text;
        continue;
      }
      for (const std::uint64_t bytes : SizesOf(runs[level.index], options.sizes_per_band)) {
        const std::string key = std::to_string(bytes);
        LevelTimes times{.level = answer[name][key].get<double>(),
                         .analytic = answer["analytic"][key].get<double>()};
        if (options.level == Fidelity::kPacket) times.flow = answer["flow"][key].get<double>();
        level.times[bytes] = times;
      }
    }
  }
  return result;
}

std::string TextLevels(const std::vector<ScoredRun>& runs, const std::vector<LevelRun>& levels,
                       const FidelityOptions& options) {
  const std::string name(Name(options.level));
  const bool packet = options.level == Fidelity::kPacket;
  std::size_t simulated = 0, calls = 0;
  for (const LevelRun& level : levels) {
    if (!level.times.empty()) ++simulated;
    calls += level.times.size();
  }
  std::string text = fmt::format(
      "{} level: {} of {} counted runs simulated, {} sizes; decisions by NCCL's search on the "
      "topology\n\n{:<52} {:>4}",
      name, simulated, levels.size(), calls, "median/p90 bias in %", "runs");
  for (const std::string_view band : kBandNames) text += fmt::format("{:>18}", band);
  text += "\n";
  const auto level_runs = Against(runs, levels, &LevelTimes::level, {});
  const auto form_runs = Against(runs, levels, &LevelTimes::analytic, {});
  const auto usual_runs = UsualForm(runs, levels);
  for (const Group group : {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport}) {
    const auto in_group = [&](const ScoredRun& run) { return run.group == group; };
    const auto count =
        static_cast<std::size_t>(std::count_if(level_runs.begin(), level_runs.end(), in_group));
    if (count == 0) continue;
    const auto bands = [&](const std::vector<ScoredRun>& all) {
      return Summarise(all, Predictor::kWindtunnel, in_group);
    };
    text += Line(fmt::format("{}: {} against measured", ToString(group), name), count,
                 bands(level_runs));
    text += Line("  closed form, same decisions, against measured", count, bands(form_runs));
    text += Line("  closed form, usual graph, against measured", count, bands(usual_runs));
    text += Line(fmt::format("  {} against closed form", name), count,
                 bands(Against(runs, levels, &LevelTimes::level, &LevelTimes::analytic)));
    if (packet)
      text += Line("  packet against flow", count,
                   bands(Against(runs, levels, &LevelTimes::level, &LevelTimes::flow)));
  }
  std::map<std::string, std::vector<std::string>> left_out;
  for (const LevelRun& level : levels)
    if (!level.why_not.empty()) left_out[level.why_not].push_back(runs[level.index].run.id);
  if (!left_out.empty()) text += "\nnot simulated:\n";
  for (const auto& [why, ids] : left_out)
    text += fmt::format("  {} ({}): {}\n", why, ids.size(), JoinNames(ids));
  return text;
}

std::string JsonLevels(const std::vector<ScoredRun>& runs, const std::vector<LevelRun>& levels,
                       const FidelityOptions& options) {
  const std::string name(Name(options.level));
  Json list = Json::array();
  for (const LevelRun& level : levels) {
    const ScoredRun& run = runs[level.index];
    Json entry = {{"id", run.run.id}, {"set", run.run.set}};
    if (!level.why_not.empty()) {
      entry["not_simulated"] = level.why_not;
      list.push_back(std::move(entry));
      continue;
    }
    entry["topology"] = run.platform.topology;
    Json calls = Json::array();
    for (const Point& point : run.points) {
      const auto times = level.times.find(point.bytes);
      if (times == level.times.end()) continue;
      Json call = {{"bytes", point.bytes},
                   {"measured_us", point.measured_us},
                   {name + "_us", times->second.level},
                   {"analytic_us", times->second.analytic},
                   {"usual_graph_us", point.predicted_us[0]}};
      if (options.level == Fidelity::kPacket) call["flow_us"] = times->second.flow;
      calls.push_back(std::move(call));
    }
    entry["calls"] = std::move(calls);
    list.push_back(std::move(entry));
  }
  Json result;
  result["fidelity"] = name;
  result["runs"] = std::move(list);
  return result.dump(1) + "\n";
}

}  // namespace windtunnel::validate
