#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// all_reduce of g ranks on each of N nodes: ring reduce-scatter inside the node, ring all_reduce
/// of the own part between ranks of equal place, ring all-gather inside the node. One block a rank
/// and channel. Steps per loop of g chunks: 2(g-1) + 2(N-1). Bytes per rank: 2(g-1)/g S inside,
/// 2(N-1)/N S/g between. Order: around the node's ring, then around the ring of nodes. Source: Jia
/// et al., Highly Scalable Deep Learning Training System, 2018 (arXiv 1807.11205).
class TwoLevelRingAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "TwoLevelRing"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
