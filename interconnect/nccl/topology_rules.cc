#include "interconnect/nccl/topology_rules.h"

namespace windtunnel::nccl {

TopologyRules TopologyRulesOf(const NcclVersion& version) {
  const auto from = [&](int minor, int patch = 0) {
    return version >= NcclVersion{2, minor, patch};
  };
  return {.nvlink_sm70 = from(18) ? 20.0F : 22.0F,
          .nvlink_sm90 = from(20) ? 20.6F : (from(18) ? 20.0F : 22.0F),
          .nvlink_sm100 = from(27, 5) ? 40.1F
                          : from(25)  ? 40.0F
                          : from(20)  ? 20.6F
                          : from(18)  ? 20.0F
                                      : 22.0F,
          .intel_skylake = from(18) ? 10.0F : 9.0F,
          .intel_spr_and_erp = from(26),
          .amd_limit = from(19),
          .pcie_suffix = from(11),
          .fuses_ranks = from(22),
          .side_links = from(22),
          .c2c = from(19),
          .c2c_is_own_kind = from(26),
          .nic_latency = from(12),
          .nic_drops_function = !from(24),
          .missing_guid_tells_hosts = from(28),
          .flattens_gen5 = from(20),
          .flattening_restarts = from(27),
          .device_nodes = from(30)};
}

PathRules PathRulesOf(const NcclVersion& version) {
  const auto from = [&](int minor, int patch = 0) {
    return version >= NcclVersion{2, minor, patch};
  };
  return {.unreached_is_disconnected = from(21),
          .back_link_of_same_kind = from(19),
          .local_cpu_has_to_be_reached = from(23),
          .through_devices = from(30),
          .local_cpu_by_rate = from(30),
          .prefers_nearer_type = from(30),
          .p2p_short_by_default = from(23),
          .net_may_replace_p2p = from(14),
          .trimmed_peers_use_shm = from(30),
          .pxn = from(18)   ? PathRules::Pxn::kLocalGpu
                 : from(12) ? PathRules::Pxn::kAnyNearGpu
                            : PathRules::Pxn::kNone,
          .pxn_needs_gdr = from(30),
          .pxn_same_host = from(21),
          .pxn_for_rate = from(14),
          .pxn_saves_from_above_pxn = from(27, 6),
          .pxn_over_c2c = from(28),
          .knows_p2c = from(27),
          .p2c_for_nearest_only = from(29),
          .gdr_over_c2c = from(27),
          .gdr_c2c_as_level = from(29),
          .gdr_read_needs_nvlink_always = !from(19),
          .no_gdr_diverts_all = !from(21),
          .nets_by_distance = from(18),
          .net_start_within_sharers = from(30),
          .local_gpu_is_near = from(19),
          .net_policy = from(28),
          .keeps_nets = from(28, 4),
          .domain_by_type = from(14),
          .fabric_drops_nets = from(20) && !from(21),
          .max_channels = from(25) ? 64 : 32};
}

}  // namespace windtunnel::nccl
