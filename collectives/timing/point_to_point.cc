#include "collectives/timing/point_to_point.h"

#include <algorithm>
#include <cmath>

#include "collectives/timing/network_model.h"
#include "collectives/timing/one_node_model.h"

namespace windtunnel::timing {
namespace {

constexpr double kKilo = 1000.0;
constexpr double kLlRound = 4096;  // Data bytes of one LL round of 512 threads.
constexpr double kRoundSlack = 0.02;
constexpr double kManyPeers = 16;  // From here on the flows of a node fill its NICs evenly.

}  // namespace

TimeBreakdown OneNodePointToPointTime(const CallFacts& facts, const TimingConstants& constants) {
  const GpuConstants& gpu = constants.Gpu(facts.gpu_class);
  const SharedConstants& shared = constants.shared();
  TimeBreakdown time;
  time.extrapolated = !gpu.fitted;
  const bool pair = facts.function == Function::kSendRecv;
  const double n = facts.ranks;
  const double peers = pair ? 1 : n - 1;
  const bool one_way = facts.function == Function::kGather || facts.function == Function::kScatter;
  const double to_peer =
      static_cast<double>(facts.size.count()) * facts.unevenness / (pair ? 1 : n);
  const double parts = std::max(1u, facts.peer_parts);
  const double part = to_peer / parts;
  time.Add(Cause::kKernel, gpu.launch_us + gpu.p2p_launch_us);
  time.Add(Cause::kPeerSetup, gpu.p2p_peer_us * (pair ? 2 : n));
  if (facts.protocol != Protocol::kSimple) {
    const double rounds = part / kLlRound;
    const double first = std::min(1.0, rounds);
    time.Add(Cause::kBlock,
             gpu.p2p_ll_us * first * first +
                 std::max(0.0, std::ceil(rounds - kRoundSlack) - 1) * gpu.p2p_ll_round_us);
    return time;
  }
  // One peer at a time, or one direction alone, loads the link as a ring does; many peers in both
  // share it less well.
  const double link =
      UsableLinkGbps(facts, gpu, shared, pair || one_way ? gpu.link_gbps : gpu.p2p_link_gbps);
  const double chunk = std::min(part, static_cast<double>(facts.chunk.count()));
  if (chunk <= 0) return time;
  const double copy = chunk / gpu.p2p_block_gbps / kKilo;
  const double wire = chunk * parts * peers / link / kKilo;
  // Each stage alone runs at the block rate; with both at work each gets a share of it.
  const double both = one_way ? copy : copy / shared.p2p_two_stage_rate;
  time.Add(Cause::kKernel, gpu.p2p_slice_us);
  time.Add(Cause::kPipelineFill, copy);
  time.Add(copy > wire ? Cause::kBlock : Cause::kLink, RoundedMaximum(copy, wire));
  time.Add(both > wire ? Cause::kBlock : Cause::kLink,
           (part / chunk - 1) * RoundedMaximum(both, wire));
  return time;
}

TimeBreakdown NetworkPointToPointTime(const CallFacts& facts, const TimingConstants& constants) {
  const GpuConstants& gpu = constants.Gpu(facts.gpu_class);
  const FabricConstants& fabric = constants.Fabric(facts.fabric_class);
  const SharedConstants& shared = constants.shared();
  TimeBreakdown time;
  time.extrapolated = !gpu.fitted;
  const double n = facts.ranks;
  const double per_node = facts.gpus_per_node();
  const double size = static_cast<double>(facts.size.count());
  const bool pair = facts.function == Function::kSendRecv;
  const double message = pair ? size : size / n;
  const NetworkTerms terms = NetworkTermsOf(facts, fabric, facts.protocol, message);
  time.Add(Cause::kKernel, gpu.network_launch_us);
  time.Add(Cause::kNetworkHop, terms.hop_us);
  time.Add(Cause::kHandshake, terms.handshake_us);
  if (pair) {
    // A GPU uses the NICs nearest to it; with fewer NICs than GPUs that send, each has a share.
    const double own_nics = std::max(1u, facts.nics_per_node / facts.gpus_per_node());
    const double its_share =
        static_cast<double>(facts.nics_per_node) / std::max(1u, facts.crossing);
    const double nics = terms.nic_gbps * std::min(own_nics, its_share) * shared.pair_share;
    const double channels = facts.peer_parts * shared.peer_channel_gbps;
    time.Add(nics < channels ? Cause::kNic : Cause::kProxy,
             size / (kKilo * std::min(nics, channels)));
    return time;
  }
  const double remote = n - per_node;
  const double few = remote < kManyPeers && per_node < 8 ? shared.pair_share : 1.0;
  const double share = terms.nic_gbps * facts.nics_per_node / per_node;
  time.Add(Cause::kPeerSetup, remote * fabric.peer_us);
  time.Add(Cause::kNic,
           size * facts.unevenness * remote / n / (kKilo * share * fabric.all_to_all_share * few));
  time.Add(Cause::kOwnBlock, size / n / (kKilo * shared.own_block_gbps));
  return time;
}

}  // namespace windtunnel::timing
