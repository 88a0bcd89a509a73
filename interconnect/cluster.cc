#include "interconnect/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/connected_components.hpp>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "interconnect/max_flow.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

// Where a route stands: on the host it starts at, in the network, or on the host it ends at. A host
// is no router: a route that has left the network does not enter it again.
enum Phase : std::uint8_t { kBeforeNetwork, kInNetwork, kAfterNetwork };
constexpr std::size_t kPhases = 3;

struct EdgeFacts {
  LinkId link;
};
// Fixed after construction and read by many: out-links of a device lie side by side.
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, EdgeFacts,
                                                 boost::no_property, DeviceId>;

InputFault Fault(const Topology& topology, std::string field, std::string value,
                 std::string problem) {
  return {.file = topology.source,
          .field = std::move(field),
          .value = std::move(value),
          .problem = std::move(problem)};
}

void CheckTopology(const Topology& topology) {
  std::unordered_set<std::string_view> names;
  std::map<std::pair<std::uint32_t, std::string_view>, const Device*> gpus_by_bus;
  for (const Device& device : topology.devices) {
    if (!names.insert(device.name).second)
      throw ConfigError(Fault(topology, "devices", device.name, "two devices have the name"));
    if (device.kind != DeviceKind::kGpu || device.bus_id.empty()) continue;
    const auto [other, fresh] = gpus_by_bus.try_emplace({device.node, device.bus_id}, &device);
    if (!fresh) {
      throw ConfigError(Fault(topology, fmt::format("{} and {}", other->second->name, device.name),
                              device.bus_id, "two GPUs, or two ranks, on one bus id:"));
    }
  }
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const std::string field = fmt::format("links[{}]", i);
    if (link.from >= topology.devices.size() || link.to >= topology.devices.size())
      throw ConfigError(Fault(topology, field, "", "has an end that is no device"));
    if (link.from == link.to)
      throw ConfigError(
          Fault(topology, field, topology.devices[link.from].name, "joins a device to itself:"));
    if (!link.down && link.rate < kSlowestLink) {
      InputFault fault = Fault(
          topology, field,
          fmt::format("{} -> {}", topology.devices[link.from].name, topology.devices[link.to].name),
          link.rate.count() == 0
              ? "has rate 0 and is not down:"
              : fmt::format("its rate of {} b/s is too low to be simulated:", link.rate.count()));
      fault.expected = fmt::format("at least {} kb/s, or down", kSlowestLink.count() / 1000);
      throw ConfigError(std::move(fault));
    }
  }
}

}  // namespace

struct Cluster::Impl {
  class Walk;
  class SwitchTarget;
  Topology topology;
  Graph graph;
  std::vector<LinkId> links_by_source;  // Grouped by source, in file order within a source.
  std::vector<std::size_t> first_link;  // Into links_by_source, one more than devices.
  std::vector<DeviceId> gpus;
  std::vector<std::vector<DeviceId>> nics_by_node;
  // Devices of other hosts can be on a route only when some device passes traffic on that ends
  // elsewhere; without such devices the search leaves other hosts out.
  bool has_relays = false;

  explicit Impl(Topology t) : topology(std::move(t)) {
    CheckTopology(topology);
    const std::size_t count = topology.devices.size();
    first_link.assign(count + 1, 0);
    for (const Link& link : topology.links) ++first_link[link.from + 1];
    for (std::size_t i = 0; i < count; ++i) first_link[i + 1] += first_link[i];
    links_by_source.resize(topology.links.size());
    std::vector<std::size_t> next(first_link.begin(), first_link.end() - 1);
    for (LinkId id = 0; id < topology.links.size(); ++id)
      links_by_source[next[topology.links[id].from]++] = id;
    std::vector<std::pair<DeviceId, DeviceId>> ends;
    std::vector<EdgeFacts> facts;
    for (const LinkId id : links_by_source) {
      ends.emplace_back(topology.links[id].from, topology.links[id].to);
      facts.push_back({id});
    }
    graph = Graph(boost::edges_are_sorted, ends.begin(), ends.end(), facts.begin(),
                  static_cast<DeviceId>(count));
    nics_by_node.resize(topology.node_count);
    for (DeviceId id = 0; id < count; ++id) {
      const Device& device = topology.devices[id];
      if (device.kind == DeviceKind::kGpu) gpus.push_back(id);
      if (device.kind == DeviceKind::kNic && device.node < topology.node_count)
        nics_by_node[device.node].push_back(id);
      if (device.relay || device.kind == DeviceKind::kTpu) has_relays = true;
    }
  }

