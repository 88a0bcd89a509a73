#include "collectives/algorithms/reduction_to_one.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string ReductionToOneAlgorithm::WhyNot(const CollectiveRequest& request,
                                            const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce, Function::kReduce}); !why.empty())
    return why;
  if (IsTrivial(request)) return {};
  return WhyNoChannels(request, layout);
}

Plan ReductionToOneAlgorithm::MakePlan(const CollectiveRequest& request,
                                       const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  const bool back = request.function == Function::kAllReduce;
  PlanBuilder builder(plan);
  std::vector<Peer> up, down;
  for (Rank other = 0; other < n; ++other) {
    if (other == request.root) continue;
    up.push_back({other, 0});
    if (back) down.push_back({other, 1});
  }
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      PlanOp op{.count = channel.count,
                .has_source = true,
                .source = {BufferKind::kInput, channel.first},
                .destination = {BufferKind::kOutput, channel.first},
                .slices = SlicesOf(channel.count, channel.chunk)};
      if (rank == request.root) {
        op.receive_from = up;
        op.send_to = down;
        op.has_destination = true;
        op.scale = true;
        builder.Append(builder.Add(rank, c, "add"), op);
        continue;
      }
      const Peer to_root[] = {{request.root, 0}};
      const Peer from_root[] = {{request.root, 1}};
      op.send_to = to_root;
      builder.Append(builder.Add(rank, c, "push"), op);
      if (!back) continue;
      op.send_to = {};
      op.receive_from = from_root;
      op.has_source = false;
      op.has_destination = true;
      op.step = 1;
      builder.Append(builder.Add(rank, c, "pull"), op);
    }
  }
  return plan;
}

}  // namespace windtunnel
