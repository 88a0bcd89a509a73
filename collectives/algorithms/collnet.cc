#include "collectives/algorithms/collnet.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

std::string WhyNoCollNet(const CollectiveRequest& request, const ChannelLayout& layout) {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (std::string why = WhyNoChannels(request, layout); !why.empty()) return why;
  if (layout.nodes.size() < 2) return "needs two nodes or more";
  if (std::string why = WhyNoEqualNodes(request, layout); !why.empty()) return why;
  return WhyNoSwitchReduction(request);
}

// The part of a loop that the network adds: rank `nodes[k][place]` of every node holds it in
// scratch. The rank of the first node starts the operation. Ports 4 and 5: ready, done.
class NetworkStage {
 public:
  NetworkStage(PlanBuilder& builder, const ChannelLayout& layout, std::size_t node,
               std::size_t place, std::uint32_t channel)
      : builder_(builder), owner_(layout.nodes.front()[place]) {
    if (node != 0) return;
    block_ = builder.Add(owner_, channel, "collnet network");
    for (const auto& members : layout.nodes) {
      ready_.push_back({members[place], 4});
      done_.push_back({members[place], 5});
    }
  }
  // Appends "ready" to the block that filled the part, and the operation on the owner.
  void Append(std::uint32_t filler, BufferPosition at, std::uint64_t count, std::uint32_t step) {
    const Peer owner[] = {{owner_, 4}};
    builder_.Append(filler, {.send_to = owner, .step = step});
    if (ready_.empty()) return;
    builder_.Append(block_, {.count = count,
                             .receive_from = ready_,
                             .send_to = done_,
                             .has_source = true,
                             .has_destination = true,
                             .scale = true,
                             .combine = Combine::kSwitchAllReduce,
                             .source = at,
                             .destination = at,
                             .step = step});
  }
  void AppendWait(std::uint32_t waiter, std::uint32_t step) {
    const Peer owner[] = {{owner_, 5}};
    builder_.Append(waiter, {.receive_from = owner, .step = step});
  }

 private:
  PlanBuilder& builder_;
  Rank owner_;
  std::uint32_t block_ = 0;
  std::vector<Peer> ready_;
  std::vector<Peer> done_;
};

}  // namespace

std::string CollNetDirectAlgorithm::WhyNot(const CollectiveRequest& request,
                                           const ChannelLayout& layout) const {
  return WhyNoCollNet(request, layout);
}

Plan CollNetDirectAlgorithm::MakePlan(const CollectiveRequest& request,
                                      const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  plan.scratch_count = request.count;
  PlanBuilder builder(plan);
  const std::size_t places = layout.nodes.front().size();
  for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
    const std::vector<Rank>& members = layout.nodes[node];
    for (std::size_t place = 0; place < places; ++place) {
      const Rank rank = members[place];
      std::vector<Peer> others_up, others_down;
      for (const Rank other : members) {
        if (other == rank) continue;
        others_up.push_back({other, 0});
        others_down.push_back({other, 1});
      }
      for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
        const ChannelLayout::Channel& channel = layout.channels[c];
        if (channel.count == 0) continue;
        const std::uint32_t scatter = builder.Add(rank, c, "collnet scatter");
        const std::uint32_t reduce = builder.Add(rank, c, "collnet reduce");
        NetworkStage network(builder, layout, node, place, c);
        const std::uint32_t broadcast = builder.Add(rank, c, "collnet broadcast");
        const std::uint32_t gather = builder.Add(rank, c, "collnet gather");
        const std::uint64_t loop_count = places * channel.chunk;
        std::uint32_t step = 0;
        for (std::uint64_t begin = 0; begin < channel.count; begin += loop_count, ++step) {
          const std::uint64_t rest = std::min(loop_count, channel.count - begin);
          for (std::size_t head = 0; head < places; ++head) {
            const Part part = PartOf(rest, places, head);
            const std::uint64_t at = channel.first + begin + part.offset;
            if (head != place) {
              const Peer to[] = {{members[head], 0}};
              const Peer from[] = {{members[head], 1}};
              builder.Append(scatter, {.count = part.count,
                                       .send_to = to,
                                       .has_source = true,
                                       .source = {BufferKind::kInput, at},
                                       .step = step});
              builder.Append(gather, {.count = part.count,
                                      .receive_from = from,
                                      .has_destination = true,
                                      .destination = {BufferKind::kOutput, at},
                                      .step = step});
              continue;
            }
            const BufferPosition staged{BufferKind::kScratch, at};
            builder.Append(reduce, {.count = part.count,
                                    .receive_from = others_up,
                                    .has_source = true,
                                    .has_destination = true,
                                    .source = {BufferKind::kInput, at},
                                    .destination = staged,
                                    .step = step});
            network.Append(reduce, staged, part.count, step);
            network.AppendWait(broadcast, step);
            builder.Append(broadcast, {.count = part.count,
                                       .send_to = others_down,
                                       .has_source = true,
                                       .has_destination = true,
                                       .source = staged,
                                       .destination = {BufferKind::kOutput, at},
                                       .step = step});
          }
        }
      }
    }
  }
  return plan;
}

std::string CollNetChainAlgorithm::WhyNot(const CollectiveRequest& request,
                                          const ChannelLayout& layout) const {
  return WhyNoCollNet(request, layout);
}

Plan CollNetChainAlgorithm::MakePlan(const CollectiveRequest& request,
                                     const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  plan.scratch_count = request.count;
  PlanBuilder builder(plan);
  const std::size_t places = layout.nodes.front().size();
  for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
    const std::vector<Rank>& members = layout.nodes[node];
    for (std::size_t place = 0; place < places; ++place) {
      const Rank rank = members[place];
      std::vector<Peer> from_behind, to_front, from_front, to_behind;
      if (place + 1 < places) {
        from_behind.push_back({members[place + 1], 0});
        to_behind.push_back({members[place + 1], 1});
      }
      if (place > 0) {
        to_front.push_back({members[place - 1], 0});
        from_front.push_back({members[place - 1], 1});
      }
      for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
        const ChannelLayout::Channel& channel = layout.channels[c];
        if (channel.count == 0) continue;
        const std::uint32_t up = builder.Add(rank, c, "collnet chain up");
        const std::uint32_t down = builder.Add(rank, c, "collnet chain down");
        std::optional<NetworkStage> network;
        if (place == 0) network.emplace(builder, layout, node, place, c);
        std::uint32_t step = 0;
        for (std::uint64_t begin = 0; begin < channel.count; begin += channel.chunk, ++step) {
          const std::uint64_t count = std::min(channel.chunk, channel.count - begin);
          const std::uint64_t at = channel.first + begin;
          const BufferPosition staged{BufferKind::kScratch, at};
          builder.Append(up, {.count = count,
                              .receive_from = from_behind,
                              .send_to = to_front,
                              .has_source = true,
                              .has_destination = place == 0,
                              .source = {BufferKind::kInput, at},
                              .destination = staged,
                              .step = step});
          if (place == 0) {
            network->Append(up, staged, count, step);
            network->AppendWait(down, step);
          }
          builder.Append(down, {.count = count,
                                .receive_from = from_front,
                                .send_to = to_behind,
                                .has_source = place == 0,
                                .has_destination = true,
                                .source = staged,
                                .destination = {BufferKind::kOutput, at},
                                .step = step});
        }
      }
    }
  }
  return plan;
}

}  // namespace windtunnel
