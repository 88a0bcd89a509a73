#pragma once
// Which of several equal routes a connection takes. One function for every level of fidelity.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "interconnect/cluster.h"
#include "interconnect/network_ports.h"
#include "sim/error.h"

namespace windtunnel {

enum class RoutePolicy : std::uint8_t {
  /// By destination alone, as forwarding tables do: all flows to one port meet. Ports are numbered
  /// switch by switch, so that shifts and exchanges of ranks take different ways through a fat
  /// tree (d-mod-k; Zahavi, Johnson, Kerbyson, Lang, Optimized InfiniBand fat-tree routing for
  /// shift all-to-all communication patterns, 2010).
  kStatic,
  kEcmp,  ///< By a seeded hash of the connection: flows may collide.
  /// The route whose busiest link has the fewest connections so far, the static one first among
  /// equals; of more than 64 routes, of 64 spread over all.
  kAdaptive,
};
/// "static", "ecmp", "adaptive".
const std::vector<std::string>& RoutePolicyNames();
/// @throws ConfigError built on `where`, with the known names.
RoutePolicy ParseRoutePolicy(std::string_view name, const InputFault& where);

/// What tells connections between the same two devices apart for ECMP: the role of UDP source port
/// or queue-pair number.
struct FlowKey {
  DeviceId from = 0;
  DeviceId to = 0;
  std::uint32_t channel = 0;
  std::uint32_t port = 0;
};

/// Index below `count` (> 0). Pure: the same arguments give the same answer on every machine.
std::uint64_t HashRouteIndex(const FlowKey& key, std::uint64_t seed, std::uint64_t count);

/// Routes of a cluster under a policy. Keeps what it found: routes between two switches are
/// searched once, whatever the number of hosts below them. Deterministic in the order of calls
/// (only kAdaptive depends on that order).
class RouteChooser {
 public:
  /// `cluster` must outlive the chooser.
  RouteChooser(const Cluster& cluster, RoutePolicy policy, std::uint64_t seed);
  /// Nothing when `to` cannot be reached.
  std::optional<Route> Choose(const FlowKey& key);
  /// Connections chosen so far, per link of the topology.
  std::span<const std::uint32_t> connections() const { return connections_; }
  /// The last choice depended on those before it: kAdaptive found several equal ways.
  bool last_by_load() const { return last_by_load_; }

 private:
  RouteSet NeighbourLinks(DeviceId from, DeviceId to) const;
  const RouteSet& Between(DeviceId from, DeviceId to);
  void NoteChoice(const RouteSet& routes);
  Route Pick(const FlowKey& key, const RouteSet& routes) const;
  std::uint64_t LeastTaken(const RouteSet& routes, std::uint64_t start) const;

  const Cluster& cluster_;
  RoutePolicy policy_;
  std::uint64_t seed_;
  NetworkPorts ports_;
  SwitchRoutes switch_routes_;
  std::unordered_map<std::uint64_t, RouteSet> found_;
  std::vector<std::uint32_t> connections_;
  bool last_by_load_ = false;
};

}  // namespace windtunnel
