#include "validate/nccl/device_runs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "sim/error.h"
#include "validate/nccl/gpu.h"
#include "validate/nccl/kernels.h"
#include "validate/nccl/record.h"

namespace windtunnel::measure {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::vector<int> ChosenGpus(const Options& options) {
  const int count = GpuCount();
  std::vector<int> gpus = options.gpus;
  if (gpus.empty()) {
    gpus.resize(static_cast<std::size_t>(count));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  for (const int gpu : gpus)
    if (gpu >= count)
      throw ConfigError({.field = "--gpus",
                         .value = std::to_string(gpu),
                         .problem = "there is no such GPU",
                         .expected = "0 to " + std::to_string(count - 1)});
  return gpus;
}

Json NewRecord(const std::string& kind, const std::vector<int>& gpus) {
  Json record;
  record["id"] = kind + "-" + ShortGpuName(GpuName(gpus.front()));
  record["kind"] = kind;
  record.update(MachineFacts(gpus));
  record["rows"] = Json::array();
  return record;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Median over five rounds of the time of one of `options.repeats` runs of `work` in a row.
double TimeInStream(const Stream& stream, const Options& options,
                    const std::function<void()>& work) {
  for (int i = 0; i < options.warmups; ++i) work();
  stream.Wait();
  std::vector<double> rounds;
  EventTimer timer;
  for (int round = 0; round < 5; ++round) {
    timer.Start(stream.get());
    for (int i = 0; i < options.repeats; ++i) work();
    rounds.push_back(timer.StopMicroseconds(stream.get()) / options.repeats);
  }
  Check(cudaGetLastError(), "kernel");
  return Median(rounds);
}

/// Sizes that fit `copies` times into what is free on the current GPU, whole float4s.
std::vector<std::uint64_t> FittingSizes(const Options& options, std::uint64_t copies) {
  const std::uint64_t most = FreeMemory() / 10 * 9 / copies;
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t size : SizesOf(options))
    if (size >= 16 && size <= most) sizes.push_back(size / 16 * 16);
  if (sizes.empty())
    throw ConfigError({.field = "-e", .problem = "no size of at least 16 bytes fits the GPU"});
  return sizes;
}

double Rate(double bytes, double time_us) { return bytes / time_us / 1e3; }

}  // namespace

void MeasureLaunch(const Options& options) {
  const std::vector<int> gpus = ChosenGpus(options);
  Check(cudaSetDevice(gpus.front()), "choosing a GPU");
  Json record = NewRecord("launch", gpus);
  const Stream stream;
  constexpr int kSamples = 2000;
  std::vector<double> call, end_to_end;
  for (int i = 0; i < kSamples + 100; ++i) {
    const Clock::time_point start = Clock::now();
    LaunchNothing(stream.get());
    const double returned = MicrosecondsSince(start);
    stream.Wait();
    if (i < 100) continue;  // Clocks and caches warm up.
    call.push_back(returned);
    end_to_end.push_back(MicrosecondsSince(start));
  }
  Check(cudaGetLastError(), "kernel");
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kSamples; ++i) LaunchNothing(stream.get());
  stream.Wait();
  const double in_a_row = MicrosecondsSince(start) / kSamples;
  record["rows"].push_back({{"what", "call returns"}, {"median_us", Median(call)}});
  record["rows"].push_back(
      {{"what", "launch to end of an empty kernel"}, {"median_us", Median(end_to_end)}});
  record["rows"].push_back({{"what", "kernels in a row, each"}, {"mean_us", in_a_row}});
  WriteRecord(options.folder, record);
}

void MeasureHbm(const Options& options) {
  const std::vector<int> gpus = ChosenGpus(options);
  Check(cudaSetDevice(gpus.front()), "choosing a GPU");
  Json record = NewRecord("hbm", gpus);
  const std::vector<std::uint64_t> sizes = FittingSizes(options, 3);
  const Buffer a(sizes.back()), b(sizes.back()), c(sizes.back());
  for (const Buffer* buffer : {&a, &b, &c})
    Check(cudaMemset(buffer->data(), 0, buffer->bytes()), "clearing memory");
  const Stream stream;
  struct Entry {
    StreamKind kind;
    const char* name;
    int arrays;  ///< Arrays that are read or written once.
  };
  for (const Entry& entry :
       {Entry{StreamKind::kRead, "read", 1}, Entry{StreamKind::kWrite, "write", 1},
        Entry{StreamKind::kCopy, "copy", 2}, Entry{StreamKind::kTriad, "triad", 3}}) {
    for (const std::uint64_t size : sizes) {
      const double time_us = TimeInStream(stream, options, [&] {
        LaunchStream(entry.kind, a.data(), b.data(), c.data(), size, stream.get());
      });
      record["rows"].push_back({{"stream", entry.name},
                                {"bytes", size},
                                {"time_us", time_us},
                                {"GBps", Rate(static_cast<double>(size) * entry.arrays, time_us)}});
    }
  }
  WriteRecord(options.folder, record);
}

