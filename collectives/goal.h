#pragma once
// GOAL schedules in their text form (LogGOPSim, ATLAHS) as plans.

#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan.h"
#include "sim/units.h"

namespace windtunnel {

/// Every operation of the schedule is one block of one op, so that only its dependencies order it.
/// Sends and receives meet by (source, target, tag), in the order of the file. Elements are bytes.
struct GoalSchedule {
  Plan plan;
  /// Per block of the plan: the time of a `calc`, 0 for others. A setting gives it as the overhead
  /// of the empty slice of that block.
  std::vector<Picoseconds> work;
  std::vector<std::string> notes;  ///< Units and what is left out.
};

/// Grammar: `num_ranks N`, then `rank R { ... }` with lines
///   [label:] send 8b to 1 [tag 5] [cpu 0] [nic 0]
///   [label:] recv 8b from 1 [tag 5] [cpu 0] [nic 0]
///   [label:] calc 100 [cpu 0]
///   label requires label | label irequires label
/// Sizes are bytes, calc is nanoseconds. `irequires` waits for the start of the other operation,
/// taken as what that one itself requires. Which CPU or NIC of a rank works is not modelled.
/// @throws ConfigError with line on anything else, on an operation that waits for itself, on more
/// than 10,000,000 operations, and on sends and receives that do not meet. (A longer cycle is found
/// as a deadlock when the plan runs.)
GoalSchedule ReadGoal(std::string_view text, std::string_view file_name);

/// True when the first words are those of a schedule.
bool LooksLikeGoal(std::string_view text);

}  // namespace windtunnel
