#include "collectives/nccl/rings.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel::nccl {

std::vector<std::int32_t> BuildRing(std::span<const std::span<const std::int32_t>> nodes,
                                    std::size_t rank_count, std::int32_t start) {
  std::vector<std::int32_t> ring;
  ring.reserve(rank_count);
  for (const auto& node : nodes) ring.insert(ring.end(), node.begin(), node.end());
  WT_CHECK(ring.size() == rank_count) << "ring of " << ring.size() << " of " << rank_count;
  std::vector<bool> seen(rank_count, false);
  for (const std::int32_t rank : ring) {
    const auto r = static_cast<std::size_t>(rank);
    WT_CHECK(r < rank_count && !seen[r]) << "rank " << rank << " twice in a ring";
    seen[r] = true;
  }
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), start), ring.end());
  return ring;
}

}  // namespace windtunnel::nccl
