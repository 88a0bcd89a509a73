#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// all_reduce on a torus of any number of sides (`ChannelLayout::sides`), one axis after the other:
/// reduce-scatter around the rings of the first axis, then of the next on what is left, and
/// all-gathers back in reverse. Channel c starts with axis c mod k of the k axes longer than 1 and
/// goes round in the other direction when c / k is odd, so that 2k channels use both directions of
/// every axis at once. The last reduce-scatter and the first all-gather are one pass.
///
/// Steps: 2 sum(side - 1). Bytes sent per rank: 2(n-1)/n of the message. Order of additions: around
/// the ring of the first axis, each sum then around the ring of the next.
/// Ranks number the torus, first side fastest. A side of 2 has one link, which both directions
/// take. A step moves its whole part in `slices` pieces; `chunk` is not used. Sources: Won et
/// al., ASTRA-sim2.0, ISPASS 2023 (collectives over several dimensions); Sack and Gropp, Collective
/// Algorithms for Multiported Torus Networks, ACM TOPC 1(2), 2015 (parts on all axes at once).
class TorusAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "Torus"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

/// Channels that use every axis in both directions: 2 per axis longer than 1, at least 1.
std::uint32_t TorusChannels(const std::vector<std::uint32_t>& sides);

}  // namespace windtunnel
