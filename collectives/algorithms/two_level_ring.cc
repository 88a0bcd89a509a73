#include "collectives/algorithms/two_level_ring.h"

#include <algorithm>
#include <array>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string TwoLevelRingAlgorithm::WhyNot(const CollectiveRequest& request,
                                          const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (std::string why = WhyNoEqualNodes(request, layout); !why.empty()) return why;
  return WhyNoChannels(request, layout);
}

Plan TwoLevelRingAlgorithm::MakePlan(const CollectiveRequest& request,
                                     const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  plan.scratch_count = request.count;
  const auto places = static_cast<std::uint32_t>(layout.nodes.front().size());
  const auto nodes = static_cast<std::uint32_t>(layout.nodes.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> place_of(n);
  for (std::uint32_t v = 0; v < nodes; ++v) {
    for (std::uint32_t l = 0; l < places; ++l) place_of[layout.nodes[v][l]] = {v, l};
  }
  for (Rank rank = 0; rank < n; ++rank) {
    const auto [node, place] = place_of[rank];
    const auto at_place = [&, v = node](std::uint32_t l) { return layout.nodes[v][l % places]; };
    const auto at_node = [&, l = place](std::uint32_t v) { return layout.nodes[v % nodes][l]; };
    // From and to: inside the node for the first pass, between nodes, inside for the last pass.
    auto peers = std::make_shared<std::array<Peer, 6>>(
        std::array<Peer, 6>{{{at_place(place + places - 1), 0},
                             {at_place(place + 1), 0},
                             {at_node(node + nodes - 1), 1},
                             {at_node(node + 1), 1},
                             {at_place(place + places - 1), 2},
                             {at_place(place + 1), 2}}});
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      const std::uint64_t loop_count = places * channel.chunk;
      const std::uint64_t per_loop = places + (2 * nodes - 1) + places;
      const std::uint64_t loops = (channel.count + loop_count - 1) / loop_count;
      const auto at = [=, first = channel.first, count = channel.count, slices = channel.slices,
                       node = node, place = place](std::uint64_t index) {
        const std::uint64_t begin = index / per_loop * loop_count;
        const std::uint64_t rest = std::min(loop_count, count - begin);
        auto j = static_cast<std::uint32_t>(index % per_loop);
        PlanOp op{.step = static_cast<std::uint32_t>(index), .slices = slices};
        const auto put = [&](std::uint64_t offset, std::uint64_t size, BufferKind source,
                             BufferKind destination) {
          op.count = size;
          op.source = {source, first + begin + offset};
          op.destination = {destination, first + begin + offset};
        };
        const auto connect = [&](std::size_t from, bool receives, bool sends) {
          if (receives) op.receive_from = {&(*peers)[from], 1};
          if (sends) op.send_to = {&(*peers)[from + 1], 1};
        };
        if (j < places) {
          const Part part = PartOf(rest, places, (place + 2 * places - 1 - j) % places);
          put(part.offset, part.count, BufferKind::kInput, BufferKind::kScratch);
          connect(0, j > 0, j + 1 < places);
          op.has_source = true;
          op.has_destination = j + 1 == places;
          return op;
        }
        j -= places;
        if (j < 2 * nodes - 1) {
          const Part part = PartOf(rest, places, place);
          const Part sub = PartOf(part.count, nodes, (node + 2 * nodes - 1 - j) % nodes);
          put(part.offset + sub.offset, sub.count, BufferKind::kScratch, BufferKind::kOutput);
          connect(2, j > 0, j + 1 < 2 * nodes - 1);
          op.has_source = j < nodes;
          op.has_destination = j + 1 >= nodes;
          op.scale = j + 1 == nodes;
          return op;
        }
        j -= 2 * nodes - 1;
        const Part part = PartOf(rest, places, (place + places - j) % places);
        put(part.offset, part.count, BufferKind::kOutput, BufferKind::kOutput);
        connect(4, j > 0, j + 1 < places);
        op.has_source = j == 0 && places > 1;
        op.has_destination = j > 0;
        if (places == 1) op.count = 0;
        return op;
      };
      plan.blocks.push_back(
          {rank, c, "two-level ring", std::make_shared<ComputedProgram>(loops * per_loop, at)});
    }
  }
  return plan;
}

}  // namespace windtunnel
