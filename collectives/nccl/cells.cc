// 2.22 and later: the calls of a group are laid one behind the other over the channels, in cells of
// equal traffic.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

#include "collectives/nccl/enqueue.h"
#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

constexpr std::uint64_t kCellGrain = 16;  // Bytes.

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

struct Task {
  std::size_t call = 0;
  std::uint64_t count = 0;  // In bytes for calls that are planned so.
  std::uint64_t element = 1;
  std::uint64_t traffic = 0;
  CallPlan plan;
  bool collnet = false;
  bool nvls = false;
};

std::uint64_t TrafficPerByte(Function function, int rank_count) {
  switch (function) {
    case Function::kAllReduce:
      return 2;
    case Function::kAllGather:
    case Function::kReduceScatter:
      return static_cast<std::uint64_t>(rank_count);
    default:
      return 1;
  }
}

// Number of the bucket of a size: units of 1 KiB, four buckets per power of two, everything from
// 1 GiB on in one.
int BucketOf(std::uint64_t traffic) {
  const std::uint64_t units = std::min<std::uint64_t>(traffic, std::uint64_t{1} << 30) >> 10;
  if (units < 4) return static_cast<int>(units);
  const int log = Log2Floor(units);
  return 4 * (log - 1) + static_cast<int>((units >> (log - 2)) & 3);
}

// Operators as the device distinguishes them: an average is a scaled sum.
int DeviceOp(const CollectiveCall& call) {
  if (!Reduces(call.function)) return 0;
  switch (call.op) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProd:
      return 1;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kAvg:
      break;
  }
  return 3;
}

// Functions and types of the symmetric kernels. Source: NVIDIA/nccl v2.29.2, src/sym_kernels.cc.
bool SymmetricKernelExists(const CollectiveCall& call) {
  if (call.function == Function::kAllGather) return true;
  if (call.function != Function::kAllReduce && call.function != Function::kReduceScatter)
    return false;
  switch (call.type) {
    case DataType::kFloat:
    case DataType::kHalf:
    case DataType::kBfloat16:
    case DataType::kFp8E4m3:
    case DataType::kFp8E5m2:
      return call.op == ReduceOp::kSum;
    default:
      return false;
  }
}

class CellPlanner {
 public:
  CellPlanner(const PlanningContext& context, std::span<const CollectiveCall> calls)
      : context_(context), comm_(context.connections), calls_(calls) {}

  GroupPlan Run() {
    MakeTasks();
    ChooseAll();
    std::array<std::vector<Task>, 4> bins;  // [in-network][NVLS], the order of the launch.
    for (Task& task : chosen_)
      bins[(task.collnet ? 2U : 0U) + (task.nvls ? 1U : 0U)].push_back(std::move(task));
    std::vector<Task> queue;
    for (auto& bin : bins)
      for (Task& task : bin) queue.push_back(std::move(task));
    std::size_t done = 0;
    while (done < queue.size()) {
      done += FillLaunch(std::span(queue).subspan(done));
      ++out_.launches;
    }
    return std::move(out_);
  }

 private:
  const PlanningConstants& planning() const { return context_.constants.planning; }
  std::uint64_t MinTraffic() const {
    return static_cast<std::uint64_t>(planning().min_channel_traffic);
  }

