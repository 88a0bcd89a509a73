#pragma once
// The tree of network switches that copy or reduce for a group (SHARP).

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "interconnect/packet_engine.h"
#include "interconnect/topology.h"

namespace windtunnel {

/// The network switches below a hub that do its work for what is behind them: every one that the
/// ways of two or more members share. Around a hub inside a host (NVSwitch) there is one level.
/// Contract: all members are added, then `DropNodesThatOnlyPass`, then the edges are read.
class SwitchTree {
 public:
  /// Links between a device and the hub, in the direction of the data. The way from a switch is the
  /// same whoever asks.
  using Chain = std::function<std::vector<LinkId>(DeviceId device, DeviceId hub)>;
  /// `down`: data go from the hub to the members. `topology` outlives the tree.
  SwitchTree(const Topology& topology, DeviceId hub, Chain chain, bool down);

  void Add(DeviceId member) { members_.push_back(EdgeOf(member)); }
  /// A switch with one input and one output is a part of its link.
  void DropNodesThatOnlyPass();
  /// From node i + 1 to the node nearer to the hub, or back; that node has the lower number.
  const std::vector<PacketEngine::TreeEdge>& inner() const { return inner_; }
  const std::vector<PacketEngine::TreeEdge>& members() const { return members_; }

 private:
  PacketEngine::TreeEdge EdgeOf(DeviceId device);
  std::uint32_t NodeOf(DeviceId device);

  const Topology& topology_;
  DeviceId hub_;
  Chain chain_;
  bool down_;
  bool levels_;  ///< The hub is a network switch.
  std::map<DeviceId, std::uint32_t> nodes_;
  std::vector<PacketEngine::TreeEdge> inner_;
  std::vector<PacketEngine::TreeEdge> members_;
};

}  // namespace windtunnel
