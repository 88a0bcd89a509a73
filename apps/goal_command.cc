// `windtunnel goal`: a GOAL schedule on a simulated cluster.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output_file.h"
#include "collectives/goal_run.h"
#include "interconnect/packet_options.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

constexpr std::string_view kManual = R"(NAME
    windtunnel goal - run a GOAL schedule (LogGOPSim, ATLAHS) on a simulated cluster

SYNOPSIS
    windtunnel goal FILE -t TOPOLOGY [OPTIONS]

DESCRIPTION
    Reads a schedule of sends, receives and computations in GOAL's text form, puts rank r on GPU r
    of the cluster and runs it. Sizes are bytes, calc is nanoseconds. Prints the time until the last
    operation ends, when ranks end, and the busiest links. A send and the receive that meets it are
    told by source, target and tag, in the order of the file; both must be there.

OPTIONS
    -t, --topology FILE   the cluster: a file, a shipped name, 'hgx-h100*4', or a file of another
                          simulator (docs/foreign-formats.md)
    --ranks LIST          GPUs that take part, rank 0 first: 0,2,4 (all)
    --fidelity LEVEL      packet, flow, or analytic: every message alone on its links (flow)
    --overhead TIME       of the host per send and per receive, the o of LogGP: 1.5us (0)
    --routing POLICY      adaptive, ecmp or static (adaptive)
    --network KEY=VALUE,...
                          packet level, as for windtunnel collective
    --seed N              of random streams (1)
    --json FILE           all figures; "-" is stdout

EXAMPLES
    windtunnel goal pingpong.goal -t 'hgx-h100*2' --ranks 0,8
    windtunnel goal job.goal -t network.yml --fidelity packet --json out/job.json

EXIT STATUS
    0 done; 1 the input is wrong; 2 the schedule deadlocks; 3 a fault of windtunnel itself

SEE ALSO
    windtunnel help collective, docs/foreign-formats.md
)";

std::string TextOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in && in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad()) {
    throw ConfigError(
        {.file = file, .problem = "cannot be read", .expected = "a GOAL schedule in text form"});
  }
  return text.str();
}

std::string Text(const GoalOutcome& outcome, const GoalSchedule& schedule) {
  std::vector<SimTime> ends = outcome.rank_end;
  std::sort(ends.begin(), ends.end());
  const auto us = [&](std::size_t i) { return FormatTime(ends[i].since_start()); };
  std::string text = fmt::format(
      "{} ranks, {} operations, {} messages of {} in all\ntime {}\nranks end: first {}, median {}, "
      "last {}\n",
      ends.size(), schedule.plan.blocks.size(), outcome.messages, FormatSize(outcome.payload),
      FormatTime(outcome.time), us(0), us(ends.size() / 2), us(ends.size() - 1));
  if (outcome.time > ends.back().since_start()) {
    text +=
        "the busiest link needs longer than any rank, whose messages do not wait for each other\n";
  }
  constexpr std::size_t kShown = 10;
  LinkLoadReport links = outcome.links;
  links.rows.resize(std::min(kShown, links.rows.size()));
  return text + FormatLinkLoadReport(links);
}

std::string Json(const GoalOutcome& outcome, const GoalRunOptions& options,
                 const Topology& topology) {
  nlohmann::ordered_json out;
  out["version"] = Version();
  out["seed"] = options.seed;
  out["input_digest"] = fmt::format("{:016x}", topology.digest);
  out["fidelity"] = Name(options.fidelity);
  out["time_us"] = ToMicroseconds(outcome.time);
  out["messages"] = outcome.messages;
  out["payload_bytes"] = outcome.payload.count();
  out["events"] = outcome.events;
  auto& ends = out["rank_end_us"] = nlohmann::ordered_json::array();
  for (const SimTime end : outcome.rank_end) ends.push_back(ToMicroseconds(end.since_start()));
  auto& links = out["links"] = nlohmann::ordered_json::array();
  for (const LinkLoadReport::Row& link : outcome.links.rows) {
    links.push_back({{"name", link.name},
                     {"utilisation", link.utilisation},
                     {"payload_bytes", link.use.payload.count()},
                     {"wire_bytes", link.use.wire.count()},
                     {"packets", link.use.packets}});
  }
  return out.dump(1) + "\n";
}

int RunGoalCommand(const std::vector<std::string>& arguments) {
  CLI::App app;
  std::string file, topology_name, ranks, fidelity = "flow", overhead, routing, seed = "1", json;
  std::vector<std::string> networks;
  app.add_option("file", file)->required();
  app.add_option("-t,--topology", topology_name)->required();
  app.add_option("--ranks", ranks);
  app.add_option("--fidelity", fidelity);
  app.add_option("--overhead", overhead);
  app.add_option("--routing", routing);
  app.add_option("--network", networks);
  app.add_option("--seed", seed);
  app.add_option("--json", json);
  ParseFlags(app, "goal", arguments);

  GoalRunOptions options;
  options.fidelity = ParseName<Fidelity>("--fidelity", fidelity, kFidelityNames);
  options.gpus = ParseGpuList("--ranks", ranks);
  if (!overhead.empty()) options.overhead = ParseTime(overhead, {.field = "--overhead"});
  if (!routing.empty()) options.routing = ParseRoutePolicy(routing, {.field = "--routing"});
  options.network = JoinSettings(networks);
  options.seed = ParseCount(seed, {.field = "--seed"});
  if (!options.network.empty() && options.fidelity != Fidelity::kPacket)
    throw NetworkNeedsPackets(options.network);
  const GoalSchedule schedule = ReadGoal(TextOf(file), file);
  for (const std::string& note : schedule.notes) fmt::print(stderr, "windtunnel: note: {}\n", note);
  const Topology topology = LoadTopology(topology_name);
  for (const std::string& warning : topology.warnings)
    fmt::print(stderr, "windtunnel: note: {}\n", warning);
  for (const std::string& note : SettingsWithoutEffect(options.network, topology))
    fmt::print(stderr, "windtunnel: note: {}\n", note);
  const GoalOutcome outcome = RunGoal(schedule, Cluster(topology), options);
  if (json != "-") std::fputs(Text(outcome, schedule).c_str(), stdout);
  if (!json.empty()) WriteOutputFile("--json", json, Json(outcome, options, topology));
  return kExitDone;
}

}  // namespace

const Command kGoalCommand{.name = "goal",
                           .summary = "run a GOAL schedule (LogGOPSim, ATLAHS) on a cluster",
                           .run = RunGoalCommand,
                           .manual = kManual};

}  // namespace windtunnel
