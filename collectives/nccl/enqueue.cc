#include "collectives/nccl/enqueue.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

constexpr int kWarp = 32;
constexpr std::int64_t kKiB = 1024;

// The switch can combine these. Averages are scaled by the GPU, so they do not pass.
bool NvlsCanReduce(const CollectiveCall& call) {
  const bool min_max = call.op == ReduceOp::kMin || call.op == ReduceOp::kMax;
  switch (call.type) {
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kHalf:
    case DataType::kBfloat16:
      return call.op == ReduceOp::kSum || min_max;
    case DataType::kFloat:
    case DataType::kDouble:
      return call.op == ReduceOp::kSum;
    default:
      return false;
  }
}

// What the network can combine: everything but 8-bit types (ASSUMED of the plugin; true of the one
// the reference data were recorded with). It sees an average as a sum.
bool CollNetCanReduce(const CollectiveCall& call) { return SizeOf(call.type) > 1; }

// Combinations that may run a call, apart from what is switched off by a bandwidth of 0.
class Eligibility {
 public:
  Eligibility(const PlanningContext& context, const CollectiveCall& call)
      : comm_(context.connections),
        planning_(context.constants.planning),
        version_(context.constants.version),
        call_(call) {
    const bool gather = call.function == Function::kAllGather;
    const bool reduces = Reduces(call.function);
    collnet_ = comm_.flags.collnet && (!reduces || CollNetCanReduce(call));
    // All-gather in 2.20 and 2.21 asks whether the switch can add its bytes.
    const bool asks = reduces || (Since(20, 3) && !Since(22, 3));
    const bool can = gather && asks ? false : NvlsCanReduce(call);
    nvls_ = comm_.flags.nvls && (can || (gather && !asks));
  }

  bool Allows(AlgorithmId a) const {
    const bool gathers =
        call_.function == Function::kAllGather || call_.function == Function::kReduceScatter;
    const bool several_nodes = comm_.node_count() > 1;
    const bool many_locals = comm_.max_local_ranks > planning_.max_collnet_local_ranks;
    switch (a) {
      case AlgorithmId::kCollNetDirect:
        return collnet_ && !(Since(23, 4) && many_locals);
      case AlgorithmId::kCollNetChain:
        return collnet_ && !(Since(28, 3) && many_locals);
      case AlgorithmId::kNvls:
      case AlgorithmId::kNvlsTree:
        if (!nvls_) return false;
        if (Since(27, 3)) {
          if (gathers && OwnLocals() > planning_.max_nvls_local_ranks) return false;
        } else if (a == AlgorithmId::kNvls && gathers) {
          if (several_nodes) return false;
          if (Since(25, 1) && comm_.rank_count() > planning_.max_nvls_local_ranks) return false;
        }
        return a != AlgorithmId::kNvls || collnet_ || !several_nodes;
      case AlgorithmId::kPat:
        return !(call_.function == Function::kReduceScatter && call_.op == ReduceOp::kAvg);
      case AlgorithmId::kTree:
      case AlgorithmId::kRing:
        break;
    }
    return true;
  }

 private:
  bool Since(int minor, int patch) const { return version_ >= NcclVersion{2, minor, patch}; }
  int OwnLocals() const { return static_cast<int>(comm_.node_ranks[0].size()); }

  const Connections& comm_;
  const PlanningConstants& planning_;
  const NcclVersion version_;
  const CollectiveCall& call_;
  bool collnet_ = false;
  bool nvls_ = false;
};

struct Steps {
  int chunk = 1;
  int slice = 1;
};
// Chunks of ring Simple move several buffer steps at a time.
Steps StepsOf(Function function, AlgorithmId algorithm, Protocol protocol) {
  if (protocol != Protocol::kSimple || algorithm != AlgorithmId::kRing) return {};
  if (function == Function::kBroadcast || function == Function::kReduce) return {};
  return {4, 2};
}

// Chunk sizes follow from how many chunks a channel has to move: long pipelines want small ones.
class ChunkRules {
 public:
  ChunkRules(const PlanningContext& context, AlgorithmId algorithm, Protocol protocol,
             Function function, std::int64_t channels, std::int64_t bytes)
      : context_(context),
        comm_(context.connections),
        version_(context.constants.version),
        algorithm_(algorithm),
        protocol_(protocol),
        function_(function),
        channels_(channels),
        bytes_(bytes) {}

