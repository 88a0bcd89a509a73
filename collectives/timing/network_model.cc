#include "collectives/timing/network_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "collectives/timing/one_node_model.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::timing {
namespace {

constexpr double kKilo = 1000.0;  // 1 GB/s = 1000 bytes per microsecond.

/// Wire bytes per data byte: a flag of 4 bytes beside 4 of data; 8 of each 128; none.
double WireBytes(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return 2.0;
    case Protocol::kLl128:
      return 128.0 / 120.0;
    case Protocol::kSimple:
      return 1.0;
  }
  return 1.0;
}

double CeilLog2(std::uint32_t n) { return n < 2 ? 0 : static_cast<double>(std::bit_width(n - 1)); }

/// What every form needs, worked out once.
struct Terms {
  const CallFacts& facts;
  const GpuConstants& gpu;
  const FabricConstants& fabric;
  const SharedConstants& shared;
  double n, nodes, per_node, channels, nics;
  double wire;             // Wire bytes per data byte.
  double nv_hop_us;        // Hop inside the node.
  double block_gbps;       // One channel's block.
  double nic_gbps;         // One NIC, this protocol.
  double channel_gbps;     // A channel's share of the NICs it may use.
  double turn_us;          // The proxy serves the channels of its GPU in turn.
  double lag_us_per_byte;  // LL: flags are scanned and polled in host memory.
};

Terms TermsOf(const CallFacts& facts, const TimingConstants& constants) {
  const GpuConstants& gpu = constants.Gpu(facts.gpu_class);
  const FabricConstants& fabric = constants.Fabric(facts.fabric_class);
  const SharedConstants& shared = constants.shared();
  Terms t{.facts = facts, .gpu = gpu, .fabric = fabric, .shared = shared};
  t.n = facts.ranks;
  t.nodes = facts.nodes;
  t.per_node = facts.gpus_per_node();
  t.channels = std::max(1u, facts.channels);
  t.nics = facts.nics_per_node;
  t.wire = WireBytes(facts.protocol);
  const double used = std::min(t.channels, t.nics);
  double nic = NetworkTermsOf(facts, fabric, facts.protocol, 0).nic_gbps;
  switch (facts.protocol) {
    case Protocol::kLl:
      t.nv_hop_us = gpu.network_ll_hop_us - SmallLlSaving(gpu, facts);
      t.block_gbps = gpu.network_ll_gbps;
      nic = std::min(nic, fabric.ll_wire_gbps);
      break;
    case Protocol::kLl128:
      t.nv_hop_us = gpu.network_ll128_hop_us;
      t.block_gbps = gpu.network_ll128_gbps;
      nic *= fabric.ll128_share;
      break;
    case Protocol::kSimple:
      t.nv_hop_us = gpu.network_simple_hop_us;
      t.block_gbps = gpu.network_simple_gbps;
      break;
  }
  t.nic_gbps = nic;
  t.channel_gbps = nic * used / t.channels;
  t.turn_us = shared.proxy_turn_us * (std::max(1.0, t.channels / std::min(t.per_node, t.nics)) - 1);
  t.lag_us_per_byte = facts.protocol == Protocol::kLl ? 1 / (shared.ll_lag_gbps * kKilo) : 0;
  return t;
}

void AddHops(double count, const NetworkTerms& hop, TimeBreakdown& time) {
  time.Add(Cause::kNetworkHop, count * hop.hop_us);
  time.Add(Cause::kHandshake, count * hop.handshake_us);
}

