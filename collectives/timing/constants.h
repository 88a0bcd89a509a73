#pragma once
// Constants of the closed forms, read from catalogue/timing/*.yaml. Each value in those files
// carries its unit, how sure it is, and its source; docs/timing-model.md says how it enters.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel::timing {

/// Constants that no GPU generation changes. Microseconds, GB/s (10^9), ratios.
struct SharedConstants {
  double bubble_all_reduce = 0, bubble_all_gather = 0, bubble_reduce_scatter = 0;
  double bubble_eight_bit_sum = 0, drain_all_reduce = 0, drain_one_pass = 0;
  double ll_adding_round = 0, ll_eight_bit_round = 0, ll_hidden_round_us = 0;
  double adding_rate = 0, eight_bit_adding_rate = 0, empty_slice = 0;
  double nvls_fill = 0, p2p_two_stage_rate = 0;
  double full_block_adding_us = 0, full_block_eight_bit_us = 0;
  double host_channel_us = 0, host_channel_old_us = 0, host_peer_pair_us = 0;
  double proxy_turn_us = 0, ll_lag_gbps = 0, two_rank_bubble = 0, nvls_tree_fill = 0;
  double tree_simple_share = 0, ring_slice_fill = 0, self_copy_gbps = 0, pair_share = 0;
  double peer_channel_gbps = 0, own_block_gbps = 0;
  double pcie_peer_share = 0, pcie_host_share = 0, pcie_sockets_share = 0;
  double host_broadcast_gain = 0;
};

/// Constants of one GPU generation. Rates hold at `link_raw_gbps` and scale with the link.
struct GpuConstants {
  std::string name;
  std::vector<std::string> boards;
  bool fitted = false;  ///< false: rules stand in for runs.
  double link_raw_gbps = 0;
  double launch_us = 0, ll_hop_us = 0, ll_first_sector_us = 0, more_blocks_us = 0,
         full_block_copying_us = 0;
  double ll_round_us = 0, ll128_hop_us = 0, ll128_block_gbps = 0;
  double slice_overhead_us = 0, slice_overhead_at_link = 0, block_gbps = 0, link_gbps = 0;
  double nvls_period_us = 0, nvls_channel_gbps = 0, nvls_limit_gbps = 0;
  double p2p_launch_us = 0, p2p_peer_us = 0, p2p_ll_us = 0, p2p_ll_round_us = 0, p2p_slice_us = 0;
  double p2p_block_gbps = 0, p2p_link_gbps = 0, host_launch_us = 0;
  double network_launch_us = 0;
  double network_ll_hop_us = 0, network_ll128_hop_us = 0, network_simple_hop_us = 0;
  double network_ll_gbps = 0, network_ll128_gbps = 0, network_simple_gbps = 0;
  double nvls_tree_start_us = 0, nvls_tree_chunk_us = 0, nvls_tree_gbps = 0;
};

/// Constants of one way from GPU memory to GPU memory of another node.
struct FabricConstants {
  std::string name;
  double ll_hop_us = 0, ll128_hop_us = 0, simple_hop_us = 0;
  double nic_share = 0;        ///< Data rate of a NIC over its nominal rate.
  double ll_wire_gbps = 0;     ///< LL's limit per NIC, wire bytes.
  double handshake_bytes = 0;  ///< Wire message from which a rendezvous is paid; 0: none.
  double handshake_us = 0;
  double inline_bytes = 0;   ///< LL wire message that still travels inside its descriptor; 0: none.
  double inline_us = 0;      ///< What such a message saves on a hop.
  double hop_growth_us = 0;  ///< More per doubling of the nodes beyond two.
  double message_us = 0;     ///< Per message and channel, not overlapped.
  double ll128_share = 0, all_to_all_share = 0, peer_us = 0;
  double one_gpu_limit_gbps = 0;  ///< Of all NICs when a node uses one GPU; 0: none.
  double nic_limit_gbps = 0;      ///< Of one NIC, host bounce; 0: none.
};

class TimingConstants {
 public:
  /// The shipped catalogue/timing/gpu.yaml and fabric.yaml.
  static const TimingConstants& Shipped();
  /// @throws ConfigError for a missing or unknown constant, a wrong number, a source not listed.
  TimingConstants(const std::filesystem::path& gpu_file, const std::filesystem::path& fabric_file);

  const SharedConstants& shared() const { return shared_; }
  /// @throws ConfigError naming the known classes.
  const GpuConstants& Gpu(std::string_view gpu_class) const;
  const FabricConstants& Fabric(std::string_view fabric_class) const;
  const std::vector<GpuConstants>& gpus() const { return gpus_; }
  const std::vector<FabricConstants>& fabrics() const { return fabrics_; }
  /// The class of a board as logs name it: "NVIDIA H100 80GB HBM3" is "h100". The longest matching
  /// entry of `boards` wins; "" when none matches.
  std::string ClassOfBoard(std::string_view board) const;

  /// A copy in which one part is another: a class of that name replaced (added where there is
  /// none), or what all classes share. For questions such as "what if the hop were slower".
  TimingConstants With(const GpuConstants& gpu) const;
  TimingConstants With(const FabricConstants& fabric) const;
  TimingConstants With(const SharedConstants& shared) const;

 private:
  SharedConstants shared_;
  std::vector<GpuConstants> gpus_;
  std::vector<FabricConstants> fabrics_;
};

/// A constant by its name in the file, for programs that search or print constants.
struct NamedConstant {
  std::string_view name;
  double* value;
};
/// All numbers of one part, in the order of the file's schema. The pointers live as long as it.
std::vector<NamedConstant> NamedConstants(SharedConstants& shared);
std::vector<NamedConstant> NamedConstants(GpuConstants& gpu);
std::vector<NamedConstant> NamedConstants(FabricConstants& fabric);

}  // namespace windtunnel::timing
