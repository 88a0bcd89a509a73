#pragma once
// Reads and writes cluster files of every format the program knows.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/topology.h"

namespace windtunnel {

enum class TopologyFormat : std::uint8_t {
  kYaml,
  kJson,
  kTextProto,
  kBinaryProto,
  kNcclXml,
  kNvidiaSmi,
  kDot,
  kSvg
};

struct TopologyReadOptions {
  bool strict = false;  ///< NCCL XML: refuse what NCCL would take silently by default; else take it
                        ///< and list it in `warnings`.
  std::uint32_t nodes = 0;  ///< Multiply a one-host file to this many hosts on one non-blocking
                            ///< network switch; 0 = as the file says.
  std::string complete_as;  ///< For skeletons and `nvidia-smi topo -m`: the GPU model to assume
                            ///< ("h100-sxm").
};

/// The format, told from the extension and, where that says nothing, from the content.
TopologyFormat TopologyFormatOf(const std::filesystem::path& path, std::string_view text);

/// Resolves what a user wrote behind -t: a path, the name of a shipped system ("hgx-h200"), or a
/// short form "hgx-h100*4" or "hgx-h100*4:ib-ndr-rail" (a node, a count, a fabric). Then reads it;
/// the format is told from content and extension.
/// @throws ConfigError with file, line, field, value, what is allowed, nearest name.
Topology LoadTopology(std::string_view file_or_name, const TopologyReadOptions& options = {});
Topology ReadTopologyText(std::string_view text, TopologyFormat format, std::string_view file_name,
                          const TopologyReadOptions& options = {});
std::string WriteTopologyText(const Topology& topology, TopologyFormat format);
/// Names of the shipped systems, sorted.
std::vector<std::string> ShippedTopologyNames();

/// The NCCL XML of one node, as NCCL would see it on that host (used by the NCCL model whatever the
/// file's own format was). Nodes that are alike give the same text.
std::string NodeNcclXml(const Topology& topology, std::uint32_t node);

}  // namespace windtunnel
