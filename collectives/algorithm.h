#pragma once
// A collective algorithm: a pure function from a request to a plan. The table of all stands in
// registry.cc.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel {

/// How a call is laid over channels. Filled from NCCL's own planning (collectives/nccl) or from
/// flags.
struct ChannelLayout {
  struct Channel {
    std::vector<Rank> ring;   ///< Ring order, all ranks once; position 0 is arbitrary.
    std::uint64_t first = 0;  ///< Elements of the message (per-rank part for all_gather and
                              ///< reduce_scatter) this channel moves: [first, first + count).
    std::uint64_t count = 0;
    std::uint64_t chunk = 0;   ///< Elements one step moves at most (> 0 when count > 0).
    std::uint32_t slices = 1;  ///< Pipelined parts of a chunk.
    /// Trees: parent (-1 = root) and children in slot order, per rank; empty for rings.
    std::vector<std::int32_t> tree_up;
    std::vector<std::vector<Rank>> tree_down;
  };
  Protocol protocol = Protocol::kSimple;
  std::vector<Channel> channels;
  /// NVLS: head rank of each part, and the ranks behind one switch (all members of a node).
  std::vector<Rank> nvls_heads;
  std::vector<std::vector<Rank>> nodes;  ///< Ranks of each node.
  /// Hypercube: channels that each round uses, the first ones of `channels`; empty: all.
  std::vector<std::uint32_t> round_channels;
  /// Ranks as a grid that wraps around, first side fastest; empty: they are not known to be one.
  std::vector<std::uint32_t> sides;
};
/// One ring 0, 1, ..., n-1 per channel, the message cut in near-equal parts, chunks of
/// `chunk_bytes`; the binary tree 2i+1, 2i+2 mirrored on odd channels; one node with all ranks as
/// heads. What to use when no topology says better.
ChannelLayout PlainLayout(const CollectiveRequest& request, std::uint32_t channel_count,
                          std::uint64_t chunk_bytes, std::uint32_t slices = 1);

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual std::string_view name() const = 0;  ///< "Ring", "Tree", "RecursiveDoubling", ...
  /// Empty when it applies; else why not ("needs a power-of-two rank count").
  virtual std::string WhyNot(const CollectiveRequest& request,
                             const ChannelLayout& layout) const = 0;
  /// Contract: WhyNot(...) is empty.
  virtual Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const = 0;
};

/// All algorithms, explicit and in plain sight (registry.cc).
const std::vector<const Algorithm*>& Algorithms();
/// Case folded, dashes ignored ("ring", "recursive-doubling"). @throws ConfigError with the known
/// names.
const Algorithm& FindAlgorithm(std::string_view name);

}  // namespace windtunnel
