#include "collectives/nccl_decisions.h"

#include <algorithm>
#include <limits>

namespace windtunnel {
namespace {

bool IsCollective(Function function) {
  switch (function) {
    case Function::kAllReduce:
    case Function::kAllGather:
    case Function::kReduceScatter:
    case Function::kBroadcast:
    case Function::kReduce:
      return true;
    default:
      return false;
  }
}

}  // namespace

CallDecision NcclDecisions::Decide(const CollectiveRequest& request) {
  return IsCollective(request.function) ? DecideCollective(request) : DecidePointToPoint(request);
}

ChannelLayout::Channel NcclDecisions::Channel(int channel, bool with_tree) const {
  const nccl::Connections& connections = communicator_.connections();
  const auto c = static_cast<std::size_t>(channel);
  ChannelLayout::Channel out;
  if (c < connections.rings.size()) {
    out.ring.assign(connections.rings[c].begin(), connections.rings[c].end());
  }
  if (with_tree && c < connections.channel_source.size()) {
    const nccl::TreeChannel& tree = connections.tree(c);
    out.tree_up = tree.up;
    out.tree_down.resize(tree.down.size());
    for (std::size_t r = 0; r < tree.down.size(); ++r) {
      for (const std::int32_t child : tree.down[r]) {
        if (child >= 0) out.tree_down[r].push_back(static_cast<Rank>(child));
      }
    }
  }
  return out;
}

// Entry and exit NIC of a channel on every node, from the search of that node. With crossNic 2 and
// an even channel count NCCL swaps neighbouring channels on odd nodes, so that traffic stays on one
// rail.
std::vector<JobPaths::NicPair> NcclDecisions::NicsOfChannel(nccl::GraphId id, int channel) const {
  const nccl::Connections& connections = communicator_.connections();
  std::vector<JobPaths::NicPair> out(connections.node_ranks.size());
  for (std::size_t node = 0; node < out.size(); ++node) {
    const nccl::SearchGraph* graph =
        communicator_.job().nodes[connections.node_of_job[node]]->Graph(id);
    if (graph == nullptr || graph->channels.empty()) continue;
    auto index = static_cast<std::size_t>(channel) % graph->channels.size();
    if (graph->cross_nic == 2 && node % 2 == 1 && graph->channels.size() % 2 == 0) index ^= 1;
    const auto& nets = graph->channels[index].nets;
    if (nets.size() < 2) continue;
    out[node] = {.out = nets[1].dev, .in = nets[0].dev};
  }
  return out;
}

CallDecision NcclDecisions::DecideCollective(const CollectiveRequest& request) {
  const nccl::Connections& connections = communicator_.connections();
  const nccl::CallPlan plan = communicator_.Plan({.function = request.function,
                                                  .count = request.count,
                                                  .type = request.type,
                                                  .op = request.op,
                                                  .root = request.root});
  const std::uint64_t element = SizeOf(request.type);
  // NCCL plans all-gather and broadcast in bytes; plans here are in elements.
  const std::uint64_t unit = nccl::CountsBytes(request.function) ? element : 1;
  CallDecision decision;
  decision.algorithm = Name(plan.algorithm);
  decision.layout.protocol = plan.protocol;
  decision.threads = static_cast<std::uint32_t>(plan.warps) * 32;
  decision.estimate_us = plan.time_us;
  const bool one_rank = request.rank_count == 1;
  const int lo = one_rank ? 0 : plan.channel_lo;
  const int hi = one_rank ? 0 : plan.channel_hi;
  const auto used = static_cast<std::uint64_t>(hi - lo + 1);
  std::uint64_t first = 0;
  std::uint64_t largest = 0;
  for (int c = lo; c <= hi; ++c) {
    ChannelLayout::Channel channel = Channel(c, plan.algorithm != AlgorithmId::kRing);
    channel.first = first;
    std::uint64_t count = request.count;
    std::uint64_t chunk_bytes = std::max<std::uint64_t>(request.count, 1) * element;
    if (!plan.shares.empty()) {
      const nccl::ChannelShare& share = plan.ShareOf(c);
      count = share.count / unit;
      chunk_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(share.chunk_bytes, 1));
      if (plan.interleaved) {
        // The call's chunks go round the channels; the same bytes per channel in one piece.
        const auto index = static_cast<std::uint64_t>(c - lo);
        count = request.count * (index + 1) / used - request.count * index / used;
      }
    }
    channel.count = count;
    channel.chunk = std::max<std::uint64_t>(chunk_bytes / element, 1);
    const bool two_slices =
        plan.algorithm == AlgorithmId::kRing && plan.protocol == Protocol::kSimple &&
        (request.function == Function::kAllReduce || request.function == Function::kAllGather ||
         request.function == Function::kReduceScatter);
    channel.slices = two_slices ? 2 : 1;
    // Between nodes, trees of LL and LL128 cut through the GPUs of a node: lines go on as they
    // come. Pieces of a chunk stand for that.
    constexpr std::uint64_t kSmallestPiece = 512, kMostPieces = 8;
    if (connections.node_count() > 1 && plan.algorithm == AlgorithmId::kTree &&
        plan.protocol != Protocol::kSimple) {
      const std::uint64_t moved =
          std::min(chunk_bytes, std::max<std::uint64_t>(count * element, 1));
      channel.slices = static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(moved / kSmallestPiece, 1, kMostPieces));
    }
    first += count;
    largest = std::max(largest, count);
    decision.chunk = std::max(decision.chunk, Bytes(chunk_bytes));
    decision.layout.channels.push_back(std::move(channel));
    const bool ring = plan.algorithm == AlgorithmId::kRing;
    if (connections.node_count() > 1 && (ring || plan.algorithm == AlgorithmId::kTree)) {
      decision.nics.push_back(NicsOfChannel(ring ? nccl::GraphId::kRing : nccl::GraphId::kTree, c));
    }
  }
  decision.channels = static_cast<std::uint32_t>(used);
  decision.channel_bytes = Bytes(largest * element);
  for (const auto& ranks : connections.node_ranks) {
    decision.layout.nodes.emplace_back(ranks.begin(), ranks.end());
  }
  for (const auto& heads : connections.nvls.heads) {
    // [head][node]: the head ranks of the first node stand for their index; other nodes follow the
    // same order.
    if (!heads.empty()) decision.layout.nvls_heads.push_back(static_cast<Rank>(heads.front()));
  }
  return decision;
}

