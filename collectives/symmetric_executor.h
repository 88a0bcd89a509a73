#pragma once
// Runs one rank in place of all, where the ranks of a plan are provably alike.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/timed_executor.h"
#include "interconnect/flow_network.h"

namespace windtunnel {

struct SymmetricRun {
  ExecutionResult result;         ///< For all ranks and blocks of the plan.
  std::vector<LinkUse> link_use;  ///< For all links of the topology.
  std::string symmetry;  ///< "translations of 64 x 64 ranks: 1 of 4096 simulated": for reports.
};

/// A connection as `setting` would carry it, with nothing registered on any network.
struct ConnectionWay {
  ConnectionPath cost;  ///< `cost.route` is not used.
  Route route;          ///< Not used when `cost.local`.
  /// False when it depends on the ways asked for before: the proof then gives up.
  bool fixed = true;
  /// Connections of equal routes are one route of the network: their messages follow each other.
  /// Else each has a route of its own, and they share.
  bool one_per_route = false;
};
using WayOfConnection = std::function<ConnectionWay(const Block& sender, const Peer& to)>;

/// At flow level only. Sees the ranks as a grid (all factorisations of the rank count into up to
/// three sides, and into sides of 2) and looks for one whose translations, by one step along each
/// side and around, change neither the plan nor the network:
/// - the ops of every rank are those of rank 0 with translated peers. Compared op by op up to
///   1,000,000 ops; longer plans must vouch for themselves (`Plan::symmetry`) and are compared on
///   all ops of some ranks and some ops of all ranks;
/// - start, end, block times and connection costs are equal;
/// - no way depends on the order in which ways are chosen;
/// - each translation maps the links of all routes one to one onto links of equal rate, latency and
///   frames. Max-min shares depend on nothing else, so all ranks see the same times. A link that
///   they map to fewer links than there are ranks is shared by several ranks: each gets its part;
/// - no connection has a route of such links only.
/// - in the run, no two connections of a rank put a message on one route at one instant.
/// Then rank 0 is simulated on the network folded by that map: a link stands for all it is mapped
/// to, and a message to a peer arrives at rank 0 itself. Times are those of the full simulation to
/// the picosecond, but for the rounding of the rates of shared links (below 10^-9).
///
/// @param why_not  Told why no symmetry was found; may be null.
/// @param options  Of the network that rank 0 is simulated on.
/// @throws SimulationError as RunTimed does.
std::optional<SymmetricRun> RunSymmetric(const Plan& plan, const Cluster& cluster,
                                         ExecutionSetting& setting, const WayOfConnection& way_of,
                                         std::string* why_not = nullptr,
                                         const FlowNetwork::Options& options = {});

}  // namespace windtunnel
