#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// TensorFlow's ReductionToOneDevice: all data to one device, which adds and (all_reduce) sends
/// back. `root` is the device. Steps: 2 (reduce: 1). Bytes: 2(n-1) S through the port of one
/// device. Order: the device itself, then the others ascending. Source: tensorflow/tensorflow,
/// python/distribute/cross_device_ops.py.
class ReductionToOneAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "ReductionToOneDevice"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
