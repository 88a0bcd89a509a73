#pragma once
// The double binary tree over nodes, and the tree of one channel over ranks.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/nccl/search_graph.h"

namespace windtunnel::nccl {

/// Place of one node in a binary tree; -1 where there is none.
struct TreePlace {
  int up = -1;
  std::array<int, 2> down{-1, -1};
  /// Which child of its parent this node is: 0 when its number is below the parent's, else 1.
  int child_slot = 0;
  friend bool operator==(const TreePlace&, const TreePlace&) = default;
};

/// Binary tree in which, for every even count, leaves have even and inner nodes odd numbers; the
/// root 0 has one child, in the second slot. Range: 0 <= node < node_count. Source: NVIDIA/nccl,
/// src/graph/trees.cc.
TreePlace BinaryTree(int node_count, int node);
/// The two trees of the pair: the second mirrors the first (even counts) or shifts it by one (odd
/// counts), so that no node is inner in both when the count is even.
std::array<TreePlace, 2> DoubleBinaryTree(int node_count, int node);

/// The tree of one channel: parent and children per rank. Slot order is the order in which a rank
/// adds the arrivals.
struct TreeChannel {
  std::vector<std::int32_t> up;                   ///< -1 at the root.
  std::vector<std::array<std::int32_t, 3>> down;  ///< Filled from slot 0; -1 behind the last.
};

/// The ranks of one node, in the order of a channel's chain.
struct NodeChain {
  std::span<const std::int32_t> ranks;
  Pattern pattern = Pattern::kBalancedTree;
};

/// Trees of a channel and of its duplicate: chain inside each node, first and second binary tree
/// between nodes. The first rank of a chain talks to the parent; which ranks the children are
/// attached to follows from the pattern.
std::array<TreeChannel, 2> BuildTrees(std::span<const NodeChain> nodes, std::size_t rank_count);

}  // namespace windtunnel::nccl
