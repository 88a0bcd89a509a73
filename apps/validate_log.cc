#include "apps/validate_log.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "apps/command.h"
#include "apps/output_file.h"
#include "apps/validate_page.h"
#include "sim/error.h"
#include "validate/diagnosis.h"
#include "validate/logs/collective_tables.h"
#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"
#include "validate/report.h"
#include "validate/scores.h"
#include "validate/value_check.h"

namespace windtunnel {
namespace {

struct LoggedRun {
  validate::CollectiveTable table;
  validate::MeasuredRun run;
};

/// Every table of the log as a run.
std::vector<LoggedRun> RunsOfLog(const ValidateOptions& options, const std::string& text,
                                 validate::LogKind kind) {
  const InputFault where{.file = options.log};
  std::vector<validate::CollectiveTable> tables;
  if (kind == validate::LogKind::kNcclTestsJson) {
    tables.push_back(validate::ReadCollectiveJson(text, where));
  } else {
    tables = validate::ReadCollectiveTables(text);
  }
  std::vector<LoggedRun> runs;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (const std::string& warning : tables[i].warnings())
      fmt::print(stderr, "windtunnel: {}: {}\n", options.log, warning);
    // Among several tables one without rows is no reason to refuse the others.
    if (tables.size() > 1 && tables[i].usable_rows() == 0) continue;
    validate::MeasuredRun run = validate::RunOfTable(tables[i], where);
    if (tables.size() > 1) run.id += fmt::format(" table {}", i + 1);
    if (!options.collective.empty()) run.collective = options.collective;
    if (!options.version.empty()) run.nccl = options.version;
    if (!options.topology.empty()) run.topology = options.topology;
    runs.push_back({std::move(tables[i]), std::move(run)});
  }
  if (runs.empty())
    throw ConfigError({.file = options.log, .problem = "holds no table with usable rows"});
  return runs;
}

[[noreturn]] void RefuseTopology(const ValidateOptions& options, std::string why) {
  throw ConfigError({.file = options.log,
                     .field = "-t",
                     .value = options.topology,
                     .problem = std::move(why),
                     .expected = "a topology that fits the log"});
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

int DiagnoseLog(const ValidateOptions& options, const std::vector<LoggedRun>& logged,
                const validate::DecisionSource& decisions,
                const timing::TimingConstants& constants) {
  std::vector<validate::MeasuredRun> runs;
  for (const LoggedRun& one : logged) runs.push_back(one.run);
  const auto diagnoses = validate::DiagnoseAll(runs, decisions, constants, options.threads);
  for (const validate::Diagnosis& diagnosis : diagnoses)
    if (!diagnosis.why_not.empty()) RefuseTopology(options, diagnosis.why_not);
  if (!options.json.empty())
    WriteOutputFile("--json", options.json, validate::JsonDiagnoses(diagnoses));
  if (!options.html.empty()) WriteOutputFile("--html", options.html, DiagnosisPage(diagnoses));
  if (options.stdout_taken()) return kExitDone;
  for (const validate::Diagnosis& diagnosis : diagnoses)
    fmt::print("{}\n", validate::TextDiagnosis(diagnosis));
  return kExitDone;
}

}  // namespace

int ValidateLog(const ValidateOptions& options) {
  std::ifstream in(options.log, std::ios::binary);
  if (!in) throw ConfigError({.file = options.log, .problem = "cannot be read"});
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const validate::LogKind kind = validate::DetectLogKind(text);
  if (kind == validate::LogKind::kUnknown) {
    throw ConfigError({.file = options.log,
                       .line = 1,
                       .problem = "is no log that windtunnel knows",
                       .expected = "nccl-tests, NCCL_DEBUG=INFO, nvidia-smi topo, nvbandwidth, "
                                   "perftest, OSU, XLA or throughput text"});
  }
  if (kind != validate::LogKind::kNcclTests && kind != validate::LogKind::kNcclTestsJson) {
    if (options.diagnose)
      throw ConfigError({.file = options.log,
                         .field = "--diagnose",
                         .problem = fmt::format("needs times; this is {}", ToString(kind)),
                         .expected = "a table of nccl-tests or rccl-tests, or its JSON"});
    std::fputs(validate::DescribeLog(text, kind).c_str(), stdout);
    return kExitDone;
  }
  const ChosenConstants constants(options);
  const auto decisions = ChosenDecisions(options);
  const std::vector<LoggedRun> runs = RunsOfLog(options, text, kind);
  if (options.diagnose) return DiagnoseLog(options, runs, *decisions, constants.get());
  std::vector<validate::ScoredRun> scored;
  for (const LoggedRun& run : runs) {
    scored.push_back(validate::ScoreRun(run.run, *decisions, constants.get()));
    if (!scored.back().counted) RefuseTopology(options, scored.back().why_not);
  }
  if (!options.json.empty())
    WriteOutputFile("--json", options.json, validate::JsonReport(scored, decisions->name()));
  if (!options.csv.empty()) WriteOutputFile("--csv", options.csv, validate::CsvReport(scored));
  if (!options.html.empty())
    WriteOutputFile("--html", options.html, ValidationPage(scored, decisions->name()));
  if (options.stdout_taken()) return kExitDone;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    std::fputs(SizeTable(scored[i]).c_str(), stdout);
    const validate::Summary all =
        validate::SummariseRun(scored[i], validate::Predictor::kWindtunnel);
    fmt::print("{}all sizes: median {:.1f} %, p90 {:.1f} %, worst {:.1f} %, bias {:+.1f} %\n",
               validate::BandTable(scored[i]), 100 * all.median, 100 * all.p90, 100 * all.worst,
               100 * all.bias);
    fmt::print(
        "{}{}\n", validate::TextCliffs({scored[i]}),
        validate::TextValueCheck(validate::CheckValues(runs[i].table, scored[i], options.ulp)));
  }
  return kExitDone;
}

}  // namespace windtunnel
