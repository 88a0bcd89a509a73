// 2.20 and 2.21: each call of a group is cut in aligned parts; the calls fill the channels one
// behind the other, largest first, up to an equal number of bytes.
#include <algorithm>
#include <tuple>

#include "collectives/nccl/enqueue.h"

namespace windtunnel::nccl {
namespace {

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
std::uint64_t RoundUp(std::uint64_t a, std::uint64_t b) { return DivideUp(a, b) * b; }

// Order of NCCL's enumerations.
int FunctionOrder(Function f) {
  constexpr Function kOrder[] = {Function::kBroadcast, Function::kReduce, Function::kAllGather,
                                 Function::kReduceScatter, Function::kAllReduce};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), f) - kOrder);
}
int TypeOrder(DataType t) {
  constexpr DataType kOrder[] = {DataType::kInt8,     DataType::kUint8,   DataType::kInt32,
                                 DataType::kUint32,   DataType::kInt64,   DataType::kUint64,
                                 DataType::kHalf,     DataType::kFloat,   DataType::kDouble,
                                 DataType::kBfloat16, DataType::kFp8E4m3, DataType::kFp8E5m2};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), t) - kOrder);
}

class EvenPlanner {
 public:
  EvenPlanner(const PlanningContext& context, std::span<const CollectiveCall> calls)
      : context_(context), comm_(context.connections), calls_(calls) {}

  GroupPlan Run() {
    SortCalls();
    for (std::size_t begin = 0; begin < order_.size();) {
      std::size_t end = begin + 1;
      while (end < order_.size() && SameKind(order_[begin], order_[end])) ++end;
      ChooseRange(begin, end);
      begin = end;
    }
    usable_ = std::min(usable_, accumulated_);
    std::uint64_t total = 0;
    for (const std::size_t i : order_)
      if (!InNetwork(plans_[i])) total += calls_[i].count * SizeOf(calls_[i].type);
    constexpr std::uint64_t kAlignment = 16;
    most_ = RoundUp(DivideUp(total, static_cast<std::uint64_t>(usable_)), kAlignment);
    filled_.assign(static_cast<std::size_t>(usable_), 0);
    for (const std::size_t i : order_)
      if (!InNetwork(plans_[i])) PlaceParts(i, total);
    for (const std::size_t i : order_)
      if (InNetwork(plans_[i])) PlaceInterleaved(i);
    for (std::size_t i = 0; i < plans_.size(); ++i)
      out_.tasks.push_back({i, 0, std::move(plans_[i])});
    out_.launches = 1;
    return std::move(out_);
  }

