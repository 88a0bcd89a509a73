#pragma once
// What stages 5 to 7 of NCCL need to know about a job: one description per distinct node, and where
// each rank sits. Filled from the search of stages 1 to 4, or from recorded data.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/nccl/search_graph.h"
#include "interconnect/nccl/path_type.h"
#include "interconnect/nccl/system.h"

namespace windtunnel::nccl {

/// Which way data goes between two ranks of one node (src/transport.cc of NCCL).
struct LocalTransport {
  enum class Kind : std::uint8_t { kSelf, kPeerToPeer, kSharedMemory, kNetwork };
  Kind kind = Kind::kSelf;
  bool receiver_reads = false;  ///< Peer-to-peer: the receiver reads instead of the sender writing.
  int via = -1;                 ///< GPU (index in the node) that forwards; -1 none.
  friend bool operator==(const LocalTransport&, const LocalTransport&) = default;
};

/// One system as NCCL sees it: a host, a part of a host whose GPUs cannot reach the others, or an
/// NVLink domain of several hosts. Immutable; shared by all equal nodes of a job.
struct NodeDescription {
  struct Gpu {
    HostDevice device;           ///< As the search graphs name it.
    int compute_capability = 0;  ///< 90 for sm_90.
    /// NICs near this GPU that are needed to match the GPU's rate to its CPU, and their rate
    /// (GB/s): what decides the channels of send and receive over the network.
    int local_nics = 0;
    float local_nic_bandwidth = 0;
  };
  struct Path {
    PathType type = PathType::kLoc;
    float bandwidth = 0;  ///< GB/s
  };
  std::vector<SearchGraph> graphs;  ///< Results of the searches; absent ids were not searched.
  std::vector<int> graph_hops;      ///< Hops of each graph, same order; empty when not known.
  std::vector<Gpu> gpus;            ///< In the order of the system graph.
  std::vector<std::vector<Path>> gpu_paths;             ///< [from][to], by index in `gpus`.
  std::vector<std::vector<LocalTransport>> transports;  ///< [sender][receiver].
  int nvswitches = 0;                                   ///< NVS nodes of the system graph: 0 or 1.
  bool multicast = false;  ///< The GPUs can bind NVLink multicast (NVLS possible).
  CpuArch cpu_arch = CpuArch::kX86;
  CpuVendor cpu_vendor = CpuVendor::kIntel;
  float min_net_bandwidth = 0;  ///< Slowest NIC path of a GPU, GB/s (2.30's NVLS rules).

  const SearchGraph* Graph(GraphId id) const {
    for (const SearchGraph& graph : graphs)
      if (graph.id == id) return &graph;
    return nullptr;
  }
};

/// Where a rank sits.
struct RankPlace {
  std::uint32_t node = 0;  ///< Index in `Job::nodes`.
  std::uint32_t gpu = 0;   ///< Index in the node's `gpus`.
  std::uint32_t host = 0;  ///< Operating system image; parts of one host share it.
};

struct Job {
  std::vector<std::shared_ptr<const NodeDescription>> nodes;
  std::vector<RankPlace> ranks;
  /// The network can reduce in the switches (a CollNet plugin is loaded).
  bool collnet_plugin = false;
  bool ranks_of_a_host_share_a_process = false;
  /// Names the job in messages.
  std::string name;
};

}  // namespace windtunnel::nccl
