#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// alltoall and alltoallv one partner at a time: in round k rank r exchanges with r xor k (powers
/// of two), or sends to r + k and receives from r - k. Steps: n - 1, one message of a round in
/// flight per rank and direction. Bytes per rank: (n-1)/n of the buffer. Source: Thakur,
/// Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, 2005,
/// section 4.4.
class PairwiseAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Pairwise"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
