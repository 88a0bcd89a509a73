#pragma once
// What every Network must keep, whatever its fidelity: one harness for all of them.

#include <cstdint>
#include <string>
#include <vector>

#include "interconnect/network.h"
#include "interconnect/topology.h"

namespace windtunnel::testing {

/// `count` GPUs around one switch; link 2 i leads from GPU i to the switch, 2 i + 1 back. The
/// switch is device `count`.
Topology StarTopology(std::uint32_t count, LinkKind kind, BitsPerSecond rate, Picoseconds latency);

/// What a run of random traffic did, for comparisons.
struct ContractTrace {
  std::vector<std::string> lines;  ///< One per callback, in order: time, kind, token.
  Picoseconds end;
};

/// Sends `messages` random messages (sizes 0 to 1 MiB, some at time zero, some from within
/// deliveries) over random routes of a star of `count` GPUs, runs to the end and expects:
/// every message injected once and delivered once, not before it was injected; messages of a route
/// delivered in order; no delivery before the bound of its route's wires; bytes conserved on every
/// link; no link busy longer than the run; nothing open at the end; Reset brings time and counters
/// to zero. Failures are reported as failures of the running test.
ContractTrace RunNetworkContract(Network& network, const Topology& star, std::uint32_t count,
                                 std::uint32_t messages, std::uint64_t seed);

}  // namespace windtunnel::testing