void MeasureHostCopies(const Options& options) {
  const std::vector<int> gpus = ChosenGpus(options);
  Json record = NewRecord("copy", gpus);
  for (const int gpu : gpus) {
    Check(cudaSetDevice(gpu), "choosing a GPU");
    const std::vector<std::uint64_t> sizes = FittingSizes(options, 2);
    const Buffer device(sizes.back());
    const Buffer pinned(sizes.back(), Buffer::Place::kPinnedHost);
    std::vector<char> pageable(sizes.back());
    const Stream stream;
    for (const bool is_pinned : {true, false}) {
      void* host = is_pinned ? pinned.data() : pageable.data();
      for (const bool to_device : {true, false}) {
        for (const std::uint64_t size : sizes) {
          const double time_us = TimeInStream(stream, options, [&] {
            Check(
                cudaMemcpyAsync(to_device ? device.data() : host, to_device ? host : device.data(),
                                size, cudaMemcpyDefault, stream.get()),
                "copy");
          });
          record["rows"].push_back({{"gpu", gpu},
                                    {"direction", to_device ? "host to GPU" : "GPU to host"},
                                    {"host_memory", is_pinned ? "pinned" : "pageable"},
                                    {"bytes", size},
                                    {"time_us", time_us},
                                    {"GBps", Rate(static_cast<double>(size), time_us)}});
        }
      }
    }
  }
  WriteRecord(options.folder, record);
}

void MeasurePeerCopies(const Options& options) {
  const std::vector<int> gpus = ChosenGpus(options);
  if (gpus.size() < 2) throw MissingGpu("pairs of GPUs are to be measured, and one alone is here");
  Json record = NewRecord("p2p", gpus);
  record["collective"] = "p2p";
  record["dtype"] = "bytes";
  record["ranks"] = gpus.size();
  constexpr std::uint64_t kLarge = 256ull << 20;
  constexpr std::uint64_t kSmall = 16;
  Json bandwidth = Json::array(), both_ways = Json::array(), latency = Json::array();
  Json direct = Json::array();
  for (const int from : gpus) {
    Json bandwidth_row = Json::array(), both_row = Json::array(), latency_row = Json::array();
    Json direct_row = Json::array();
    for (const int to : gpus) {
      int possible = from == to ? 1 : 0;
      if (from != to) {
        Check(cudaDeviceCanAccessPeer(&possible, from, to), "peer access");
        for (const auto& [one, other] : {std::pair{from, to}, std::pair{to, from}}) {
          Check(cudaSetDevice(one), "choosing a GPU");
          if (possible != 0 && cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess)
            cudaGetLastError();  // Enabled by an earlier pair.
        }
      }
      Check(cudaSetDevice(to), "choosing a GPU");
      const Buffer target(kLarge), target_back(kLarge);
      const Stream back;
      Check(cudaSetDevice(from), "choosing a GPU");
      const Buffer source(kLarge), source_back(kLarge);
      const Stream stream;
      const auto copy = [&](std::uint64_t size) {
        Check(cudaMemcpyPeerAsync(target.data(), to, source.data(), from, size, stream.get()),
              "copy");
      };
      const double large_us = TimeInStream(stream, options, [&] { copy(kLarge); });
      const double small_us = TimeInStream(stream, options, [&] { copy(kSmall); });
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < options.repeats; ++i) {
        copy(kLarge);
        Check(cudaMemcpyPeerAsync(source_back.data(), from, target_back.data(), to, kLarge,
                                  back.get()),
              "copy");
      }
      stream.Wait();
      back.Wait();
      const double both_us = MicrosecondsSince(start) / options.repeats;
      bandwidth_row.push_back(Rate(static_cast<double>(kLarge), large_us));
      both_row.push_back(Rate(2.0 * static_cast<double>(kLarge), both_us));
      latency_row.push_back(small_us);
      direct_row.push_back(possible != 0);
    }
    bandwidth.push_back(bandwidth_row);
    both_ways.push_back(both_row);
    latency.push_back(latency_row);
    direct.push_back(direct_row);
  }
  record["matrices"] = {{"gpus", gpus},
                        {"peer_access", direct},
                        {"one_way_GBps", bandwidth},
                        {"both_ways_added_GBps", both_ways},
                        {"copy_of_16_bytes_us", latency}};
  record["notes"] = "rows: source, columns: target; the diagonal is a copy within one GPU";
  record["quality"] = "unknown";
  WriteRecord(options.folder, record);
}

