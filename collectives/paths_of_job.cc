#include "collectives/paths_of_job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

bool IsOnNetwork(const Cluster& cluster, DeviceId device) {
  const auto links = cluster.links_out(device);
  return std::any_of(links.begin(), links.end(), [&](LinkId link) {
    return cluster.topology().links[link].kind == LinkKind::kNetwork;
  });
}

// Parts of the cluster that links of peer-to-peer join: between two of them it is not possible, and
// nobody has to search.
std::vector<DeviceId> PeerGroups(const Cluster& cluster, const std::vector<DeviceId>& gpus) {
  std::vector<DeviceId> parent(cluster.topology().devices.size());
  std::iota(parent.begin(), parent.end(), DeviceId{0});
  const auto root = [&](DeviceId device) {
    while (parent[device] != device) device = parent[device] = parent[parent[device]];
    return device;
  };
  for (const Link& link : cluster.topology().links) {
    if (link.kind != LinkKind::kNetwork && !link.down) parent[root(link.from)] = root(link.to);
  }
  std::vector<DeviceId> groups;
  for (const DeviceId gpu : gpus) groups.push_back(root(gpu));
  return groups;
}

}  // namespace

JobPaths::JobPaths(const Cluster& cluster, std::vector<DeviceId> gpus, Options options)
    : cluster_(cluster),
      gpus_(std::move(gpus)),
      options_(std::move(options)),
      chooser_(cluster, options_.routing, options_.seed) {
  std::set<std::uint32_t> distinct;
  for (const DeviceId gpu : gpus_) {
    const std::uint32_t node = cluster_.topology().devices[gpu].node;
    nodes_.push_back(node);
    distinct.insert(node);
  }
  node_count_ = static_cast<std::uint32_t>(distinct.size());
  peer_group_ = PeerGroups(cluster_, gpus_);
  nics_.resize(gpus_.size());
  if (node_count_ > 1 || !options_.shared_memory) {
    for (std::size_t r = 0; r < gpus_.size(); ++r) nics_[r] = cluster_.NearestNics(gpus_[r]);
  }
  turns_.resize(gpus_.size());
  FindTurns();
}

JobPaths::Path JobPaths::Between(Rank from, Rank to, NicPair nics) {
  WT_CHECK(from < gpus_.size()) << "rank " << from;
  WT_CHECK(to < gpus_.size()) << "rank " << to;
  const auto [number, fresh] = known_.NumberOf({from, to, nics.out, nics.in});
  if (fresh) found_.emplace_back();
  Entry& entry = found_[number];
  if (!entry.known) {
    const Way way = Find(from, to, nics);
    entry = {{routes_.NumberOf(way.route).first, way.transport, way.by_load}, true};
  }
  return entry.path;
}

bool JobPaths::UsesNetwork(Rank from, Rank to) {
  return Between(from, to, {}).transport == Transport::kNetwork;
}

std::uint32_t JobPaths::NicInTurn(Rank rank, std::uint32_t turn) const {
  const Turns& turns = turns_[rank];
  if (turns.nics.empty()) return kNearest;
  const std::size_t place = (turn + turns.first) % turns.nics.size();
  return cluster_.topology().devices[turns.nics[place]].index;
}

void JobPaths::FindTurns() {
  std::map<std::vector<DeviceId>, std::size_t> ranks_before;
  for (std::size_t r = 0; r < gpus_.size(); ++r) {
    const std::vector<DeviceId>& nics = nics_[r];
    Turns& turns = turns_[r];
    if (nics.empty()) continue;
    // Only NICs as near as the nearest: same rate and hops from the GPU.
    const auto first = cluster_.FindRoute(gpus_[r], nics.front());
    turns.nics.push_back(nics.front());
    while (first && turns.nics.size() < nics.size()) {
      const DeviceId next = nics[turns.nics.size()];
      const auto other = cluster_.FindRoute(gpus_[r], next);
      if (!other || other->size() != first->size() ||
          cluster_.Bottleneck(*other) != cluster_.Bottleneck(*first))
        break;
      turns.nics.push_back(next);
    }
    std::sort(turns.nics.begin(), turns.nics.end());
    turns.first = ranks_before[turns.nics]++;
  }
}

