#pragma once

#include <vector>

#include "collectives/nccl/search_graph.h"
#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/paths.h"

namespace windtunnel::nccl {

/// What the searches need to know beside the system.
struct SearchRequest {
  NcclVersion version = kDefaultNcclVersion;
  Environment environment;
  bool collnet = false;    ///< The network plugin reduces in the network.
  bool multicast = false;  ///< The GPUs can send through an NVSwitch to all others.
  bool fabric = false;     ///< The system is an NVLink domain of several hosts.
};

/// All graphs of a system, in the order NCCL writes them; one that was not searched, or for which
/// nothing was found, has no channels.
/// Reads NCCL_CROSS_NIC, NCCL_NVLS_ENABLE, NCCL_COLLNET_ENABLE, NCCL_GRAPH_FILE and the MNNVL
/// variables named in SearchSettings. A graph of NCCL_GRAPH_FILE replaces the search.
/// Source: NVIDIA/nccl src/init.cc, v2.28.9.
/// @throws ConfigError for a variable that does not parse and for a bad graph file.
std::vector<SearchGraph> SearchGraphs(const SystemView& view, const SearchRequest& request);

/// The graph with that id. Contract: it is among them.
const SearchGraph& GraphOf(const std::vector<SearchGraph>& graphs, GraphId id);

}  // namespace windtunnel::nccl
