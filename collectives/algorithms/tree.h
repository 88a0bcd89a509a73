#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// NCCL's tree all_reduce: chunks go up the tree of the channel and down again; one block does
/// each, so a chunk goes down while the next goes up; the root does both in one block. Steps:
/// chunks + 2 x depth - 1. Bytes: a rank sends the message once up (not the root) and once down to
/// each child, 2(n-1) messages over all links. Order: own value, then the children in slot order,
/// each subtree first added up by the child. Source: NVIDIA/nccl, src/device/all_reduce.h,
/// runTreeSplit.
class TreeAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Tree"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
