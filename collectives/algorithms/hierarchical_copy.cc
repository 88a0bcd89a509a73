#include "collectives/algorithms/hierarchical_copy.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string HierarchicalCopyAlgorithm::WhyNot(const CollectiveRequest& request,
                                              const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (request.rank_count % 2 != 0)
    return "needs an even number of devices (TensorFlow loses a gradient otherwise)";
  return WhyNoChannels(request, layout);
}

Plan HierarchicalCopyAlgorithm::MakePlan(const CollectiveRequest& request,
                                         const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  const std::uint32_t half = n / 2;
  const Rank mains[] = {request.root % half, half + request.root % half};
  PlanBuilder builder(plan);
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const bool second = rank >= half;
      const Rank main = mains[second ? 1 : 0];
      std::vector<Peer> up, down;
      for (Rank other = second ? half : 0; other < (second ? n : half); ++other) {
        if (other == main) continue;
        up.push_back({other, 0});
        down.push_back({other, 1});
      }
      PlanOp in{.count = channel.count,
                .has_source = true,
                .source = {BufferKind::kInput, channel.first},
                .destination = {BufferKind::kOutput, channel.first},
                .slices = SlicesOf(channel.count, channel.chunk)};
      PlanOp out = in;
      out.has_source = false;
      out.has_destination = true;
      out.step = 2;
      if (rank == mains[0]) {
        const std::uint32_t block = builder.Add(rank, c, "first main");
        up.push_back({mains[1], 0});
        down.insert(down.begin(), {mains[1], 1});
        in.receive_from = up;
        in.send_to = down;
        in.has_destination = true;
        in.scale = true;
        in.step = 1;
        builder.Append(block, in);
        continue;
      }
      const Peer to_main[] = {{rank == main ? mains[0] : main, 0}};
      const Peer from_main[] = {{rank == main ? mains[0] : main, 1}};
      in.send_to = to_main;
      out.receive_from = from_main;
      if (rank == main) {
        in.receive_from = up;
        out.send_to = down;
      }
      builder.Append(builder.Add(rank, c, rank == main ? "second main add" : "push"), in);
      builder.Append(builder.Add(rank, c, rank == main ? "second main copy" : "pull"), out);
    }
  }
  return plan;
}

}  // namespace windtunnel
