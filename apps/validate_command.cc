#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "apps/command.h"
#include "collectives/timing/constants.h"
#include "sim/data_files.h"
#include "sim/error.h"
#include "validate/board_decisions.h"
#include "validate/logs/collective_tables.h"
#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"
#include "validate/report.h"
#include "validate/run.h"
#include "validate/scores.h"
#include "validate/topology_decisions.h"

namespace windtunnel {

namespace {

constexpr std::string_view kManual = R"(NAME
  windtunnel validate - hold simulated times against real runs

SYNOPSIS
  windtunnel validate [SET] [OPTIONS]
  windtunnel validate --data DIR [OPTIONS]
  windtunnel validate --log FILE [-t TOPOLOGY] [OPTIONS]

DESCRIPTION
  Maps every run of the set to a machine, lets NCCL's rules decide each call, computes its time and
  compares. Errors are simulated/measured - 1: median, 90th percentile, worst, and the signed
  median, per group, platform, collective and size band (up to 4 KiB, 256 KiB, 8 MiB, 256 MiB,
  above). Every run has the same weight in each band it reaches. Beside them stand NCCL's own
  estimate, a plain alpha-beta model with data-sheet numbers, and the noise floor: how far two real
  runs of one platform are apart.
  Runs marked misconfigured or in doubt are listed, not counted. Runs whose hardware cannot be
  mapped are listed with the reason. Nothing is dropped.

  SET is one of the shipped sets, "public" or "nvidia"; without it, both.

