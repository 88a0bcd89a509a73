#pragma once
// Stage 5: from the searches of all nodes to rings, trees, NVLS heads and channel counts of the
// whole job. A pure function.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/nccl/channels.h"
#include "collectives/nccl/constants.h"
#include "collectives/nccl/job.h"
#include "collectives/nccl/nvls.h"
#include "collectives/nccl/trees.h"
#include "interconnect/nccl/environment.h"

namespace windtunnel::nccl {

/// Yes-or-no results of the initialisation.
struct ConnectionFlags {
  bool all_nvlink = false;         ///< All GPU pairs of rank 0's node reach each other by NVLink.
  bool one_rank_per_node = false;  ///< No node has a second rank.
  bool nvls = false;
  bool collnet = false;
  bool direct_mode = false;     ///< Two ranks of rank 0's node share a process.
  bool all_direct_p2p = false;  ///< All pairs of rank 0's node connect peer to peer, unforwarded.
  bool pxn_disabled = false;
  Pattern worst_tree_pattern = Pattern::kBalancedTree;  ///< Highest number over all nodes.
};

struct Connections {
  /// NCCL's node numbers, in order of the lowest rank.
  std::vector<std::int32_t> rank_to_node;
  std::vector<std::int32_t> rank_to_local;
  std::vector<std::vector<std::int32_t>> node_ranks;
  /// The node's index in Job::nodes, by NCCL's node number.
  std::vector<std::uint32_t> node_of_job;
  int max_local_ranks = 0;

  std::array<GraphSummary, 5> graphs;  ///< By GraphId.
  int min_compute_capability = 0;
  int max_compute_capability = 0;
  std::optional<CpuArch> cpu_arch;      ///< Nothing when the nodes differ.
  std::optional<CpuVendor> cpu_vendor;  ///< Nothing when the nodes differ.

  int channel_count = 0;              ///< Collective channels.
  int channel_count_before_nvls = 0;  ///< See ChannelSources.
  int nvls_channels = 0;
  P2pChannels p2p;
  std::array<std::int64_t, kProtocolCount> buffer{};  ///< Bytes per connection and channel.
  std::int64_t p2p_chunk = 0;
  std::int64_t nvls_chunk = 0;
  std::int64_t nvls_tree_chunk = 0;  ///< Largest chunk of NVLSTree.

  std::vector<std::vector<std::int32_t>> rings;  ///< Per channel, starting at rank 0.
  std::vector<std::uint32_t> channel_source;     ///< Channel -> entry of `source_trees`.
  std::vector<TreeChannel> source_trees;         ///< Distinct trees; channels share them.
  NvlsLayout nvls;
  int collnet_heads = 0;         ///< Of CollNet direct.
  int collnet_direct_depth = 0;  ///< 1 when every node has one rank, else 2.
  int collnet_chain_depth = 0;
  std::vector<std::int32_t> collnet_head_of_rank;  ///< Head number per rank; -1 none.
  /// First rank of the chain, [channel][node]; empty without CollNet.
  std::vector<std::vector<std::int32_t>> collnet_chain_first;
  int collnet_own_heads = 0;  ///< Heads the network plugin is set up for.
  int tree_depth = 0;
  ConnectionFlags flags;

  const GraphSummary& graph(GraphId id) const { return graphs[static_cast<std::size_t>(id)]; }
  const TreeChannel& tree(std::size_t channel) const {
    return source_trees[channel_source[channel]];
  }
  int rank_count() const { return static_cast<int>(rank_to_node.size()); }
  int node_count() const { return static_cast<int>(node_ranks.size()); }
};

/// @throws ConfigError when ranks and nodes of the job do not fit (a GPU without rank or with two,
/// a node whose searches lack ring or tree).
Connections Connect(const Job& job, const Environment& environment, const Constants& constants);

}  // namespace windtunnel::nccl
