#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// TensorFlow's HierarchicalCopyAllReduce for one gradient: the devices in two halves; a main
/// device of each half adds the data of its half, the first main adds the sum of the second, then
/// copies go back. `root` is the number of the gradient: main devices are root mod n/2 of each
/// half. Steps: 3. Bytes: 2(n-1) S over all links; the mains take n/2 messages each. Even device
/// counts only: TensorFlow drops the gradient of one device of an odd count. Order: main device,
/// its half ascending, then the sum of the other half. Source: tensorflow/tensorflow,
/// python/distribute/cross_device_utils.py.
class HierarchicalCopyAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "HierarchicalCopy"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
