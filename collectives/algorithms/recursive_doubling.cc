#include "collectives/algorithms/recursive_doubling.h"

#include <algorithm>
#include <bit>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string RecursiveDoublingAlgorithm::WhyNot(const CollectiveRequest& request,
                                               const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  return WhyNoChannels(request, layout);
}

Plan RecursiveDoublingAlgorithm::MakePlan(const CollectiveRequest& request,
                                          const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  plan.scratch_count = 2 * request.count;
  const Fold fold(n);
  PlanBuilder builder(plan);
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const std::uint32_t send = builder.Add(rank, c, "exchange send");
      const std::uint32_t receive = builder.Add(rank, c, "exchange receive");
      const BufferPosition input{BufferKind::kInput, channel.first};
      const BufferPosition output{BufferKind::kOutput, channel.first};
      PlanOp op{.count = channel.count, .slices = SlicesOf(channel.count, channel.chunk)};
      std::uint32_t step = 0;
      const Peer odd[] = {{rank + 1, 0}};
      const Peer even[] = {{rank - 1, 0}};
      if (!fold.TakesPart(rank)) {
        PlanOp give = op;
        give.send_to = odd;
        give.has_source = true;
        give.source = input;
        builder.Append(send, give);
        PlanOp take = op;
        take.receive_from = odd;
        take.has_destination = true;
        take.destination = output;
        take.step = static_cast<std::uint32_t>(std::countr_zero(fold.core)) + 1;
        builder.Append(receive, take);
        continue;
      }
      // Sums so far lie in turn in one half of scratch and the other: a half is overwritten only
      // after the exchange that sent it.
      BufferPosition current = input;
      std::uint64_t half = 0;
      const auto next_half = [&] {
        half = request.count - half;
        return BufferPosition{BufferKind::kScratch, half + channel.first};
      };
      if (fold.HasPartner(rank)) {
        PlanOp take = op;
        take.receive_from = even;
        take.has_source = take.has_destination = true;
        take.source = current;
        take.destination = current = next_half();
        builder.Append(receive, take);
      }
      if (fold.rest > 0) ++step;
      const std::uint32_t id = fold.IdOf(rank);
      for (std::uint32_t distance = 1; distance < fold.core; distance *= 2, ++step) {
        const Peer partner[] = {{fold.RankOf(id ^ distance), 0}};
        PlanOp give = op;
        give.send_to = partner;
        give.has_source = true;
        give.source = current;
        give.step = step;
        const Dependency formed[] = {{receive, builder.SizeOf(receive) - 1}};
        if (builder.SizeOf(receive) != 0) give.wait_for = formed;
        const Dependency sent[] = {{send, builder.SizeOf(send) - 1}};
        PlanOp take = op;
        take.receive_from = partner;
        if (builder.SizeOf(send) != 0) take.wait_for = sent;
        take.has_source = take.has_destination = true;
        take.source = current;
        const bool last = distance * 2 == fold.core;
        // In place with one exchange the input is still being sent when the sum is formed.
        const bool direct = last && !(request.in_place && current.buffer == BufferKind::kInput);
        take.destination = direct ? output : next_half();
        take.scale = last;
        take.step = step;
        builder.Append(send, give);
        builder.Append(receive, take);
        current = take.destination;
      }
      if (current.buffer != BufferKind::kOutput) {
        const Dependency sent[] = {{send, builder.SizeOf(send) - 1}};
        builder.Append(receive, {.count = channel.count,
                                 .wait_for = sent,
                                 .has_source = true,
                                 .has_destination = true,
                                 .source = current,
                                 .destination = output,
                                 .step = step});
      }
      if (fold.HasPartner(rank)) {
        const Dependency formed[] = {{receive, builder.SizeOf(receive) - 1}};
        PlanOp give = op;
        give.send_to = even;
        give.wait_for = formed;
        give.has_source = true;
        give.source = output;
        give.step = step;
        builder.Append(send, give);
      }
    }
  }
  return plan;
}

}  // namespace windtunnel