JobPaths::Way JobPaths::Find(Rank from, Rank to, NicPair chosen) {
  if (gpus_[from] == gpus_[to]) return {Transport::kLocal, {}};
  const bool same_node = nodes_[from] == nodes_[to];
  // Endpoints that are on the network themselves, as in files of other simulators.
  if (!same_node && IsOnNetwork(cluster_, gpus_[from]) && IsOnNetwork(cluster_, gpus_[to])) {
    if (auto route = chooser_.Choose({.from = gpus_[from], .to = gpus_[to]}))
      return {Transport::kNetwork, std::move(*route), chooser_.last_by_load()};
  }
  if (options_.peer_to_peer && peer_group_[from] == peer_group_[to] &&
      cluster_.PeerToPeerPossible(gpus_[from], gpus_[to])) {
    if (auto route = cluster_.FindRoute(gpus_[from], gpus_[to]))
      return {Transport::kPeerToPeer, std::move(*route)};
  }
  if (same_node && options_.shared_memory) {
    if (auto route = cluster_.FindHostBounceRoute(gpus_[from], gpus_[to]))
      return {Transport::kSharedMemory, std::move(*route)};
  }
  DeviceId out = NicOf(from, chosen.out);
  const DeviceId in = NicOf(to, chosen.in);
  const auto choose = [&] {
    return chooser_.Choose({.from = out, .to = in, .channel = from, .port = to});
  };
  auto middle = choose();
  Route route;
  if (middle) {
    route = NetworkLeg(from, out, Leg::kOut);
  } else {
    // Rails that do not meet: out by a NIC of the receiver's rail, through the GPU next to it.
    for (const DeviceId other : nics_[from]) {
      const DeviceId asked = std::exchange(out, other);
      if ((middle = choose())) {
        route = NetworkLeg(from, other, Leg::kOutByNeighbour);
        break;
      }
      out = asked;
    }
  }
  if (!middle) {
    const auto& devices = cluster_.topology().devices;
    throw ConfigError(
        {.file = cluster_.topology().source,
         .field = devices[gpus_[from]].name + " to " + devices[gpus_[to]].name,
         .problem = "there is no way between " + devices[out].name + " and " + devices[in].name,
         .expected = "NICs joined by a network (a `fabric` in the topology file)"});
  }
  route.insert(route.end(), middle->begin(), middle->end());
  const Route last = NetworkLeg(to, in, Leg::kIn);
  route.insert(route.end(), last.begin(), last.end());
  return {Transport::kNetwork, std::move(route), chooser_.last_by_load()};
}

DeviceId JobPaths::NicOf(Rank rank, std::uint32_t wanted) const {
  const std::vector<DeviceId>& nics = nics_[rank];
  if (nics.empty()) {
    const Device& gpu = cluster_.topology().devices[gpus_[rank]];
    throw ConfigError(
        {.file = cluster_.topology().source,
         .field = gpu.name,
         .problem = "has no NIC on its node, and its peers are on other nodes or not reachable",
         .expected = "a NIC per node that joins a job over several nodes"});
  }
  if (wanted == kNearest) return nics.front();
  for (const DeviceId nic : nics) {
    if (cluster_.topology().devices[nic].index == wanted) return nic;
  }
  return nics[wanted % nics.size()];
}

Route JobPaths::NetworkLeg(Rank rank, DeviceId nic, Leg::Kind kind) {
  const Leg leg{gpus_[rank], nic, kind};
  const auto [number, fresh] = known_legs_.NumberOf(leg);
  if (fresh) legs_.emplace_back();
  if (legs_[number].empty()) {
    legs_[number] = kind == Leg::kOutByNeighbour ? FindLegByNeighbour(leg.gpu, nic)
                                                 : FindLeg(leg.gpu, nic, kind == Leg::kOut);
  }
  return legs_[number];
}

// PXN: over NVLink to the GPU of the host that is nearest to the NIC, and out from there. Without
// such a GPU, straight to the NIC.
Route JobPaths::FindLegByNeighbour(DeviceId gpu, DeviceId nic) const {
  const auto& devices = cluster_.topology().devices;
  std::optional<DeviceId> best;
  std::size_t hops = SIZE_MAX;
  for (const DeviceId other : cluster_.gpus()) {
    if (devices[other].node != devices[gpu].node || other == gpu) continue;
    if (!options_.peer_to_peer || !cluster_.PeerToPeerPossible(gpu, other)) continue;
    const auto way = cluster_.FindRoute(other, nic);
    if (!way || way->size() >= hops) continue;
    hops = way->size();
    best = other;
  }
  const auto straight = cluster_.FindRoute(gpu, nic);
  if (!best || (straight && straight->size() <= hops)) return FindLeg(gpu, nic, true);
  Route route = *cluster_.FindRoute(gpu, *best);
  const Route rest = FindLeg(*best, nic, true);
  route.insert(route.end(), rest.begin(), rest.end());
  return route;
}

// GPU to NIC or back: direct with GPUDirect, else through the host memory of the GPU's CPU.
Route JobPaths::FindLeg(DeviceId gpu, DeviceId nic, bool sending) const {
  const DeviceId from = sending ? gpu : nic;
  const DeviceId to = sending ? nic : gpu;
  if (!options_.gpu_direct) {
    if (const auto cpu = cluster_.HomeCpu(gpu)) {
      const auto first = cluster_.FindRoute(from, *cpu);
      const auto second = cluster_.FindRoute(*cpu, to);
      if (first && second) {
        Route route = *first;
        route.insert(route.end(), second->begin(), second->end());
        return route;
      }
    }
  }
  if (auto route = cluster_.FindRoute(from, to)) return std::move(*route);
  const auto& devices = cluster_.topology().devices;
  throw ConfigError({.file = cluster_.topology().source,
                     .field = devices[from].name + " to " + devices[to].name,
                     .problem = "there is no way between the two",
                     .expected = "a connected node"});
}

}  // namespace windtunnel
