#pragma once
// Rings over nodes from the chains of the nodes.

#include <cstdint>
#include <span>
#include <vector>

namespace windtunnel::nccl {

/// One channel's ring: the last rank of each node sends to the first of the next. Returns all ranks
/// once, starting at `start`.
/// @throws InternalError when the chains do not make one ring of all ranks.
std::vector<std::int32_t> BuildRing(std::span<const std::span<const std::int32_t>> nodes,
                                    std::size_t rank_count, std::int32_t start = 0);

}  // namespace windtunnel::nccl
