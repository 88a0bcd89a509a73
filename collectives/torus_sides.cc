#include "collectives/torus_sides.h"

#include <algorithm>

namespace windtunnel {
namespace {

constexpr std::size_t kMostSides = 6;
constexpr std::uint32_t kNobody = UINT32_MAX;

class Neighbours {
 public:
  Neighbours(const Cluster& cluster, const std::vector<DeviceId>& gpus)
      : cluster_(cluster), rank_at_(cluster.topology().devices.size(), kNobody) {
    std::vector<DeviceId> routers;
    for (std::uint32_t rank = 0; rank < gpus.size(); ++rank) {
      const DeviceId router = RouterOf(gpus[rank]);
      if (rank_at_[router] != kNobody) return;  // Shared: a switch, no torus.
      rank_at_[router] = rank;
      routers.push_back(router);
    }
    for (const DeviceId router : routers) {
      std::vector<std::uint32_t> ranks;
      for (const DeviceId other : Across(router)) {
        if (rank_at_[other] != kNobody) ranks.push_back(rank_at_[other]);
      }
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      of_.push_back(std::move(ranks));
    }
  }
  bool empty() const { return of_.empty(); }
  bool AreGrid(const std::vector<std::uint32_t>& sides) const {
    for (std::uint32_t rank = 0; rank < of_.size(); ++rank) {
      std::size_t expected = 0;
      std::uint32_t stride = 1;
      for (const std::uint32_t side : sides) {
        const std::uint32_t place = rank / stride % side;
        const std::uint32_t base = rank - place * stride;
        for (const std::uint32_t step : {1U, side - 1}) {
          if (!Has(rank, base + (place + step) % side * stride)) return false;
        }
        expected += side == 2 ? 1 : 2;
        stride *= side;
      }
      if (of_[rank].size() != expected) return false;
    }
    return true;
  }

 private:
  bool Has(std::uint32_t rank, std::uint32_t other) const {
    return std::binary_search(of_[rank].begin(), of_[rank].end(), other);
  }
  std::vector<DeviceId> Across(DeviceId device) const {
    std::vector<DeviceId> others;
    const Topology& topology = cluster_.topology();
    for (const LinkId id : cluster_.links_out(device)) {
      const Link& link = topology.links[id];
      const bool joins = link.kind == LinkKind::kNetwork || link.kind == LinkKind::kIci;
      if (joins && !link.down) others.push_back(link.to);
    }
    return others;
  }
  // Where the ways of a rank part: itself, or the switch at the end of its only cable.
  DeviceId RouterOf(DeviceId gpu) const {
    DeviceId port = gpu;
    if (Across(gpu).empty()) {
      const std::vector<DeviceId> nics = cluster_.NearestNics(gpu);
      if (!nics.empty()) port = nics.front();
    }
    const std::vector<DeviceId> others = Across(port);
    const bool hangs_on_a_switch =
        others.size() == 1 &&
        cluster_.topology().devices[others[0]].kind == DeviceKind::kNetworkSwitch;
    return hangs_on_a_switch ? others[0] : port;
  }

  const Cluster& cluster_;
  std::vector<std::uint32_t> rank_at_;
  std::vector<std::vector<std::uint32_t>> of_;  // Ranks one cable away, ascending.
};

// The first of the factorisations of `rest` behind `sides` that fits.
bool Search(const Neighbours& neighbours, std::uint32_t rest, std::vector<std::uint32_t>* sides) {
  if (rest == 1) return neighbours.AreGrid(*sides);
  if (sides->size() == kMostSides) return false;
  for (std::uint32_t side = 2; side <= rest; ++side) {
    if (rest % side != 0) continue;
    sides->push_back(side);
    if (Search(neighbours, rest / side, sides)) return true;
    sides->pop_back();
  }
  return false;
}

}  // namespace

std::vector<std::uint32_t> TorusSides(const Cluster& cluster, const std::vector<DeviceId>& gpus) {
  std::vector<std::uint32_t> sides;
  if (gpus.size() < 2) return sides;
  const Neighbours neighbours(cluster, gpus);
  if (neighbours.empty()) return sides;
  if (!Search(neighbours, static_cast<std::uint32_t>(gpus.size()), &sides)) sides.clear();
  return sides;
}

}  // namespace windtunnel
