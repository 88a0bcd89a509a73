#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// all_reduce in log2 n exchanges of the whole message with the partner at distance 1, 2, 4, ...
/// Other counts than powers of two fold: of the first 2r ranks the even one gives its data to its
/// odd neighbour and gets the result back (r = n - 2^floor(log2 n)). Steps: log2 n, two more when
/// folded. Bytes per rank: log2(n) S. Order: pairs, then pairs of pairs: ((0+1)+(2+3))+...; both
/// partners add the same two values, so bits agree. Source: Thakur, Rabenseifner, Gropp 2005,
/// section 4.5.
class RecursiveDoublingAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "RecursiveDoubling"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
