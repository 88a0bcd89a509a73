#pragma once
// How many channels a communicator has, and from which search channel each is copied.

#include <cstdint>
#include <vector>

#include "collectives/nccl/constants.h"
#include "collectives/nccl/job.h"
#include "interconnect/nccl/environment.h"

namespace windtunnel::nccl {

/// The scalars of a search after the exchange between all ranks: smallest channel count and rates,
/// farthest types.
struct GraphSummary {
  Pattern pattern = Pattern::kRing;
  int channel_count = 0;
  float bw_intra = 0;       ///< GB/s per channel.
  float bw_inter = 0;       ///< GB/s per channel.
  float latency_inter = 0;  ///< us; of rank 0's node.
  PathType type_intra = PathType::kLoc;
  PathType type_inter = PathType::kLoc;
  bool same_channels = true;
  int cross_nic = 0;
  int hops = 0;  ///< Of rank 0's node; 0 when not known.
};

/// Limits a user sets, after clamping as NCCL does (NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS and
/// their old names, NCCL_MIN_CTAS, NCCL_MAX_CTAS).
struct ChannelLimits {
  int min_channels = 0;
  int max_channels = 0;
  int min_ctas = 1;
  int max_ctas = 0;
};
ChannelLimits LimitsFrom(const Environment& environment, const PlanningConstants& constants);

/// What decides the number of collective channels.
struct ChannelInputs {
  int search_channels = 0;  ///< min(ring, tree) over all ranks.
  bool collnet = false;
  bool collnet_faster_inside = false;  ///< CollNet's rate inside the node is above the one outside.
  int min_compute_capability = 0;
  int node_count = 0;
  int rank_count = 0;
  float ring_bw_intra = 0;
  int nvls_channels = 0;
};
/// For each channel of the communicator the index of the (doubled) search channel it copies: 0 ..
/// 2 x search_channels - 1, where the upper half are the duplicates.
struct ChannelSources {
  std::vector<int> source;
  /// Length before the channels were extended for NVLS (2.20 to 2.27), else the full length.
  int count_before_nvls = 0;
};
ChannelSources PlanChannels(const ChannelInputs& inputs, const ChannelLimits& limits,
                            const Constants& constants);

/// NVLS channels before the search has its say: by GPU generation, NCCL_NVLS_NCHANNELS, limits.
int NvlsChannels(int compute_capability, bool several_hosts, const ChannelLimits& limits,
                 const Environment& environment, const PlanningConstants& constants);

struct P2pChannels {
  int count = 0;     ///< Power of two.
  int per_peer = 0;  ///< Power of two.
};
/// Channels of send and receive. `own`: the node of rank 0, whose view NCCL uses on every rank.
P2pChannels PlanP2pChannels(const NodeDescription& own, int collective_channels, int rank_count,
                            int node_count, const Environment& environment,
                            const Constants& constants);

/// Rate of one NVLink as this version of NCCL counts it, GB/s per direction.
float NvlinkBandwidth(int compute_capability, const NcclVersion& version);

int Log2Floor(std::uint64_t n);  ///< -1 for 0.
int Log2Ceil(std::uint64_t n);
std::uint64_t PowerOfTwoUp(std::uint64_t n);

}  // namespace windtunnel::nccl