  const Device& device(DeviceId id) const { return topology.devices[id]; }
  const Link& link(LinkId id) const { return topology.links[id]; }

  // May a route that came in over `in` leave `id` over `out`?
  bool MayPass(DeviceId id, LinkKind in, LinkKind out) const {
    const Device& d = device(id);
    if (d.relay) return true;
    switch (d.kind) {
      case DeviceKind::kCpu:
      case DeviceKind::kPcieSwitch:
      case DeviceKind::kNvSwitch:
      case DeviceKind::kNetworkSwitch:
        return true;
      case DeviceKind::kNic:  // Between its host and the network, never as a switch.
        return (in == LinkKind::kNetwork) != (out == LinkKind::kNetwork);
      case DeviceKind::kTpu:
        return in == LinkKind::kIci && out == LinkKind::kIci;
      case DeviceKind::kGpu:
      case DeviceKind::kStorage:
        return false;
    }
    return false;
  }

  std::optional<Phase> NextPhase(Phase phase, const Link& l) const {
    if (l.kind == LinkKind::kNetwork) {
      if (phase == kAfterNetwork) return std::nullopt;
      return kInNetwork;
    }
    return phase == kInNetwork ? kAfterNetwork : phase;
  }
  static std::size_t State(DeviceId id, Phase phase) { return id * kPhases + phase; }
  static DeviceId DeviceOf(std::size_t state) { return static_cast<DeviceId>(state / kPhases); }
  static Phase PhaseOf(std::size_t state) { return static_cast<Phase>(state % kPhases); }

  struct Query {
    DeviceId from;
    DeviceId to;
    bool use_network;
  };

  bool OnOtherHost(DeviceId id, Phase phase, const Query& q) const {
    if (has_relays || id == q.to) return false;
    const std::uint32_t node = device(id).node;
    if (node == kNoNode) return false;
    // In the network the only host devices that help are the target's NICs, or the source's own.
    if (phase == kBeforeNetwork) return node != device(q.from).node;
    return node != device(q.to).node;
  }

  // Calls `visit(link id, next state)` for each link a route in `state` may take. `in` is the kind
  // of the link it came over; meaningless at the source.
  template <class Visit>
  void ForEachStep(std::size_t state, LinkKind in, const Query& q, const Visit& visit) const {
    const DeviceId at = DeviceOf(state);
    const auto [begin, end] = boost::out_edges(at, graph);
    for (auto edge = begin; edge != end; ++edge) {
      const LinkId id = graph[*edge].link;
      const Link& l = link(id);
      if (l.down) continue;
      if (l.kind == LinkKind::kNetwork && !q.use_network) continue;
      if (!l.forward && l.from != q.from && l.to != q.to) continue;
      if (at != q.from && !MayPass(at, in, l.kind)) continue;
      if (l.to == q.from) continue;
      const auto phase = NextPhase(PhaseOf(state), l);
      if (!phase || OnOtherHost(l.to, *phase, q)) continue;
      visit(id, State(l.to, *phase));
    }
  }

  std::size_t StartState(DeviceId from) const {
    return State(from,
                 device(from).kind == DeviceKind::kNetworkSwitch ? kInNetwork : kBeforeNetwork);
  }

  // Largest bottleneck of any route, 0 when there is none: Dijkstra with min in place of sum.
  std::uint64_t WidestRate(const Query& q) const {
    std::vector<std::uint64_t> width(topology.devices.size() * kPhases, 0);
    std::vector<LinkKind> in(width.size(), LinkKind::kPcie);
    std::priority_queue<std::pair<std::uint64_t, std::size_t>> open;
    const std::size_t start = StartState(q.from);
    width[start] = UINT64_MAX;
    open.emplace(UINT64_MAX, start);
    while (!open.empty()) {
      const auto [rate, state] = open.top();
      open.pop();
      if (DeviceOf(state) == q.to) return rate;
      if (rate < width[state]) continue;
      ForEachStep(state, in[state], q, [&](LinkId id, std::size_t next) {
        const std::uint64_t reached = std::min(rate, link(id).rate.count());
        if (reached <= width[next]) return;
        width[next] = reached;
        in[next] = link(id).kind;
        open.emplace(reached, next);
      });
    }
    return 0;
  }

