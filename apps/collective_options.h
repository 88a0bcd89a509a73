#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/simulation.h"
#include "collectives/types.h"
#include "sim/units.h"

namespace windtunnel {

/// Flags of `windtunnel collective`, after checking.
struct CollectiveOptions {
  Function function = Function::kAllReduce;
  std::string topology;
  std::uint32_t nodes = 0;  ///< 0 = as the file says.
  Bytes smallest = MiB(32);
  Bytes largest = MiB(32);
  double factor = 1;    ///< -f; 1 = steps are added.
  Bytes step = MiB(1);  ///< -i
  std::vector<ReduceOp> ops{ReduceOp::kSum};
  std::vector<DataType> types{DataType::kFloat};
  std::vector<std::int64_t> roots{0};
  bool all_roots = false;
  std::uint32_t iterations = 20;
  std::uint32_t warmups = 1;
  std::uint32_t gpus_per_thread = 1;
  bool check = true;
  /// Largest memory of all ranks' buffers for which real elements are moved; above it the plan is
  /// proved with symbols instead.
  Bytes check_limit = MiB(256);
  bool blocking = false;
  bool explain = false;
  std::string json_file, csv_file, trace_file, vcd_file, flows_file;
  Bytes trace_limit = MiB(64);
  bool verbose = false;
  SimulationOptions simulation;
};

/// @throws ConfigError naming the flag.
CollectiveOptions ParseCollectiveOptions(const std::vector<std::string>& arguments);
/// The sizes that nccl-tests would run, in order.
std::vector<Bytes> SizesOf(const CollectiveOptions& options);
/// Turns a size in bytes into the count argument of the call, as nccl-tests does (rounded down to
/// whole elements, all_gather, reduce_scatter and alltoall to 16 bytes per rank).
CollectiveRequest RequestOf(Function function, DataType type, ReduceOp op, Rank root, Bytes size,
                            std::uint32_t ranks);

}  // namespace windtunnel
