#pragma once

#include <cstdint>
#include <span>

#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/path_type.h"

namespace windtunnel::nccl {

/// What changed between releases in the graph search. One member per rule; `SearchRulesOf` is the
/// one place that knows the releases. Source: NVIDIA/nccl src/graph/search.cc, src/init.cc and
/// src/transport/nvls.cc at the tags v2.10.3-1 to v2.30.7-1.
struct SearchRules {
  // Steps a search may take.
  std::int64_t steps_in_all;
  int steps_per_attempt;
  int steps_per_tree_attempt;
  int steps_equal_channels;  ///< When all channels have to be equal.

  // Which searches run, and how wide.
  bool collnet_always;          ///< The CollNet graph is searched without a plugin too.
  bool collnet_direct;          ///< CollNet direct has a graph of its own.
  bool collnet_direct_id_two;   ///< It is written with the id of the chain.
  bool nvls;                    ///< NVLS exists.
  int nvls_min_gpus;            ///< GPUs a system needs for NVLS.
  bool nvls_up_to_gpus;         ///< NVLS may have as many channels as GPUs between nodes too.
  bool heads_are_capped;        ///< At most 32 heads (NVLS) and 8 (CollNet direct).
  bool tree_as_wide_as_ring;    ///< A tree needs the ring's channels; before it may have fewer.
  bool split_nvlink_needs_two;  ///< A ring over two NVLink islands needs two channels.

  // Where types start and end.
  bool types_from_system;   ///< Nearest and farthest present; before NVL, PIX and SYS.
  bool old_gpus_go_to_sys;  ///< Before sm90 the NICs may be as far as SYS.
  bool has_c2c, has_p2c, has_pxn;
  bool skips_disconnected;  ///< No attempt with the type DIS.
  bool start_by_total;      ///< The first rate also respects the rate of a GPU in all.
  bool one_gpu_is_local;    ///< A system of one GPU has a rate in all of 5000; before 0.
  bool no_hops_is_free;     ///< A path without hops costs nothing; before it could not be.

  // Order of GPUs.
  enum class Neighbours : std::uint8_t { kIgnored, kFirst, kOnly };
  Neighbours nvswitch_neighbours;  ///< On a node with NVSwitch, neighbours in index order.
  enum class FirstGpu : std::uint8_t {
    kIdleFirst,  ///< GPUs at best rate and fewest hops, those with free PCI rate first.
    kRotated,    ///< The same, beginning at the channel's number.
    kLocal       ///< The NIC's local GPU, then the others equally near.
  };
  FirstGpu first_gpu;
  bool fewest_hops_above_zero;   ///< GPUs without a path do not count as fewest hops.
  bool index_order_on_nvswitch;  ///< The plain index order is tried on nodes with NVSwitch too.
  bool replay_or_search;         ///< With equal channels only the last channel's order is tried.

  // Choice of NICs.
  enum class Nets : std::uint8_t { kBestRate, kByDistance, kPreferred };
  Nets nets;
  bool nets_rotate;              ///< A channel starts at the NIC of its number.
  bool nets_of_index_below_max;  ///< NICs from MAXCHANNELS on are not added by distance.
  bool hosts_share_nets;         ///< Several hosts: NICs by GPU first, then by channel.
  bool net_counts_channels;      ///< A NIC takes `maxconn` channels at most.
  enum class Cross : std::uint8_t { kFree, kAlternating, kRingAlternating };
  Cross cross;               ///< How channels may leave by another NIC.
  bool cross_costs;          ///< Leaving by another NIC costs 15 % in the comparison.
  bool cross_only_some;      ///< Only rings, balanced and split trees.
  bool cross_any_value;      ///< 1 and 2 both mean: try without first, then with; before 2.19.
  bool cross_is_two;         ///< An allowed crossing is written as 2.
  bool cross_retry_limited;  ///< Only rings and balanced trees try it.
  enum class NvlsHeads : std::uint8_t {
    kWithoutNet,            ///< GPU of the NIC numbered by the channel, no path from the NIC.
    kFirstNet,              ///< Only the first NIC of the channel.
    kNoDuplicateKeepsRate,  ///< Further NICs until a new head is found; a duplicate's rate stays
                            ///< taken.
    kNoDuplicate
  };
  NvlsHeads nvls_heads;
  bool nvls_by_inter_rate;  ///< More rate between nodes is better too.

  // Cost of a path.
  bool power_only_nvlink_to_cpu;  ///< The full reverse charge only on Power; before on any CPU.

  // Relaxation.
  bool amd_keeps_equal_channels;
  enum class SimplerTree : std::uint8_t { kSplitBeforeCross, kSplitAfterCross, kBalancedFirst };
  SimplerTree simpler_tree;
  PathType net_type_floor;         ///< Types nearer than this are always tried further.
  bool duplicates_before_raising;  ///< Duplication before pass 2; before at the end.
  bool duplication_knows_sm;       ///< Not above sm80 with more than four channels below 50 GB/s.
  bool raises_rings;               ///< Pass 2 raises rings and NVLS; before only trees.
  bool fallback_has_nets;          ///< The fallback order names real NICs.
  bool fallback_for_nvls;          ///< NVLS has the fallback too.

  // Files.
  bool writes_nvls_heads_only;
  bool writes_hex_devices;
  bool writes_latency;
  bool writes_ranks;  ///< GPUs of a graph file carry their rank too.
};

SearchRules SearchRulesOf(const NcclVersion& version);

/// Rates tried, GB/s per channel, falling.
/// @param sm smallest compute capability of the system's GPUs.
/// @param inter between nodes, else within a node.
std::span<const float> RateSteps(const NcclVersion& version, int sm, bool inter);

}  // namespace windtunnel::nccl
