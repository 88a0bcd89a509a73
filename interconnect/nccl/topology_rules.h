#pragma once

#include <cstdint>

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
  bool nic_latency;         ///< `latency` of a `net` is read; before it counts as 0.
  bool nic_drops_function;  ///< NIC ports that differ only in the function digit share one node.
  bool missing_guid_tells_hosts;  ///< A `net` without guid is told apart by host and dev; before
                                  ///< by dev alone.
  bool flattens_gen5;        ///< Two-level Broadcom Gen5 switches become one node, as Gen4 ones.
  bool flattening_restarts;  ///< After a flattened switch the scan starts at the first again;
                             ///< before it skipped the first.
  bool device_nodes;         ///< Every GPU hangs below a DEV node.
};

TopologyRules TopologyRulesOf(const NcclVersion& version);

/// What changed between releases in finding paths and choosing transports. Source: NVIDIA/nccl
/// src/graph/{paths.cc,topo.cc} and src/transport/{p2p,shm}.cc at the same tags.
struct PathRules {
  enum class Pxn : std::uint8_t {
    kNone,
    kAnyNearGpu,  ///< Through any GPU near the NIC, best one whose own NIC it is.
    kLocalGpu     ///< Through the NIC's local GPU.
  };
  // Paths.
  bool unreached_is_disconnected;    ///< A node not reached counts as DIS; before as LOC.
  bool back_link_of_same_kind;       ///< A hop uses the link of the same kind; before the first.
  bool local_cpu_has_to_be_reached;  ///< Before, a CPU of another host could be the local one.
  bool through_devices;              ///< GPUs forward as their DEV node; before as themselves.
  bool local_cpu_by_rate;            ///< The local CPU is the one reached best; before by hops.
  bool prefers_nearer_type;          ///< A nearer type replaces a path whatever its rate.
  // Peer to peer.
  bool p2p_short_by_default;   ///< Up to PXB (SYS for one or two GPUs on AMD); before up to
                               ///< SYS except on Intel, ARM and Zhaoxin.
  bool net_may_replace_p2p;    ///< Two GPUs nearer to NICs than to each other use the NICs.
  bool trimmed_peers_use_shm;  ///< A peer cut out of the system is reached by shared memory.
  // GPU to NIC.
  Pxn pxn;
  bool pxn_needs_gdr;                 ///< The relay has to reach the NIC by GPUDirect.
  bool pxn_same_host;                 ///< The relay has to be on the GPU's host.
  bool pxn_for_rate;                  ///< PXN also for a higher rate, not only to avoid the CPU.
  bool pxn_saves_from_above_pxn;      ///< "Avoids the CPU" means a path above PXN; before a path
                                      ///< above the relay's limit.
  bool pxn_over_c2c;                  ///< Default of NCCL_PXN_C2C.
  bool knows_p2c;                     ///< C2C then PCI to the NIC is P2C; before PHB.
  bool p2c_for_nearest_only;          ///< Only for the NICs nearest the GPU.
  bool gdr_over_c2c;                  ///< Default of NCCL_NET_GDR_C2C.
  bool gdr_c2c_as_level;              ///< It raises the limit to P2C; before it made P2C count as
                                      ///< C2C.
  bool gdr_read_needs_nvlink_always;  ///< Not only before Ampere.
  bool no_gdr_diverts_all;            ///< Without GPUDirect also paths from PHB on go through the
                                      ///< GPU's CPU.
  // Local NICs.
  bool nets_by_distance;          ///< Local NIC = nearest ones shared out by device number and
                                  ///< channel; before by device number alone.
  bool net_start_within_sharers;  ///< The device number counts modulo the GPUs that share.
  bool local_gpu_is_near;         ///< The local GPU of a NIC is one of the nearest.
  bool net_policy;                ///< NCCL_NETDEVS_POLICY.
  // System.
  bool keeps_nets;         ///< NICs stay in the system of a one-node job.
  bool domain_by_type;     ///< GPUs apart are marked by a path of type NET; before by a
                           ///< path without hops.
  bool fabric_drops_nets;  ///< A NVLink domain over hosts loses its NICs (2.20).
  int max_channels;        ///< MAXCHANNELS.
};

PathRules PathRulesOf(const NcclVersion& version);

}  // namespace windtunnel::nccl