  struct Reached {
    std::size_t state;
    std::size_t parent;  // Index into the level before.
    LinkId link;
    std::uint64_t latency;
  };
  // Breadth first over links of at least `least`. Each level lists its states in the order of their
  // paths' link ids; within a state the lowest latency wins, then that order.
  std::optional<Route> ShortestRoute(const Query& q, std::uint64_t least) const {
    std::vector<std::vector<Reached>> levels(1);
    levels[0].push_back({StartState(q.from), 0, 0, 0});
    std::unordered_set<std::size_t> seen{levels[0][0].state};
    while (!levels.back().empty()) {
      const std::vector<Reached>& level = levels.back();
      std::vector<Reached> next_level;
      std::map<std::size_t, std::size_t> index_of;
      for (std::size_t i = 0; i < level.size(); ++i) {
        const LinkKind in = levels.size() == 1 ? LinkKind::kPcie : link(level[i].link).kind;
        ForEachStep(level[i].state, in, q, [&](LinkId id, std::size_t next) {
          if (link(id).rate.count() < least || seen.contains(next)) return;
          const Reached step{next, i, id, level[i].latency + link(id).latency.count()};
          const auto [known, fresh] = index_of.try_emplace(next, next_level.size());
          if (fresh) {
            next_level.push_back(step);
          } else if (step.latency < next_level[known->second].latency) {
            next_level[known->second] = step;
          }
        });
      }
      std::sort(next_level.begin(), next_level.end(), [](const Reached& a, const Reached& b) {
        return std::tie(a.parent, a.link) < std::tie(b.parent, b.link);
      });
      const Reached* best = nullptr;
      for (const Reached& reached : next_level) {
        seen.insert(reached.state);
        if (DeviceOf(reached.state) == q.to && (!best || reached.latency < best->latency))
          best = &reached;
      }
      if (best != nullptr) {
        Route route(levels.size());
        const Reached* at = best;
        for (std::size_t depth = levels.size(); depth > 0; --depth) {
          route[depth - 1] = at->link;
          at = &levels[depth - 1][at->parent];
        }
        return route;
      }
      levels.push_back(std::move(next_level));
    }
    return std::nullopt;
  }

  bool SameHost(DeviceId a, DeviceId b) const {
    return device(a).node == device(b).node && device(a).node != kNoNode;
  }

  // The route the wires give, whether or not peer-to-peer is allowed on it.
  std::optional<std::pair<Route, std::uint64_t>> WireRoute(DeviceId from, DeviceId to) const {
    if (from == to) return std::pair{Route{}, std::uint64_t{UINT64_MAX}};
    // Inside a host the network is the last resort, however slow the way between sockets is.
    if (SameHost(from, to)) {
      const Query local{from, to, false};
      if (const std::uint64_t rate = WidestRate(local); rate > 0)
        return std::pair{*ShortestRoute(local, rate), rate};
    }
    const Query q{from, to, true};
    const std::uint64_t rate = WidestRate(q);
    if (rate == 0) return std::nullopt;
    auto route = ShortestRoute(q, rate);
    WT_CHECK(route.has_value()) << "a widest route was found and no shortest one";
    return std::pair{std::move(*route), rate};
  }

