#include "collectives/nccl/trees.h"

#include <gtest/gtest.h>

namespace windtunnel::nccl {
namespace {

std::vector<int> Parents(int nodes, std::size_t tree) {
  std::vector<int> out;
  for (int n = 0; n < nodes; ++n) out.push_back(DoubleBinaryTree(nodes, n)[tree].up);
  return out;
}

TEST(DoubleBinaryTree, ParentsOfTwoToNineNodes) {
  const std::vector<std::array<std::vector<int>, 2>> expected = {
      {{{-1, 0}, {1, -1}}},
      {{{-1, 2, 0}, {1, -1, 0}}},
      {{{-1, 2, 0, 2}, {1, 3, 1, -1}}},
      {{{-1, 2, 4, 2, 0}, {1, -1, 3, 0, 3}}},
      {{{-1, 2, 4, 2, 0, 4}, {1, 5, 3, 1, 3, -1}}},
      {{{-1, 2, 4, 2, 0, 6, 4}, {5, -1, 3, 5, 3, 1, 0}}},
      {{{-1, 2, 4, 2, 0, 6, 4, 6}, {1, 3, 1, 7, 5, 3, 5, -1}}},
      {{{-1, 2, 4, 2, 8, 6, 4, 6, 0}, {1, -1, 3, 5, 3, 0, 7, 5, 7}}}};
  for (int nodes = 2; nodes <= 9; ++nodes)
    for (std::size_t tree = 0; tree < 2; ++tree)
      EXPECT_EQ(Parents(nodes, tree), expected[static_cast<std::size_t>(nodes - 2)][tree])
          << nodes << " nodes, tree " << tree;
}

TEST(DoubleBinaryTree, ChildrenMatchParents) {
  for (int nodes = 1; nodes <= 130; ++nodes)
    for (std::size_t tree = 0; tree < 2; ++tree) {
      int edges = 0;
      for (int n = 0; n < nodes; ++n) {
        const auto places = DoubleBinaryTree(nodes, n);
        for (const int child : places[tree].down) {
          if (child < 0) continue;
          ++edges;
          EXPECT_EQ(DoubleBinaryTree(nodes, child)[tree].up, n);
        }
      }
      EXPECT_EQ(edges, nodes - 1) << nodes;
    }
}

TEST(DoubleBinaryTree, NoNodeOfAnEvenCountIsInnerInBoth) {
  const auto inner = [](const TreePlace& place) {
    return place.down[0] >= 0 || place.down[1] >= 0;
  };
  for (int nodes = 2; nodes <= 128; nodes += 2)
    for (int n = 0; n < nodes; ++n) {
      const auto places = DoubleBinaryTree(nodes, n);
      EXPECT_FALSE(inner(places[0]) && inner(places[1])) << nodes << " nodes, node " << n;
    }
}

}  // namespace
}  // namespace windtunnel::nccl