/// All channels move one chunk of every head per stage; the fill is 2 log2(nodes) stages.
void NvlsTree(const Terms& t, TimeBreakdown& time) {
  const double heads = t.facts.nvls_heads;
  WT_CHECK(heads > 0) << "NVLSTree without heads";
  WT_CHECK(t.gpu.nvls_tree_gbps > 0) << "NVLSTree on " << t.gpu.name;
  const double per_channel = static_cast<double>(t.facts.size.count()) / t.channels;
  const double chunk = std::min(static_cast<double>(t.facts.chunk.count()), per_channel / heads);
  const double loops = std::max(1.0, per_channel / (heads * chunk));
  const double depth = CeilLog2(t.facts.nodes);
  const double loads = t.facts.nodes <= 2 ? 1 : 2;  // An inner node carries both trees.
  const double moved = t.channels * heads * chunk;
  const double in_node = moved / (kKilo * t.gpu.nvls_tree_gbps);
  const double nic = loads * moved / (kKilo * t.nic_gbps * t.nics);
  const double stage = std::max({in_node, nic, t.fabric.message_us});
  const Cause cause = stage == nic       ? Cause::kNic
                      : stage == in_node ? Cause::kSwitchSum
                                         : Cause::kProxy;
  time.Add(Cause::kKernel,
           t.gpu.network_launch_us + t.gpu.nvls_tree_start_us +
               t.gpu.nvls_tree_chunk_us * std::min(1.0, chunk / kNvlsTreeFullChunk));
  AddHops(2 * depth, NetworkTermsOf(t.facts, t.fabric, Protocol::kSimple, chunk), time);
  time.Add(cause, loops * stage);
  time.Add(Cause::kPipelineFill, 2 * depth * t.shared.nvls_tree_fill * stage);
}

void Tree(const Terms& t, TimeBreakdown& time) {
  const bool simple = t.facts.protocol == Protocol::kSimple;
  const double block_gbps = simple ? t.block_gbps : t.block_gbps * kTreeBlockShare;
  const double per_channel = static_cast<double>(t.facts.size.count()) / t.channels;
  const double chunk = std::min(static_cast<double>(t.facts.chunk.count()), per_channel);
  const double chunks = std::max(1.0, per_channel / chunk);
  const double depth = CeilLog2(t.facts.nodes);
  const double loads = t.facts.nodes <= 2 ? 1 : 2;
  // LL and LL128 cut through inside the node; Simple stores and forwards each chunk.
  double in_node = chunk / (kKilo * block_gbps);
  if (simple) in_node *= std::max(1.0, (t.per_node - 1) * t.shared.tree_simple_share);
  const double hop_share = t.facts.protocol == Protocol::kLl128 ? kTreeLl128Share : 1.0;
  const double on_nic = t.wire / (kKilo * t.channel_gbps) + t.lag_us_per_byte;
  const double block = chunk / (kKilo * block_gbps);
  const double nic = loads * t.wire * chunk / (kKilo * t.channel_gbps);
  time.Add(Cause::kKernel, t.gpu.network_launch_us);
  time.Add(Cause::kHop, 2 * (t.per_node - 1) * t.nv_hop_us * hop_share);
  AddHops(2 * depth, NetworkTermsOf(t.facts, t.fabric, t.facts.protocol, t.wire * chunk), time);
  time.Add(Cause::kProxy, 2 * depth * t.turn_us);
  time.Add(Cause::kPipelineFill, 2 * (in_node + depth * chunk * on_nic));
  time.Add(block > nic ? Cause::kBlock : Cause::kNic, (chunks - 1) * std::max(block, nic));
  time.Add(Cause::kProxy, (chunks - 1) * t.fabric.message_us);
}

