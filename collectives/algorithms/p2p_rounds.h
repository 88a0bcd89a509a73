#pragma once
// Who exchanges with whom in which round, and the programs made of it.

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/algorithm.h"

namespace windtunnel {

/// Rounds of an exchange between all pairs. In round `k` a rank sends to one rank and receives from
/// one; each pair meets once in each direction.
class P2pRounds {
 public:
  /// NCCL's order (2.22 and later): ranks in groups of up to 8 places of a node; the place offset
  /// runs inside the group offset, which follows the triangular numbers modulo a power of two.
  /// Nodes of unequal size, or none: plain rotation. Source: NVIDIA/nccl, src/init.cc.
  static P2pRounds Nccl(const CollectiveRequest& request, const ChannelLayout& layout);
  /// rank xor k for powers of two, else rotation by k.
  static P2pRounds Pairwise(std::uint32_t rank_count);

  std::uint32_t count() const { return rank_count_; }
  Rank SendTo(Rank rank, std::uint32_t round) const;
  Rank ReceiveFrom(Rank rank, std::uint32_t round) const;

 private:
  Rank Partner(Rank rank, std::uint32_t round, bool forward) const;

  std::uint32_t rank_count_ = 1;
  bool exclusive_or_ = false;
  std::uint32_t group_size_ = 0;              // 0: plain rotation.
  std::vector<std::uint32_t> group_offsets_;  // One per group.
  std::vector<Rank> rank_at_;                 // [group * group size + place]
  std::vector<std::uint32_t> position_of_;    // Inverse.
};

/// All-to-all (even or not) over `rounds`: `windows` rounds at once, each on channels of its own.
void AppendAllToAll(Plan& plan, const ChannelLayout& layout,
                    const std::shared_ptr<const P2pRounds>& rounds, std::uint32_t windows);

}  // namespace windtunnel
