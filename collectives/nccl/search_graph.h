#pragma once

#include <cstdint>
#include <vector>

#include "interconnect/nccl/path_type.h"

namespace windtunnel::nccl {

/// The searches, with the `id` NCCL writes into its graph files.
enum class GraphId : std::uint8_t {
  kRing = 0,
  kTree = 1,
  kCollNetChain = 2,
  kNvls = 3,
  kCollNetDirect = 4
};
/// Shapes of a channel inside a node, with NCCL's numbers.
enum class Pattern : std::uint8_t {
  kBalancedTree = 1,
  kSplitTree = 2,
  kTree = 3,
  kRing = 4,
  kNvls = 5,
  kCollNetDirect = 6
};

/// A device of one system: `host` counts the hosts fused into it (multi-node NVLink), `dev` the
/// device on that host.
struct HostDevice {
  std::uint32_t host = 0;
  std::uint32_t dev = 0;
  friend constexpr auto operator<=>(const HostDevice&, const HostDevice&) = default;
};

/// What one search found for one node: channel count, rates and the order of GPUs and NICs per
/// channel. Rates are single precision, as in NCCL: comparisons and printed digits depend on it.
struct SearchGraph {
  struct Channel {
    std::vector<HostDevice>
        gpus;  ///< In search order; NVLS and CollNet direct: the head first or only.
    std::vector<HostDevice>
        nets;  ///< Entry and exit NIC; empty when the job stays inside the system.
  };
  GraphId id = GraphId::kRing;
  Pattern pattern = Pattern::kRing;
  int cross_nic = 0;        ///< 0, 1, 2
  int channel_count = 0;    ///< 0: not searched, or nothing found.
  float bw_intra = 0;       ///< GB/s per channel.
  float bw_inter = 0;       ///< GB/s per channel.
  float latency_inter = 0;  ///< us
  PathType type_intra = PathType::kLoc;
  PathType type_inter = PathType::kLoc;
  bool same_channels = true;
  int hops = 0;  ///< Links crossed as NCCL counts them; counts both passes of a search.
  std::vector<Channel> channels;
};

}  // namespace windtunnel::nccl
