#pragma once
// Stage 6: latency and bandwidth of every (function, algorithm, protocol), and NCCL's estimate of a
// call. Source: NVIDIA/nccl, src/graph/tuning.cc; the figures lie in catalogue/nccl/tuning.yaml.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/nccl/connect.h"
#include "collectives/nccl/constants.h"
#include "collectives/types.h"
#include "interconnect/nccl/environment.h"

namespace windtunnel::nccl {

/// The collectives NCCL tunes: the first five of `Function`.
constexpr std::size_t kTunedFunctionCount = 5;
constexpr std::string_view kTunedFunctionNames[] = {"AllReduce", "AllGather", "ReduceScatter",
                                                    "Broadcast", "Reduce"};
constexpr std::size_t Index(Function f) { return static_cast<std::size_t>(f); }

template <class T>
using AlgorithmTable = std::array<std::array<T, kProtocolCount>, kAlgorithmCount>;

/// What a communicator knows before the first call. Single precision, as in NCCL: the choice
/// depends on the last bit.
struct TuningTable {
  struct Entry {
    float latency = 0;    ///< us
    float bandwidth = 0;  ///< GB/s of algorithm bandwidth; 0 = switched off.
  };
  std::array<AlgorithmTable<Entry>, kTunedFunctionCount> entries{};
  /// Threads per block before small calls get fewer.
  AlgorithmTable<int> max_threads{};
  /// Bytes per thread below which channels and threads are taken away.
  AlgorithmTable<std::int64_t> thread_thresholds{};

  /// Ring bandwidths that 2.19 to 2.23 fall back to when nothing else may run a call.
  std::array<std::array<float, kProtocolCount>, kTunedFunctionCount> ring_reserve{};

  const Entry& At(Function f, AlgorithmId a, Protocol p) const {
    return entries[Index(f)][Index(a)][Index(p)];
  }
};

/// Which algorithms and protocols NCCL_ALGO and NCCL_PROTO leave, per function. Before 2.24 one
/// list for all functions; from 2.24 "list;function:list;...", where ^ excludes.
struct UserChoice {
  enum class Use : std::uint8_t { kNo, kYes, kWhereSafe };
  std::array<std::array<Use, kAlgorithmCount>, kTunedFunctionCount> algorithm;
  std::array<std::array<Use, kProtocolCount>, kTunedFunctionCount> protocol;
};
/// @throws ConfigError for names NCCL refuses (from 2.24; older versions ignore them).
UserChoice ReadUserChoice(const Environment& environment, const NcclVersion& version);

TuningTable Tune(const Job& job, const Connections& connections, const Environment& environment,
                 const Constants& constants);

/// NCCL's model time of one call in us, or nothing when the combination is off. `bytes`: size in
/// the sense of the model (the large buffer of all-gather and reduce-scatter). `pipelined`:
/// operations estimated to run one after another on a channel. `channels` (before 2.22): channels
/// the bandwidth is scaled to, 0 = all.
std::optional<float> ModelTime(const TuningTable& table, const Connections& connections,
                               const Constants& constants, Function function, AlgorithmId algorithm,
                               Protocol protocol, std::uint64_t bytes, int pipelined,
                               int channels = 0);

/// The same for the ring held in reserve.
std::optional<float> ReserveTime(const TuningTable& table, const Connections& connections,
                                 const Constants& constants, Function function, Protocol protocol,
                                 std::uint64_t bytes, int pipelined);

/// The table as NCCL_DEBUG_SUBSYS=TUNING prints it, one line per element.
std::vector<std::string> FormatTuningTable(const TuningTable& table, const NcclVersion& version);

}  // namespace windtunnel::nccl
