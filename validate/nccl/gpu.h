#pragma once
// The little of CUDA and NCCL that the measurements share: errors, owned memory, streams, timing.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace windtunnel::measure {

/// Something on the GPU, in the driver or in NCCL went wrong; the text is one line for the user.
class GpuError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// There is nothing to measure on: no driver, no GPU, too few of them.
class MissingGpu : public GpuError {
 public:
  using GpuError::GpuError;
};

/// @throws GpuError naming `what` when the call failed.
void Check(cudaError_t status, const char* what);
void Check(ncclResult_t status, const char* what);
void Check(cublasStatus_t status, const char* what);

/// Memory of the current GPU, of the host (pinned), freed at the end.
class Buffer {
 public:
  enum class Place { kDevice, kPinnedHost };
  explicit Buffer(std::size_t bytes, Place place = Place::kDevice);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  Place place_;
};

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  cudaStream_t get() const { return stream_; }
  void Wait() const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// Time between two marks in a stream, microseconds, resolution about half of one.
class EventTimer {
 public:
  EventTimer();
  ~EventTimer();
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;
  void Start(cudaStream_t stream);
  /// Waits for the end.
  double StopMicroseconds(cudaStream_t stream);

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

inline double MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// GPUs of this machine. @throws MissingGpu in one line where there is no driver or no GPU.
int GpuCount();
/// As cudaGetDeviceProperties names it: "NVIDIA H200".
std::string GpuName(int gpu);
/// Free bytes on the current GPU.
std::size_t FreeMemory();

}  // namespace windtunnel::measure
