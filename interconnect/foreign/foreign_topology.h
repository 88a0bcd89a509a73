#pragma once
// Cluster descriptions of other network simulators. Their units are stated in the notes of the
// topology that comes out: they are not ours.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/topology.h"

namespace windtunnel {

enum class ForeignFormat : std::uint8_t {
  kAstraSim,    ///< ASTRA-sim's analytical network, YAML: topology, npus_count, bandwidth, latency.
  kNs3,         ///< Links of ns-3 as ASTRA-sim's back end lists them: "nodes switches links".
  kHtsim,       ///< Tiers of a fat tree for htsim: "Nodes n / Tiers t / Podsize p / Tier i ...".
  kSimAi,       ///< SimAI's list: "nodes gpus_per_server nv_switches switches links gpu".
  kSimGridXml,  ///< SimGrid platform version 4: hosts, links, routes, clusters.
};
/// "astra-sim", "ns3", "htsim", "simai", "simgrid".
const std::vector<std::string>& ForeignFormatNames();

/// Tells the format from the first lines; nothing when it is none of these.
std::optional<ForeignFormat> DetectForeignFormat(std::string_view text);

/// Endpoints become GPUs, one host each (SimAI: its servers), without NIC or CPU; they and the
/// switches carry the attribute protocol = ideal, since these files know no headers. Endpoints of
/// direct networks pass on traffic of others.
/// @throws ConfigError with line and field on anything that is not the format, and on more than
/// 1,000,000 devices or 8,000,000 links.
Topology ReadForeignTopology(std::string_view text, ForeignFormat format,
                             std::string_view file_name);

}  // namespace windtunnel
