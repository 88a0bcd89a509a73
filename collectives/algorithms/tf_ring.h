#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// TensorFlow's ring all_reduce over gRPC or local copies with one subdivision. Chunks of ceil(n/p)
/// elements in bytes, rounded up to 64, and a multiple of 64 grows by 64 once more, so that last
/// chunks are short or empty. Rank r receives from r - 1; the sends and the receives of a rank in
/// two blocks. Steps: 2(p-1). Bytes per rank: at most 2(p-1) chunks. Order: chunk k is a left fold
/// that starts at rank k. The mean is the caller's division of the sum. Source:
/// tensorflow/tensorflow 2.20, core/common_runtime/ring_alg.cc; chunk rule measured there.
class TfRingAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "TfRing"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
