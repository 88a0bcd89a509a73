#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// The calls that NCCL makes of sends and receives: alltoall, alltoallv, gather, scatter, sendrecv,
/// hypercube. Rounds in NCCL's order (groups of up to 8 places, group offsets by triangular
/// numbers); several rounds go at once on channels of their own, the sends and the receives of a
/// rank in two blocks. Steps: n rounds (gather, scatter: n - 1 messages at the root; hypercube:
/// log2 n). Bytes per rank: alltoall (n-1)/n of the buffer. A message to oneself is a copy.
/// hypercube: powers of two only. Source: NVIDIA/nccl, src/enqueue.cc, src/init.cc;
/// NVIDIA/nccl-tests, src/*.cu.
class PointToPointAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "PointToPoint"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
