#include "collectives/fabric_bound.h"

#include <algorithm>

namespace windtunnel {
namespace {

constexpr double kMicroseconds = 1e6;

// Bytes on the wire for one of data.
double WireFactor(Protocol protocol) {
  if (protocol == Protocol::kLl) return 2;
  return protocol == Protocol::kLl128 ? 128.0 / 120 : 1;
}

}  // namespace

FabricBound::Result FabricBound::Of(const CollectiveRequest& request, const CallDecision& decision,
                                    const NicsFor& nics_for) {
  const auto [entry, fresh] =
      known_.try_emplace({request.function, decision.algorithm, decision.channels, request.root});
  if (fresh) entry->second = PerByte(request, decision, nics_for);
  Result result = entry->second;
  result.us *= static_cast<double>(LogicalBytes(request)) * WireFactor(decision.layout.protocol);
  return result;
}

FabricBound::Result FabricBound::PerByte(const CollectiveRequest& request,
                                         const CallDecision& decision, const NicsFor& nics_for) {
  const Rank n = request.rank_count;
  const double part = 1.0 / n;
  switch (request.function) {
    case Function::kAllToAll:
    case Function::kAllToAllV:
      AddAllPairs(decision, nics_for);
      return Take();
    case Function::kGather:
    case Function::kScatter:
      for (Rank rank = 0; rank < n; ++rank) {
        const bool gather = request.function == Function::kGather;
        Add(gather ? rank : request.root, gather ? request.root : rank, 0, part, nics_for);
      }
      return Take();
    case Function::kSendRecv:
      for (Rank rank = 0; rank < n; ++rank) Add(rank, (rank + 1) % n, 0, 1, nics_for);
      return Take();
    case Function::kHypercube: {
      Result sum;
      double longest = 0;
      for (Rank mask = 1; mask < n; mask *= 2) {
        for (Rank rank = 0; rank < n; ++rank) Add(rank, rank ^ mask, 0, part * mask, nics_for);
        const Result round = Take();
        sum.us += round.us;
        if (round.us > longest) longest = round.us, sum.busiest = round.busiest;
      }
      return sum;
    }
    default:
      break;
  }
  if (decision.algorithm == "Ring") {
    AddRings(request, decision, nics_for);
  } else if (decision.algorithm == "PAT") {
    for (Rank distance = 1; distance < n; distance *= 2) {
      const double parts = std::min(distance, n - distance);
      const bool gather = request.function == Function::kAllGather;
      for (Rank rank = 0; rank < n; ++rank) {
        const Rank other = (rank + distance) % n;
        Add(gather ? rank : other, gather ? other : rank, 0, part * parts, nics_for);
      }
    }
  } else if (decision.algorithm != "NVLS") {
    AddTrees(decision, nics_for);
  }
  return Take();
}

void FabricBound::AddRings(const CollectiveRequest& request, const CallDecision& decision,
                           const NicsFor& nics_for) {
  const Rank n = request.rank_count;
  const auto& channels = decision.layout.channels;
  double share = 1.0 / static_cast<double>(channels.size());
  if (request.function == Function::kAllReduce) share *= 2.0 * (n - 1) / n;
  if (request.function == Function::kAllGather || request.function == Function::kReduceScatter)
    share *= static_cast<double>(n - 1) / n;
  for (std::uint32_t c = 0; c < channels.size(); ++c) {
    const auto& ring = channels[c].ring;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i];
      const Rank to = ring[(i + 1) % ring.size()];
      // The chain of a broadcast ends before its root, that of a reduction at it.
      if (request.function == Function::kBroadcast && to == request.root) continue;
      if (request.function == Function::kReduce && from == request.root) continue;
      Add(from, to, c, share, nics_for);
    }
  }
}

void FabricBound::AddTrees(const CallDecision& decision, const NicsFor& nics_for) {
  const auto& channels = decision.layout.channels;
  const double share = 1.0 / static_cast<double>(channels.size());
  for (std::uint32_t c = 0; c < channels.size(); ++c) {
    const auto& up = channels[c].tree_up;
    for (Rank rank = 0; rank < up.size(); ++rank) {
      if (up[rank] < 0) continue;
      Add(rank, static_cast<Rank>(up[rank]), c, share, nics_for);
      Add(static_cast<Rank>(up[rank]), rank, c, share, nics_for);
    }
  }
}

void FabricBound::AddAllPairs(const CallDecision& decision, const NicsFor& nics_for) {
  const std::uint32_t parts = std::max(1U, decision.peer_parts);
  const Rank n = paths_.rank_count();
  std::vector<std::vector<DeviceId>> nodes;
  std::map<std::uint32_t, std::size_t> index;
  for (Rank rank = 0; rank < n; ++rank) {
    const auto [entry, fresh] = index.try_emplace(paths_.node(rank), nodes.size());
    if (fresh) nodes.emplace_back();
    // A peer on another node: which one does not matter to the NIC that a rank takes.
    Rank peer = 0;
    while (peer < n && paths_.node(peer) == paths_.node(rank)) ++peer;
    if (peer == n) return;
    for (std::uint32_t part = 0; part < parts; ++part)
      nodes[entry->second].push_back(paths_.NicOf(rank, nics_for(rank, peer, part).out));
  }
  // Each part of a rank to each of another: one `parts`-th of one n-th, `parts` times over.
  load_.AddBetweenNodes(nodes, 1.0 / n / parts / parts);
}

void FabricBound::Add(Rank from, Rank to, std::uint32_t channel, double share,
                      const NicsFor& nics_for) {
  if (paths_.node(from) == paths_.node(to)) return;
  const JobPaths::NicPair nics = nics_for(from, to, channel);
  load_.Add(paths_.NicOf(from, nics.out), paths_.NicOf(to, nics.in), share);
}

FabricBound::Result FabricBound::Take() {
  const EvenLoad::Busiest busiest = load_.TakeBusiest();
  return {busiest.seconds * kMicroseconds, busiest.link};
}

}  // namespace windtunnel