  bool CrossesNetwork(const Route& route) const {
    return std::any_of(route.begin(), route.end(),
                       [&](LinkId id) { return link(id).kind == LinkKind::kNetwork; });
  }
  bool IsEndpoint(DeviceId id) const {
    const DeviceKind kind = device(id).kind;
    return kind == DeviceKind::kGpu || kind == DeviceKind::kNic || kind == DeviceKind::kStorage ||
           kind == DeviceKind::kTpu;
  }
  // Peer-to-peer traffic that a link redirects goes up to the root complex and down again.
  bool IsRedirected(const Route& route) const {
    if (route.empty()) return false;
    if (!IsEndpoint(link(route.front()).from) || !IsEndpoint(link(route.back()).to)) return false;
    if (PassesCpu(route)) return false;
    return std::any_of(route.begin(), route.end(), [&](LinkId id) {
      return link(id).kind == LinkKind::kPcie && !link(id).p2p;
    });
  }
  bool PassesCpu(const Route& route) const {
    for (std::size_t i = 1; i < route.size(); ++i) {
      if (device(link(route[i]).from).kind == DeviceKind::kCpu) return true;
    }
    return false;
  }
};

Cluster::Cluster(Topology topology) : impl_(std::make_unique<Impl>(std::move(topology))) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

const Topology& Cluster::topology() const { return impl_->topology; }
std::span<const DeviceId> Cluster::gpus() const { return impl_->gpus; }
std::span<const LinkId> Cluster::links_out(DeviceId device) const {
  const std::size_t begin = impl_->first_link[device];
  return {impl_->links_by_source.data() + begin, impl_->first_link[device + 1] - begin};
}

std::optional<Route> Cluster::FindRoute(DeviceId from, DeviceId to) const {
  auto found = impl_->WireRoute(from, to);
  if (!found) return std::nullopt;
  if (impl_->IsRedirected(found->first)) {
    if (auto bounce = FindHostBounceRoute(from, to)) return bounce;
  }
  return std::move(found->first);
}

// Depth first over states that can still reach the target in the hops that are left.
class Cluster::Impl::Walk {
 public:
  Walk(const Impl& impl, DeviceId to, std::uint64_t least)
      : impl_(impl), to_(to), least_(least), graph_(std::make_shared<RouteGraph>()) {}

  RouteSet From(const Query& q, std::size_t hops) {
    const auto start = PlaceOf(q, impl_.StartState(q.from), hops, LinkKind::kPcie);
    WT_CHECK(start.has_value()) << "a shortest route was found and is not among the equal ones";
    return {graph_, *start};
  }

 private:
  // A state, the hops left there and the kind of link it was reached by.
  using Known = std::tuple<std::size_t, std::size_t, LinkKind>;

  std::optional<RouteGraph::Place> PlaceOf(const Query& q, std::size_t state, std::size_t left,
                                           LinkKind in) {
    if (DeviceOf(state) == to_)
      return left == 0 ? std::optional(RouteGraph::kTarget) : std::nullopt;
    if (left == 0) return std::nullopt;
    const auto known = places_.find({state, left, in});
    if (known != places_.end()) return known->second;
    std::vector<RouteGraph::Step> steps;
    impl_.ForEachStep(state, in, q, [&](LinkId id, std::size_t next) {
      if (impl_.link(id).rate.count() < least_) return;
      if (const auto place = PlaceOf(q, next, left - 1, impl_.link(id).kind))
        steps.push_back({id, *place});
    });
    std::optional<RouteGraph::Place> place;
    if (!steps.empty()) place = graph_->Add(steps);
    places_.emplace(Known{state, left, in}, place);
    return place;
  }

  const Impl& impl_;
  DeviceId to_;
  std::uint64_t least_;
  std::shared_ptr<RouteGraph> graph_;
  std::map<Known, std::optional<RouteGraph::Place>> places_;  // Nothing: a dead end.
};

RouteSet Cluster::EqualCostRoutes(DeviceId from, DeviceId to) const {
  const auto best = FindRoute(from, to);
  if (!best) return {};
  const auto wire = impl_->WireRoute(from, to);
  if (best->empty() || *best != wire->first) return RouteSet(*best);
  const bool network = impl_->CrossesNetwork(*best);
  const Impl::Query q{from, to, network || !impl_->SameHost(from, to)};
  return Impl::Walk(*impl_, to, wire->second).From(q, best->size());
}

