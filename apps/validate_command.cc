#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "apps/command.h"
#include "apps/output_file.h"
#include "apps/validate_log.h"
#include "apps/validate_manual.h"
#include "apps/validate_options.h"
#include "apps/validate_page.h"
#include "sim/error.h"
#include "validate/baseline.h"
#include "validate/diagnosis.h"
#include "validate/fidelity.h"
#include "validate/leave_out.h"
#include "validate/markdown.h"
#include "validate/report.h"
#include "validate/run.h"
#include "validate/scores.h"

namespace windtunnel {

namespace {

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

/// A line that grows in place, on a terminal only.
class Progress {
 public:
  void Show(std::size_t done, std::size_t total) const {
    if (!terminal_) return;
    fmt::print(stderr, "\rvalidate: {}/{} runs", done, total);
    if (done == total) std::fputs("\n", stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

/// The checks of continuous integration; what fails is said on stdout, or on stderr where stdout
/// belongs to a machine.
bool ChecksHold(const ValidateOptions& options, const std::optional<validate::Baseline>& baseline,
                const std::vector<validate::ScoredRun>& scored) {
  std::FILE* out = options.stdout_taken() ? stderr : stdout;
  bool hold = true;
  if (baseline) {
    const auto comparison = validate::Compare(*baseline, scored, options.tolerance);
    fmt::print(out, "\n{}", validate::TextComparison(comparison, options.tolerance));
    hold = comparison.same();
  }
  if (options.require_plateau) {
    const auto plateaus = validate::Plateaus(scored);
    const std::string off = validate::TextPlateaus(plateaus, *options.require_plateau);
    fmt::print(out, "\n{}",
               off.empty() ? fmt::format("plateaus of {} platforms are within {:g} %\n",
                                         plateaus.size(), 100 * *options.require_plateau)
                           : off);
    hold = hold && off.empty();
  }
  return hold && !(options.require_goals && !validate::MissedGoals(scored).empty());
}

int RunValidate(const std::vector<std::string>& arguments) {
  const ValidateOptions options = ParseValidateOptions(arguments);
  if (!options.log.empty()) return ValidateLog(options);
  std::optional<validate::Baseline> baseline;
  if (!options.baseline.empty()) baseline = validate::ReadBaseline(options.baseline);
  const ChosenConstants constants(options);
  const auto decisions = ChosenDecisions(options);
  std::vector<validate::MeasuredRun> runs =
      options.data.empty() ? validate::ReadShippedRuns() : validate::ReadRunFolder(options.data);
  if (!options.set.empty()) runs = SelectSet(std::move(runs), options.set);
  const Progress progress;
  if (options.diagnose) {
    const auto diagnoses =
        validate::DiagnoseAll(runs, *decisions, constants.get(), options.threads,
                              [&](std::size_t done) { progress.Show(done, runs.size()); });
    if (!options.json.empty())
      WriteOutputFile("--json", options.json, validate::JsonDiagnoses(diagnoses));
    if (!options.html.empty()) WriteOutputFile("--html", options.html, DiagnosisPage(diagnoses));
    if (options.stdout_taken()) return kExitDone;
    for (const validate::Diagnosis& diagnosis : diagnoses) {
      if (!options.report.runs || diagnosis.causes.empty()) continue;
      fmt::print("{}\n", validate::TextDiagnosis(diagnosis));
    }
    std::fputs(validate::TextDiagnoses(diagnoses, runs).c_str(), stdout);
    return kExitDone;
  }
  const auto scored =
      validate::Score(runs, *decisions, constants.get(),
                      [&](std::size_t done, std::size_t total) { progress.Show(done, total); });
  if (options.levels) {
    const auto levels = validate::SimulateRuns(
        scored, *options.levels,
        [&](std::size_t done, std::size_t total) { progress.Show(done, total); });
    if (!options.json.empty())
      WriteOutputFile("--json", options.json,
                      validate::JsonLevels(scored, levels, *options.levels));
    if (!options.stdout_taken())
      std::fputs(validate::TextLevels(scored, levels, *options.levels).c_str(), stdout);
    return kExitDone;
  }
  std::vector<validate::LeftOut> left_out;
  if (options.leave_out)
    left_out = validate::LeaveEachOut(scored, constants.get(), options.threads);
  if (!options.json.empty())
    WriteOutputFile("--json", options.json,
                    validate::JsonReport(scored, decisions->name(), left_out));
  if (!options.csv.empty()) WriteOutputFile("--csv", options.csv, validate::CsvReport(scored));
  if (!options.html.empty())
    WriteOutputFile("--html", options.html, ValidationPage(scored, decisions->name()));
  if (!options.write_baseline.empty())
    WriteOutputFile("--write-baseline", options.write_baseline,
                    validate::WriteBaseline(validate::BaselineOf(scored)));
  if (options.markdown) {
    const auto diagnoses =
        validate::DiagnoseAll(runs, *decisions, constants.get(), options.threads);
    std::fputs(validate::MarkdownReport(scored, left_out, diagnoses).c_str(), stdout);
  } else if (!options.stdout_taken()) {
    std::fputs(
        validate::TextReport(scored, decisions->name(), options.report, decisions->notes()).c_str(),
        stdout);
    if (!left_out.empty()) fmt::print("\n{}", validate::TextLeaveOut(left_out));
  }
  return ChecksHold(options, baseline, scored) ? kExitDone : kExitJobFailed;
}

}  // namespace

const Command kValidateCommand{"validate", "hold simulated times against real runs", RunValidate,
                               kValidateManual};

}  // namespace windtunnel
