#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// Rabenseifner's all_reduce: reduce-scatter by halving the range at distance p/2, p/4, ..., 1,
/// then all-gather by doubling back. Other counts than powers of two fold as in recursive doubling.
/// Steps: 2 log2 p, two more when folded. Bytes per rank: 2(p-1)/p S (folded ranks S out and S in).
/// Order: own half plus the partner's, from the far partner to the near one.
/// Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.
class HalvingDoublingAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "HalvingDoubling"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