// Between switches of the network, routes pass switches alone where no device relays: one search
// from a switch backwards serves all that lead there.
class Cluster::Impl::SwitchTarget {
 public:
  SwitchTarget(const Impl& impl, const std::vector<std::vector<LinkId>>& links_in, DeviceId to)
      : impl_(impl), links_in_(links_in), to_(to) {
    width_.assign(impl.topology.devices.size(), 0);
    width_[to] = UINT64_MAX;
    std::priority_queue<std::pair<std::uint64_t, DeviceId>> open;
    open.emplace(UINT64_MAX, to);
    while (!open.empty()) {
      const auto [rate, at] = open.top();
      open.pop();
      if (rate < width_[at]) continue;
      for (const LinkId id : links_in_[at]) {
        const Link& l = impl.link(id);
        const std::uint64_t reached = std::min(rate, l.rate.count());
        if (reached <= width_[l.from]) continue;
        width_[l.from] = reached;
        open.emplace(reached, l.from);
      }
    }
  }

  RouteSet From(DeviceId from) {
    const std::uint64_t least = width_[from];
    if (least == 0) return {};
    const auto [entry, fresh] = rates_.try_emplace(least, impl_, to_, least);
    AtRate& at_rate = entry->second;
    if (fresh) at_rate.hops = HopsOver(least);
    return at_rate.walk.From({from, to_, true}, at_rate.hops[from]);
  }

 private:
  struct AtRate {
    AtRate(const Impl& impl, DeviceId to, std::uint64_t least) : walk(impl, to, least) {}
    Walk walk;
    std::vector<std::uint32_t> hops;
  };

  // Fewest links of at least this rate to the target, per device.
  std::vector<std::uint32_t> HopsOver(std::uint64_t least) const {
    std::vector<std::uint32_t> hops(width_.size(), UINT32_MAX);
    std::vector<DeviceId> open{to_};
    hops[to_] = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (const LinkId id : links_in_[open[i]]) {
        const Link& l = impl_.link(id);
        if (l.rate.count() < least || hops[l.from] != UINT32_MAX) continue;
        hops[l.from] = hops[open[i]] + 1;
        open.push_back(l.from);
      }
    }
    return hops;
  }

  const Impl& impl_;
  const std::vector<std::vector<LinkId>>& links_in_;
  DeviceId to_;
  std::vector<std::uint64_t> width_;  // Largest bottleneck of any way to the target, per device.
  std::map<std::uint64_t, AtRate> rates_;
};

struct SwitchRoutes::Targets {
  std::vector<std::vector<LinkId>> links_in;  // Of switches, from switches, that are up.
  std::map<DeviceId, Cluster::Impl::SwitchTarget> known;
};

SwitchRoutes::SwitchRoutes(const Cluster& cluster)
    : cluster_(cluster), targets_(std::make_shared<Targets>()) {
  const Topology& topology = cluster.topology();
  // What lies behind a switch must not depend on where routes started.
  plain_ = !cluster.impl_->has_relays;
  targets_->links_in.resize(topology.devices.size());
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    plain_ = plain_ && link.forward;
    if (!link.down && IsSwitch(link.from) && IsSwitch(link.to))
      targets_->links_in[link.to].push_back(id);
  }
}

bool SwitchRoutes::IsSwitch(DeviceId id) const {
  return cluster_.topology().devices[id].kind == DeviceKind::kNetworkSwitch;
}

RouteSet SwitchRoutes::Between(DeviceId from, DeviceId to) {
  if (!plain_ || from == to || !IsSwitch(from) || !IsSwitch(to))
    return cluster_.EqualCostRoutes(from, to);
  const Cluster::Impl& impl = *cluster_.impl_;
  return targets_->known.try_emplace(to, impl, targets_->links_in, to).first->second.From(from);
}

std::optional<Route> Cluster::FindHostBounceRoute(DeviceId from, DeviceId to) const {
  const auto up_cpu = HomeCpu(from);
  const auto down_cpu = HomeCpu(to);
  if (!up_cpu || !down_cpu) return std::nullopt;
  Route route;
  for (const auto& [a, b] :
       {std::pair{from, *up_cpu}, std::pair{*up_cpu, *down_cpu}, std::pair{*down_cpu, to}}) {
    const auto part = impl_->WireRoute(a, b);
    if (!part) return std::nullopt;
    route.insert(route.end(), part->first.begin(), part->first.end());
  }
  return route;
}

