// 2.10 to 2.19: the channels of a call share one loop over the data; the calls of a group go to the
// channels with the least work.
#include <algorithm>

#include "collectives/nccl/enqueue.h"

namespace windtunnel::nccl {
namespace {

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

class InterleavedPlanner {
 public:
  InterleavedPlanner(const PlanningContext& context, std::span<const CollectiveCall> calls)
      : context_(context),
        comm_(context.connections),
        calls_(calls),
        load_(static_cast<std::size_t>(std::max(comm_.channel_count, comm_.nvls_channels)), 0) {}

  GroupPlan Run() {
    PickChannelBytes();
    for (std::size_t begin = 0; begin < calls_.size();) {
      std::size_t end = begin + 1;
      while (end < calls_.size() && calls_[end].function == calls_[begin].function &&
             calls_[end].type == calls_[begin].type && calls_[end].op == calls_[begin].op)
        ++end;
      if (end - begin == 1) {
        PlanOne(begin);
      } else {
        PlanTogether(begin, end);
      }
      begin = end;
    }
    out_.launches = 1;
    return std::move(out_);
  }

 private:
  // Bytes a call should bring for each channel it takes: less when the group is small.
  void PickChannelBytes() {
    constexpr std::uint64_t kPerRank = std::uint64_t{1} << 21;
    constexpr std::uint64_t kLeast = 512;
    std::uint64_t total = 0;
    for (const CollectiveCall& call : calls_) total += ModelBytes(call, comm_.rank_count());
    channel_bytes_ = kPerRank * static_cast<std::uint64_t>(std::min(16, comm_.rank_count()));
    while (total < channel_bytes_ * static_cast<std::uint64_t>(comm_.channel_count) &&
           channel_bytes_ > kLeast)
      channel_bytes_ /= 2;
  }
  int ChannelsFor(std::uint64_t bytes, int most) const {
    // Before 2.19 a call that fills its channels exactly takes one more.
    const std::uint64_t wanted = context_.constants.version < NcclVersion{2, 19, 1}
                                     ? bytes / channel_bytes_ + 1
                                     : DivideUp(bytes, channel_bytes_);
    return static_cast<int>(std::clamp<std::uint64_t>(wanted, 1, static_cast<std::uint64_t>(most)));
  }
  bool Nvls(AlgorithmId a) const { return a == AlgorithmId::kNvls || a == AlgorithmId::kNvlsTree; }

  void PlanOne(std::size_t i) {
    CallPlan plan;
    const std::uint64_t bytes = ModelBytes(calls_[i], comm_.rank_count());
    const auto choice = Choose(context_, calls_[i], bytes, 1, &plan.candidates);
    if (!choice) ThrowNothingLeft(context_, calls_[i]);
    Place(i, *choice, std::move(plan));
  }

  void PlanTogether(std::size_t begin, std::size_t end) {
    CollectiveCall sum = calls_[begin];
    int wanted = 0;
    for (std::size_t k = begin + 1; k < end; ++k) {
      sum.count += calls_[k].count;
      wanted += ChannelsFor(calls_[k].count * SizeOf(calls_[k].type), comm_.channel_count);
    }
    const int channels = std::min(comm_.channel_count, wanted);
    const int pipelined = (wanted + channels - 1) / channels;
    std::vector<Candidate> candidates;
    const auto choice = Choose(context_, sum, ModelBytes(sum, comm_.rank_count()), pipelined,
                               &candidates, channels);
    if (!choice) ThrowNothingLeft(context_, sum);
    const int most = Nvls(choice->algorithm) ? comm_.nvls_channels : comm_.channel_count;
    for (std::size_t k = begin; k < end; ++k) {
      Choice own = *choice;
      own.max_channels = ChannelsFor(ModelBytes(calls_[k], comm_.rank_count()), most);
      CallPlan plan;
      plan.candidates = candidates;
      Place(k, own, std::move(plan));
    }
  }

