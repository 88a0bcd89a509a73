#pragma once
// The bound that no routing and no algorithm can pass: maximum flow, which equals the smallest cut.

#include <span>

#include "interconnect/topology.h"
#include "sim/units.h"

namespace windtunnel {

/// Largest total rate from all `sources` to all `sinks` over links that are up. Devices between
/// them may pass on any traffic. Contract: the two sets do not overlap. Push-relabel, since
/// searches of single ways (Boykov-Kolmogorov) take minutes around a hub of 65,536 GPUs; this,
/// below a second.
BitsPerSecond MaxFlow(const Topology& topology, std::span<const DeviceId> sources,
                      std::span<const DeviceId> sinks);

}  // namespace windtunnel
