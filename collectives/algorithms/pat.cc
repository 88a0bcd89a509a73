#include "collectives/algorithms/pat.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

struct PatChannel {
  CollectiveRequest request;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t chunk = 0;
  std::uint32_t slices = 1;
};

// One rank's view: `near[d]` is the peer at distance 2^d that arrivals of a block come from
// (reduce_scatter) or copies go to (all_gather), `far[d]` the one on the other side.
struct PatRank {
  std::vector<Peer> near;
  std::vector<Peer> far;
};

}  // namespace

std::string PatAlgorithm::WhyNot(const CollectiveRequest& request,
                                 const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllGather, Function::kReduceScatter});
      !why.empty())
    return why;
  if (request.function == Function::kReduceScatter && request.op == ReduceOp::kAvg)
    return "has no average";
  return IsTrivial(request) ? std::string() : WhyNoChannels(request, layout);
}

Plan PatAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  const bool gathers = request.function == Function::kAllGather;
  for (Rank rank = 0; rank < n; ++rank) {
    auto peers = std::make_shared<PatRank>();
    for (std::uint32_t distance = 1; distance < n; distance *= 2) {
      peers->near.push_back({(rank + n - distance) % n, 0});
      peers->far.push_back({(rank + distance) % n, 0});
    }
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& from = layout.channels[c];
      if (from.count == 0) continue;
      const PatChannel s{request, from.first, from.count, from.chunk, from.slices};
      const auto at = [peers, s, rank, n, gathers](std::uint64_t index) {
        const std::uint64_t loop = index / n;
        // Reduce-scatter meets the far blocks first, all-gather the own one.
        const auto place = static_cast<std::uint32_t>(index % n);
        const std::uint32_t offset = gathers ? place : n - 1 - place;
        const std::uint64_t begin = s.first + loop * s.chunk;
        PlanOp op{.count = std::min(s.chunk, s.count - loop * s.chunk),
                  .step = static_cast<std::uint32_t>(index),
                  .slices = s.slices};
        // Bits below the lowest one set: distances over which the block joins or spreads here.
        const std::uint32_t lowest = offset == 0
                                         ? static_cast<std::uint32_t>(peers->near.size())
                                         : static_cast<std::uint32_t>(std::countr_zero(offset));
        std::uint32_t joins = 0;
        while (joins < lowest && offset + (1U << joins) < n) ++joins;
        const std::span<const Peer> joining(peers->near.data(), joins);
        const std::span<const Peer> leaving =
            offset == 0 ? std::span<const Peer>() : std::span(&peers->far[lowest], 1);
        const std::uint64_t block = (rank + offset) % n * s.request.count + begin;
        if (gathers) {
          op.receive_from = leaving;
          op.send_to = joining;
          op.has_source = offset == 0;
          op.source = {BufferKind::kInput, begin};
          op.has_destination = offset != 0 || !s.request.in_place;
          op.destination = {BufferKind::kOutput, block};
        } else {
          op.receive_from = joining;
          op.send_to = leaving;
          op.has_source = true;
          op.source = {BufferKind::kInput, block};
          op.has_destination = offset == 0;
          op.destination = {BufferKind::kOutput, begin};
          op.scale = offset == 0;
        }
        return op;
      };
      const std::uint64_t loops = (from.count + from.chunk - 1) / from.chunk;
      plan.blocks.push_back({rank, c, "pat", std::make_shared<ComputedProgram>(loops * n, at)});
    }
  }
  return plan;
}

}  // namespace windtunnel
