#include "collectives/nccl/channels.h"

#include <algorithm>
#include <bit>

namespace windtunnel::nccl {
namespace {

int FirstSet(const Environment& environment, std::initializer_list<const char*> names,
             int otherwise) {
  for (const char* name : names)
    if (const auto value = environment.GetInt(name)) return static_cast<int>(*value);
  return otherwise;
}

// Appends copies of the channels until there are `end`: channel c copies channel c - (count at the
// start). Returns the count.
void CopyChannels(std::vector<int>& source, int end) {
  const int start = static_cast<int>(source.size());
  for (int c = start; c < end; ++c) source.push_back(source[static_cast<std::size_t>(c - start)]);
}

}  // namespace

int Log2Floor(std::uint64_t n) { return static_cast<int>(std::bit_width(n)) - 1; }
int Log2Ceil(std::uint64_t n) { return n <= 1 ? 0 : Log2Floor(n - 1) + 1; }
std::uint64_t PowerOfTwoUp(std::uint64_t n) { return std::bit_ceil(n); }

ChannelLimits LimitsFrom(const Environment& environment, const PlanningConstants& constants) {
  ChannelLimits limits;
  const int most = constants.max_channels;
  limits.min_channels =
      std::clamp(FirstSet(environment, {"NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"}, 0), 0, most);
  limits.max_channels =
      std::clamp(FirstSet(environment, {"NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"}, most), 1, most);
  limits.min_ctas = std::clamp(FirstSet(environment, {"NCCL_MIN_CTAS"}, 1), 1, most);
  limits.max_ctas = std::clamp(FirstSet(environment, {"NCCL_MAX_CTAS"}, most), 1, most);
  return limits;
}

ChannelSources PlanChannels(const ChannelInputs& inputs, const ChannelLimits& limits,
                            const Constants& constants) {
  const NcclVersion& version = constants.version;
  const int most = constants.planning.max_channels;
  ChannelSources out;
  std::vector<int>& source = out.source;
  for (int c = 0; c < std::min(most, 2 * inputs.search_channels); ++c) source.push_back(c);
  const auto count = [&] { return static_cast<int>(source.size()); };

  if (inputs.collnet && inputs.collnet_faster_inside && inputs.rank_count > inputs.node_count)
    CopyChannels(source, std::min(most, count() + count() / 2));

  // Four channels per search channel, to fill the links with few ranks per node.
  const bool hopper = version >= NcclVersion{2, 25, 1} ? inputs.min_compute_capability >= 90
                                                       : inputs.min_compute_capability == 90;
  const bool room = version >= NcclVersion{2, 20, 3} ? count() < 16 : 2 * count() <= most;
  if (version >= NcclVersion{2, 16, 2} && hopper && inputs.node_count > 1 &&
      inputs.ring_bw_intra > 45.0F && room)
    CopyChannels(source, 2 * count());

  // First cut, then extended: a user may take the first channels only and have them doubled.
  source.resize(
      static_cast<std::size_t>(std::min({limits.max_channels, count(), limits.max_ctas})));
  CopyChannels(source, std::max(limits.min_channels, limits.min_ctas));

  out.count_before_nvls = count();
  if (version >= NcclVersion{2, 20, 3} && version < NcclVersion{2, 28, 3})
    CopyChannels(source, inputs.nvls_channels);
  return out;
}

int NvlsChannels(int compute_capability, bool several_hosts, const ChannelLimits& limits,
                 const Environment& environment, const PlanningConstants& constants) {
  int channels = compute_capability < 100 ? constants.nvls_channels_sm90
                 : several_hosts          ? constants.nvls_channels_sm100
                                          : constants.nvls_channels_sm100_one_node;
  if (const auto set = environment.GetInt("NCCL_NVLS_NCHANNELS"); set && *set >= 0)
    channels = static_cast<int>(*set);
  return std::max(limits.min_ctas, std::min(limits.max_ctas, channels));
}

float NvlinkBandwidth(int compute_capability, const NcclVersion& version) {
  // src/graph/topo.h, by tag.
  if (compute_capability >= 100 && version >= NcclVersion{2, 27, 5}) return 40.1F;
  if (compute_capability >= 100 && version >= NcclVersion{2, 25, 1}) return 40.0F;
  if (compute_capability >= 90) {
    if (version >= NcclVersion{2, 20, 3}) return 20.6F;
    return version >= NcclVersion{2, 18, 1} ? 20.0F : 22.0F;
  }
  if (compute_capability == 86) return 12.0F;
  if (compute_capability >= 60 && compute_capability < 70) return 18.0F;
  return version >= NcclVersion{2, 18, 1} ? 20.0F : 22.0F;
}

P2pChannels PlanP2pChannels(const NodeDescription& own, int collective_channels, int rank_count,
                            int node_count, const Environment& environment,
                            const Constants& constants) {
  const NcclVersion& version = constants.version;
  const PlanningConstants& planning = constants.planning;
  const bool per_rank_rule = version >= NcclVersion{2, 29, 2};
  int channels = std::min(
      collective_channels,
      static_cast<int>(environment.GetInt("NCCL_MAX_P2P_NCHANNELS", planning.max_channels)));
  channels = std::max(channels, static_cast<int>(environment.GetInt("NCCL_MIN_P2P_NCHANNELS", 1)));

  const auto set_by_user = environment.GetInt("NCCL_NCHANNELS_PER_NET_PEER");
  const auto over_network = [&](const NodeDescription::Gpu& gpu) {
    if (set_by_user && *set_by_user >= 0) return static_cast<int>(*set_by_user);
    int wanted = planning.net_peer_channels;
    if (per_rank_rule) {
      if (gpu.local_nics > 0) {
        const int rate = static_cast<int>(gpu.local_nic_bandwidth);
        wanted = std::max(gpu.local_nics,
                          (rate + planning.net_channel_gbps - 1) / planning.net_channel_gbps);
      }
    } else if (version >= NcclVersion{2, 20, 3}) {
      // More than eight operations per channel lose a warp: fewer channels per peer then.
      while (wanted * rank_count > channels * 4 && wanted > 1) wanted /= 2;
      wanted = std::max(gpu.local_nics, wanted);
    }
    return wanted;
  };
  int least = per_rank_rule ? planning.max_channels : channels;
  const std::size_t gpus = own.gpus.size();
  for (std::size_t g = 0; g < gpus; ++g) {
    for (std::size_t p = 0; p < gpus; ++p) {
      if (p == g) continue;
      const NodeDescription::Path& path = own.gpu_paths[p][g];
      const bool nvlink = path.type == PathType::kNvl ||
                          (version >= NcclVersion{2, 30, 3} && path.type == PathType::kNvb);
      const float one = NvlinkBandwidth(own.gpus[g].compute_capability, version);
      least = std::min(least, nvlink ? 2 * std::max(1, static_cast<int>(path.bandwidth / one)) : 2);
    }
    if (static_cast<std::size_t>(rank_count) > gpus)
      least = std::min(least, over_network(own.gpus[g]));
  }

  P2pChannels out;
  out.per_peer = static_cast<int>(PowerOfTwoUp(static_cast<std::uint64_t>(std::max(1, least))));
  out.count = static_cast<int>(PowerOfTwoUp(static_cast<std::uint64_t>(channels)));
  if (per_rank_rule && node_count > 1 && !set_by_user) {
    // All peers must fit one round of the schedule.
    const int batches = (rank_count + planning.p2p_per_batch - 1) / planning.p2p_per_batch;
    while (out.per_peer * batches > out.count && out.per_peer > 1) out.per_peer /= 2;
  } else if (version >= NcclVersion{2, 22, 3}) {
    out.per_peer = std::min(out.per_peer, out.count);
  }
  return out;
}

}  // namespace windtunnel::nccl
