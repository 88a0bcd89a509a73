#include "collectives/algorithms/bruck.h"

#include <algorithm>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string BruckAlgorithm::WhyNot(const CollectiveRequest& request,
                                   const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllGather}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  return WhyNoChannels(request, layout);
}

Plan BruckAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  plan.scratch_count = request.count * n;
  PlanBuilder builder(plan);
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const std::uint32_t send = builder.Add(rank, c, "bruck send");
      const std::uint32_t receive = builder.Add(rank, c, "bruck receive");
      // Part j of this channel in scratch belongs to rank + j.
      const auto rotated = [&](std::uint32_t j) {
        return BufferPosition{BufferKind::kScratch, channel.first * n + j * channel.count};
      };
      builder.Append(receive, {.count = channel.count,
                               .has_source = true,
                               .has_destination = true,
                               .source = {BufferKind::kInput, channel.first},
                               .destination = rotated(0)});
      std::uint32_t step = 0;
      for (std::uint32_t held = 1; held < n; held *= 2, ++step) {
        const std::uint64_t count = channel.count * std::min(held, n - held);
        const std::uint32_t slices = SlicesOf(count, channel.chunk);
        const Peer to[] = {{(rank + n - held) % n, 0}};
        const Peer from[] = {{(rank + held) % n, 0}};
        const Dependency got[] = {{receive, builder.SizeOf(receive) - 1}};
        builder.Append(send, {.count = count,
                              .send_to = to,
                              .wait_for = got,
                              .has_source = true,
                              .source = rotated(0),
                              .step = step,
                              .slices = slices});
        builder.Append(receive, {.count = count,
                                 .receive_from = from,
                                 .has_destination = true,
                                 .destination = rotated(held),
                                 .step = step,
                                 .slices = slices});
      }
      // Parts up to the wrap-around, and behind it; with one channel each is one piece.
      const std::uint32_t together = channel.count == request.count ? n : 1;
      for (std::uint32_t j = 0; j < n;) {
        const Rank owner = (rank + j) % n;
        const std::uint32_t parts = std::min({together, n - owner, n - j});
        builder.Append(receive,
                       {.count = parts * channel.count,
                        .has_source = true,
                        .has_destination = true,
                        .source = rotated(j),
                        .destination = {BufferKind::kOutput, owner * request.count + channel.first},
                        .step = step});
        j += parts;
      }
    }
  }
  return plan;
}

}  // namespace windtunnel