void Ring(const Terms& t, TimeBreakdown& time) {
  const CallFacts& facts = t.facts;
  const bool all_reduce = facts.function == Function::kAllReduce;
  const double steps = all_reduce ? 2 * (t.n - 1) : t.n - 1;
  const double per_channel = static_cast<double>(facts.size.count()) / t.channels;
  const double chunk = std::min(static_cast<double>(facts.chunk.count()), per_channel / t.n);
  const double loops = std::max(1.0, per_channel / (t.n * chunk));
  const double piece = facts.protocol == Protocol::kSimple ? chunk / 2 : chunk;
  const double net_hops = steps * t.nodes / t.n;
  const double nv_hops = steps - net_hops;
  const double on_nic = t.wire / (kKilo * t.channel_gbps);
  const double on_block = 1 / (kKilo * t.block_gbps);
  const double messages = steps / t.n * t.nodes * loops * t.fabric.message_us;
  const double work = steps / t.n * per_channel * std::max(on_nic, on_block);
  const Cause work_cause = on_nic > on_block ? Cause::kNic : Cause::kBlock;
  const NetworkTerms hop = NetworkTermsOf(facts, t.fabric, facts.protocol, t.wire * piece);

  time.Add(Cause::kKernel, t.gpu.network_launch_us);
  // The busiest link or block works through all its bytes, or one chunk travels the whole ring:
  // the longer of the two, and the rest of it beyond the other is what the pipeline cannot hide.
  const auto add_longer = [&](double revolution) {
    if (work + messages >= revolution) {
      time.Add(work_cause, work);
      time.Add(Cause::kProxy, messages);
    } else {
      time.Add(Cause::kPipelineFill, revolution);
    }
  };
  if (facts.protocol == Protocol::kLl128) {
    // One piece per step, every hop stores and forwards it: the revolution time decides.
    const double hops =
        nv_hops * t.nv_hop_us + net_hops * (hop.hop_us + hop.handshake_us + t.turn_us);
    const double revolutions = loops * (net_hops * chunk * on_nic + nv_hops * chunk * on_block);
    if (work + messages >= hops + revolutions) {
      time.Add(work_cause, work);
      time.Add(Cause::kProxy, messages);
    } else {
      time.Add(Cause::kHop, nv_hops * t.nv_hop_us);
      AddHops(net_hops, hop, time);
      time.Add(Cause::kProxy, net_hops * t.turn_us);
      time.Add(Cause::kPipelineFill, revolutions);
    }
  } else {
    time.Add(Cause::kHop, nv_hops * t.nv_hop_us);
    AddHops(net_hops, hop, time);
    time.Add(Cause::kProxy, net_hops * t.turn_us);
    if (facts.protocol == Protocol::kLl) {
      add_longer(net_hops * chunk * (on_nic + t.lag_us_per_byte) + chunk * on_block);
    } else {
      // Two slices per chunk hide half the copy inside the node.
      add_longer(net_hops * chunk * on_nic + 0.5 * nv_hops * chunk * on_block);
      time.Add(Cause::kPipelineFill,
               t.shared.ring_slice_fill * piece * on_block * (all_reduce ? 2 : 1));
    }
  }
  // Two ranks: send, receive-reduce-send and receive wait for each other.
  if (facts.ranks == 2) {
    const double base_hop = NetworkTermsOf(facts, t.fabric, facts.protocol, 0).hop_us;
    time.Add(Cause::kPipelineFill, (loops - 1) * t.shared.two_rank_bubble * base_hop);
  }
  if (facts.function == Function::kAllGather && !facts.in_place) {
    time.Add(Cause::kOwnBlock, static_cast<double>(facts.size.count()) / t.n /
                                   (kKilo * t.channels * t.shared.self_copy_gbps));
  }
}

/// Broadcast and reduce: a chain, chunks follow each other.
void Chain(const Terms& t, TimeBreakdown& time) {
  const double per_channel = static_cast<double>(t.facts.size.count()) / t.channels;
  const double chunk = std::min(static_cast<double>(t.facts.chunk.count()), per_channel);
  const double chunks = std::max(1.0, per_channel / chunk);
  const double net_hops = t.nodes - 1;
  const double nv_hops = t.n - 1 - net_hops;
  const double on_nic = t.wire / (kKilo * t.channel_gbps);
  const double on_block = 1 / (kKilo * t.block_gbps);
  const double step = chunk * std::max(on_nic, on_block) + t.fabric.message_us;
  time.Add(Cause::kKernel, t.gpu.network_launch_us);
  time.Add(Cause::kHop, nv_hops * t.nv_hop_us);
  AddHops(net_hops, NetworkTermsOf(t.facts, t.fabric, t.facts.protocol, t.wire * chunk), time);
  time.Add(Cause::kPipelineFill, net_hops * chunk * on_nic + nv_hops * chunk * on_block);
  time.Add(on_nic > on_block ? Cause::kNic : Cause::kBlock, (chunks - 1) * step);
}

