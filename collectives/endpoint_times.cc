#include "collectives/endpoint_times.h"

#include <algorithm>
#include <cmath>

#include "collectives/timing/network_model.h"
#include "collectives/timing/one_node_model.h"

namespace windtunnel {
namespace {

constexpr std::uint64_t kLlBytesPerThread = 8;  // Data bytes of one thread and round.
constexpr double kFullBlock = 512.0;            // Threads of a block with all warps.

bool EightBit(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

// Whole block against a thinned one: more warps to synchronise.
double Fullness(const EndpointQuery& query) {
  const double share = std::min(1.0, query.threads / kFullBlock);
  return share * share;
}

// What the small-message terms of the closed forms ask for.
timing::CallFacts SizeFacts(const EndpointQuery& query) {
  timing::CallFacts facts;
  facts.function = query.function;
  facts.size = query.size.count() == 0 ? MiB(1) : query.size;
  facts.ranks = query.ranks;
  return facts;
}

// Sender and receiver copy at the same time, so each gets a share of the rate of one alone, unless
// the message is one chunk. Rounds of LL are the sender's: its receiver keeps up with them.
BlockTimes PeerBlockTimes(const EndpointQuery& query, const timing::GpuConstants& gpu,
                          const timing::SharedConstants& shared) {
  BlockTimes times;
  if (query.protocol == Protocol::kSimple) {
    const bool one_chunk = query.message.count() != 0 && query.message <= query.chunk;
    times.copy_rate = times.reduce_rate =
        FromGigabytesPerSecond(gpu.p2p_block_gbps * (one_chunk ? 1 : shared.p2p_two_stage_rate));
    return times;
  }
  constexpr std::uint64_t kRound = 4096;  // Data bytes of 512 threads.
  times.round_bytes = Bytes(kRound);
  times.round_time = FromMicroseconds(gpu.p2p_ll_round_us);
  return times;
}

BlockTimes NetworkBlockTimes(const EndpointQuery& query, const timing::GpuConstants& gpu,
                             const timing::SharedConstants& shared) {
  double gbps = gpu.network_simple_gbps;
  if (query.protocol == Protocol::kLl) gbps = gpu.network_ll_gbps;
  if (query.protocol == Protocol::kLl128) gbps = gpu.network_ll128_gbps;
  if (query.algorithm == AlgorithmId::kTree && query.protocol != Protocol::kSimple)
    gbps *= timing::kTreeBlockShare;
  if (timing::HasOnePeer(query.function)) gbps = std::min(gbps, shared.peer_channel_gbps);
  BlockTimes times;
  times.copy_rate = times.reduce_rate = FromGigabytesPerSecond(gbps);
  if (query.protocol == Protocol::kSimple && query.algorithm != AlgorithmId::kNvlsTree &&
      !timing::IsPointToPoint(query.function)) {
    // The hop of Simple is what a block spends on fences and posts, over the slices of a chunk.
    const double slices = query.algorithm == AlgorithmId::kRing ? 2 : 1;
    times.slice_overhead = FromMicroseconds(gpu.network_simple_hop_us / slices);
    times.empty_slice_overhead = times.slice_overhead;
  }
  return times;
}

}  // namespace

BlockTimes RingBlockTimes(const EndpointQuery& query, const timing::GpuConstants& gpu,
                          const timing::SharedConstants& shared) {
  if (query.several_nodes) return NetworkBlockTimes(query, gpu, shared);
  if (timing::IsPointToPoint(query.function)) return PeerBlockTimes(query, gpu, shared);
  BlockTimes times;
  const bool eight_bit = EightBit(query.type);
  switch (query.protocol) {
    case Protocol::kLl: {
      times.round_bytes = Bytes(std::max<std::uint64_t>(1, query.threads * kLlBytesPerThread));
      times.round_time = FromMicroseconds(gpu.ll_round_us);
      times.round_reduce_factor =
          shared.ll_adding_round * (eight_bit ? shared.ll_eight_bit_round : 1.0);
      const double full = Fullness(query);
      times.first_round_copy = FromMicroseconds(full * gpu.full_block_copying_us);
      times.first_round_reduce = FromMicroseconds(
          full * (shared.full_block_adding_us + (eight_bit ? shared.full_block_eight_bit_us : 0)));
      break;
    }
    case Protocol::kLl128:
      times.copy_rate = FromGigabytesPerSecond(gpu.ll128_block_gbps);
      times.reduce_rate = times.copy_rate;
      break;
    case Protocol::kSimple:
      times.slice_overhead = FromMicroseconds(gpu.slice_overhead_us);
      times.empty_slice_overhead = FromMicroseconds(gpu.slice_overhead_us * shared.empty_slice);
      times.copy_rate = FromGigabytesPerSecond(gpu.block_gbps);
      times.reduce_rate = FromGigabytesPerSecond(
          gpu.block_gbps * (eight_bit ? shared.eight_bit_adding_rate : shared.adding_rate));
      break;
  }
  return times;
}

BlockTimes PeerReceiveTimes(const BlockTimes& sending) {
  BlockTimes times = sending;
  times.round_time = {};
  return times;
}

NvlsStageTimes NvlsTimes(const EndpointQuery& query, const timing::GpuConstants& gpu) {
  NvlsStageTimes times;
  times.copying.slice_overhead = FromMicroseconds(gpu.nvls_period_us);
  // Ops without elements only signal; the period has their cost in it.
  times.copying.copy_rate = FromGigabytesPerSecond(gpu.nvls_channel_gbps);
  times.copying.reduce_rate = times.copying.copy_rate;
  times.reducing = times.copying;
  const std::uint32_t heads = std::max(1U, query.heads);
  // In an all-reduce the head's block has two ops in a period: the switch's sum, then the
  // multicast.
  const std::uint32_t ops = query.function == Function::kAllReduce ? 2 : 1;
  times.reducing.slice_overhead = times.copying.slice_overhead / ops;
  times.reducing.copy_rate = times.copying.copy_rate * ops / heads;
  times.reducing.reduce_rate = times.reducing.copy_rate;
  return times;
}

Picoseconds NodeHopReaction(const EndpointQuery& query, const timing::GpuConstants& gpu) {
  const bool tree = query.algorithm == AlgorithmId::kTree;
  if (timing::IsPointToPoint(query.function) && !query.several_nodes)
    return FromMicroseconds(query.protocol == Protocol::kLl ? gpu.p2p_ll_us : 0);
  switch (query.protocol) {
    case Protocol::kLl:
      return FromMicroseconds((query.several_nodes ? gpu.network_ll_hop_us : gpu.ll_hop_us) -
                              timing::SmallLlSaving(gpu, SizeFacts(query)));
    case Protocol::kLl128:
      if (!query.several_nodes) return FromMicroseconds(gpu.ll128_hop_us);
      return FromMicroseconds(gpu.network_ll128_hop_us * (tree ? timing::kTreeLl128Share : 1));
    case Protocol::kSimple:
      return Picoseconds(0);  // Paid per slice, as `slice_overhead`.
  }
  return Picoseconds(0);
}

Picoseconds NetworkHopReaction(const EndpointQuery& query, const timing::FabricConstants& fabric,
                               const timing::SharedConstants& shared, Bytes wire_message,
                               std::uint32_t nodes) {
  double us = 0;
  const auto bytes = static_cast<double>(wire_message.count());
  switch (query.protocol) {
    case Protocol::kLl:
      us = fabric.ll_hop_us + bytes / 2 / (shared.ll_lag_gbps * 1000);
      if (2 * SizeFacts(query).first_hop_bytes() <= fabric.inline_bytes) us -= fabric.inline_us;
      break;
    case Protocol::kLl128:
      us = fabric.ll128_hop_us;
      break;
    case Protocol::kSimple:
      us = fabric.simple_hop_us;
      break;
  }
  if (nodes > 2) us += fabric.hop_growth_us * (std::log2(nodes) - 1);
  if (fabric.handshake_bytes > 0 && bytes >= fabric.handshake_bytes) us += fabric.handshake_us;
  if (query.algorithm != AlgorithmId::kNvlsTree) {
    const double proxies = std::max(1U, std::min(query.gpus_per_node, query.nics_per_node));
    us += shared.proxy_turn_us * (std::max(1.0, query.channels / proxies) - 1);
  }
  return FromMicroseconds(us);
}

double UsableNicShare(const EndpointQuery& query, const timing::FabricConstants& fabric,
                      const timing::SharedConstants& shared, BitsPerSecond nominal) {
  double share = fabric.nic_share;
  const double gbps = ToGigabytesPerSecond(nominal);
  if (gbps > 0 && fabric.nic_limit_gbps > 0) share = std::min(share, fabric.nic_limit_gbps / gbps);
  if (gbps > 0 && fabric.one_gpu_limit_gbps > 0 && query.gpus_per_node == 1)
    share = std::min(share, fabric.one_gpu_limit_gbps / gbps);
  if (timing::HasOnePeer(query.function)) share *= shared.pair_share;
  return query.protocol == Protocol::kLl128 ? share * fabric.ll128_share : share;
}

Picoseconds DeviceLaunch(const EndpointQuery& query, const timing::GpuConstants& gpu) {
  if (query.several_nodes) {
    double us = gpu.network_launch_us;
    if (query.algorithm == AlgorithmId::kNvlsTree) {
      const double chunk = static_cast<double>(query.chunk.count());
      us += gpu.nvls_tree_start_us +
            gpu.nvls_tree_chunk_us * std::min(1.0, chunk / timing::kNvlsTreeFullChunk);
    }
    return FromMicroseconds(us);
  }
  double us = gpu.launch_us;
  if (timing::IsPointToPoint(query.function)) {
    const double peers = timing::HasOnePeer(query.function) ? 2 : query.ranks;
    us += gpu.p2p_launch_us + gpu.p2p_peer_us * peers;
    if (query.protocol == Protocol::kSimple) us += gpu.p2p_slice_us;
    return FromMicroseconds(us);
  }
  const double channels = query.channels;
  if (query.algorithm == AlgorithmId::kNvls) return FromMicroseconds(us);
  us += query.protocol == Protocol::kLl ? gpu.more_blocks_us * Fullness(query) * (1 - 1 / channels)
                                        : gpu.more_blocks_us;
  return FromMicroseconds(us);
}

Picoseconds PeerSetUp(const EndpointQuery& query, const timing::FabricConstants& fabric) {
  switch (query.function) {
    case Function::kAllToAll:
    case Function::kAllToAllV:
    case Function::kGather:
    case Function::kScatter:
      return FromMicroseconds((query.ranks - std::min(query.ranks, query.gpus_per_node)) *
                              fabric.peer_us);
    default:
      return Picoseconds(0);
  }
}

double UsableLinkShare(const EndpointQuery& query, const timing::GpuConstants& gpu) {
  if (gpu.link_raw_gbps <= 0) return 1;
  double usable = gpu.link_gbps;
  if (query.function == Function::kAllToAll || query.function == Function::kAllToAllV)
    usable = gpu.p2p_link_gbps;
  if (query.algorithm == AlgorithmId::kNvls && gpu.nvls_limit_gbps > 0) {
    // The limit is algorithm bandwidth; each GPU sends the message once and its head's share again.
    usable = gpu.nvls_limit_gbps * (1 + 1.0 / std::max(1U, query.heads));
  }
  if (query.algorithm == AlgorithmId::kNvlsTree && gpu.nvls_tree_gbps > 0) {
    usable = gpu.nvls_tree_gbps * (1 + 1.0 / std::max(1U, query.heads));
  }
  if (usable <= 0) return 1;
  return std::min(1.0, usable / gpu.link_raw_gbps);
}

}  // namespace windtunnel
