#include "collectives/algorithms/parameter_server.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string ParameterServerAlgorithm::WhyNot(const CollectiveRequest& request,
                                             const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  return WhyNoChannels(request, layout);
}

Plan ParameterServerAlgorithm::MakePlan(const CollectiveRequest& request,
                                        const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  // Every rank is a server; its shard of channel c is part `rank` of n.
  const auto everyone = [n](std::uint32_t port) {
    auto peers = std::make_shared<std::vector<Peer>>();
    for (Rank rank = 0; rank < n; ++rank) peers->push_back({rank, port});
    return peers;
  };
  const auto pushes = everyone(0);
  const auto pulls = everyone(1);
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const auto shard = [n, first = channel.first, count = channel.count,
                          chunk = channel.chunk](Rank server) {
        const Part part = PartOf(count, n, server);
        PlanOp op{.count = part.count, .slices = SlicesOf(part.count, chunk)};
        op.source = {BufferKind::kInput, first + part.offset};
        op.destination = {BufferKind::kOutput, first + part.offset};
        return op;
      };
      // Partners in the order rank + 1, rank + 2, ..., so that no server is everybody's first.
      const auto push = [shard, pushes, rank, n](std::uint64_t i) {
        const auto server = static_cast<Rank>((rank + 1 + i) % n);
        PlanOp op = shard(server);
        op.has_source = true;
        op.send_to = {&(*pushes)[server], 1};
        return op;
      };
      const auto pull = [shard, pulls, rank, n](std::uint64_t i) {
        const auto server = static_cast<Rank>((rank + 1 + i) % n);
        PlanOp op = shard(server);
        op.has_destination = true;
        op.receive_from = {&(*pulls)[server], 1};
        op.step = 1;
        return op;
      };
      plan.blocks.push_back({rank, c, "push", std::make_shared<ComputedProgram>(n - 1, push)});
      std::vector<Peer> workers, readers;
      for (Rank other = 0; other < n; ++other) {
        if (other == rank) continue;
        workers.push_back({other, 0});
        readers.push_back({other, 1});
      }
      PlanOp serve = shard(rank);
      serve.receive_from = workers;
      serve.send_to = readers;
      serve.has_source = serve.has_destination = serve.scale = true;
      auto server = std::make_shared<ListProgram>();
      server->Append(serve);
      plan.blocks.push_back({rank, c, "server", std::move(server)});
      plan.blocks.push_back({rank, c, "pull", std::make_shared<ComputedProgram>(n - 1, pull)});
    }
  }
  return plan;
}

}  // namespace windtunnel
