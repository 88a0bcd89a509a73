#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// Push and pull with a shard of the message on every rank: workers push each shard to its server,
/// the server adds and the workers pull the sum. Steps: 2. Bytes per rank: 2(n-1)/n S out and in,
/// all at once. Order: the server's own data, then workers ascending. Source: Li et al., Scaling
/// Distributed Machine Learning with the Parameter Server, OSDI 2014.
class ParameterServerAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "ParameterServer"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
