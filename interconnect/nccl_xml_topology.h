#pragma once
// NCCL topology XML to our Topology and back. docs/formats-nccl-xml.md gives the mapping.

#include <cstdint>
#include <string>
#include <vector>

#include "interconnect/catalogue.h"
#include "interconnect/nccl/xml.h"
#include "interconnect/topology.h"

namespace windtunnel {

struct NcclXmlOptions {
  bool strict = false;  ///< Refuse what NCCL takes by a silent default; else take and warn.
  /// For files without GPUs (cloud images): "h100-sxm", or with the NIC "h100-sxm+connectx-7".
  std::string complete_as;
};

/// Several hosts (different `host_hash`) become several nodes. All NVSwitches of the file become
/// one device, as NCCL merges them. Every attribute is kept, so that writing gives the same
/// elements. Elements that take no part (a GPU without rank, a NIC without dev, unknown tags) are
/// left out and counted in `notes`.
/// @throws ConfigError with file, line, element and attribute; RCCL files (version 2) are refused.
Topology TopologyFromNcclXml(const nccl::XmlDocument& document, const Catalogue& catalogue,
                             const NcclXmlOptions& options = {});

/// The XML of the given hosts as one system. Attributes that the topology lacks are filled in from
/// the catalogue; bus ids that it lacks are numbered in the order of the tree.
nccl::XmlElement NcclXmlFromTopology(const Topology& topology,
                                     const std::vector<std::uint32_t>& nodes,
                                     const Catalogue& catalogue);

/// Hosts that share an NVLink domain with `node` (itself included), rising: what NCCL fuses into
/// one system.
std::vector<std::uint32_t> NvlinkDomain(const Topology& topology, std::uint32_t node);

}  // namespace windtunnel