 private:
  auto KeyOf(std::size_t i) const {
    return std::make_tuple(FunctionOrder(calls_[i].function), TypeOrder(calls_[i].type),
                           static_cast<int>(calls_[i].op), calls_[i].count);
  }
  bool SameKind(std::size_t a, std::size_t b) const {
    return calls_[a].function == calls_[b].function && calls_[a].type == calls_[b].type &&
           calls_[a].op == calls_[b].op;
  }
  bool InNetwork(const CallPlan& plan) const {
    return plan.algorithm == AlgorithmId::kCollNetDirect ||
           plan.algorithm == AlgorithmId::kCollNetChain ||
           (plan.algorithm == AlgorithmId::kNvls && comm_.node_count() > 1);
  }
  // Each call goes in front of the first that is not larger: falling sizes, later calls first.
  void SortCalls() {
    plans_.resize(calls_.size());
    aggregate_.resize(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) order_.push_back(calls_.size() - 1 - i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return KeyOf(a) > KeyOf(b); });
  }

  void ChooseRange(std::size_t begin, std::size_t end) {
    CollectiveCall sum = calls_[order_[begin]];
    sum.count = 0;
    for (std::size_t k = begin; k < end; ++k) sum.count += calls_[order_[k]].count;
    const std::uint64_t bytes = ModelBytes(sum, comm_.rank_count());
    std::vector<Candidate> candidates;
    const auto choice = Choose(context_, sum, bytes, 1, &candidates);
    if (!choice) ThrowNothingLeft(context_, sum);
    out_.last_estimate_us = choice->time_us;
    const bool nvls =
        choice->algorithm == AlgorithmId::kNvls || choice->algorithm == AlgorithmId::kNvlsTree;
    usable_ = std::max(usable_, nvls ? comm_.nvls_channels : comm_.channel_count_before_nvls);
    for (std::size_t k = begin; k < end; ++k) {
      const std::size_t i = order_[k];
      CallPlan& plan = plans_[i];
      plan.call = calls_[i];
      plan.model_bytes = ModelBytes(calls_[i], comm_.rank_count());
      plan.algorithm = choice->algorithm;
      plan.protocol = choice->protocol;
      plan.time_us = choice->time_us;
      plan.warps = choice->threads / 32;
      plan.candidates = candidates;
      Choice own = *choice;
      SizeChannels(context_, plan.model_bytes, own);
      plan.max_channels = own.max_channels;
      accumulated_ += own.max_channels;
      aggregate_[i] = bytes;
    }
  }

  // Elements a part is a multiple of.
  static std::uint64_t AlignOf(const CallPlan& plan) {
    const auto warps = static_cast<std::uint64_t>(plan.warps);
    const std::uint64_t element = ElementOf(plan);
    switch (plan.protocol) {
      case Protocol::kLl:
        return 8 / element * 32 * warps;
      case Protocol::kLl128:
        return 480 / element * warps;
      case Protocol::kSimple:
        break;
    }
    return 4096 / element;
  }
  static std::uint64_t ElementOf(const CallPlan& plan) {
    return CountsBytes(plan.call.function) ? 1 : SizeOf(plan.call.type);
  }

  // Parts a loop of an all-reduce is cut in; 0 where every chunk is whole.
  std::uint64_t PartsOfLoop(const CallPlan& plan) const {
    if (plan.call.function != Function::kAllReduce) return 0;
    const LoopShape loop = LoopOf(comm_, plan.call.function, plan.algorithm);
    return loop.chunks > 1 || plan.algorithm == AlgorithmId::kNvls ||
                   plan.algorithm == AlgorithmId::kNvlsTree
               ? static_cast<std::uint64_t>(loop.chunks)
               : 0;
  }

  ChannelShare ShareOf(const CallPlan& plan, std::uint64_t count, const Chunking& chunks) const {
    const std::uint64_t element = ElementOf(plan);
    const std::uint64_t chunk = static_cast<std::uint64_t>(chunks.chunk_bytes) / element;
    const std::uint64_t unit = AlignOf(plan);
    const std::uint64_t parts = PartsOfLoop(plan);
    ChannelShare share{count, static_cast<std::int64_t>(chunk * element),
                       static_cast<std::int64_t>(chunk * element), chunks.proxy};
    if (parts > 0) {
      const std::uint64_t rest = count % (parts * chunk);
      share.last_chunk_bytes =
          static_cast<std::int64_t>(RoundUp(DivideUp(rest, parts), unit) * element);
    }
    const LoopShape loop = LoopOf(comm_, plan.call.function, plan.algorithm);
    const std::uint64_t at_once = chunk * std::max<std::uint64_t>(1, parts);
    share.proxy.steps =
        static_cast<std::int64_t>(DivideUp(count, at_once)) * loop.steps * chunks.proxy.chunk_steps;
    return share;
  }

  void PlaceParts(std::size_t i, std::uint64_t total) {
    CallPlan& plan = plans_[i];
    const std::uint64_t element = ElementOf(plan);
    const std::uint64_t work = calls_[i].count * SizeOf(calls_[i].type);
    // 2.20 takes the model's size of all calls chosen together for the size of this one.
    const std::uint64_t weight =
        context_.constants.version >= NcclVersion{2, 21, 5} ? work : aggregate_[i];
    const int channels =
        total == 0
            ? 1
            : static_cast<int>(DivideUp(weight * static_cast<std::uint64_t>(usable_), total));
    const Chunking chunks =
        PlanChunks(context_, plan.call, plan.algorithm, plan.protocol, channels, aggregate_[i]);
    const std::uint64_t unit = AlignOf(plan);
    std::uint64_t left = work / element;
    for (std::size_t c = 0; c < filled_.size() && left > 0; ++c) {
      if (most_ <= filled_[c]) continue;
      const std::uint64_t bytes = std::min(most_ - filled_[c], left * element);
      const std::uint64_t count = std::min(RoundUp(DivideUp(bytes, element), unit), left);
      plan.scattered_channels.push_back(static_cast<int>(c));
      plan.shares.push_back(ShareOf(plan, count, chunks));
      filled_[c] += count * element;
      left -= count;
    }
    if (plan.scattered_channels.empty()) return;
    plan.channel_lo = plan.scattered_channels.front();
    plan.channel_hi = plan.scattered_channels.back();
    plan.max_channels = usable_;
    // One range without a gap needs no list.
    if (plan.channel_hi - plan.channel_lo + 1 == static_cast<int>(plan.scattered_channels.size()))
      plan.scattered_channels.clear();
  }

  void PlaceInterleaved(std::size_t i) {
    CallPlan& plan = plans_[i];
    const int channels = std::min(plan.max_channels, usable_);
    Chunking chunks = PlanChunks(context_, plan.call, plan.algorithm, plan.protocol,
                                 plan.max_channels, plan.model_bytes);
    plan.interleaved = true;
    plan.channel_hi = channels - 1;
    plan.shares = {{CountsBytes(plan.call.function) ? calls_[i].count * SizeOf(calls_[i].type)
                                                    : calls_[i].count,
                    chunks.chunk_bytes, 0, chunks.proxy}};
    plan.max_channels = usable_;
  }

  const PlanningContext& context_;
  const Connections& comm_;
  std::span<const CollectiveCall> calls_;
  std::vector<std::size_t> order_;
  std::vector<CallPlan> plans_;
  std::vector<std::uint64_t> aggregate_;  // Model bytes of the calls chosen together.
  int usable_ = 0;
  int accumulated_ = 0;
  std::uint64_t most_ = 0;
  std::vector<std::uint64_t> filled_;
  GroupPlan out_;
};

}  // namespace

GroupPlan PlanEvenParts(const PlanningContext& context, std::span<const CollectiveCall> calls) {
  return EvenPlanner(context, calls).Run();
}

}  // namespace windtunnel::nccl
