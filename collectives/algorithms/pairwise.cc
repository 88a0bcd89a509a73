#include "collectives/algorithms/pairwise.h"

#include "collectives/algorithms/common.h"
#include "collectives/algorithms/p2p_rounds.h"

namespace windtunnel {

std::string PairwiseAlgorithm::WhyNot(const CollectiveRequest& request,
                                      const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllToAll, Function::kAllToAllV}); !why.empty())
    return why;
  return IsTrivial(request) ? std::string() : WhyNoChannels(request, layout);
}

Plan PairwiseAlgorithm::MakePlan(const CollectiveRequest& request,
                                 const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  AppendAllToAll(plan, layout, std::make_shared<P2pRounds>(P2pRounds::Pairwise(request.rank_count)),
                 1);
  return plan;
}

}  // namespace windtunnel
