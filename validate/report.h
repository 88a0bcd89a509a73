#pragma once

#include <string>
#include <vector>

#include "validate/leave_out.h"
#include "validate/scores.h"

namespace windtunnel::validate {

struct ReportOptions {
  bool runs = false;     ///< One line a run.
  bool steps = false;    ///< Steps that the model does not have.
  bool repeats = false;  ///< Every row with repeats: min, average, p99, max.
};

/// For people: groups by band with goals, baselines and noise beside; platforms; collectives; what
/// is not counted and why. Errors in per cent, "median / p90 / worst, signed median".
/// `decision_notes`: what was decided otherwise than `decisions` says.
std::string TextReport(const std::vector<ScoredRun>& runs, const std::string& decisions,
                       const ReportOptions& options,
                       const std::vector<std::string>& decision_notes = {});
/// Band by band, for one run or log: median, p90, worst, bias in per cent.
std::string BandTable(const ScoredRun& run);
/// A line per GPU class of LargeAllReduceError with its goal; "" without such runs.
std::string TextLargeAllReduce(const std::vector<ScoredRun>& runs);
/// Lines about falls of the measured rate; "" when there are none.
std::string TextCliffs(const std::vector<ScoredRun>& runs);
/// For machines: every pair (measured, simulated, NCCL's estimate, data sheet) with its decision.
/// `left_out` under the key "leave_out" where there is any.
std::string JsonReport(const std::vector<ScoredRun>& runs, const std::string& decisions,
                       const std::vector<LeftOut>& left_out = {});
/// One line a pair.
std::string CsvReport(const std::vector<ScoredRun>& runs);

}  // namespace windtunnel::validate
