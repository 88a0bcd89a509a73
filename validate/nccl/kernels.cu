#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "validate/nccl/kernels.h"

namespace windtunnel::measure {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 4096;

int BlocksFor(std::uint64_t count) {
  const std::uint64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

__device__ std::uint64_t FirstIndex() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::uint64_t Stride() { return static_cast<std::uint64_t>(gridDim.x) * blockDim.x; }

__global__ void Nothing() {}

__global__ void Read(float4* a, const float4* b, std::uint64_t count) {
  float sum = 0;
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride()) {
    const float4 v = b[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == -1.0f) a[0].x = sum;  // Never true for the zeros it reads; keeps the loads alive.
}

__global__ void Write(float4* a, std::uint64_t count) {
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride())
    a[i] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
}

__global__ void Copy(float4* a, const float4* b, std::uint64_t count) {
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride()) a[i] = b[i];
}

__global__ void Triad(float4* a, const float4* b, const float4* c, std::uint64_t count) {
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride()) {
    const float4 x = b[i];
    const float4 y = c[i];
    a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
  }
}

template <class T>
__device__ T FromWhole(int value) {
  return static_cast<T>(value);
}
template <>
__device__ __half FromWhole<__half>(int value) {
  return __float2half(static_cast<float>(value));
}
template <>
__device__ __nv_bfloat16 FromWhole<__nv_bfloat16>(int value) {
  return __float2bfloat16(static_cast<float>(value));
}
template <class T>
__device__ bool Same(T a, T b) {
  return a == b;
}
template <>
__device__ bool Same<__half>(__half a, __half b) {
  return __half2float(a) == __half2float(b);
}
template <>
__device__ bool Same<__nv_bfloat16>(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __bfloat162float(a) == __bfloat162float(b);
}

template <class T>
__global__ void Fill(T* data, std::uint64_t count, int rank, std::uint64_t first) {
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride())
    data[i] = FromWhole<T>(Contribution(rank, first + i));
}

template <class T>
__global__ void Compare(const T* data, std::uint64_t count, Expectation expected,
                        unsigned long long* wrong) {
  unsigned long long found = 0;
  for (std::uint64_t i = FirstIndex(); i < count; i += Stride()) {
    int sum = 0;
    for (int r = 0; r < expected.rank_count; ++r)
      sum += Contribution(expected.rank + r, expected.first + i);
    if (!Same(data[i], FromWhole<T>(sum))) ++found;
  }
  if (found != 0) atomicAdd(wrong, found);
}

/// Calls `action` with a null pointer of the element's type.
template <class Action>
void WithType(Element type, const Action& action) {
  switch (type) {
    case Element::kFloat:
      action(static_cast<float*>(nullptr));
      break;
    case Element::kHalf:
      action(static_cast<__half*>(nullptr));
      break;
    case Element::kBfloat16:
      action(static_cast<__nv_bfloat16*>(nullptr));
      break;
    case Element::kDouble:
      action(static_cast<double*>(nullptr));
      break;
    case Element::kInt32:
      action(static_cast<std::int32_t*>(nullptr));
      break;
    case Element::kUint8:
      action(static_cast<std::uint8_t*>(nullptr));
      break;
  }
}

}  // namespace

void LaunchNothing(cudaStream_t stream) { Nothing<<<1, 1, 0, stream>>>(); }

void LaunchStream(StreamKind kind, void* a, const void* b, const void* c, std::size_t bytes,
                  cudaStream_t stream) {
  const std::uint64_t count = bytes / sizeof(float4);
  const int blocks = BlocksFor(count);
  float4* to = static_cast<float4*>(a);
  const float4* from = static_cast<const float4*>(b);
  switch (kind) {
    case StreamKind::kRead:
      Read<<<blocks, kThreads, 0, stream>>>(to, from, count);
      break;
    case StreamKind::kWrite:
      Write<<<blocks, kThreads, 0, stream>>>(to, count);
      break;
    case StreamKind::kCopy:
      Copy<<<blocks, kThreads, 0, stream>>>(to, from, count);
      break;
    case StreamKind::kTriad:
      Triad<<<blocks, kThreads, 0, stream>>>(to, from, static_cast<const float4*>(c), count);
      break;
  }
}

void LaunchFill(Element type, void* data, std::uint64_t count, int rank, std::uint64_t first,
                cudaStream_t stream) {
  WithType(type, [&](auto* kind) {
    Fill<<<BlocksFor(count), kThreads, 0, stream>>>(static_cast<decltype(kind)>(data), count, rank,
                                                    first);
  });
}

void LaunchCompare(Element type, const void* data, std::uint64_t count, Expectation expected,
                   unsigned long long* wrong, cudaStream_t stream) {
  WithType(type, [&](auto* kind) {
    using Pointer = decltype(kind);
    Compare<<<BlocksFor(count), kThreads, 0, stream>>>(
        static_cast<Pointer>(const_cast<void*>(data)), count, expected, wrong);
  });
}

}  // namespace windtunnel::measure
