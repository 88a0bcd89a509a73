#pragma once
// The figures of NCCL's model, read from catalogue/nccl/{tuning,planning}.yaml, for one version.

#include <array>
#include <cstdint>
#include <vector>

#include "collectives/types.h"
#include "interconnect/nccl/nccl_version.h"

namespace windtunnel::nccl {

constexpr std::size_t kAlgorithmCount = 7;
constexpr std::size_t kProtocolCount = 3;
constexpr std::size_t Index(AlgorithmId a) { return static_cast<std::size_t>(a); }
constexpr std::size_t Index(Protocol p) { return static_cast<std::size_t>(p); }

/// GPU generations that have rows of their own in the tables, and what a hop crosses.
enum class GpuRow : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
enum class HopKind : std::uint8_t { kNvLink, kPci, kNet };

/// Per protocol. Latencies in us.
using PerProtocol = std::array<double, kProtocolCount>;
using PerAlgorithm = std::array<PerProtocol, kAlgorithmCount>;
/// [GPU row][1 node, 2 nodes, 3 or more]. GB/s.
using BandwidthTable = std::array<std::array<double, 3>, 4>;

/// Tables of the cost model: the meaning of each stands beside it in catalogue/nccl/tuning.yaml.
struct TuningConstants {
  PerAlgorithm base_latency{};
  std::array<PerAlgorithm, 3> hop_latency{};  ///< By HopKind.
  BandwidthTable ll_bandwidth{};
  BandwidthTable ring_ll128_bandwidth{};
  BandwidthTable tree_ll128_bandwidth{};
  BandwidthTable tree_bandwidth{};
  BandwidthTable nvls_tree_bandwidth{};
  std::array<double, 4> nvls_efficiency{};
  std::array<std::vector<double>, kProtocolCount> tree_correction;
  struct Factors {
    double ring_ll = 0;
    double ring_ll_one_node_others = 0;
    double ring_ll128 = 0;
    double ring_ll128_one_rank_per_node = 0;
    double tree = 0;
    double tree_ll_divisor = 0;
    double tree_ll128_one_node = 0;
    double tree_ll128 = 0;
    double tree_plain_pattern = 0;
    double pat = 0;
    double collnet_direct_hopper = 0;
    double collnet_direct_serialisation = 0;
    double ring_plateau_old_gpu = 0;
    double ring_plateau = 0;
    double bandwidth_limit_sm80 = 0;
    double ll_over_nodes = 0;
    double net_overhead_us = 0;
    double net_overhead_amd_us = 0;
    double net_overhead_simple = 0;
  } factors;
};

/// Sizes and limits: the meaning of each stands beside it in catalogue/nccl/planning.yaml.
struct PlanningConstants {
  int max_channels = 0;
  int buffer_steps = 0;
  std::array<std::int64_t, kProtocolCount> buffer{};
  std::int64_t buffer_simple_arm = 0;
  std::array<int, kProtocolCount> max_threads{};
  int max_block_threads = 0;
  int min_warps = 0;
  std::array<int, kProtocolCount> thread_threshold{};
  int collnet_thread_threshold = 0;
  double narrow_ring_gbps = 0;
  int narrow_ring_threads = 0;
  int max_collnet_local_ranks = 0;
  int max_nvls_local_ranks = 0;
  int nvls_channels_sm90 = 0;
  int nvls_channels_sm100 = 0;
  int nvls_channels_sm100_one_node = 0;
  std::int64_t nvls_chunk = 0;
  std::int64_t nvls_tree_chunk = 0;
  std::int64_t nvls_chunk_slow_net = 0;
  int nvls_min_gpus = 0;
  int collectives_per_batch = 0;
  std::int64_t min_channel_traffic = 0;
  int ll_traffic_factor = 0;
  int net_peer_channels = 0;
  int net_channel_gbps = 0;
  std::int64_t p2p_chunk_net = 0;
  std::int64_t p2p_chunk_pci = 0;
  std::int64_t p2p_chunk_nvlink = 0;
  std::int64_t p2p_ll_threshold = 0;
  int p2p_per_batch = 0;
  int collnet_node_threshold = 0;
};

struct Constants {
  NcclVersion version;
  TuningConstants tuning;
  PlanningConstants planning;
};

/// The oldest version the tables describe. Older ones are refused.
constexpr NcclVersion kOldestNcclVersion{2, 10, 3};

/// Loaded once per version and kept; thread-safe. A version between two entries has the figures of
/// the earlier one. @throws ConfigError for versions before `kOldestNcclVersion`, or when the data
/// files are damaged (file, line, field).
const Constants& ConstantsOf(const NcclVersion& version);

}  // namespace windtunnel::nccl