/// Parallel aggregated trees: log2(n) messages, then every NIC carries (n-1)/n of the buffer.
void Pat(const Terms& t, TimeBreakdown& time) {
  const double bytes = static_cast<double>(t.facts.size.count()) * (t.n - 1) / t.n;
  const double on_nic = bytes / (kKilo * t.nic_gbps * std::min(t.channels, t.nics));
  const double on_block = bytes / (kKilo * t.channels * t.block_gbps);
  time.Add(Cause::kKernel, t.gpu.network_launch_us);
  AddHops(CeilLog2(t.facts.ranks),
          NetworkTermsOf(t.facts, t.fabric, Protocol::kSimple, bytes / t.channels / t.n), time);
  time.Add(on_nic > on_block ? Cause::kNic : Cause::kBlock, std::max(on_nic, on_block));
  time.extrapolated = true;
}

}  // namespace

NetworkTerms NetworkTermsOf(const CallFacts& facts, const FabricConstants& fabric,
                            Protocol protocol, double message_bytes) {
  NetworkTerms terms;
  terms.nic_gbps = fabric.nic_share * ToGigabytesPerSecond(facts.nic_rate);
  if (fabric.nic_limit_gbps > 0) terms.nic_gbps = std::min(terms.nic_gbps, fabric.nic_limit_gbps);
  if (fabric.one_gpu_limit_gbps > 0 && facts.gpus_per_node() == 1)
    terms.nic_gbps = std::min(terms.nic_gbps, fabric.one_gpu_limit_gbps);
  switch (protocol) {
    case Protocol::kLl:
      terms.hop_us = fabric.ll_hop_us;
      break;
    case Protocol::kLl128:
      terms.hop_us = fabric.ll128_hop_us;
      break;
    case Protocol::kSimple:
      terms.hop_us = fabric.simple_hop_us;
      break;
  }
  // Each doubling of the nodes adds switch levels to some hops.
  terms.hop_us += fabric.hop_growth_us *
                  std::max(0.0, std::log2(static_cast<double>(std::max(1u, facts.nodes))) - 1);
  if (fabric.handshake_bytes > 0 && message_bytes >= fabric.handshake_bytes)
    terms.handshake_us = fabric.handshake_us;
  if (protocol == Protocol::kLl && 2 * facts.first_hop_bytes() <= fabric.inline_bytes)
    terms.hop_us -= fabric.inline_us;
  // The measured hop has the links of its site in it; a longer way takes what it takes.
  terms.hop_us = std::max(terms.hop_us, ToMicroseconds(facts.path_latency));
  return terms;
}

TimeBreakdown NetworkTime(const CallFacts& facts, const TimingConstants& constants) {
  const Terms terms = TermsOf(facts, constants);
  TimeBreakdown time;
  time.extrapolated = !terms.gpu.fitted;
  const bool rooted = facts.function == Function::kBroadcast || facts.function == Function::kReduce;
  switch (facts.algorithm) {
    case Algorithm::kRing:
      if (rooted) {
        Chain(terms, time);
      } else {
        Ring(terms, time);
      }
      return time;
    case Algorithm::kTree:
      Tree(terms, time);
      return time;
    case Algorithm::kNvlsTree:
      NvlsTree(terms, time);
      return time;
    case Algorithm::kPat:
      Pat(terms, time);
      return time;
    case Algorithm::kNvls:
    case Algorithm::kPointToPoint:
      break;
  }
  throw ConfigError({.field = "algorithm",
                     .value = std::string(ToString(facts.algorithm)),
                     .problem = "has no closed form over several nodes",
                     .expected = "Ring, Tree, NVLSTree or PAT"});
}

}  // namespace windtunnel::timing
