#include "collectives/nccl/trees.h"

#include <utility>

#include "sim/check.h"

namespace windtunnel::nccl {

TreePlace BinaryTree(int node_count, int node) {
  TreePlace place;
  if (node == 0) {
    int top = 1;
    while (top * 2 < node_count) top *= 2;
    if (node_count > 1) place.down[1] = top;
    return place;
  }
  const int bit = node & -node;  // Lowest bit set: the height of the node in the tree.
  place.up = (node ^ bit) | (bit << 1);
  if (place.up >= node_count) place.up = node ^ bit;
  place.child_slot = node < place.up ? 0 : 1;
  int reach = bit >> 1;
  if (reach == 0) return place;
  place.down[0] = node - reach;
  while (reach > 0 && node + reach >= node_count) reach >>= 1;
  if (reach > 0) place.down[1] = node + reach;
  return place;
}

std::array<TreePlace, 2> DoubleBinaryTree(int node_count, int node) {
  const bool mirror = node_count % 2 == 0;
  const int other = mirror ? node_count - 1 - node : (node - 1 + node_count) % node_count;
  TreePlace second = BinaryTree(node_count, other);
  const auto back = [&](int& n) {
    if (n >= 0) n = mirror ? node_count - 1 - n : (n + 1) % node_count;
  };
  back(second.up);
  back(second.down[0]);
  back(second.down[1]);
  return {BinaryTree(node_count, node), second};
}

std::array<TreeChannel, 2> BuildTrees(std::span<const NodeChain> nodes, std::size_t rank_count) {
  TreeChannel chains;
  chains.up.assign(rank_count, -1);
  chains.down.assign(rank_count, {-1, -1, -1});
  const auto at = [](std::int32_t rank) { return static_cast<std::size_t>(rank); };
  for (const NodeChain& node : nodes) {
    for (std::size_t i = 0; i + 1 < node.ranks.size(); ++i) {
      chains.down[at(node.ranks[i])][0] = node.ranks[i + 1];
      chains.up[at(node.ranks[i + 1])] = node.ranks[i];
    }
  }
  const auto parent_side = [](const NodeChain& node) { return node.ranks[0]; };
  const auto child_side = [](const NodeChain& node, int slot) {
    // A plain tree has everything on the first rank; a balanced one its first child on the second;
    // a split one both.
    const bool second =
        slot == 0 ? node.pattern != Pattern::kTree : node.pattern == Pattern::kSplitTree;
    return node.ranks[second ? 1 : 0];
  };
  std::array<TreeChannel, 2> out{chains, std::move(chains)};
  const int node_count = static_cast<int>(nodes.size());
  for (int n = 0; n < node_count; ++n) {
    const auto places = DoubleBinaryTree(node_count, n);
    const NodeChain& node = nodes[static_cast<std::size_t>(n)];
    for (std::size_t t = 0; t < 2; ++t) {
      const TreePlace& place = places[t];
      if (place.up >= 0) {
        out[t].up[at(parent_side(node))] =
            child_side(nodes[static_cast<std::size_t>(place.up)], place.child_slot);
      }
      for (int slot = 0; slot < 2; ++slot) {
        const int child = place.down[static_cast<std::size_t>(slot)];
        if (child < 0) continue;
        auto& down = out[t].down[at(child_side(node, slot))];
        std::size_t free = 0;
        while (free < down.size() && down[free] >= 0) ++free;
        WT_CHECK(free < down.size()) << "tree arity above 3 at node " << n;
        down[free] = parent_side(nodes[static_cast<std::size_t>(child)]);
      }
    }
  }
  return out;
}

}  // namespace windtunnel::nccl