  std::int64_t Apply(std::int64_t chunk, std::int64_t step) {
    chunk_ = chunk;
    switch (algorithm_) {
      case AlgorithmId::kCollNetDirect:
        HalveByDepth(comm_.collnet_direct_depth, comm_.collnet_heads, 64, 8, 8);
        break;
      case AlgorithmId::kCollNetChain:
        chunk_ = std::min(256 * kKiB, step);
        HalveByDepth(comm_.collnet_chain_depth, 1, 64, 8, 1);
        break;
      case AlgorithmId::kNvls:
        Nvls();
        break;
      case AlgorithmId::kNvlsTree:
        NvlsTree();
        break;
      case AlgorithmId::kTree:
        if (protocol_ == Protocol::kLl128) TreeLl128();
        if (protocol_ == Protocol::kSimple && !Since(20, 3))
          HalveByDepth(comm_.tree_depth, 1, 8, 4, 1);
        break;
      case AlgorithmId::kPat:
        Pat();
        break;
      case AlgorithmId::kRing:
        break;
    }
    return chunk_;
  }

 private:
  bool Since(int minor, int patch) const { return version_ >= NcclVersion{2, minor, patch}; }

  // Halves while a channel has fewer than `many x depth` chunks per head and the chunk is above
  // 128 KiB, then 64 KiB, then 32 KiB.
  void HalveByDepth(int depth, std::int64_t heads, int to_128k, int to_64k, int to_32k) {
    const auto halve = [&](int many, std::int64_t lowest) {
      while (bytes_ / (channels_ * heads * chunk_) < std::int64_t{depth} * many && chunk_ > lowest)
        chunk_ /= 2;
    };
    halve(to_128k, 128 * kKiB);
    halve(to_64k, 64 * kKiB);
    halve(to_32k, 32 * kKiB);
  }

  void Limit(std::int64_t times, std::int64_t to) {
    const std::int64_t at_once = channels_ * comm_.nvls.head_count * chunk_;
    if (bytes_ < times * at_once && chunk_ > to) chunk_ = to;
  }
  void Nvls() {
    std::int64_t most = comm_.nvls_chunk;
    const float in_network =
        context_.tuning.At(Function::kAllReduce, AlgorithmId::kNvls, Protocol::kSimple).bandwidth;
    if (comm_.node_count() > 1 && in_network < 150)
      most = std::min(most, context_.constants.planning.nvls_chunk_slow_net);
    chunk_ = std::min(chunk_, most);
    Limit(64, 64 * kKiB);
    Limit(8, 32 * kKiB);
    Limit(2, 16 * kKiB);
  }
  void NvlsTree() {
    if (Since(21, 5)) chunk_ = comm_.nvls_chunk;
    if (Since(19, 1)) chunk_ = std::min(chunk_, comm_.nvls_tree_chunk);
    Limit(32, 256 * kKiB);
    Limit(16, 128 * kKiB);
    Limit(4, 64 * kKiB);
    Limit(1, 32 * kKiB);
  }
  void TreeLl128() {
    const int nodes = comm_.node_count();
    const float per_node = static_cast<float>(comm_.rank_count()) / static_cast<float>(nodes);
    const auto hops =
        static_cast<float>(1 + Log2Floor(static_cast<std::uint64_t>(nodes)) + 0.1 * per_node);
    const auto halve = [&](float many, std::int64_t lowest) {
      while (static_cast<float>(bytes_ / (channels_ * chunk_)) < hops * many / per_node &&
             chunk_ > lowest)
        chunk_ /= 2;
    };
    halve(64, 128 * kKiB);
    halve(16, 32 * kKiB);
  }
  void Pat() {
    const std::int64_t many = function_ == Function::kAllGather ? 32 : 16;
    while (chunk_ * channels_ * many > bytes_ && chunk_ > 64 * kKiB) chunk_ /= 2;
  }

  const PlanningContext& context_;
  const Connections& comm_;
  const NcclVersion version_;
  const AlgorithmId algorithm_;
  const Protocol protocol_;
  const Function function_;
  const std::int64_t channels_;
  const std::int64_t bytes_;
  std::int64_t chunk_ = 0;
};

std::int64_t GrainOf(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return 16;
    case Protocol::kLl128:
      return 1920;  // A warp's lines: 16 of 120 bytes of data.
    case Protocol::kSimple:
      break;
  }
  return 512;
}

}  // namespace

