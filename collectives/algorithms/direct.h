#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// Everybody to everybody at once, for all_reduce, reduce_scatter, all_gather and alltoall. A rank
/// has one block that sends and one that receives on each channel; its messages to single peers are
/// posted one behind the other and share its way out.
///
/// all_reduce: two steps. Each rank sends part p of the message to rank p and adds what it gets to
///   its own part, then sends the sum to all. Bytes sent per rank: 2(n-1)/n of the message. Order
///   of additions for the part of rank r: r, r-1, r-2, ...; all ranks get the bits formed there.
/// reduce_scatter, all_gather, alltoall: one step; (n-1)/n of the large buffer sent per rank. Order
///   of reduce_scatter: as above.
/// Rank r addresses its peers in the order r+1, r+2, ..., so that no receiver is first for all, and
/// hears them in the order r-1, r-2, ...: messages of more slices than slots cannot wait in a
/// circle. Source: "direct" of astra-sim/astra-sim, native_collectives/collective_algorithm/
/// AllToAll.cc.
class DirectAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Direct"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
