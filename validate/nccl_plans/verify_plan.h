#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "collectives/nccl/communicator.h"
#include "validate/nccl_plans/case.h"
#include "validate/nccl_plans/field_count.h"

namespace windtunnel::nccl {

/// Kinds of stages 5 to 7, in the order of the report.
constexpr std::string_view kPlanKinds[] = {"graphs",  "channels", "rings",  "trees", "tables",
                                           "choices", "chunks",   "groups", "p2p"};

/// Compares one recorded case with a communicator of ours, field by field, adding to one count per
/// kind (the order of kPlanKinds). Fields that a version does not have are not counted.
void VerifyPlan(const PlanCase& plan_case, const Communicator& communicator,
                std::vector<FieldCount>& counts);

}  // namespace windtunnel::nccl
