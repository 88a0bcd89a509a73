#include "collectives/algorithms/tree.h"

#include <algorithm>

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

struct TreeRank {
  std::vector<Peer> parent_up, parent_down, children_up, children_down;
};

// Why the tree of a channel is none over all ranks, and the distance of each rank from its root.
std::string CheckTree(const ChannelLayout::Channel& channel, std::uint32_t n,
                      std::vector<std::uint32_t>* depth) {
  if (channel.tree_up.size() != n || channel.tree_down.size() != n)
    return "a channel has no tree over all ranks";
  const auto root = std::find(channel.tree_up.begin(), channel.tree_up.end(), -1);
  if (root == channel.tree_up.end()) return "a tree has no root";
  std::vector<Rank> order{static_cast<Rank>(root - channel.tree_up.begin())};
  depth->assign(n, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Rank child : channel.tree_down[order[i]]) {
      if (child >= n || channel.tree_up[child] != static_cast<std::int32_t>(order[i]) ||
          order.size() == n)
        return "parents and children of a tree do not agree";
      (*depth)[child] = (*depth)[order[i]] + 1;
      order.push_back(child);
    }
  }
  return order.size() == n ? "" : "a tree does not reach every rank";
}

}  // namespace

std::string TreeAlgorithm::WhyNot(const CollectiveRequest& request,
                                  const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  if (std::string why = WhyNoChannels(request, layout); !why.empty()) return why;
  std::vector<std::uint32_t> depth;
  for (const ChannelLayout::Channel& channel : layout.channels) {
    if (channel.count == 0) continue;
    if (std::string why = CheckTree(channel, request.rank_count, &depth); !why.empty()) return why;
  }
  return {};
}

Plan TreeAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  std::vector<std::vector<std::uint32_t>> depths(layout.channels.size());
  std::vector<std::uint32_t> deepest(layout.channels.size());
  for (std::size_t c = 0; c < layout.channels.size(); ++c) {
    if (layout.channels[c].count == 0) continue;
    CheckTree(layout.channels[c], n, &depths[c]);
    deepest[c] = *std::max_element(depths[c].begin(), depths[c].end());
  }
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      auto peers = std::make_shared<TreeRank>();
      for (const Rank child : channel.tree_down[rank]) {
        peers->children_up.push_back({child, 0});
        peers->children_down.push_back({child, 1});
      }
      const bool root = channel.tree_up[rank] < 0;
      if (!root) {
        const auto parent = static_cast<Rank>(channel.tree_up[rank]);
        peers->parent_up.push_back({parent, 0});
        peers->parent_down.push_back({parent, 1});
      }
      const std::uint64_t loops = (channel.count + channel.chunk - 1) / channel.chunk;
      const std::uint32_t up_step = deepest[c] - depths[c][rank];
      const std::uint32_t down_step = deepest[c] + depths[c][rank];
      const auto piece = [first = channel.first, count = channel.count, chunk = channel.chunk,
                          slices = channel.slices](std::uint64_t i) {
        PlanOp op{.count = std::min(chunk, count - i * chunk), .slices = slices};
        op.source = {BufferKind::kInput, first + i * chunk};
        op.destination = {BufferKind::kOutput, first + i * chunk};
        return op;
      };
      const auto up = [piece, peers, root, step = up_step](std::uint64_t i) {
        PlanOp op = piece(i);
        op.receive_from = peers->children_up;
        op.has_source = true;
        op.has_destination = root;
        op.scale = root;
        op.send_to = root ? peers->children_down : peers->parent_up;
        op.step = step + static_cast<std::uint32_t>(i);
        return op;
      };
      plan.blocks.push_back(
          {rank, c, root ? "tree root" : "tree up", std::make_shared<ComputedProgram>(loops, up)});
      if (root) continue;
      const auto down = [piece, peers, step = down_step](std::uint64_t i) {
        PlanOp op = piece(i);
        op.receive_from = peers->parent_down;
        op.has_destination = true;
        op.send_to = peers->children_down;
        op.step = step + static_cast<std::uint32_t>(i);
        return op;
      };
      plan.blocks.push_back({rank, c, "tree down", std::make_shared<ComputedProgram>(loops, down)});
    }
  }
  return plan;
}

}  // namespace windtunnel
