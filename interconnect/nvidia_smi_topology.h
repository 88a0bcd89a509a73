#pragma once
// `nvidia-smi topo -m` text to a topology.

#include <string>
#include <string_view>

#include "interconnect/catalogue.h"
#include "interconnect/topology.h"

namespace windtunnel {

/// The matrix tells how near devices are and how many NVLinks join them, never a rate or a
/// generation: those are the ones of the GPU (and NIC) model in `complete_as` ("h100-sxm" or
/// "h100-sxm+connectx-7"), and every one taken so is a warning. Reads tabs or blanks, Markdown
/// bars, terminal codes, text around the matrix, `NIC Legend` names; of several matrices the first.
/// @throws ConfigError with the line of a row that is cut, repeated or not symmetric; for a
/// `topo -p2p` matrix; and when `complete_as` is empty.
Topology TopologyFromNvidiaSmi(std::string_view text, std::string_view file_name,
                               std::string_view complete_as, const Catalogue& catalogue);

}  // namespace windtunnel
