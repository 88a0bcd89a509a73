#pragma once
// How well the model answers for a platform it has never seen: each class of platforms is left out
// in turn, its constants are replaced by those of the nearest other class, what all classes share
// is fitted again on the runs left in, and the runs left out are scored.

#include <functional>
#include <string>
#include <vector>

#include "collectives/timing/constants.h"
#include "validate/decision_source.h"
#include "validate/scores.h"

namespace windtunnel::validate {

enum class LeaveLevel : std::uint8_t {
  kClass,    ///< A whole GPU generation, or a whole transport: nothing like it was ever measured.
  kPlatform  ///< A board of a known generation, or a GPU class on a known transport.
};

/// What was left out once.
struct LeftOut {
  LeaveLevel level = LeaveLevel::kClass;
  bool network = false;
  std::string left_out;      ///< "h100", "roce"; "H200", "roce with b200".
  std::string constants_of;  ///< "a100 and b200", "ib-ndr"; "h100 without it".
  std::size_t runs = 0;
  std::vector<ScoredRun> scored;         ///< The runs left out, scored without their platform.
  std::vector<std::string> refitted;     ///< Constants that moved, "adding_rate 0.64 -> 0.66".
  std::size_t free_constants = 0;        ///< Constants that the runs left in depend on.
  double fit_before = 0, fit_after = 0;  ///< Mean |ln(simulated/measured)| of the runs left in.
};

/// Method, stated here and in the output:
/// - A GPU class gets rates from the neighbouring generations that have runs (geometric mean; one
/// at
///   the ends) and times from all other generations, since times follow no order of them. Link
///   rates are shares of the raw link, which is its own; a round of LL is as long as a channel's
///   share of the link makes it. PCIe boards and Pascal get Volta's values; PCIe's shares of the
///   raw link are, with no PCIe run left, NVLink's share and half of it through host memory.
/// - A fabric class gets the constants of the others of its family (geometric mean of two; a limit
///   that only one has is left out); nominal rate and count of its NICs are its own. GPU constants
///   stay.
/// - A platform of a known class gets the class's constants, searched again without its runs.
/// - Shared constants (and the class's, for a platform) start at the shipped values and are
/// searched
///   one by one (factors 1.25, 1.08, 1.02 up and down while it helps) for the smallest mean
///   |ln(simulated/measured)| over the runs left in, every run of equal weight.
/// The start values had seen the runs: a remainder of knowledge that this test cannot take out, in
/// particular where no run left in depends on a constant. Decisions are NCCL's and not fitted.
/// `threads`: 0 is one per core; the answer does not depend on it.
std::vector<LeftOut> LeaveEachOut(const std::vector<ScoredRun>& runs,
                                  const timing::TimingConstants& constants, unsigned threads,
                                  const std::function<void(std::size_t)>& progress = {});

/// Goals of the project for platforms that were not seen.
const std::array<Goal, kBandCount>& UnseenGoalsOf(bool network);

std::string TextLeaveOut(const std::vector<LeftOut>& results);
/// An array, for the key "leave_out" of the report.
std::string JsonLeaveOut(const std::vector<LeftOut>& results);

}  // namespace windtunnel::validate
