#pragma once
// Jobs that the benchmarks plan for.

#include "collectives/nccl/communicator.h"
#include "collectives/nccl/job_from_search.h"
#include "collectives/nccl/node_search.h"
#include "interconnect/topology_file.h"

namespace windtunnel::bench {

/// The shipped HGX H100 host, as NCCL's topology file.
inline const nccl::XmlDocument& Host() {
  static const nccl::XmlDocument host =
      nccl::ParseXml(NodeNcclXml(LoadTopology("hgx-h100", {.nodes = 1}), 0), "hgx-h100");
  return host;
}

/// `hosts` shipped HGX H100 systems of 8 GPUs and 8 NICs.
inline nccl::Job JobOfHosts(int hosts) {
  nccl::NodeSearchRequest request;
  request.nodes = hosts;
  return nccl::JobOfEqualHosts(nccl::SearchNode(Host(), request), request);
}

}  // namespace windtunnel::bench
