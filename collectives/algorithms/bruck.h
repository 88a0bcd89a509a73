#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// all_gather in ceil(log2 n) steps for any n: in step k a rank sends the first min(2^k, n - 2^k)
/// parts it holds to the rank 2^k before it, and gets as many from the rank 2^k behind. Parts lie
/// rotated in scratch and are put in place at the end. Steps: ceil(log2 n). Bytes per rank: (n-1)/n
/// of the large buffer. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997.
class BruckAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Bruck"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
