#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// all_reduce with reduction in the network between nodes (SHARP). Direct: every local rank is head
/// of a part of each loop; the others send it theirs over NVLink, the head adds, the network adds
/// over nodes, and the head sends the result back. Steps: loops of heads x chunk. Bytes per rank:
/// (g-1)/g S out, as much back in, and S/g to the network. Order: head first, then local ranks
/// ascending; nodes in order, in double precision, rounded once. Source: NVIDIA/nccl,
/// src/device/all_reduce.h, classes RunWorkColl of COLLNET_DIRECT and COLLNET_CHAIN.
class CollNetDirectAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "CollNetDirect"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

/// Chain: the data of a node is added along its ranks towards the first, which talks to the
/// network. Steps: chunks + 2g. Bytes per rank: S up and S down the chain; the first rank S to the
/// network. Order: from the last rank of the node to the first; nodes in order, wide.
class CollNetChainAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "CollNetChain"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
