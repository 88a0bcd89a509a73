#pragma once
// NVLS: which ranks are heads, and the trees of heads over nodes.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace windtunnel::nccl {

struct NvlsLayout {
  int head_count = 0;
  /// Index among the heads of its node, per rank; -1 when it is none.
  std::vector<std::int32_t> head_of_rank;
  /// Head ranks: [head][node].
  std::vector<std::vector<std::int32_t>> heads;
  /// One of the two trees over nodes (channels alternate between them); empty on one node. `down`:
  /// slot 0 is the number of the local switch peer (rank count + 1 + head), then the children in
  /// other nodes, then -1.
  struct Tree {
    std::vector<std::int32_t> up;
    std::vector<std::array<std::int32_t, 3>> down;
  };
  std::vector<Tree> trees;
};

/// `node_heads`: [node][head] head ranks of each node, doubles already removed; the smallest count
/// of all nodes is used. Source: NVIDIA/nccl, src/graph/connect.cc.
NvlsLayout BuildNvls(std::span<const std::vector<std::int32_t>> node_heads, std::size_t rank_count);

}  // namespace windtunnel::nccl
