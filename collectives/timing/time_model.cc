#include "collectives/timing/time_model.h"

#include <algorithm>

#include "collectives/timing/network_model.h"
#include "collectives/timing/one_node_model.h"
#include "collectives/timing/point_to_point.h"

namespace windtunnel::timing {
namespace {

// Measured: 0.2 in a run of 2021 (2.8 to 2.11), 0.04 to 0.05 with 2.18.5 and 2.22.3; in between,
// ASSUMED: from this release on the host prepares a channel of a launch in 0.04 instead of 0.2 us.
constexpr nccl::NcclVersion kCheapHostChannels{2, 14, 0};

TimeBreakdown DeviceTime(const CallFacts& facts, const TimingConstants& constants) {
  const bool point_to_point = IsPointToPoint(facts.function);
  if (facts.nodes > 1) {
    return point_to_point ? NetworkPointToPointTime(facts, constants)
                          : NetworkTime(facts, constants);
  }
  return point_to_point ? OneNodePointToPointTime(facts, constants) : OneNodeTime(facts, constants);
}

}  // namespace

double HostLaunchUs(const CallFacts& facts, const TimingConstants& constants) {
  if (facts.launch != Launch::kOneThread) return 0;
  const SharedConstants& shared = constants.shared();
  const GpuConstants& gpu = constants.Gpu(facts.gpu_class);
  const double per_channel =
      facts.version >= kCheapHostChannels ? shared.host_channel_us : shared.host_channel_old_us;
  const double driven = std::max(1u, facts.gpus_per_thread);
  const double n = facts.ranks;
  // What a thread posts: all that its ranks send and receive; of a gather or scatter the root does
  // so in one direction, and the others one message each.
  if (facts.function == Function::kGather || facts.function == Function::kScatter) {
    return driven * gpu.host_launch_us + shared.host_peer_pair_us * (n + driven);
  }
  if (facts.function == Function::kAllToAll || facts.function == Function::kAllToAllV) {
    return driven * gpu.host_launch_us + shared.host_peer_pair_us * 2 * n * driven;
  }
  if (facts.function == Function::kHypercube)
    return HypercubeRounds(facts.ranks) * driven * gpu.host_launch_us;
  const double channels = facts.function == Function::kSendRecv ? 0 : facts.channels;
  return driven * (gpu.host_launch_us + per_channel * channels);
}

TimeBreakdown PredictTime(const CallFacts& facts, const TimingConstants& constants) {
  TimeBreakdown time;
  if (facts.size.count() == 0) {
    time.Add(Cause::kKernel, constants.Gpu(facts.gpu_class).launch_us);
    return time;
  }
  time = DeviceTime(facts, constants);
  const double host = HostLaunchUs(facts, constants);
  if (host > time.us()) {
    const bool extrapolated = time.extrapolated;
    time = {};
    time.extrapolated = extrapolated;
    time.Add(Cause::kHostLaunch, host);
  }
  return time;
}

double DataSheetTimeUs(const CallFacts& facts, const TimingConstants& constants) {
  constexpr double kNodeStepUs = 1;
  constexpr double kNetworkStepUs = 3;
  const double n = facts.ranks;
  if (facts.ranks < 2) return 0;
  const double raw = facts.link_rate.count() == 0 ? constants.Gpu(facts.gpu_class).link_raw_gbps
                                                  : ToGigabytesPerSecond(facts.link_rate);
  double gbps = raw;
  if (facts.nodes > 1) {
    gbps = ToGigabytesPerSecond(facts.nic_rate) * facts.nics_per_node;
    // A ring passes a node once; peers of all-to-all share the NICs of their node.
    if (IsPointToPoint(facts.function)) gbps /= facts.gpus_per_node();
    gbps = std::min(gbps, raw);
  }
  double steps = n - 1;
  switch (facts.function) {
    case Function::kAllReduce:
      steps = 2 * (n - 1);
      break;
    case Function::kSendRecv:
      steps = 1;
      break;
    default:
      break;
  }
  const double network_steps = facts.nodes > 1 ? steps * facts.nodes / n : 0;
  const double latency = network_steps * kNetworkStepUs + (steps - network_steps) * kNodeStepUs;
  const double bytes =
      static_cast<double>(facts.size.count()) * BusBandwidthFactor(facts.function, facts.ranks);
  return latency + bytes / (gbps * 1000);
}

}  // namespace windtunnel::timing
