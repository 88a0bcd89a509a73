#include "interconnect/switch_tree.h"

#include <utility>

namespace windtunnel {

SwitchTree::SwitchTree(const Topology& topology, DeviceId hub, Chain chain, bool down)
    : topology_(topology),
      hub_(hub),
      chain_(std::move(chain)),
      down_(down),
      levels_(topology.devices[hub].kind == DeviceKind::kNetworkSwitch) {}

void SwitchTree::DropNodesThatOnlyPass() {
  std::vector<std::uint32_t> branches(inner_.size() + 1);
  for (const auto& edge : inner_) ++branches[edge.node];
  for (const auto& edge : members_) ++branches[edge.node];
  std::vector<std::uint32_t> number(inner_.size() + 1);
  std::vector<PacketEngine::TreeEdge> kept;
  const auto resolve = [&](PacketEngine::TreeEdge edge) {
    while (edge.node != 0 && branches[edge.node] == 1) {
      const PacketEngine::TreeEdge& beyond = inner_[edge.node - 1];
      edge.links.insert(down_ ? edge.links.begin() : edge.links.end(), beyond.links.begin(),
                        beyond.links.end());
      edge.node = beyond.node;
    }
    edge.node = number[edge.node];
    return edge;
  };
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    if (branches[i + 1] == 1) continue;
    kept.push_back(resolve(inner_[i]));
    number[i + 1] = static_cast<std::uint32_t>(kept.size());
  }
  for (PacketEngine::TreeEdge& edge : members_) edge = resolve(std::move(edge));
  inner_ = std::move(kept);
}

/// From a device to the next switch towards the hub.
PacketEngine::TreeEdge SwitchTree::EdgeOf(DeviceId device) {
  std::vector<LinkId> links = chain_(device, hub_);
  DeviceId next = hub_;
  // Nearest to the device: the first link's end on the way up, the last one's start down.
  for (std::size_t i = 0; levels_ && i + 1 < links.size(); ++i) {
    const Link& link = topology_.links[down_ ? links[links.size() - 1 - i] : links[i]];
    const DeviceId at = down_ ? link.from : link.to;
    if (topology_.devices[at].kind != DeviceKind::kNetworkSwitch) continue;
    next = at;
    if (down_) {
      links.erase(links.begin(), links.end() - static_cast<std::ptrdiff_t>(i + 1));
    } else {
      links.resize(i + 1);
    }
    break;
  }
  return {.node = NodeOf(next), .links = std::move(links)};
}

std::uint32_t SwitchTree::NodeOf(DeviceId device) {
  if (device == hub_) return 0;
  if (const auto known = nodes_.find(device); known != nodes_.end()) return known->second;
  inner_.push_back(EdgeOf(device));  // The node nearer to the hub comes first.
  const auto node = static_cast<std::uint32_t>(inner_.size());
  nodes_.emplace(device, node);
  return node;
}

}  // namespace windtunnel
