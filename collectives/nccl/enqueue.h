#pragma once
// Stage 7 for collectives: algorithm, channels, threads and chunks of a call, as NCCL's planner
// decides them. Source: NVIDIA/nccl, src/enqueue.cc, by tag.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/nccl/connect.h"
#include "collectives/nccl/constants.h"
#include "collectives/nccl/tuner_plugin.h"
#include "collectives/nccl/tuning.h"
#include "collectives/types.h"

namespace windtunnel::nccl {

/// One call as a user makes it. `count` has NCCL's meaning: all-gather and reduce-scatter per rank,
/// others the buffer. Ops of calls that do not reduce are ignored.
struct CollectiveCall {
  Function function = Function::kAllReduce;
  std::uint64_t count = 0;
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;
};

/// Size NCCL's model and choice go by: the buffer, for all-gather and reduce-scatter the large one.
std::uint64_t ModelBytes(const CollectiveCall& call, int rank_count);

/// What the network threads of a rank are told for one channel.
struct ProxyWork {
  std::int64_t steps = 0;
  std::int64_t chunk_bytes = 0;
  std::int64_t slice_bytes = 0;
  int chunk_steps = 1;
  int slice_steps = 1;
  std::int64_t slot_bytes = 0;  ///< Largest message; PAT: the bytes of the channel.
  friend bool operator==(const ProxyWork&, const ProxyWork&) = default;
};

/// The part of a call on one channel.
struct ChannelShare {
  std::uint64_t count = 0;  ///< Elements; bytes for all-gather and broadcast.
  std::int64_t chunk_bytes = 0;
  std::int64_t last_chunk_bytes = 0;  ///< Chunk of the last loop; 0 when not planned (2.22+).
  ProxyWork proxy;
};

struct Candidate {
  AlgorithmId algorithm;
  Protocol protocol;
  float time_us;
};

/// NCCL's decision for one call.
struct CallPlan {
  CollectiveCall call;
  std::uint64_t model_bytes = 0;
  AlgorithmId algorithm = AlgorithmId::kRing;
  Protocol protocol = Protocol::kSimple;
  float time_us = 0;     ///< NCCL's own estimate.
  int max_channels = 0;  ///< Channels of the choice; a small call may use fewer.
  int warps = 0;         ///< Of 32 threads, per channel.
  int channel_lo = 0;    ///< First and last channel used.
  int channel_hi = 0;
  /// All channels share one loop over the data, chunk by chunk (in-network algorithms; everything
  /// up to 2.19): `shares` has one entry with the count of the whole call. Else one entry per
  /// channel.
  bool interleaved = false;
  std::vector<ChannelShare> shares;
  std::vector<int> scattered_channels;  ///< 2.18 to 2.21: channels of a group's call that are no
                                        ///< range, in order of the shares.
  std::vector<Candidate> candidates;    ///< All that are switched on, before type and op rules.

  /// Channels used, in order of the shares.
  std::vector<int> ChannelList() const {
    if (!scattered_channels.empty()) return scattered_channels;
    std::vector<int> out;
    for (int c = channel_lo; c <= channel_hi; ++c) out.push_back(c);
    return out;
  }
  const ChannelShare& ShareOf(int channel) const {
    return interleaved ? shares[0] : shares[static_cast<std::size_t>(channel - channel_lo)];
  }
};

/// Calls of one group in the order NCCL lays them over the channels.
struct GroupPlan {
  struct Task {
    std::size_t call = 0;  ///< Index in the group.
    int launch = 0;        ///< Number of the kernel launch.
    CallPlan plan;
  };
  std::vector<Task> tasks;
  int launches = 0;
  float last_estimate_us = 0;  ///< Of the choice made last.
};

/// All that planning reads. References must outlive the planner.
struct PlanningContext {
  const Job& job;
  const Connections& connections;
  const TuningTable& tuning;
  const Environment& environment;
  const Constants& constants;
  const TunerPlugin* tuner = nullptr;
};

/// Outcome of the choice for a call, or for calls taken together.
struct Choice {
  AlgorithmId algorithm = AlgorithmId::kRing;
  Protocol protocol = Protocol::kSimple;
  float time_us = 0;
  int max_channels = 0;
  int threads = 0;
};
/// Cheapest combination that may run the call and its channels and threads; nothing when none is
/// left. `bytes`: the model's size; `pipelined` as in ModelTime. `candidates` (optional) receives
/// the times of all that are on. `channels` (before 2.22): channels to choose for, 0 = all.
std::optional<Choice> Choose(const PlanningContext& context, const CollectiveCall& call,
                             std::uint64_t bytes, int pipelined,
                             std::vector<Candidate>* candidates = nullptr, int channels = 0);
/// Channels and threads of a choice for a call of `bytes`; starts from `channels` when not 0.
void SizeChannels(const PlanningContext& context, std::uint64_t bytes, Choice& choice,
                  int channels = 0);

/// Chunk size and network steps of `bytes` (in the sense of the model) on `channels` channels.
struct Chunking {
  std::int64_t chunk_bytes = 0;  ///< Of data.
  ProxyWork proxy;
};
Chunking PlanChunks(const PlanningContext& context, const CollectiveCall& call,
                    AlgorithmId algorithm, Protocol protocol, int channels, std::uint64_t bytes);

/// Plans a group; a single call is a group of one. Versions from 2.22 on: traffic cells.
/// @throws ConfigError when nothing is left to choose for a call.
GroupPlan PlanCells(const PlanningContext& context, std::span<const CollectiveCall> calls);
/// The same for 2.20 and 2.21: even parts.
GroupPlan PlanEvenParts(const PlanningContext& context, std::span<const CollectiveCall> calls);
/// The same for 2.10 to 2.19: interleaved chunks.
GroupPlan PlanInterleaved(const PlanningContext& context, std::span<const CollectiveCall> calls);

/// True for all-gather and broadcast, which NCCL plans in bytes.
constexpr bool CountsBytes(Function f) {
  return f == Function::kAllGather || f == Function::kBroadcast;
}
/// Number of the proxies' loop over the data: steps of a loop and chunks it moves.
struct LoopShape {
  int steps = 1;
  int chunks = 1;
};
LoopShape LoopOf(const Connections& connections, Function function, AlgorithmId algorithm);
[[noreturn]] void ThrowNothingLeft(const PlanningContext& context, const CollectiveCall& call);

}  // namespace windtunnel::nccl
