#include "collectives/timing/plan_facts.h"

#include <algorithm>
#include <span>
#include <vector>

namespace windtunnel::timing {
namespace {

Algorithm AlgorithmOf(AlgorithmId id, int nodes) {
  switch (id) {
    case AlgorithmId::kTree:
      return Algorithm::kTree;
    case AlgorithmId::kRing:
      return Algorithm::kRing;
    case AlgorithmId::kNvls:
      // Over several nodes NVLS reduces in the network's switches: bound as NVLSTree.
      return nodes > 1 ? Algorithm::kNvlsTree : Algorithm::kNvls;
    case AlgorithmId::kCollNetDirect:
    case AlgorithmId::kCollNetChain:
    case AlgorithmId::kNvlsTree:
      return Algorithm::kNvlsTree;
    case AlgorithmId::kPat:
      return Algorithm::kPat;
  }
  return Algorithm::kRing;
}

// All peers of one kind are planned alike; the last in the list is a remote one where there are
// any.
void ApplyMessages(const nccl::Communicator& communicator, Rank rank,
                   std::span<const nccl::P2pCall> calls, CallFacts& facts) {
  facts.algorithm = Algorithm::kPointToPoint;
  const nccl::P2pPlan plan = communicator.PlanP2p(rank, calls);
  const auto apply = [&](int channels, bool ll, std::int64_t chunk) {
    facts.peer_parts = static_cast<std::uint32_t>(std::max(1, channels));
    facts.protocol = ll ? Protocol::kLl : Protocol::kSimple;
    facts.chunk = Bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(1, chunk)));
  };
  for (const nccl::P2pItem& item : plan.items) {
    if (item.send.present && item.send_to != static_cast<std::int32_t>(rank))
      apply(item.send.channels, item.send.ll, item.send.chunk_bytes);
  }
  for (const nccl::P2pPart& part : plan.parts) {
    if (part.send && part.peer != static_cast<std::int32_t>(rank))
      apply(static_cast<int>(part.channels.size()), part.ll, part.chunk_bytes);
  }
}

void ApplyPair(const nccl::Communicator& communicator, Rank rank, Rank to, Rank from,
               CallFacts& facts) {
  const nccl::P2pCall calls[] = {{true, to, facts.size.count()}, {false, from, facts.size.count()}};
  ApplyMessages(communicator, rank, calls, facts);
}

}  // namespace

void ApplyPlan(const nccl::Communicator& communicator, const nccl::CallPlan& plan,
               CallFacts& facts) {
  const auto& connections = communicator.connections();
  facts.algorithm = AlgorithmOf(plan.algorithm, communicator.node_count());
  facts.protocol = plan.protocol;
  facts.channels = static_cast<std::uint32_t>(std::max(1, plan.channel_hi - plan.channel_lo + 1));
  facts.threads = static_cast<std::uint32_t>(std::max(1, plan.warps)) * 32;
  facts.nvls_heads = static_cast<std::uint32_t>(connections.nvls.head_count);
  if (facts.algorithm == Algorithm::kNvlsTree && facts.nvls_heads == 0)
    facts.nvls_heads = static_cast<std::uint32_t>(std::max(1, connections.collnet_heads));
  const std::uint64_t element = nccl::CountsBytes(plan.call.function) ? 1 : SizeOf(plan.call.type);
  std::uint64_t fullest = 1;
  std::int64_t chunk = 1;
  for (const nccl::ChannelShare& share : plan.shares) {
    std::uint64_t bytes = share.count * element;
    if (plan.interleaved) bytes = (bytes + facts.channels - 1) / facts.channels;
    fullest = std::max(fullest, bytes);
    chunk = std::max(chunk, share.chunk_bytes);
  }
  // NVLS splits the whole buffer over its heads.
  const bool per_rank =
      facts.function == Function::kAllGather || facts.function == Function::kReduceScatter;
  if (facts.algorithm == Algorithm::kNvls && per_rank) fullest *= facts.ranks;
  facts.channel_bytes = Bytes(fullest);
  facts.chunk = Bytes(static_cast<std::uint64_t>(chunk));
}

void ApplyPointToPoint(const nccl::Communicator& communicator, CallFacts& facts) {
  const Rank ranks = static_cast<Rank>(communicator.rank_count());
  if (facts.function == Function::kSendRecv) {
    // The last rank of a node sends to the first of the next one: the slowest link of the ring.
    const Rank rank = facts.nodes > 1 ? facts.gpus_per_node() - 1 : 0;
    ApplyPair(communicator, rank, (rank + 1) % ranks, (rank + ranks - 1) % ranks, facts);
    return;
  }
  constexpr Rank kRank = 0;
  std::vector<nccl::P2pCall> calls;
  const std::uint64_t to_peer = std::max<std::uint64_t>(1, facts.size.count() / ranks);
  // Of a gather or scatter, the root's side: what it exchanges with itself, and one way the rest.
  const bool one_way = facts.function == Function::kGather || facts.function == Function::kScatter;
  for (Rank peer = 0; peer < ranks; ++peer) {
    calls.push_back({true, peer, to_peer});
    if (!one_way || peer == kRank) calls.push_back({false, peer, to_peer});
  }
  ApplyMessages(communicator, kRank, calls, facts);
}

std::vector<CallFacts> RoundsOfHypercube(const nccl::Communicator& communicator,
                                         const CallFacts& facts) {
  std::vector<CallFacts> rounds;
  const std::uint32_t per_node = facts.gpus_per_node();
  const bool even = per_node * facts.nodes == facts.ranks;
  for (Rank distance = 1; distance < facts.ranks; distance *= 2) {
    CallFacts& round = rounds.emplace_back(facts);
    round.function = Function::kSendRecv;
    round.size = Bytes(facts.size.count() / facts.ranks * distance);
    round.crossing = per_node;
    if (facts.nodes > 1 && even && per_node % (2 * distance) == 0) {
      round.nodes = 1;
      round.ranks = per_node;
    }
    ApplyPair(communicator, 0, distance, distance, round);
  }
  return rounds;
}

}  // namespace windtunnel::timing
