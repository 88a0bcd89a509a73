#pragma once

#include <string>
#include <vector>

#include "validate/diagnosis.h"
#include "validate/leave_out.h"
#include "validate/scores.h"

namespace windtunnel::validate {

/// The tables of docs/validation.md as they stand there: errors by group and band with goals and
/// baselines, platforms left out, causes found. A test compares the page with it.
std::string MarkdownReport(const std::vector<ScoredRun>& runs, const std::vector<LeftOut>& left_out,
                           const std::vector<Diagnosis>& diagnoses);

}  // namespace windtunnel::validate
