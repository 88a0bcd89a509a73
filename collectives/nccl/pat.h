#pragma once
// How often a rank posts to each partner in PAT (all-gather and reduce-scatter over partners at
// distances 2^d).

#include <cstdint>
#include <vector>

namespace windtunnel::nccl {

struct PatPartner {
  std::int32_t rank = 0;
  bool send = false;
  std::int64_t steps = 0;
};

/// Partners of `rank` with at least one post: distance rising, send before receive. `block_bytes`:
/// what a channel moves per rank; `chunk_bytes`: one buffer step; `depth`: steps in the buffer.
/// Source: NVIDIA/nccl v2.28.9, src/include/collectives.h; arXiv 2506.20252.
std::vector<PatPartner> PatPartners(bool reduce_scatter, int rank, int rank_count,
                                    std::int64_t block_bytes, std::int64_t chunk_bytes, int depth);

}  // namespace windtunnel::nccl
