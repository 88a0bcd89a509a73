#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/nccl/p2p.h"

namespace windtunnel::nccl {

/// Calls of one direction in their order, by peer. Refers to `calls`. Contract: peers are below
/// `rank_count`.
class CallQueues {
 public:
  CallQueues(std::span<const P2pCall> calls, int rank_count, bool sends)
      : calls_(calls), next_(calls.size()), queues_(static_cast<std::size_t>(rank_count)) {
    for (std::uint32_t c = 0; c < calls.size(); ++c) {
      if (calls[c].send == sends) Push(c);
    }
  }
  bool Empty(Rank peer) const { return queues_[peer].count == 0; }
  /// Bytes of the first one. Contract: not empty.
  std::int64_t Pop(Rank peer) {
    Queue& queue = queues_[peer];
    const std::uint32_t call = queue.first;
    queue.first = next_[call];
    --queue.count;
    return static_cast<std::int64_t>(calls_[call].bytes);
  }

 private:
  struct Queue {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t count = 0;
  };
  void Push(std::uint32_t call) {
    Queue& queue = queues_[calls_[call].peer];
    (queue.count++ == 0 ? queue.first : next_[queue.last]) = call;
    queue.last = call;
  }

  std::span<const P2pCall> calls_;
  std::vector<std::uint32_t> next_;  // By call.
  std::vector<Queue> queues_;        // By peer.
};

}  // namespace windtunnel::nccl
