#pragma once
// What `windtunnel topo` says about a cluster, as text.

#include <string>
#include <vector>

#include "interconnect/cluster.h"

namespace windtunnel {

/// Devices, links, the matrix of path types of each kind of host (like `nvidia-smi topo -m`),
/// bisection and bounds of the collectives.
std::string ShowTopology(const Cluster& cluster);

/// Something odd about a cluster and what it costs.
struct TopologyFinding {
  std::string what;  ///< "gpu3: slot has 4 lanes, others have 16"
  std::string cost;  ///< "7.9 GB/s instead of 31.5 GB/s (-75.0 %)"; empty where no rate suffers.
};
std::vector<TopologyFinding> CheckTopology(const Cluster& cluster);

/// One line per difference, "- " in `a` only, "+ " in `b` only, "~ " changed; empty when equal.
/// Devices are matched by name, links by ends and kind.
std::vector<std::string> DiffTopologies(const Topology& a, const Topology& b);

/// Bounds that follow from the wires alone.
struct BusbwBound {
  std::string collective;  ///< "all_reduce"
  double ring_gbs = 0;     ///< busbw that a ring cannot pass; 0 where no ring exists.
  double any_gbs = 0;      ///< busbw that no algorithm can pass without reduction in switches.
  std::string bound_by;    ///< "GPU links", "network of a host", "bisection".
};
std::vector<BusbwBound> CollectiveBounds(const Cluster& cluster);

}  // namespace windtunnel
