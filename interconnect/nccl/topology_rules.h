#pragma once

#include "interconnect/nccl/nccl_version.h"

namespace windtunnel::nccl {

/// What changed between releases in reading a topology and building the graph of a system. Every
/// member is one rule; `TopologyRulesOf` is the one place that knows the releases. Source of all:
/// NVIDIA/nccl src/graph/{topo.h,topo.cc,xml.cc} at the tags v2.10.3-1 to v2.30.7-1.
struct TopologyRules {
  // Rates: GB/s = 1e9 bytes/s, one direction.
  float nvlink_sm70;       ///< One NVLink of sm70, sm80 and unknown GPUs.
  float nvlink_sm90;       ///< One NVLink of sm90.
  float nvlink_sm100;      ///< One NVLink of sm100 and later.
  float intel_skylake;     ///< Between Intel CPUs from Skylake on.
  bool intel_spr_and_erp;  ///< Sapphire Rapids 22, Emerald Rapids 40; before as Skylake.
  bool amd_limit;          ///< 16 between AMD CPUs; before no limit (5000).
  bool pcie_suffix;        ///< Knows "16.0 GT/s PCIe" and "32 GT/s"; before only up to "16 GT/s".
  // From the file to the graph.
  bool fuses_ranks;         ///< Each rank keeps its own GPU and the files of the ranks are fused.
  bool side_links;          ///< `pcilink` joins two switches.
  bool c2c;                 ///< `c2c` is read.
  bool c2c_is_own_kind;     ///< C2C is its own kind of link; before it counted as NVLink.
  bool nic_drops_function;  ///< NIC ports that differ only in the function digit share one node.
  bool missing_guid_tells_hosts;  ///< A `net` without guid is told apart by host and dev; before
                                  ///< by dev alone.
  bool flattens_gen5;        ///< Two-level Broadcom Gen5 switches become one node, as Gen4 ones.
  bool flattening_restarts;  ///< After a flattened switch the scan starts at the first again;
                             ///< before it skipped the first.
  bool device_nodes;         ///< Every GPU hangs below a DEV node.
};

TopologyRules TopologyRulesOf(const NcclVersion& version);

}  // namespace windtunnel::nccl
