#pragma once
// Readers of the logs beside nccl-tests tables. Each gives what stands in the log and nothing
// guessed: rows that are cut or torn are left out, look-alike lines stay unread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/logs/log_text.h"

namespace windtunnel::validate {

/// One test of OSU, perftest or an XLA table: sizes and the value the test is about.
struct SizeSeries {
  struct Row {
    std::uint64_t bytes = 0;
    double value = 0;
    std::uint64_t line = 0;
  };
  std::string name;  ///< "MPI-CUDA Allreduce Latency", "ib_write_bw"...
  std::string unit;  ///< "us", "MB/s", "Gb/s", as printed.
  std::vector<Row> rows;
};

/// ib_write_bw and kin (average bandwidth), ib_write_lat and kin (typical time). Rows need all
/// their columns; glued numbers of two decimals are taken apart.
std::vector<SizeSeries> ReadPerftest(std::string_view text);
/// Every test of an OSU log; the first value column (average).
std::vector<SizeSeries> ReadOsu(std::string_view text);

/// Rows of a JAX or XLA pipe table: size text in binary units, duration in us or ms.
struct XlaTable {
  struct Row {
    std::string size_text;
    double duration_us = 0;
    double throughput_gbps = 0;  ///< Gbit/s.
    double busbw_gbps = 0;       ///< Gbit/s.
  };
  std::string collective;
  std::uint32_t devices = 0;
  std::vector<Row> rows;
};
XlaTable ReadXlaCollectives(std::string_view text);

/// One matrix of p2pBandwidthLatencyTest or nvbandwidth.
struct CopyMatrix {
  std::string title;
  std::string unit;  ///< "GB/s", "us", "ns".
  std::uint64_t line = 0;
  std::vector<std::vector<std::optional<double>>> cells;  ///< N/A is nothing.
  std::optional<double> sum;
};
struct CopyLog {
  std::vector<CopyMatrix> matrices;
  std::uint32_t devices = 0;  ///< Listed.
  std::size_t can_access = 0, cannot_access = 0;
  std::vector<std::string> failures;  ///< Asserts and error lines.
  std::vector<std::string> warnings;  ///< More GPUs in a matrix than devices, ...
};
CopyLog ReadCopyMatrices(std::string_view text);

/// nvidia-smi topo -m.
struct TopologyMatrix {
  std::vector<std::string> columns;  ///< Names of the header: GPUs, then NICs.
  std::vector<std::string> rows;
  std::vector<std::vector<std::string>> cells;  ///< "X", "NV18", "PIX", ...
  std::size_t gpus = 0, nics = 0;               ///< In the header.
  bool peer_status = false;                     ///< topo -p2p: OK and NS, no distances.
  std::map<std::string, std::size_t> counts;    ///< Cells by kind, without X.
};
struct TopologyLog {
  std::vector<TopologyMatrix> matrices;
  std::map<std::string, std::string> nic_names;  ///< "NIC0" to "mlx5_0".
};
TopologyLog ReadTopologyMatrices(std::string_view text);

/// NCCL_DEBUG=INFO.
struct InfoLog {
  std::size_t info_lines = 0;
  std::string version;
  std::uint32_t ranks = 0;                 ///< nranks, where it is printed.
  std::vector<std::string> channel_lists;  ///< "Channel 00/24 : 0 1 2 3".
  std::size_t tree_lines = 0;
  std::map<std::string, std::size_t> links;  ///< By path, NIC numbers as n; "(torn)".
  std::string channels;                      ///< "24 coll channels, ...".
  std::size_t all_rings = 0, all_trees = 0, complete = 0;
  /// "Broadcast 1024 B: RING LL 0..0" and "4096 B: algo 0 proto 0 25.87 us".
  std::vector<std::string> calls;
  /// Tuning table: "Broadcast Ring LL128" to (us, GB/s).
  std::map<std::string, std::pair<double, double>> tuning;
};
InfoLog ReadInfoLog(std::string_view text);

/// Throughput lines of TensorFlow, Keras and Horovod.
struct ThroughputLog {
  std::vector<double> per_gpu;  ///< img/sec per GPU, by iteration.
  std::optional<double> mean_per_gpu, total;
  std::uint32_t gpus = 0;
  std::vector<double> examples_per_second;  ///< Each message once.
  std::vector<double> steps_per_second;
};
ThroughputLog ReadThroughput(std::string_view text);

/// What a log of a kind without collective times holds, for people.
std::string DescribeLog(std::string_view text, LogKind kind);

}  // namespace windtunnel::validate