void SizeChannels(const PlanningContext& context, std::uint64_t bytes, Choice& choice,
                  int channels_to_use) {
  const Connections& comm = context.connections;
  const NcclVersion& version = context.constants.version;
  const std::size_t a = Index(choice.algorithm);
  const std::size_t p = Index(choice.protocol);
  const bool nvls =
      choice.algorithm == AlgorithmId::kNvls || choice.algorithm == AlgorithmId::kNvlsTree;
  const bool direct = choice.algorithm == AlgorithmId::kCollNetDirect;
  // 2.20 and 2.21 keep the channels that were added for NVLS out of other algorithms.
  int channels = version >= NcclVersion{2, 20, 3} && version < NcclVersion{2, 22, 3}
                     ? comm.channel_count_before_nvls
                     : comm.channel_count;
  if (channels_to_use > 0) channels = channels_to_use;
  int threads = context.tuning.max_threads[a][p];
  std::int64_t threshold = context.tuning.thread_thresholds[a][p];
  const auto small = [&](std::int64_t heads) {
    return static_cast<std::int64_t>(bytes) < channels * threads * heads * threshold;
  };
  if (direct) {
    const std::int64_t heads = comm.collnet_heads;
    bool again = true;
    for (int step = 16; step >= 1 && again; step /= 2) {
      while ((again = small(heads)) && channels > step) {
        if (channels == step + step / 2) threshold /= 2;
        --channels;
      }
    }
  } else if (nvls) {
    const bool in_network = comm.node_count() > 1 && choice.algorithm == AlgorithmId::kNvls;
    channels = version >= NcclVersion{2, 28, 3} && in_network
                   ? std::min(comm.nvls_channels, comm.channel_count)
                   : comm.nvls_channels;
  } else {
    while (channels >= 2 && small(1)) --channels;
    while (small(1) && threads % 128 == 0) threads /= 2;
  }
  const auto& planning = context.constants.planning;
  if (choice.protocol == Protocol::kSimple) {
    if (choice.algorithm == AlgorithmId::kRing) threads += kWarp;  // A warp to synchronise.
    if (choice.algorithm == AlgorithmId::kTree) threads += 4 * kWarp;
    if (version < NcclVersion{2, 14, 3} && direct) threads += 4 * kWarp;
  }
  threads = std::max(threads, planning.min_warps * kWarp);
  const bool whole_block =
      choice.algorithm == AlgorithmId::kPat ||
      (choice.algorithm == AlgorithmId::kTree && version >= NcclVersion{2, 22, 3});
  if (whole_block) threads = planning.max_block_threads;
  choice.max_channels = channels;
  choice.threads = threads;
}

std::uint64_t ModelBytes(const CollectiveCall& call, int rank_count) {
  const std::uint64_t bytes = call.count * SizeOf(call.type);
  const bool gathers =
      call.function == Function::kAllGather || call.function == Function::kReduceScatter;
  return gathers ? bytes * static_cast<std::uint64_t>(rank_count) : bytes;
}

void ThrowNothingLeft(const PlanningContext& context, const CollectiveCall& call) {
  throw ConfigError({.field = "NCCL_ALGO, NCCL_PROTO",
                     .value = context.environment.Get("NCCL_ALGO").value_or("") + ", " +
                              context.environment.Get("NCCL_PROTO").value_or(""),
                     .problem = "leave no algorithm for " + std::string(Name(call.function)) +
                                " of " + std::string(Name(call.type)) +
                                " (NCCL answers: invalid usage);",
                     .expected = "a combination that can run it"});
}

std::optional<Choice> Choose(const PlanningContext& context, const CollectiveCall& call,
                             std::uint64_t bytes, int pipelined, std::vector<Candidate>* candidates,
                             int channels) {
  const Eligibility eligibility(context, call);
  const Connections& comm = context.connections;
  const NcclVersion& version = context.constants.version;
  const bool fp8 = call.type == DataType::kFp8E4m3 || call.type == DataType::kFp8E5m2;
  Choice best;
  float least = 3600000000.0F;  // us; NCCL's bound of an hour.
  bool found = false;
  const TunerPlugin::Rule* rule = context.tuner == nullptr
                                      ? nullptr
                                      : context.tuner->Find(call.function, bytes, comm.node_count(),
                                                            comm.rank_count(), pipelined);
  for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
    const auto algorithm = static_cast<AlgorithmId>(a);
    for (std::size_t p = 0; p < kProtocolCount; ++p) {
      const auto protocol = static_cast<Protocol>(p);
      auto time = ModelTime(context.tuning, comm, context.constants, call.function, algorithm,
                            protocol, bytes, pipelined, channels);
      if (!time) continue;
      if (candidates != nullptr) candidates->push_back({algorithm, protocol, *time});
      if (!eligibility.Allows(algorithm)) continue;
      // Long rings of additions lose what precision fp8 has: taken only when nothing else is left.
      if (version >= NcclVersion{2, 24, 3} && fp8 && algorithm == AlgorithmId::kRing &&
          comm.rank_count() > 8)
        *time *= 1024.0F;
      if (rule != nullptr && rule->algorithm == algorithm && rule->protocol == protocol)
        time = 0.0F;
      if (*time >= least) continue;
      least = *time;
      best.algorithm = algorithm;
      best.protocol = protocol;
      found = true;
    }
  }
  if (!found) {
    // From 2.19 to 2.23 the ring is kept in reserve.
    for (std::size_t p = 0; p < kProtocolCount; ++p) {
      const auto protocol = static_cast<Protocol>(p);
      const auto time = ReserveTime(context.tuning, comm, context.constants, call.function,
                                    protocol, bytes, pipelined);
      if (!time || *time >= least) continue;
      least = *time;
      best.algorithm = AlgorithmId::kRing;
      best.protocol = protocol;
      found = true;
    }
  }
  if (!found) return std::nullopt;
  best.time_us = least;
  SizeChannels(context, bytes, best, channels);
  if (rule != nullptr && rule->channels > 0) best.max_channels = rule->channels;
  return best;
}

