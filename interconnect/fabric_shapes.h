#pragma once
// The shapes of networks that BuildFabric knows beside the single switch. docs/networks.md draws
// them and lists their options.

#include <span>
#include <string_view>

#include "interconnect/fabric.h"

namespace windtunnel {

struct FabricShape {
  std::string_view name;
  std::string_view summary;  ///< One line for listings.
  void (*build)(const FabricSpec&, const Catalogue&, Topology*);
};

/// Ports to be joined, in file order: NIC ports that are on no network; in a cluster without any
/// NIC, its GPUs and TPUs.
std::vector<DeviceId> FreeNetworkPorts(const Topology& topology);

/// "leaf-spine", "fat-tree", "rail-optimised", "dragonfly", "dragonfly-plus", "torus", "mesh".
/// A link out of a switch carries the switch's forwarding latency beside that of the cable.
std::span<const FabricShape> FabricShapes();

}  // namespace windtunnel
