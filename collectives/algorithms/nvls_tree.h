#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// NCCL's NVLS inside the nodes and a binary tree of heads between them, for all_reduce. Head k of
/// every node takes chunk k of a loop; even channels use the first, odd ones the second of the pair
/// of trees. Up: switch reduction, then the sums of the children are added; down: the result goes
/// to the children and is multicast inside the node. Steps: loops + 2 x depth. Bytes per rank: S up
/// to the switch; per head 1/heads S up the tree, the same down to each child, and the multicast.
/// Order: members of the node ascending in double precision, rounded, then children in slot order.
/// Source: NVIDIA/nccl, src/device/all_reduce.h, class RunWorkColl of NVLS_TREE.
class NvlsTreeAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "NVLSTree"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
