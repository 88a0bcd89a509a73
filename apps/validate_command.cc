#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <optional>

#include "apps/command.h"
#include "collectives/timing/constants.h"
#include "sim/data_files.h"
#include "sim/error.h"
#include "validate/board_decisions.h"
#include "validate/report.h"
#include "validate/run.h"
#include "validate/scores.h"

namespace windtunnel {

namespace {

constexpr std::string_view kManual = R"(NAME
  windtunnel validate - hold simulated times against real runs

SYNOPSIS
  windtunnel validate [SET] [OPTIONS]
  windtunnel validate --data DIR [OPTIONS]

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

OPTIONS
  --data DIR       run files of a folder instead of the shipped sets (docs/validation.md)
  --json FILE      every pair (measured, simulated) with its decision; "-" is stdout
  --csv FILE       the same, one line a pair
  --runs           one line a run
  --steps          list steps of measured curves that the model does not have
  --require-goals  exit 2 when a goal is missed
  --gpu-constants FILE, --fabric-constants FILE
                   other constants than catalogue/timing/*.yaml

EXAMPLES
  windtunnel validate
  windtunnel validate public --runs
  windtunnel validate --data my-runs --json pairs.json

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

int RunValidate(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  std::string set, data, json, csv, gpu_constants, fabric_constants;
  bool require_goals = false;
  validate::ReportOptions options;
  app.add_option("SET", set);
  app.add_option("--data", data);
  app.add_option("--json", json);
  app.add_option("--csv", csv);
  app.add_option("--gpu-constants", gpu_constants);
  app.add_option("--fabric-constants", fabric_constants);
  app.add_flag("--runs", options.runs);
  app.add_flag("--steps", options.steps);
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

  std::vector<validate::MeasuredRun> runs =
      data.empty() ? validate::ReadShippedRuns() : validate::ReadRunFolder(data);
  if (!set.empty()) runs = SelectSet(std::move(runs), set);

  const bool terminal = isatty(STDERR_FILENO) == 1;
  const validate::BoardDecisions decisions;
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
