#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// NCCL's ring, for all_reduce, all_gather, reduce_scatter, broadcast and reduce. One block per
/// rank and channel; `chunk` elements are what one op moves; `layout.channels[c].ring` gives the
/// order. Ops name the position of a rank on its ring: i is the own one.
///
/// all_reduce: 2(n-1) steps per loop of n chunks; every element is sent 2(n-1) times, so each rank
///   sends 2(n-1)/n of the message (in a short last loop some ranks a little more, some less: the
///   last loop cuts ceil(rest / n), rounded up to 16 bytes, and trailing chunks are short or
///   empty). Addition order of chunk c: positions c+1, c+2, ..., c, each (arriving sum) + own; all
///   ranks get the bits that were formed at position c.
/// all_gather, reduce_scatter: n-1 steps per chunk of each rank's part; (n-1)/n of the large buffer
///   sent per rank. Order of reduce_scatter for the part of position c: c+1, c+2, ..., c.
/// broadcast, reduce: n-1 hops, chunks pipelined; every rank but the last sends the whole buffer.
///   Order of reduce to root position c: c+1, c+2, ..., c.
/// Source: NVIDIA/nccl, src/device/{all_reduce,all_gather,reduce_scatter,broadcast,reduce}.h.
class RingAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Ring"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
