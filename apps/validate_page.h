#pragma once

#include <string>
#include <vector>

#include "validate/diagnosis.h"
#include "validate/scores.h"

namespace windtunnel {

/// One page that stands by itself: errors by group and band, simulated over measured time of every
/// row against size, then per platform and collective the measured and simulated bus bandwidth. At
/// most `kPlotsOfPage` drawings of at most four runs each; what is left out is counted in the page.
inline constexpr std::size_t kPlotsOfPage = 120;
std::string ValidationPage(const std::vector<validate::ScoredRun>& runs,
                           const std::string& decisions);

/// One page: per run the evidence, the ranking, and the measured curve with those of the healthy
/// machine and of the best causes.
std::string DiagnosisPage(const std::vector<validate::Diagnosis>& diagnoses);

}  // namespace windtunnel