// What rank 0 sends, as NCCL plans it: most channels of a message, largest chunk.
NcclDecisions::Messages NcclDecisions::PlanMessages(std::span<const nccl::P2pCall> calls) const {
  const nccl::P2pPlan plan = communicator_.PlanP2p(0, calls);
  Messages messages;
  const auto take = [&](int channels, bool ll, std::int64_t chunk_bytes) {
    messages.channels = std::max(messages.channels, static_cast<std::uint32_t>(channels));
    messages.ll = messages.ll && ll;
    messages.chunk = std::max(messages.chunk, chunk_bytes);
  };
  for (const nccl::P2pItem& item : plan.items) {
    if (item.send.present && item.send_to != 0)
      take(item.send.channels, item.send.ll, item.send.chunk_bytes);
  }
  for (const nccl::P2pPart& part : plan.parts) {
    if (part.send && part.peer != 0)
      take(static_cast<int>(part.channels.size()), part.ll, part.chunk_bytes);
  }
  return messages;
}

CallDecision NcclDecisions::DecidePointToPoint(const CollectiveRequest& request) {
  std::uint64_t bytes = request.count * SizeOf(request.type);
  const Rank n = request.rank_count;
  // Rank 0 stands for all: the same rules hold for every rank, and message sizes are equal
  // (alltoallv: their mean).
  const auto exchange = [&](Rank to, Rank from) {
    const nccl::P2pCall calls[] = {{true, to, bytes}, {false, from, bytes}};
    return PlanMessages(calls);
  };
  Messages messages;
  std::vector<std::uint32_t> round_channels;
  if (request.function == Function::kSendRecv) {
    messages = exchange(1 % n, n - 1);
  } else if (request.function == Function::kHypercube) {
    // A launch for every round; the last, which moves half of everything, decides the protocol.
    for (Rank distance = 1; distance < n; distance *= 2) {
      bytes = request.count * SizeOf(request.type) * distance;
      const Messages round = exchange(distance, distance);
      round_channels.push_back(round.channels);
      messages = {.channels = std::max(messages.channels, round.channels),
                  .ll = round.ll,
                  .chunk = std::max(messages.chunk, round.chunk)};
    }
  } else {
    std::vector<nccl::P2pCall> calls;
    for (Rank peer = 0; peer < n; ++peer) {
      calls.push_back({true, peer, bytes});
      calls.push_back({false, peer, bytes});
    }
    messages = PlanMessages(calls);
  }
  CallDecision decision;
  decision.algorithm = "PointToPoint";
  decision.layout =
      PlainLayout(request, messages.channels,
                  static_cast<std::uint64_t>(std::max<std::int64_t>(messages.chunk, 1)));
  decision.layout.round_channels = std::move(round_channels);
  decision.layout.protocol = messages.ll && bytes != 0 ? Protocol::kLl : Protocol::kSimple;
  decision.layout.nodes.clear();
  for (const auto& ranks : communicator_.connections().node_ranks) {
    decision.layout.nodes.emplace_back(ranks.begin(), ranks.end());
  }
  decision.channels = messages.channels;
  decision.peer_parts = messages.channels;
  decision.chunk = Bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(messages.chunk, 0)));
  decision.channel_bytes = Bytes((bytes + messages.channels - 1) / messages.channels);
  return decision;
}

}  // namespace windtunnel