  With --log, one log of your own: the kind is told from the text. Tables of nccl-tests and
  rccl-tests in every layout, and their JSON, are compared size by size. Other kinds (NCCL_DEBUG
  logs, nvidia-smi topo, p2pBandwidthLatencyTest, nvbandwidth, ib_write_bw and ib_write_lat, OSU,
  XLA tables, throughput) are read and what they hold is printed. A log without a usable row is
  refused with its line.

OPTIONS
  --data DIR       run files of a folder instead of the shipped sets (docs/validation.md)
  --log FILE       a log of your own
  -t TOPOLOGY      the machine it ran on: a file, a shipped name, "hgx-h100*2"; else what the log
                   says of GPUs and hosts, with the usual NICs
  --op NAME        the collective, where the log does not say
  --nccl VERSION   NCCL's version, where the log does not say
  --json FILE      every pair (measured, simulated) with its decision; "-" is stdout
  --csv FILE       the same, one line a pair
  --runs           one line a run
  --steps          list steps of measured curves that the model does not have
  --search-topology
                   decide on what NCCL's search finds on each run's topology instead of the usual
                   graph of its board
  --require-goals  exit 2 when a goal is missed
  --gpu-constants FILE, --fabric-constants FILE
                   other constants than catalogue/timing/*.yaml

EXAMPLES
  windtunnel validate
  windtunnel validate public --runs
  windtunnel validate --data my-runs --json pairs.json
  windtunnel validate --log all_reduce.log -t 'hgx-h100*2'

EXIT STATUS
  0 done; 1 the input is wrong; 2 goals missed with --require-goals; 3 a fault of windtunnel

SEE ALSO
  docs/validation.md, docs/timing-model.md
)";

void WriteTo(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw ConfigError({.file = file, .problem = "cannot be written"});
}

std::vector<validate::MeasuredRun> SelectSet(std::vector<validate::MeasuredRun> runs,
                                             const std::string& set) {
  std::vector<std::string> known;
  std::vector<validate::MeasuredRun> selected;
  for (validate::MeasuredRun& run : runs) {
    if (std::find(known.begin(), known.end(), run.set) == known.end()) known.push_back(run.set);
    if (run.set == set) selected.push_back(std::move(run));
  }
  if (selected.empty()) {
    throw ConfigError({.field = "SET",
                       .value = set,
                       .problem = "no such set",
                       .expected = "one of " + JoinNames(known),
                       .nearest = NearestName(set, known)});
  }
  return selected;
}

struct LogOptions {
  std::string file, topology, collective, version;
};

/// Every table of the log as a run.
std::vector<validate::MeasuredRun> RunsOfLog(const LogOptions& options, const std::string& text,
                                             validate::LogKind kind) {
  const InputFault where{.file = options.file};
  std::vector<validate::CollectiveTable> tables;
  if (kind == validate::LogKind::kNcclTestsJson) {
    tables.push_back(validate::ReadCollectiveJson(text, where));
  } else {
    tables = validate::ReadCollectiveTables(text);
  }
  std::vector<validate::MeasuredRun> runs;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (const std::string& warning : tables[i].warnings())
      fmt::print(stderr, "windtunnel: {}: {}\n", options.file, warning);
    // Among several tables one without rows is no reason to refuse the others.
    if (tables.size() > 1 && tables[i].usable_rows() == 0) continue;
    validate::MeasuredRun run = validate::RunOfTable(tables[i], where);
    if (tables.size() > 1) run.id += fmt::format(" table {}", i + 1);
    if (!options.collective.empty()) run.collective = options.collective;
    if (!options.version.empty()) run.nccl = options.version;
    if (!options.topology.empty()) run.topology = options.topology;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string SizeTable(const validate::ScoredRun& scored) {
  std::string text = fmt::format(
      "{}: {} over {} ranks on {} ({})\n{:>12} {:>12} {:>12} {:>8}  decision and bound\n",
      scored.run.id, scored.run.collective, scored.platform.facts.ranks, scored.platform.name,
      scored.platform.topology, "bytes", "measured us", "simulated us", "error");
  for (const validate::Point& point : scored.points) {
    text += fmt::format("{:>12} {:>12.2f} {:>12.2f} {:>+7.1f}%  {} {} x {}, {}\n", point.bytes,
                        point.measured_us, point.predicted_us[0],
                        100 * point.error(validate::Predictor::kWindtunnel),
                        timing::ToString(point.facts.algorithm), Name(point.facts.protocol),
                        point.facts.channels, timing::ToString(point.bound));
  }
  return text;
}

int RunLog(const LogOptions& options, const timing::TimingConstants& constants,
           bool search_topology, const std::string& json, const std::string& csv) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) throw ConfigError({.file = options.file, .problem = "cannot be read"});
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const validate::LogKind kind = validate::DetectLogKind(text);
  if (kind == validate::LogKind::kUnknown) {
    throw ConfigError({.file = options.file,
                       .line = 1,
                       .problem = "is no log that windtunnel knows",
                       .expected = "nccl-tests, NCCL_DEBUG=INFO, nvidia-smi topo, nvbandwidth, "
                                   "perftest, OSU, XLA or throughput text"});
  }
  if (kind != validate::LogKind::kNcclTests && kind != validate::LogKind::kNcclTestsJson) {
    std::fputs(validate::DescribeLog(text, kind).c_str(), stdout);
    return kExitDone;
  }
  const validate::TopologyDecisions topology_decisions;
  const validate::BoardDecisions board_decisions;
  const validate::DecisionSource& decisions =
      search_topology ? static_cast<const validate::DecisionSource&>(topology_decisions)
                      : board_decisions;
  std::vector<validate::ScoredRun> scored;
  for (const validate::MeasuredRun& run : RunsOfLog(options, text, kind)) {
    scored.push_back(validate::ScoreRun(run, decisions, constants));
    if (!scored.back().counted) {
      throw ConfigError({.file = options.file,
                         .field = "-t",
                         .value = options.topology,
                         .problem = scored.back().why_not,
                         .expected = "a topology that fits the log"});
    }
  }
  if (scored.empty())
    throw ConfigError({.file = options.file, .problem = "holds no table with usable rows"});
  if (!json.empty()) WriteTo(json, validate::JsonReport(scored, decisions.name()));
  if (!csv.empty()) WriteTo(csv, validate::CsvReport(scored));
  if (json == "-" || csv == "-") return kExitDone;
  for (const validate::ScoredRun& one : scored) {
    std::fputs(SizeTable(one).c_str(), stdout);
    const validate::Summary all = validate::SummariseRun(one, validate::Predictor::kWindtunnel);
    fmt::print("median {:.1f} %, p90 {:.1f} %, worst {:.1f} %, bias {:+.1f} %\n\n",
               100 * all.median, 100 * all.p90, 100 * all.worst, 100 * all.bias);
  }
  return kExitDone;
}

int RunValidate(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  std::string set, data, json, csv, gpu_constants, fabric_constants;
  LogOptions log;
  bool require_goals = false;
  bool search_topology = false;
  validate::ReportOptions options;
  app.add_option("SET", set);
  app.add_option("--data", data);
  app.add_option("--log", log.file);
  app.add_option("-t,--topology", log.topology);
  app.add_option("--op", log.collective);
  app.add_option("--nccl", log.version);
  app.add_option("--json", json);
  app.add_option("--csv", csv);
  app.add_option("--gpu-constants", gpu_constants);
  app.add_option("--fabric-constants", fabric_constants);
  app.add_flag("--runs", options.runs);
  app.add_flag("--steps", options.steps);
  app.add_flag("--search-topology", search_topology);
  app.add_flag("--require-goals", require_goals);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw ConfigError({.field = "validate", .problem = error.what()});
  }

  std::optional<timing::TimingConstants> own;
  if (!gpu_constants.empty() || !fabric_constants.empty()) {
    own.emplace(gpu_constants.empty() ? ShippedFile("catalogue/timing/gpu.yaml")
                                      : std::filesystem::path(gpu_constants),
                fabric_constants.empty() ? ShippedFile("catalogue/timing/fabric.yaml")
                                         : std::filesystem::path(fabric_constants));
  }
  const timing::TimingConstants& constants = own ? *own : timing::TimingConstants::Shipped();

  if (!log.file.empty()) return RunLog(log, constants, search_topology, json, csv);
  for (const auto& [flag, value] :
       {std::pair{"-t", &log.topology}, std::pair{"--op", &log.collective},
        std::pair{"--nccl", &log.version}}) {
    if (!value->empty())
      throw ConfigError({.field = flag, .value = *value, .problem = "belongs to --log"});
  }
  std::vector<validate::MeasuredRun> runs =
      data.empty() ? validate::ReadShippedRuns() : validate::ReadRunFolder(data);
  if (!set.empty()) runs = SelectSet(std::move(runs), set);

  const bool terminal = isatty(STDERR_FILENO) == 1;
  const validate::TopologyDecisions topology_decisions;
  const validate::BoardDecisions board_decisions;
  const validate::DecisionSource& decisions =
      search_topology ? static_cast<const validate::DecisionSource&>(topology_decisions)
                      : board_decisions;
  const auto scored =
      validate::Score(runs, decisions, constants, [&](std::size_t done, std::size_t total) {
        if (!terminal) return;
        fmt::print(stderr, "\rvalidate: {}/{} runs", done, total);
        if (done == total) std::fputs("\n", stderr);
      });
  if (!json.empty()) WriteTo(json, validate::JsonReport(scored, decisions.name()));
  if (!csv.empty()) WriteTo(csv, validate::CsvReport(scored));
  if (json != "-" && csv != "-")
    std::fputs(validate::TextReport(scored, decisions.name(), options).c_str(), stdout);
  if (require_goals && !validate::MissedGoals(scored).empty()) return kExitJobFailed;
  return kExitDone;
}

}  // namespace

const Command kValidateCommand{"validate", "hold simulated times against real runs", RunValidate,
                               kManual};

}  // namespace windtunnel
