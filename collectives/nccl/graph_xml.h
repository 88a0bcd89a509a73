#pragma once

#include <string>
#include <vector>

#include "collectives/nccl/search_graph.h"
#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/system.h"
#include "interconnect/nccl/xml.h"

namespace windtunnel::nccl {

/// The text NCCL writes to NCCL_GRAPH_DUMP_FILE, byte for byte, for graphs in its order. Devices
/// are hexadecimal from 2.21 on, decimal before; from 2.30 on GPUs carry their rank in `system`.
/// Source: NVIDIA/nccl src/graph/search.cc, v2.28.9.
std::string WriteGraphXml(const std::vector<SearchGraph>& graphs, const NcclVersion& version,
                          const System& system);

/// The graphs of a file in that format (NCCL_GRAPH_FILE), for a system.
/// @throws ConfigError for another tree, a missing or unknown attribute, a device the system does
/// not have, or fewer channels or GPUs than the graph needs.
std::vector<SearchGraph> ReadGraphXml(const XmlDocument& document, const System& system,
                                      const NcclVersion& version);

}  // namespace windtunnel::nccl