  void Place(std::size_t i, const Choice& choice, CallPlan plan) {
    plan.call = calls_[i];
    plan.model_bytes = ModelBytes(calls_[i], comm_.rank_count());
    plan.algorithm = choice.algorithm;
    plan.protocol = choice.protocol;
    plan.time_us = choice.time_us;
    // Before 2.14 the estimate is given for the channels that are used.
    if (context_.constants.version < NcclVersion{2, 14, 3}) {
      const auto time = [&](AlgorithmId algorithm, Protocol protocol, float otherwise) {
        return ModelTime(context_.tuning, comm_, context_.constants, plan.call.function, algorithm,
                         protocol, plan.model_bytes, 1, choice.max_channels)
            .value_or(otherwise);
      };
      plan.time_us = time(plan.algorithm, plan.protocol, choice.time_us);
      for (Candidate& candidate : plan.candidates)
        candidate.time_us = time(candidate.algorithm, candidate.protocol, candidate.time_us);
    }
    plan.max_channels = choice.max_channels;
    plan.warps = choice.threads / 32;
    plan.interleaved = true;
    const Chunking chunks = PlanChunks(context_, plan.call, plan.algorithm, plan.protocol,
                                       plan.max_channels, plan.model_bytes);
    const std::uint64_t count = CountsBytes(plan.call.function)
                                    ? calls_[i].count * SizeOf(calls_[i].type)
                                    : calls_[i].count;
    plan.shares = {{count, chunks.chunk_bytes, LastChunk(plan, chunks), chunks.proxy}};
    std::vector<int> channels = LeastLoaded(
        plan.max_channels, Nvls(plan.algorithm) ? comm_.nvls_channels : comm_.channel_count);
    for (const int c : channels)
      load_[static_cast<std::size_t>(c)] +=
          plan.model_bytes / static_cast<std::uint64_t>(plan.max_channels);
    std::sort(channels.begin(), channels.end());
    plan.channel_lo = channels.front();
    plan.channel_hi = channels.back();
    if (plan.channel_hi - plan.channel_lo + 1 != static_cast<int>(channels.size()))
      plan.scattered_channels = std::move(channels);
    out_.last_estimate_us = plan.time_us;
    out_.tasks.push_back({i, 0, std::move(plan)});
  }

  // Chunk of the last loop, where the plan fixes it.
  std::int64_t LastChunk(const CallPlan& plan, const Chunking& chunks) const {
    const bool tree = plan.algorithm == AlgorithmId::kTree;
    const bool ring = plan.algorithm == AlgorithmId::kRing;
    const std::int64_t element =
        CountsBytes(plan.call.function) ? 1 : static_cast<std::int64_t>(SizeOf(plan.call.type));
    if (plan.protocol == Protocol::kLl) {
      const LoopShape loop = LoopOf(comm_, plan.call.function, plan.algorithm);
      const std::int64_t parts = std::int64_t{plan.max_channels} * loop.chunks;
      const std::int64_t slice =
          comm_.buffer[Index(Protocol::kLl)] / context_.constants.planning.buffer_steps / 2;
      const auto bytes = static_cast<std::int64_t>(plan.model_bytes);
      const std::int64_t rest = bytes % (parts * slice);
      const std::int64_t align = std::int64_t{plan.warps} * 32 * 8;
      const std::int64_t last = ((rest + parts - 1) / parts + align - 1) / align * align;
      return last / element * element;
    }
    if (ring) return 0;
    if (tree && plan.protocol == Protocol::kLl128)
      return chunks.proxy.chunk_bytes * 15 / (16 * element) * element;
    return chunks.chunk_bytes / element * element;
  }

  // The channels with the least work, the first ones where equal; found as NCCL finds them.
  std::vector<int> LeastLoaded(int wanted, int most) const {
    std::vector<int> least;
    const auto load = [&](int c) { return load_[static_cast<std::size_t>(c)]; };
    std::size_t fullest = 0;
    const auto find_fullest = [&] {
      fullest = 0;
      for (std::size_t b = 1; b < least.size(); ++b)
        if (load(least[fullest]) < load(least[b])) fullest = b;
    };
    for (int c = 0; c < wanted; ++c) least.push_back(c);
    find_fullest();
    for (int c = wanted; c < most; ++c) {
      if (load(c) >= load(least[fullest])) continue;
      least[fullest] = c;
      find_fullest();
    }
    return least;
  }

  const PlanningContext& context_;
  const Connections& comm_;
  std::span<const CollectiveCall> calls_;
  std::uint64_t channel_bytes_ = 0;
  std::vector<std::uint64_t> load_;
  GroupPlan out_;
};

}  // namespace

GroupPlan PlanInterleaved(const PlanningContext& context, std::span<const CollectiveCall> calls) {
  return InterleavedPlanner(context, calls).Run();
}

}  // namespace windtunnel::nccl