bool Cluster::PeerToPeerPossible(DeviceId from, DeviceId to) const {
  const auto found = impl_->WireRoute(from, to);
  if (!found) return false;
  const Route& route = found->first;
  if (impl_->CrossesNetwork(route) || impl_->PassesCpu(route)) return false;
  return std::all_of(route.begin(), route.end(), [&](LinkId id) {
    const Link& link = impl_->link(id);
    return link.kind == LinkKind::kNvlink || link.kind == LinkKind::kIci ||
           (link.kind == LinkKind::kPcie && link.p2p);
  });
}

std::optional<DeviceId> Cluster::HomeCpu(DeviceId device) const {
  if (impl_->device(device).kind == DeviceKind::kCpu) return device;
  std::vector<DeviceId> level{device};
  std::set<DeviceId> seen{device};
  while (!level.empty()) {
    std::vector<DeviceId> next;
    std::optional<DeviceId> found;
    for (const DeviceId at : level) {
      for (const LinkId id : links_out(at)) {
        const Link& link = impl_->link(id);
        if (link.kind != LinkKind::kPcie && link.kind != LinkKind::kC2c) continue;
        const DeviceKind kind = impl_->device(link.to).kind;
        if (kind == DeviceKind::kCpu && (!found || link.to < *found)) found = link.to;
        if (kind == DeviceKind::kPcieSwitch && seen.insert(link.to).second) next.push_back(link.to);
      }
    }
    if (found) return found;
    level = std::move(next);
  }
  return std::nullopt;
}

std::vector<DeviceId> Cluster::NearestNics(DeviceId gpu) const {
  const std::uint32_t node = impl_->device(gpu).node;
  if (node >= impl_->nics_by_node.size()) return {};
  struct Candidate {
    int distance;  // 0 one switch, 1 several, 2 through a CPU, 3 between CPUs, 4 unreachable.
    std::uint64_t rate;
    std::uint32_t index;
    DeviceId id;
  };
  std::vector<Candidate> candidates;
  for (const DeviceId nic : impl_->nics_by_node[node]) {
    Candidate candidate{4, 0, impl_->device(nic).index, nic};
    if (const auto found = impl_->WireRoute(gpu, nic)) {
      candidate.rate = found->second;
      candidate.distance = found->first.size() <= 2 ? 0 : 1;
      if (impl_->PassesCpu(found->first)) candidate.distance = 2;
      for (const LinkId id : found->first) {
        if (impl_->link(id).kind == LinkKind::kNuma) candidate.distance = 3;
      }
    }
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.distance, b.rate, a.index, a.id) <
           std::tuple(b.distance, a.rate, b.index, b.id);
  });
  std::vector<DeviceId> nics;
  for (const Candidate& candidate : candidates) nics.push_back(candidate.id);
  return nics;
}

BitsPerSecond Cluster::Bottleneck(std::span<const LinkId> route) const {
  std::uint64_t rate = UINT64_MAX;
  for (const LinkId id : route) rate = std::min(rate, impl_->link(id).rate.count());
  return BitsPerSecond(rate);
}

Picoseconds Cluster::Latency(std::span<const LinkId> route) const {
  Picoseconds total;
  for (const LinkId id : route) total += impl_->link(id).latency;
  return total;
}

std::vector<std::uint32_t> Cluster::Components() const {
  using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
  Undirected joined(impl_->topology.devices.size());
  for (const Link& link : impl_->topology.links) {
    if (!link.down) boost::add_edge(link.from, link.to, joined);
  }
  std::vector<std::uint32_t> component(impl_->topology.devices.size());
  // Vertices are visited by rising id, so components are numbered by their lowest device.
  if (!component.empty()) boost::connected_components(joined, component.data());
  return component;
}

BitsPerSecond Cluster::PairBound(DeviceId from, DeviceId to) const {
  if (from == to) return BitsPerSecond(UINT64_MAX);
  return MaxFlow(impl_->topology, {&from, 1}, {&to, 1});
}

BitsPerSecond Cluster::Bisection(std::span<const DeviceId> devices) const {
  if (devices.size() < 2) return BitsPerSecond(UINT64_MAX);
  return MaxFlow(impl_->topology, devices.first(devices.size() / 2),
                 devices.subspan(devices.size() / 2));
}

}  // namespace windtunnel
