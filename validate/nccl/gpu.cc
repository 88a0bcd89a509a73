#include "validate/nccl/gpu.h"

#include <utility>

namespace windtunnel::measure {

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw GpuError(std::string(what) + ": " + cudaGetErrorString(status));
}

void Check(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  std::string text = std::string(what) + ": " + ncclGetErrorString(status);
  if (const char* last = ncclGetLastError(nullptr); last != nullptr && *last != '\0')
    text += std::string(" (") + last + ")";
  throw GpuError(text);
}

void Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw GpuError(std::string(what) + ": " + cublasGetStatusString(status));
}

Buffer::Buffer(std::size_t bytes, Place place) : bytes_(bytes), place_(place) {
  if (place == Place::kDevice)
    Check(cudaMalloc(&data_, bytes), "GPU memory");
  else
    Check(cudaMallocHost(&data_, bytes), "pinned host memory");
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (place_ == Place::kDevice)
    cudaFree(data_);
  else
    cudaFreeHost(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), place_(other.place_) {}

Stream::Stream() { Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
Stream::~Stream() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}
Stream::Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
void Stream::Wait() const { Check(cudaStreamSynchronize(stream_), "waiting for the GPU"); }

EventTimer::EventTimer() {
  Check(cudaEventCreate(&start_), "event");
  Check(cudaEventCreate(&stop_), "event");
}
EventTimer::~EventTimer() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}
void EventTimer::Start(cudaStream_t stream) { Check(cudaEventRecord(start_, stream), "event"); }
double EventTimer::StopMicroseconds(cudaStream_t stream) {
  Check(cudaEventRecord(stop_, stream), "event");
  Check(cudaEventSynchronize(stop_), "waiting for the GPU");
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, start_, stop_), "event");
  return 1e3 * static_cast<double>(milliseconds);
}

int GpuCount() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver)
    throw MissingGpu("no NVIDIA driver is loaded, or it is older than this build's CUDA");
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw MissingGpu("no GPU is visible on this machine");
  Check(status, "the GPUs cannot be listed");
  return count;
}

std::string GpuName(int gpu) {
  cudaDeviceProp properties{};
  Check(cudaGetDeviceProperties(&properties, gpu), "GPU properties");
  return properties.name;
}

std::size_t FreeMemory() {
  std::size_t free = 0;
  std::size_t total = 0;
  Check(cudaMemGetInfo(&free, &total), "GPU memory");
  return free;
}

}  // namespace windtunnel::measure
