#include "interconnect/route_choice.h"

#include <algorithm>
#include <numeric>

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

std::uint64_t Below(std::uint64_t hash, std::uint64_t count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{hash} * count) >> 64);
}

// Routes that an adaptive choice looks at.
constexpr std::uint64_t kLookedAt = 64;

// From one route to the next that is looked at: every route comes up once in `count` of them, and
// neighbours differ in all that a route chooses, whatever the numbers of switches.
std::uint64_t StrideOver(std::uint64_t count) {
  if (count <= kLookedAt) return 1;
  auto stride = static_cast<std::uint64_t>(static_cast<double>(count) * 0.6180339887);
  while (std::gcd(stride, count) != 1) ++stride;
  return stride;
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

std::uint64_t HashRouteIndex(const FlowKey& key, std::uint64_t seed, std::uint64_t count) {
  WT_CHECK(count > 0) << "no route to choose from";
  std::uint64_t hash = Mix(seed + 0x9e3779b97f4a7c15ULL);
  hash = Mix(hash ^ (std::uint64_t{key.from} << 32 | key.to));
  hash = Mix(hash ^ (std::uint64_t{key.channel} << 32 | key.port));
  return Below(hash, count);
}

RouteChooser::RouteChooser(const Cluster& cluster, RoutePolicy policy, std::uint64_t seed)
    : cluster_(cluster), policy_(policy), seed_(seed), ports_(cluster), switch_routes_(cluster) {
  connections_.resize(cluster.topology().links.size());
}

// Links straight to `to` that are as fast as any network link of `from`: no route is wider, none
// shorter. Spares the search of the whole graph in rings and tori. Empty when the general search
// has to decide.
RouteSet RouteChooser::NeighbourLinks(DeviceId from, DeviceId to) const {
  const Topology& topology = cluster_.topology();
  BitsPerSecond fastest;
  std::vector<RouteGraph::Step> steps;
  for (const LinkId id : cluster_.links_out(from)) {
    const Link& link = topology.links[id];
    if (link.down) continue;
    if (link.kind != LinkKind::kNetwork) return {};
    if (link.rate > fastest) {
      fastest = link.rate;
      steps.clear();
    }
    if (link.to == to && link.rate == fastest) steps.push_back({id, RouteGraph::kTarget});
  }
  if (steps.empty()) return {};
  auto graph = std::make_shared<RouteGraph>();
  const RouteGraph::Place start = graph->Add(steps);
  return {std::move(graph), start};
}

const RouteSet& RouteChooser::Between(DeviceId from, DeviceId to) {
  const auto [entry, fresh] = found_.try_emplace(std::uint64_t{from} << 32 | to);
  if (fresh) {
    if (from == to) {
      entry->second = RouteSet(Route{});
    } else {
      entry->second = NeighbourLinks(from, to);
      if (entry->second.empty()) entry->second = switch_routes_.Between(from, to);
    }
  }
  return entry->second;
}

Route RouteChooser::Pick(const FlowKey& key, const RouteSet& routes) const {
  if (routes.count() == 1) return routes.At(0);
  if (policy_ == RoutePolicy::kEcmp) return routes.At(HashRouteIndex(key, seed_, routes.count()));
  const std::uint64_t by_port = routes.IndexByDigits(ports_.numbers()[key.to]);
  return routes.At(policy_ == RoutePolicy::kStatic ? by_port : LeastTaken(routes, by_port));
}

std::uint64_t RouteChooser::LeastTaken(const RouteSet& routes, std::uint64_t start) const {
  const std::uint64_t count = routes.count();
  const std::uint64_t stride = StrideOver(count);
  std::uint64_t best = start;
  std::uint32_t best_load = UINT32_MAX;
  std::uint64_t candidate = start;
  for (std::uint64_t i = std::min(count, kLookedAt); i-- > 0;) {
    std::uint32_t load = 0;
    const bool lower = routes.ForEachLink(candidate, [&](LinkId link) {
      load = std::max(load, connections_[link]);
      return load < best_load;
    });
    if (lower) {
      best = candidate;
      best_load = load;
    }
    candidate = (candidate + stride) % count;
  }
  return best;
}

void RouteChooser::NoteChoice(const RouteSet& routes) {
  last_by_load_ = policy_ == RoutePolicy::kAdaptive && routes.count() > 1;
}

std::optional<Route> RouteChooser::Choose(const FlowKey& key) {
  if (key.from == key.to) return Route{};
  Route route;
  const NetworkPorts::Port& from = ports_[key.from];
  const NetworkPorts::Port& to = ports_[key.to];
  const bool ports = from.single && to.single;
  const RouteSet& routes = ports ? Between(from.hub, to.hub) : Between(key.from, key.to);
  if (routes.empty()) return std::nullopt;
  NoteChoice(routes);
  Route middle = Pick(key, routes);
  if (!ports) {
    route = std::move(middle);
  } else {
    route.reserve(middle.size() + 2);
    route.push_back(from.up);
    route.insert(route.end(), middle.begin(), middle.end());
    route.push_back(to.down);
  }
  for (const LinkId link : route) ++connections_[link];
  return route;
}

}  // namespace windtunnel
