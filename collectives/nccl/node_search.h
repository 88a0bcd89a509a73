#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/nccl/search.h"
#include "collectives/nccl/search_graph.h"
#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/paths.h"
#include "interconnect/nccl/system.h"
#include "interconnect/nccl/xml.h"

namespace windtunnel::nccl {

/// A job on identical nodes.
struct NodeSearchRequest {
  /// `dev` of the GPU at each place of a node, in the order of local ranks. Empty: the GPUs with
  /// a `rank` in the file, by rank, or all by `dev` when none has one.
  std::vector<int> gpus;
  int nodes = 1;
  bool cyclic = false;  ///< rank = place x nodes + node; else node x GPUs + place.
  NcclVersion version = kDefaultNcclVersion;
  Environment environment;
  XmlMode mode = XmlMode::kNccl;
  bool collnet_plugin = false;    ///< Every NIC reduces in the network.
  bool nvlink_fabric = false;     ///< All nodes report one NVLink domain.
  std::optional<bool> multicast;  ///< Nothing: from sm90 on.
  /// Pairs of `dev` between which the driver refuses peer access.
  std::vector<std::pair<int, int>> blocked_pairs;
};

struct NodeSearchResult {
  SystemView view;                  ///< As rank 0 sees it.
  std::vector<SearchGraph> graphs;  ///< In NCCL's order; see GraphOf.
  std::vector<RankSeat> seats;      ///< Ranks of rank 0's host, or of the NVLink domain, rising.
  int total_ranks = 1;
  bool fabric = false;                ///< The hosts form one system over NVLink.
  std::vector<std::string> warnings;  ///< Every default taken, with file and line.
  /// transports[i][j]: what seat i uses towards seat j, each as its own rank sees the system.
  std::vector<std::vector<Transport>> Transports() const;
  /// The system of rank 0 before GPUs out of reach were cut.
  System whole;
};

/// From a topology file to paths and graphs: NCCL's decisions up to the exchange between ranks.
/// The nodes are identical, so one is searched whatever their number.
/// @throws ConfigError for bad files, variables and requests.
NodeSearchResult SearchNode(const XmlDocument& topology, const NodeSearchRequest& request);

/// Whether hosts with one NVLink domain become one system under these variables.
bool JoinsFabric(const NodeSearchRequest& request);

}  // namespace windtunnel::nccl
