#pragma once
// The bound that no routing and no algorithm can pass: maximum flow, which equals the smallest cut.

#include <span>

#include "interconnect/topology.h"
#include "sim/units.h"

namespace windtunnel {

/// Largest total rate from all `sources` to all `sinks` over links that are up. Devices between
/// them may pass on any traffic. Contract: the two sets do not overlap. Cost: grows with links
/// times devices in the worst case; a 4,096-GPU single-switch cluster takes well under a second.
BitsPerSecond MaxFlow(const Topology& topology, std::span<const DeviceId> sources,
                      std::span<const DeviceId> sinks);

}  // namespace windtunnel
