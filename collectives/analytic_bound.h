#pragma once
// What no network can beat: the plan's own order on an idle network, and the busiest link.

#include <string>

#include "collectives/timed_executor.h"
#include "interconnect/flow_network.h"

namespace windtunnel {

/// time = max(idle, start + busiest_time). Every level of fidelity respects it:
/// - `idle` is the plan run with every message alone on its links: the longest chain of the plan in
///   latencies, wire times, endpoint times and waits for credit. For a ring on a switch it is
///   2 (n-1) (alpha + S / (n B)) to the picosecond.
/// - `busiest_time` is, over all links, the wire bytes of everything that crosses the link divided
///   by its rate.
struct AnalyticBound {
  Picoseconds time;
  Picoseconds idle;
  Picoseconds busiest_time;
  LinkId busiest = 0;       ///< First link that takes `busiest_time`.
  Bytes busiest_wire;       ///< Bytes on it, headers included.
  bool link_bound = false;  ///< The link, not the chain, decides.
  ExecutionResult run;      ///< The idle run: accounts say where its time goes.
};

/// `idle` is a network without contention (FlowNetwork::Options), `setting` one built on it.
/// @throws SimulationError when the plan deadlocks.
AnalyticBound BoundOf(const Plan& plan, FlowNetwork& idle, ExecutionSetting& setting);

/// "bound 7978.3 us: the chain of the plan on an idle network (busiest link node0 -> switch: ...)".
std::string DescribeBound(const AnalyticBound& bound, const Topology& topology);

}  // namespace windtunnel