LoopShape LoopOf(const Connections& connections, Function function, AlgorithmId algorithm) {
  const int ranks = connections.rank_count();
  switch (algorithm) {
    case AlgorithmId::kRing:
      if (function == Function::kBroadcast || function == Function::kReduce) return {1, 1};
      return {(function == Function::kAllReduce ? 2 : 1) * (ranks - 1), ranks};
    case AlgorithmId::kNvls:
    case AlgorithmId::kNvlsTree:
      return {1, connections.nvls.head_count};
    case AlgorithmId::kCollNetDirect:
      return {1, connections.collnet_heads};
    case AlgorithmId::kTree:
    case AlgorithmId::kCollNetChain:
    case AlgorithmId::kPat:
      break;
  }
  return {1, 1};
}

Chunking PlanChunks(const PlanningContext& context, const CollectiveCall& call,
                    AlgorithmId algorithm, Protocol protocol, int channels, std::uint64_t bytes) {
  const Connections& comm = context.connections;
  const NcclVersion& version = context.constants.version;
  const int buffer_steps = context.constants.planning.buffer_steps;
  std::int64_t step = comm.buffer[Index(protocol)] / buffer_steps;
  const Steps steps = StepsOf(call.function, algorithm, protocol);
  std::int64_t chunk = step * steps.chunk;
  // Data bytes of a buffer: half of an LL line is flags, one word of sixteen in LL128.
  const auto data_of = [&](std::int64_t size) {
    if (protocol == Protocol::kLl) return size / 2;
    return protocol == Protocol::kLl128 ? size / 16 * 15 : size;
  };
  if (algorithm == AlgorithmId::kCollNetChain)
    step = comm.buffer[Index(Protocol::kSimple)] / buffer_steps;
  ChunkRules rules(context, algorithm, protocol, call.function, channels,
                   static_cast<std::int64_t>(bytes));
  // Before 2.20 the rules and the network side count flags too.
  const bool with_flags = version < NcclVersion{2, 20, 3};
  if (!with_flags) chunk = data_of(chunk);
  chunk = rules.Apply(chunk, step * steps.chunk);
  const std::int64_t network_chunk = chunk;
  if (with_flags) chunk = data_of(chunk);
  if (version >= NcclVersion{2, 22, 3}) chunk = chunk / GrainOf(protocol) * GrainOf(protocol);
  WT_CHECK(chunk > 0) << "empty chunk for " << Name(algorithm) << "/" << Name(protocol);

  const LoopShape loop = LoopOf(comm, call.function, algorithm);
  const std::int64_t loop_bytes = std::int64_t{channels} * loop.chunks * chunk;
  const std::int64_t loops = (static_cast<std::int64_t>(bytes) + loop_bytes - 1) / loop_bytes;
  Chunking out;
  out.chunk_bytes = chunk;
  out.proxy.steps = loop.steps * loops * steps.chunk;
  out.proxy.chunk_steps = steps.chunk;
  out.proxy.slice_steps = steps.slice;
  out.proxy.chunk_bytes = with_flags ? network_chunk : chunk;
  out.proxy.slice_bytes = out.proxy.chunk_bytes / steps.chunk * steps.slice;
  out.proxy.slot_bytes = step * steps.slice;
  if (algorithm == AlgorithmId::kPat)
    out.proxy.slot_bytes = (static_cast<std::int64_t>(bytes) + channels - 1) / channels;
  return out;
}

}  // namespace windtunnel::nccl
