#pragma once
// What NCCL does not check and answers with a hang or wrong data: that the calls of all ranks fit
// together. The texts carry the code a program would see from NCCL (nccl.h, ncclResult_t).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel {

/// One call of one rank on one communicator, as the program makes it.
struct RankCall {
  enum class Kind : std::uint8_t { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  Function function = Function::kAllReduce;  ///< Collectives.
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t count = 0;
  Rank root = 0;  ///< Broadcast, reduce, gather, scatter.
  Rank peer = 0;  ///< Send and receive.
};

/// The calls of a job: per rank, in program order.
struct JobCalls {
  std::vector<std::vector<RankCall>> ranks;
  std::vector<std::string> gpus;  ///< Name of each rank's GPU; empty = not known.
};

/// @throws ConfigError (NCCL: ncclInvalidArgument, ncclInvalidUsage) for what NCCL refuses: a root
/// or peer out of range, two ranks on one GPU, a message to oneself without its other half.
/// @throws SimulationError for what hangs or corrupts: a rank that makes fewer calls, another
/// order, another function, count, type, operator or root, a send without its receive. The text
/// names the call, the ranks and both values.
void CheckJob(const JobCalls& job);

}  // namespace windtunnel