void MeasureGemm(const Options& options) {
  struct Entry {
    const char* name;
    cudaDataType_t type;
    cublasComputeType_t compute;
    std::size_t bytes;
    Element element;
  };
  constexpr std::array<Entry, 5> kEntries = {
      {{"fp64", CUDA_R_64F, CUBLAS_COMPUTE_64F, 8, Element::kDouble},
       {"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, Element::kFloat},
       {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, Element::kFloat},
       {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, Element::kHalf},
       {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, Element::kBfloat16}}};
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  const bool all = options.type == "float" || options.type == "all";  // The flag's default.
  if (!all && std::ranges::find(names, options.type) == names.end())
    throw ConfigError({.field = "-d",
                       .value = options.type,
                       .problem = "unknown type of a product",
                       .expected = "one of " + JoinNames(names),
                       .nearest = NearestName(options.type, names)});
  const std::vector<int> gpus = ChosenGpus(options);
  Check(cudaSetDevice(gpus.front()), "choosing a GPU");
  Json record = NewRecord("gemm", gpus);
  const Stream stream;
  cublasHandle_t handle = nullptr;
  Check(cublasCreate(&handle), "cuBLAS start-up");
  Check(cublasSetStream(handle, stream.get()), "cuBLAS");
  // Squares show the plateau; the rest are layers of transformers (hidden sizes 1024 to 8192, four
  // times that inside) and one that is not a multiple of a tile.
  constexpr std::array<std::array<int, 3>, 16> kShapes = {{{256, 256, 256},
                                                           {512, 512, 512},
                                                           {1024, 1024, 1024},
                                                           {2048, 2048, 2048},
                                                           {4096, 4096, 4096},
                                                           {8192, 8192, 8192},
                                                           {4096, 1024, 1024},
                                                           {4096, 4096, 1024},
                                                           {4096, 1024, 4096},
                                                           {8192, 28672, 8192},
                                                           {8192, 8192, 28672},
                                                           {128, 8192, 8192},
                                                           {16, 8192, 8192},
                                                           {1, 8192, 8192},
                                                           {1000, 1000, 1000},
                                                           {4097, 4097, 4097}}};
  for (const Entry& entry : kEntries) {
    if (!all && options.type != entry.name) continue;
    for (const auto& [m, n, k] : kShapes) {
      const auto area = [&](int rows, int columns) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * entry.bytes;
      };
      if (area(m, k) + area(k, n) + area(m, n) > FreeMemory() / 10 * 9) continue;
      const Buffer a(area(m, k)), b(area(k, n)), c(area(m, n));
      // Zeros would draw less power than real data and keep the clock higher.
      for (const Buffer* buffer : {&a, &b})
        LaunchFill(entry.element, buffer->data(), buffer->bytes() / entry.bytes, 1, 0,
                   stream.get());
      const double one_double = 1, zero_double = 0;
      const float one = 1, zero = 0;
      const bool is_double = entry.compute == CUBLAS_COMPUTE_64F;
      const double time_us = TimeInStream(stream, options, [&] {
        Check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k,
                           is_double ? static_cast<const void*>(&one_double) : &one, a.data(),
                           entry.type, m, b.data(), entry.type, k,
                           is_double ? static_cast<const void*>(&zero_double) : &zero, c.data(),
                           entry.type, m, entry.compute, CUBLAS_GEMM_DEFAULT),
              "product");
      });
      record["rows"].push_back({{"type", entry.name},
                                {"m", m},
                                {"n", n},
                                {"k", k},
                                {"time_us", time_us},
                                {"TFLOPS", 2.0 * m * n * k / time_us / 1e6}});
    }
  }
  cublasDestroy(handle);
  record["notes"] = "operands are whole numbers from 0 to 3, column by column, neither transposed";
  WriteRecord(options.folder, record);
}

}  // namespace windtunnel::measure
