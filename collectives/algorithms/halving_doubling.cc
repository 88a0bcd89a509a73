#include "collectives/algorithms/halving_doubling.h"

#include <algorithm>
#include <bit>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string HalvingDoublingAlgorithm::WhyNot(const CollectiveRequest& request,
                                             const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  return WhyNoChannels(request, layout);
}

Plan HalvingDoublingAlgorithm::MakePlan(const CollectiveRequest& request,
                                        const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  plan.scratch_count = request.count;
  const Fold fold(n);
  PlanBuilder builder(plan);
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const std::uint32_t send = builder.Add(rank, c, "exchange send");
      const std::uint32_t receive = builder.Add(rank, c, "exchange receive");
      const auto exchanges = static_cast<std::uint32_t>(std::countr_zero(fold.core));
      const Peer odd[] = {{rank + 1, 0}};
      const Peer even[] = {{rank - 1, 0}};
      // `count` elements behind `offset` of the channel.
      const auto piece = [&](std::uint64_t offset, std::uint64_t count, std::uint32_t step) {
        PlanOp op{.count = count, .step = step, .slices = SlicesOf(count, channel.chunk)};
        op.source = {BufferKind::kInput, channel.first + offset};
        op.destination = {BufferKind::kOutput, channel.first + offset};
        return op;
      };
      const PlanOp whole = piece(0, channel.count, 0);
      if (!fold.TakesPart(rank)) {
        PlanOp give = whole;
        give.send_to = odd;
        give.has_source = true;
        builder.Append(send, give);
        PlanOp take = whole;
        take.receive_from = odd;
        take.has_destination = true;
        take.step = 2 * exchanges + 1;
        builder.Append(receive, take);
        continue;
      }
      BufferKind current = BufferKind::kInput;
      std::uint32_t step = 0;
      if (fold.HasPartner(rank)) {
        PlanOp take = whole;
        take.receive_from = even;
        take.has_source = take.has_destination = true;
        take.destination.buffer = current = BufferKind::kScratch;
        builder.Append(receive, take);
      }
      if (fold.rest > 0) ++step;
      // The range [low, low + size) of core blocks that this rank still reduces.
      const std::uint32_t id = fold.IdOf(rank);
      std::uint32_t low = 0;
      const auto range = [&](std::uint32_t first, std::uint32_t size, std::uint32_t at_step) {
        const std::uint64_t begin = PartOf(channel.count, fold.core, first).offset;
        const std::uint64_t end = first + size == fold.core
                                      ? channel.count
                                      : PartOf(channel.count, fold.core, first + size).offset;
        return piece(begin, end - begin, at_step);
      };
      for (std::uint32_t distance = fold.core / 2; distance > 0; distance /= 2, ++step) {
        const Peer partner[] = {{fold.RankOf(id ^ distance), 0}};
        const bool upper = (id & distance) != 0;
        PlanOp give = range(upper ? low : low + distance, distance, step);
        low = upper ? low + distance : low;
        PlanOp take = range(low, distance, step);
        give.send_to = partner;
        give.has_source = true;
        give.source.buffer = current;
        const Dependency formed[] = {{receive, builder.SizeOf(receive) - 1}};
        if (builder.SizeOf(receive) != 0) give.wait_for = formed;
        take.receive_from = partner;
        take.has_source = take.has_destination = true;
        take.source.buffer = current;
        take.destination.buffer = distance == 1 ? BufferKind::kOutput : BufferKind::kScratch;
        take.scale = distance == 1;
        builder.Append(send, give);
        builder.Append(receive, take);
        current = BufferKind::kScratch;
      }
      for (std::uint32_t distance = 1; distance < fold.core; distance *= 2, ++step) {
        const Peer partner[] = {{fold.RankOf(id ^ distance), 0}};
        PlanOp give = range(low, distance, step);
        give.send_to = partner;
        give.has_source = true;
        give.source.buffer = BufferKind::kOutput;
        const Dependency formed[] = {{receive, builder.SizeOf(receive) - 1}};
        give.wait_for = formed;
        PlanOp take = range(low ^ distance, distance, step);
        take.receive_from = partner;
        take.has_destination = true;
        builder.Append(send, give);
        builder.Append(receive, take);
        low &= ~distance;
      }
      if (fold.HasPartner(rank)) {
        const Dependency formed[] = {{receive, builder.SizeOf(receive) - 1}};
        PlanOp give = whole;
        give.send_to = even;
        give.wait_for = formed;
        give.has_source = true;
        give.source.buffer = BufferKind::kOutput;
        give.step = step;
        builder.Append(send, give);
      }
    }
  }
  return plan;
}

}  // namespace windtunnel
