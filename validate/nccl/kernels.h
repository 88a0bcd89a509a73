#pragma once
// Kernels of the measurements. All run on the current GPU in `stream` and return at once.

#include <cuda_runtime.h>

#include <cstdint>

namespace windtunnel::measure {

enum class Element : std::uint8_t { kFloat, kHalf, kBfloat16, kDouble, kInt32, kUint8 };

void LaunchNothing(cudaStream_t stream);

enum class StreamKind : std::uint8_t { kRead, kWrite, kCopy, kTriad };
/// Streams over arrays of `bytes` (a multiple of 16): read sums `b`, write sets `a`, copy a = b,
/// triad a = b + 3 c.
void LaunchStream(StreamKind kind, void* a, const void* b, const void* c, std::size_t bytes,
                  cudaStream_t stream);

/// What rank `rank` contributes at element `index` of its input; small whole numbers, so that sums
/// are exact in every type for up to 64 ranks.
__host__ __device__ inline int Contribution(int rank, std::uint64_t index) {
  return static_cast<int>((index + static_cast<std::uint64_t>(rank)) % 4);
}

/// Sets element i of `data` to the contribution of `rank` at `first` + i.
void LaunchFill(Element type, void* data, std::uint64_t count, int rank, std::uint64_t first,
                cudaStream_t stream);

/// What a range of the output must hold: the contributions of ranks [rank, rank + rank_count) at
/// `first` + i, added.
struct Expectation {
  int rank = 0;
  int rank_count = 1;
  std::uint64_t first = 0;
};
/// Adds to *wrong (GPU memory) the number of elements that differ from what is expected.
void LaunchCompare(Element type, const void* data, std::uint64_t count, Expectation expected,
                   unsigned long long* wrong, cudaStream_t stream);

}  // namespace windtunnel::measure
