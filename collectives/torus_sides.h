#pragma once
// Finds the torus in a cluster.

#include <cstdint>
#include <vector>

#include "interconnect/cluster.h"

namespace windtunnel {

/// Sides of the torus as which `gpus`, rank 0 first, are joined, first side fastest: every rank has
/// network links (its own, its NIC's, or those of a switch of its own) to the ranks one step before
/// and behind along each axis, and to no other. Empty when they are not joined like that (a mesh, a
/// twisted torus, ranks in another order), or by no more than 6 sides.
std::vector<std::uint32_t> TorusSides(const Cluster& cluster, const std::vector<DeviceId>& gpus);

}  // namespace windtunnel
