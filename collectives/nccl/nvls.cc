#include "collectives/nccl/nvls.h"

#include <algorithm>

#include "collectives/nccl/trees.h"

namespace windtunnel::nccl {

NvlsLayout BuildNvls(std::span<const std::vector<std::int32_t>> node_heads,
                     std::size_t rank_count) {
  NvlsLayout out;
  out.head_of_rank.assign(rank_count, -1);
  std::size_t heads = node_heads.empty() ? 0 : node_heads[0].size();
  for (const auto& node : node_heads) heads = std::min(heads, node.size());
  out.head_count = static_cast<int>(heads);
  if (heads == 0) return out;
  for (std::size_t h = 0; h < heads; ++h) {
    auto& row = out.heads.emplace_back();
    for (const auto& node : node_heads) {
      row.push_back(node[h]);
      out.head_of_rank[static_cast<std::size_t>(node[h])] = static_cast<std::int32_t>(h);
    }
  }
  if (node_heads.size() == 1) return out;

  const auto local_peer = [&](std::int32_t head) {
    return static_cast<std::int32_t>(rank_count) + 1 + head;
  };
  NvlsLayout::Tree none;
  none.up.assign(rank_count, -1);
  none.down.assign(rank_count, {local_peer(-1), -1, -1});
  out.trees.assign(2, none);
  const int nodes = static_cast<int>(node_heads.size());
  for (int n = 0; n < nodes; ++n) {
    const auto places = DoubleBinaryTree(nodes, n);
    for (std::size_t h = 0; h < heads; ++h) {
      const auto& row = out.heads[h];
      const auto rank = static_cast<std::size_t>(row[static_cast<std::size_t>(n)]);
      for (std::size_t t = 0; t < 2; ++t) {
        const TreePlace& place = places[t];
        NvlsLayout::Tree& tree = out.trees[t];
        if (place.up >= 0) tree.up[rank] = row[static_cast<std::size_t>(place.up)];
        tree.down[rank] = {local_peer(static_cast<std::int32_t>(h)), -1, -1};
        std::size_t slot = 1;
        for (const int child : place.down)
          if (child >= 0) tree.down[rank][slot++] = row[static_cast<std::size_t>(child)];
      }
    }
  }
  return out;
}

}  // namespace windtunnel::nccl
