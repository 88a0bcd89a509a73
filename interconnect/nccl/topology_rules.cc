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
          .nic_drops_function = !from(24),
          .missing_guid_tells_hosts = from(28),
          .flattens_gen5 = from(20),
          .flattening_restarts = from(27),
          .device_nodes = from(30)};
}

}  // namespace windtunnel::nccl
