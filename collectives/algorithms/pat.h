#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// NCCL's PAT, for all_gather and reduce_scatter: every rank talks to ranks at distances 2^d only.
/// The part for the rank s places ahead leaves on the lowest set bit d of s, after own data and the
/// arrivals on all lower bits were added; all_gather is the mirror image. Steps: n - 1 of one part
/// and chunk. Bytes per rank: (n-1)/n of the large buffer. Order: own data, then arrivals from
/// distance 1, 2, 4, ... while they exist. Not modelled: several parts in one post (NCCL's
/// aggregation), so small messages meet n - 1 posts in place of log2 n. Source: NVIDIA/nccl,
/// src/include/collectives.h, PatRSAlgorithm and PatAGAlgorithm.
class PatAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "PAT"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
