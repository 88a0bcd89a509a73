#include "interconnect/route_choice.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

// The finaliser of SplitMix64: every input bit reaches every output bit.
std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::size_t Below(std::uint64_t hash, std::size_t count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((Wide{hash} * count) >> 64);
}

}  // namespace

const std::vector<std::string>& RoutePolicyNames() {
  static const std::vector<std::string> names = {"static", "ecmp", "adaptive"};
  return names;
}

RoutePolicy ParseRoutePolicy(std::string_view name, const InputFault& where) {
  const auto& names = RoutePolicyNames();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<RoutePolicy>(i);
  }
  InputFault fault = where;
  fault.value = std::string(name);
  fault.problem = "unknown routing";
  fault.expected = "one of " + JoinNames(names);
  fault.nearest = NearestName(name, names);
  throw ConfigError(std::move(fault));
}

std::size_t HashRouteIndex(const FlowKey& key, std::uint64_t seed, std::size_t count) {
  WT_CHECK(count > 0) << "no route to choose from";
  std::uint64_t hash = Mix(seed + 0x9e3779b97f4a7c15ULL);
  hash = Mix(hash ^ (std::uint64_t{key.from} << 32 | key.to));
  hash = Mix(hash ^ (std::uint64_t{key.channel} << 32 | key.port));
  return Below(hash, count);
}

std::size_t StaticRouteIndex(DeviceId to, std::size_t count) {
  WT_CHECK(count > 0) << "no route to choose from";
  return to % count;
}

RouteChooser::RouteChooser(const Cluster& cluster, RoutePolicy policy, std::uint64_t seed)
    : cluster_(cluster), policy_(policy), seed_(seed) {
  const Topology& topology = cluster.topology();
  connections_.resize(topology.links.size());
  ports_.reserve(topology.devices.size());
  for (DeviceId id = 0; id < topology.devices.size(); ++id) ports_.push_back(PortOf(id));
  std::vector<std::uint32_t> ways_back(ports_.size(), 0);
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    Port& port = ports_[link.to];
    if (!port.single || link.from != port.hub || link.down) continue;
    port.down = id;
    ++ways_back[link.to];
  }
  for (DeviceId id = 0; id < ports_.size(); ++id) {
    if (ways_back[id] != 1) ports_[id].single = false;
  }
}

// NICs, and endpoints without a NIC, that hang on one switch by one link each way and on nothing
// else that leads to the network.
RouteChooser::Port RouteChooser::PortOf(DeviceId device) const {
  const Topology& topology = cluster_.topology();
  Port port;
  const DeviceKind kind = topology.devices[device].kind;
  if (kind == DeviceKind::kNetworkSwitch || topology.devices[device].relay) return port;
  for (const LinkId id : cluster_.links_out(device)) {
    const Link& link = topology.links[id];
    if (link.kind != LinkKind::kNetwork) {
      if (kind == DeviceKind::kNic) continue;
      return Port{};  // A GPU with its own ways inside the host: the cluster knows better.
    }
    if (link.down || port.single || topology.devices[link.to].kind != DeviceKind::kNetworkSwitch) {
      return Port{};
    }
    port = {.up = id, .hub = link.to, .single = true};
  }
  return port;
}

// Links straight to `to` that are as fast as any network link of `from`: no route is wider, none
// shorter. Spares the search of the whole graph in rings and tori. Empty when the general search
// has to decide.
std::vector<Route> RouteChooser::NeighbourLinks(DeviceId from, DeviceId to) const {
  const Topology& topology = cluster_.topology();
  BitsPerSecond fastest;
  std::vector<Route> routes;
  for (const LinkId id : cluster_.links_out(from)) {
    const Link& link = topology.links[id];
    if (link.down) continue;
    if (link.kind != LinkKind::kNetwork) return {};
    if (link.rate > fastest) {
      fastest = link.rate;
      routes.clear();
    }
    if (link.to == to && link.rate == fastest) routes.push_back({id});
  }
  return routes;
}

const std::vector<Route>& RouteChooser::Between(DeviceId from, DeviceId to) {
  const auto [entry, fresh] = found_.try_emplace(std::uint64_t{from} << 32 | to);
  if (fresh) {
    if (from == to) {
      entry->second.emplace_back();
    } else {
      entry->second = NeighbourLinks(from, to);
      if (entry->second.empty()) entry->second = cluster_.EqualCostRoutes(from, to);
    }
  }
  return entry->second;
}

std::size_t RouteChooser::Pick(const FlowKey& key, const std::vector<Route>& routes) const {
  switch (policy_) {
    case RoutePolicy::kStatic:
      return StaticRouteIndex(key.to, routes.size());
    case RoutePolicy::kEcmp:
      return HashRouteIndex(key, seed_, routes.size());
    case RoutePolicy::kAdaptive:
      break;
  }
  // Least taken first; among equals the hash decides, so that senders do not all start at the same.
  const std::size_t start = HashRouteIndex(key, seed_, routes.size());
  std::size_t best = start;
  std::uint32_t best_load = UINT32_MAX;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const std::size_t candidate = (start + i) % routes.size();
    std::uint32_t load = 0;
    for (const LinkId link : routes[candidate]) load = std::max(load, connections_[link]);
    if (load < best_load) {
      best = candidate;
      best_load = load;
    }
  }
  return best;
}

void RouteChooser::NoteChoice(const std::vector<Route>& routes) {
  last_by_load_ = policy_ == RoutePolicy::kAdaptive && routes.size() > 1;
}

std::optional<Route> RouteChooser::Choose(const FlowKey& key) {
  if (key.from == key.to) return Route{};
  Route route;
  const Port& from = ports_[key.from];
  const Port& to = ports_[key.to];
  if (from.single && to.single) {
    const std::vector<Route>& routes = Between(from.hub, to.hub);
    if (routes.empty()) return std::nullopt;
    NoteChoice(routes);
    const Route& middle = routes[Pick(key, routes)];
    route.reserve(middle.size() + 2);
    route.push_back(from.up);
    route.insert(route.end(), middle.begin(), middle.end());
    route.push_back(to.down);
  } else {
    const std::vector<Route>& routes = Between(key.from, key.to);
    if (routes.empty()) return std::nullopt;
    NoteChoice(routes);
    route = routes[Pick(key, routes)];
  }
  for (const LinkId link : route) ++connections_[link];
  return route;
}

}  // namespace windtunnel
