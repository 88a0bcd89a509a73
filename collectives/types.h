#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace windtunnel {

using Rank = std::uint32_t;

/// Collective and point-to-point patterns, with the names of nccl-tests.
enum class Function : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kAllToAllV,
  kGather,
  kScatter,
  kSendRecv,
  kHypercube
};
/// NCCL's element types. fp8 is named, so that asking for it is answered cleanly.
enum class DataType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kHalf,
  kFloat,
  kDouble,
  kBfloat16,
  kFp8E4m3,
  kFp8E5m2
};
enum class ReduceOp : std::uint8_t { kSum, kProd, kMin, kMax, kAvg };
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
enum class AlgorithmId : std::uint8_t {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat
};  ///< NCCL's order.

constexpr std::string_view kFunctionNames[] = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",   "alltoall",
    "alltoallv",  "gather",     "scatter",        "sendrecv",  "hypercube"};
constexpr std::string_view kDataTypeNames[] = {"int8",   "uint8",    "int32",  "uint32",
                                               "int64",  "uint64",   "half",   "float",
                                               "double", "bfloat16", "f8e4m3", "f8e5m2"};
constexpr std::uint32_t kDataTypeSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr std::string_view kReduceOpNames[] = {"sum", "prod", "min", "max", "avg"};
constexpr std::string_view kProtocolNames[] = {"LL", "LL128", "Simple"};
constexpr std::string_view kAlgorithmNames[] = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};

constexpr std::string_view Name(Function f) { return kFunctionNames[static_cast<std::size_t>(f)]; }
constexpr std::string_view Name(DataType t) { return kDataTypeNames[static_cast<std::size_t>(t)]; }
constexpr std::string_view Name(ReduceOp o) { return kReduceOpNames[static_cast<std::size_t>(o)]; }
constexpr std::string_view Name(Protocol p) { return kProtocolNames[static_cast<std::size_t>(p)]; }
constexpr std::string_view Name(AlgorithmId a) {
  return kAlgorithmNames[static_cast<std::size_t>(a)];
}
constexpr std::uint32_t SizeOf(DataType t) { return kDataTypeSizes[static_cast<std::size_t>(t)]; }

/// busbw / algbw of nccl-tests (doc/PERFORMANCE.md): all-reduce 2(n-1)/n; all-gather,
/// reduce-scatter, alltoall, alltoallv, gather, scatter, hypercube (n-1)/n; others 1. 0 for one
/// rank where it has n-1.
constexpr double BusBandwidthFactor(Function f, std::uint32_t ranks) {
  const double n = ranks;
  switch (f) {
    case Function::kAllReduce:
      return 2 * (n - 1) / n;
    case Function::kBroadcast:
    case Function::kReduce:
    case Function::kSendRecv:
      return 1;
    default:
      return (n - 1) / n;
  }
}
/// True when the call combines elements.
constexpr bool Reduces(Function f) {
  return f == Function::kAllReduce || f == Function::kReduceScatter || f == Function::kReduce;
}

}  // namespace windtunnel
