#pragma once
// A GOAL schedule on a cluster: rank r on GPU r, at packet or flow level.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/goal.h"
#include "collectives/simulation.h"
#include "interconnect/cluster.h"
#include "interconnect/link_load_report.h"

namespace windtunnel {

struct GoalRunOptions {
  Fidelity fidelity = Fidelity::kFlow;
  std::vector<std::uint32_t> gpus;  ///< GPU numbers of the ranks, rank 0 first; empty = all.
  /// Time of the host for each send and each receive, the `o` of LogGP; operations of one rank that
  /// do not wait for each other overlap theirs.
  Picoseconds overhead;
  RoutePolicy routing = RoutePolicy::kAdaptive;
  std::string network;  ///< Packet level: KEY=VALUE,...
  std::uint64_t seed = 1;
};

struct GoalOutcome {
  Picoseconds time;               ///< Until the last operation of any rank ends.
  std::vector<SimTime> rank_end;  ///< Last operation of each rank.
  std::uint64_t messages = 0;
  Bytes payload;  ///< Of all messages.
  std::uint64_t events = 0;
  LinkLoadReport links;  ///< All that carried bytes, busiest first.
};

/// @throws ConfigError when ranks and GPUs do not match or a rank cannot reach another;
/// SimulationError when the schedule deadlocks.
GoalOutcome RunGoal(const GoalSchedule& schedule, const Cluster& cluster,
                    const GoalRunOptions& options);

}  // namespace windtunnel