  void MakeTasks() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      Task task;
      task.call = i;
      task.count = calls_[i].count;
      task.element = SizeOf(calls_[i].type);
      if (CountsBytes(calls_[i].function)) {
        task.count *= task.element;
        task.element = 1;
      }
      task.traffic =
          task.count * task.element * TrafficPerByte(calls_[i].function, comm_.rank_count());
      tasks_.push_back(std::move(task));
    }
  }

  // Calls of one function, operator and type, small buckets first, in call order inside a bucket.
  // The kinds come in the order in which they first occur among the large ones.
  std::vector<std::vector<std::size_t>> SortByKind() const {
    std::vector<std::size_t> order(tasks_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return BucketOf(tasks_[a].traffic) > BucketOf(tasks_[b].traffic);
    });
    std::map<std::tuple<Function, int, DataType>, std::size_t> place;
    std::vector<std::vector<std::size_t>> kinds;
    for (const std::size_t i : order) {
      const CollectiveCall& call = calls_[i];
      const DataType type = CountsBytes(call.function) ? DataType::kInt8 : call.type;
      const auto [found, fresh] =
          place.try_emplace({call.function, DeviceOp(call), type}, kinds.size());
      if (fresh) kinds.emplace_back();
      kinds[found->second].push_back(i);
    }
    for (auto& kind : kinds) std::reverse(kind.begin(), kind.end());
    // From 2.29 on, on one node of NVLinks, calls that a symmetric kernel could run are first set
    // aside for it and come back behind the others, in reverse, when their buffers are not
    // registered.
    if (context_.constants.version >= NcclVersion{2, 29, 2} && comm_.node_count() == 1 &&
        comm_.flags.all_nvlink && comm_.flags.all_direct_p2p) {
      const auto symmetric = [&](const std::vector<std::size_t>& kind) {
        return SymmetricKernelExists(calls_[kind[0]]);
      };
      std::stable_partition(kinds.begin(), kinds.end(), std::not_fn(symmetric));
      for (auto& kind : kinds)
        if (symmetric(kind)) std::reverse(kind.begin(), kind.end());
    }
    return kinds;
  }

  void ChooseAll() {
    const int pipelined =
        static_cast<int>(DivideUp(tasks_.size(), static_cast<std::uint64_t>(comm_.channel_count)));
    for (const auto& kind : SortByKind()) {
      for (std::size_t begin = 0; begin < kind.size();) {
        // Calls within a factor of four of the smallest are chosen for together.
        std::size_t end = begin + 1;
        const Task& first = tasks_[kind[begin]];
        std::uint64_t count = first.count;
        while (end < kind.size() && tasks_[kind[end]].traffic < 4 * first.traffic)
          count += tasks_[kind[end++]].count;
        ChooseRange(std::span(kind).subspan(begin, end - begin), count, pipelined);
        begin = end;
      }
    }
  }

  void ChooseRange(std::span<const std::size_t> range, std::uint64_t count, int pipelined) {
    const CollectiveCall& call = calls_[range[0]];
    std::uint64_t bytes = count * tasks_[range[0]].element;
    if (call.function == Function::kAllGather || call.function == Function::kReduceScatter)
      bytes *= static_cast<std::uint64_t>(comm_.rank_count());
    std::vector<Candidate> candidates;
    const auto choice = Choose(context_, call, bytes, pipelined, &candidates);
    if (!choice) ThrowNothingLeft(context_, call);
    out_.last_estimate_us = choice->time_us;
    const bool nvls =
        choice->algorithm == AlgorithmId::kNvls || choice->algorithm == AlgorithmId::kNvlsTree;
    const bool collnet = choice->algorithm == AlgorithmId::kCollNetChain ||
                         choice->algorithm == AlgorithmId::kCollNetDirect ||
                         (choice->algorithm == AlgorithmId::kNvls && comm_.node_count() > 1);
    for (const std::size_t i : range) {
      Task& task = tasks_[i];
      if (choice->protocol == Protocol::kLl)
        task.traffic *= static_cast<std::uint64_t>(planning().ll_traffic_factor);
      task.nvls = nvls;
      task.collnet = collnet;
      task.plan.call = calls_[i];
      task.plan.model_bytes = ModelBytes(calls_[i], comm_.rank_count());
      task.plan.algorithm = choice->algorithm;
      task.plan.protocol = choice->protocol;
      task.plan.time_us = choice->time_us;
      task.plan.max_channels = choice->max_channels;
      task.plan.warps = choice->threads / 32;
      task.plan.candidates = candidates;
      chosen_.push_back(std::move(task));
    }
  }

  int MostChannels(const Task& task) const {
    if (!task.nvls) return comm_.channel_count;
    const bool cut = task.collnet && context_.constants.version >= NcclVersion{2, 28, 3};
    return cut ? std::min(comm_.channel_count, comm_.nvls_channels) : comm_.nvls_channels;
  }

  // Lays tasks over the channels until the launch is full; returns how many fitted.
  std::size_t FillLaunch(std::span<Task> queue) {
    std::array<std::uint64_t, 4> traffic{};
    std::array<int, 4> channels{};
    const auto kind_of = [](const Task& task) {
      return (task.collnet ? 2U : 0U) + (task.nvls ? 1U : 0U);
    };
    Budget budget;
    Batches batches;
    std::size_t fits = 0;
    for (const Task& task : queue) {
      if (!budget.Fits(static_cast<std::int64_t>(DivideUp(fits, 4)),
                       static_cast<std::int64_t>(fits + 1)))
        break;
      ++fits;
      const std::size_t kind = kind_of(task);
      traffic[kind] += std::max(MinTraffic(), task.traffic);
      channels[kind] = std::min(channels[kind] + task.plan.max_channels, MostChannels(task));
    }
    if (context_.constants.version < NcclVersion{2, 23, 4}) {
      traffic = {};
      for (const Task& task : queue.first(fits)) traffic[kind_of(task)] += task.traffic;
    }
    std::size_t kind_before = 4;
    std::size_t placed = 0;
    for (Task& task : queue.first(fits)) {
      const std::size_t kind = kind_of(task);
      if (kind != kind_before) {
        kind_before = kind;
        const std::uint64_t even = traffic[kind] / static_cast<std::uint64_t>(channels[kind]);
        per_channel_ = context_.constants.version >= NcclVersion{2, 29, 2}
                           ? DivideUp(even, kCellGrain) * kCellGrain
                           : std::max(MinTraffic(), even);
        channel_ = 0;
        current_ = 0;
      }
      if (task.collnet) {
        PlaceInterleaved(task);
      } else {
        PlaceCells(task);
      }
      const int used = task.plan.channel_hi - task.plan.channel_lo + 1;
      if (!budget.Fits(batches.count() + used, static_cast<std::int64_t>(placed + 1))) break;
      batches.Add(task.plan, static_cast<std::int64_t>(placed));
      ++placed;
      out_.tasks.push_back({task.call, out_.launches, std::move(task.plan)});
    }
    WT_CHECK(placed > 0) << "a call does not fit a launch";
    return placed;
  }

  // Room for work in one launch: kernel arguments for batches, a buffer for the rest.
  // Source: src/enqueue.cc, src/include/device.h (sizes of the structures).
  struct Budget {
    static constexpr std::int64_t kArguments = 4096 - 32;
    static constexpr std::int64_t kBuffer = (std::int64_t{1} << 20) / 2;
    static constexpr std::int64_t kBatch = 16;
    static constexpr std::int64_t kWork = 96;
    bool Fits(std::int64_t batches, std::int64_t works) const {
      const std::int64_t batch_bytes = batches * kBatch;
      const std::int64_t work_bytes = works * kWork;
      return batch_bytes + work_bytes <= kArguments ||
             (batch_bytes <= kArguments && work_bytes <= kBuffer);
    }
  };

  // Works of one kernel function share a batch on a channel while they are near each other.
  class Batches {
   public:
    void Add(const CallPlan& plan, std::int64_t work) {
      constexpr std::int64_t kSpan = 64;
      constexpr std::int64_t kBytes = 1024;
      const auto function =
          std::make_tuple(plan.call.function, DeviceOp(plan.call),
                          CountsBytes(plan.call.function) ? DataType::kInt8 : plan.call.type,
                          plan.algorithm, plan.protocol);
      for (int c = plan.channel_lo; c <= plan.channel_hi; ++c) {
        Last& last = last_[c];
        const bool fits = last.works > 0 && last.function == function &&
                          (last.works + 1) * Budget::kWork <= kBytes && work - last.first < kSpan;
        if (!fits) {
          last = {function, work, 0};
          ++count_;
        }
        ++last.works;
      }
    }
    std::int64_t count() const { return count_; }

   private:
    struct Last {
      std::tuple<Function, int, DataType, AlgorithmId, Protocol> function;
      std::int64_t first = 0;
      std::int64_t works = 0;
    };
    std::map<int, Last> last_;
    std::int64_t count_ = 0;
  };

  std::uint64_t ModelBytesOf(const Task& task, std::uint64_t count) const {
    const Function f = task.plan.call.function;
    const bool gathers = f == Function::kAllGather || f == Function::kReduceScatter;
    return count * task.element * (gathers ? static_cast<std::uint64_t>(comm_.rank_count()) : 1);
  }

  void PlaceInterleaved(Task& task) {
    CallPlan& plan = task.plan;
    const Chunking chunks = PlanChunks(context_, plan.call, plan.algorithm, plan.protocol,
                                       plan.max_channels, ModelBytesOf(task, task.count));
    plan.interleaved = true;
    plan.channel_lo = 0;
    plan.channel_hi = plan.max_channels - 1;
    plan.shares = {{task.count, chunks.chunk_bytes, 0, chunks.proxy}};
  }

  void PlaceCells(Task& task) {
    CallPlan& plan = task.plan;
    std::uint64_t per_byte = TrafficPerByte(plan.call.function, comm_.rank_count());
    if (plan.protocol == Protocol::kLl)
      per_byte *= static_cast<std::uint64_t>(planning().ll_traffic_factor);
    const bool tiny_cells = context_.constants.version < NcclVersion{2, 23, 4};
    const std::uint64_t cell_bytes =
        tiny_cells ? kCellGrain
                   : DivideUp(DivideUp(MinTraffic(), per_byte), kCellGrain) * kCellGrain;
    const std::uint64_t per_cell = cell_bytes / task.element;  // Elements.
    const std::uint64_t cells = DivideUp(task.count * task.element, cell_bytes);
    const std::uint64_t cell_traffic = cell_bytes * per_byte;
    std::uint64_t per_channel = std::min(cells, DivideUp(per_channel_, cell_traffic));
    const int most = MostChannels(task);
    std::uint64_t low = cells;  // On the last channel everything stays there.
    if (channel_ + 1 != most) {
      const std::uint64_t room = per_channel_ - current_;
      low = std::min(cells, tiny_cells ? room / cell_traffic : DivideUp(room, cell_traffic));
    }
    auto middle = static_cast<std::int64_t>((cells - low) / per_channel);
    std::uint64_t high = (cells - low) % per_channel;
    const auto count_channels = [&] { return (low != 0 ? 1 : 0) + middle + (high != 0 ? 1 : 0); };
    if (most < channel_ + count_channels()) {
      // More than there are channels: spread over the rest.
      middle = most - channel_ - 2;
      const auto parts = static_cast<std::uint64_t>(middle + 1);
      per_channel = (cells - low) / parts;
      high = per_channel + (cells - low) % parts;
    }
    if (high == 0 && middle != 0) {
      high = per_channel;
      --middle;
    }
    if (low == 0) {  // The first channel has no room left.
      ++channel_;
      if (middle == 0) {
        low = high;
        high = 0;
      } else {
        low = per_channel;
        --middle;
      }
    }
    std::uint64_t count_low = low * per_cell;
    const std::uint64_t count_middle = middle != 0 ? per_channel * per_cell : 0;
    std::uint64_t count_high = high * per_cell;
    (count_high != 0 ? count_high : count_low) -= cells * per_cell - task.count;

    const auto used = static_cast<int>(count_channels());
    plan.channel_lo = channel_;
    plan.channel_hi = channel_ + used - 1;
    const auto add = [&](std::uint64_t count, std::int64_t times) {
      if (times == 0) return;
      const Chunking chunks = PlanChunks(context_, plan.call, plan.algorithm, plan.protocol, 1,
                                         ModelBytesOf(task, count));
      plan.shares.insert(plan.shares.end(), static_cast<std::size_t>(times),
                         {count, chunks.chunk_bytes, 0, chunks.proxy});
    };
    add(count_low, 1);
    add(count_middle, middle);
    add(count_high, high != 0 ? 1 : 0);

    // Where the next task of this kind begins.
    const auto traffic = [&](std::uint64_t filled, std::uint64_t count) {
      return tiny_cells ? count * task.element * per_byte
                        : filled * per_cell * task.element * per_byte;
    };
    if (count_high != 0) {
      channel_ += used - 1;
      current_ = traffic(high, count_high);
    } else if (middle != 0) {
      channel_ += used;
      current_ = 0;
    } else {
      current_ += traffic(low, count_low);
    }
    if (current_ >= per_channel_ && channel_ + 1 != most) {
      ++channel_;
      current_ = 0;
    }
  }

  const PlanningContext& context_;
  const Connections& comm_;
  std::span<const CollectiveCall> calls_;
  std::vector<Task> tasks_;
  std::vector<Task> chosen_;
  GroupPlan out_;
  std::uint64_t per_channel_ = 0;
  int channel_ = 0;
  std::uint64_t current_ = 0;
};

}  // namespace

GroupPlan PlanCells(const PlanningContext& context, std::span<const CollectiveCall> calls) {
  return CellPlanner(context, calls).Run();
}

}  // namespace windtunnel::nccl
