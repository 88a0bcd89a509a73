#include "collectives/functional.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "collectives/buffer_pattern.h"
#include "collectives/elements.h"
#include "collectives/plan_machine.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace internal {

std::string DescribePlace(const Plan& plan, const OpPlace& place) {
  const Block& block = plan.blocks[place.block];
  const std::uint64_t size = block.program->size();
  std::string text =
      fmt::format("rank {}, block '{}' of channel {}", block.rank, block.role, block.channel);
  if (place.op >= size) return text + " (ended)";
  return text + fmt::format(", op {} of {} (step {})", place.op + 1, size,
                            block.program->At(place.op).step);
}

namespace {

constexpr std::string_view kBufferNames[] = {"input", "output", "scratch"};

// Elements of one op in flight. Several holders share a buffer; one alone may change it.
class BufferPool {
 public:
  struct Return {
    BufferPool* pool;
    std::size_t size_class;
    void operator()(std::byte* data) const { pool->free_[size_class].push_back(data); }
  };
  using Buffer = std::shared_ptr<std::byte>;

  Buffer Take(std::size_t bytes) {
    std::size_t size_class = 6;  // 64 bytes.
    while ((std::size_t{1} << size_class) < bytes) ++size_class;
    auto& free = free_[size_class];
    if (free.empty()) free.push_back(Allocate(std::size_t{1} << size_class));
    std::byte* const data = free.back();
    free.pop_back();
    return {data, Return{this, size_class}};
  }

 private:
  std::byte* Allocate(std::size_t bytes) {
    if (bytes >= ZeroedMemory::kLarge) return large_.emplace_back(bytes).bytes().data();
    return small_.emplace_back(new std::byte[bytes]).get();
  }

  std::vector<ZeroedMemory> large_;
  std::vector<std::unique_ptr<std::byte[]>> small_;
  std::array<std::vector<std::byte*>, 64> free_;
};

class RealPayload {
 public:
  using Value = BufferPool::Buffer;

  RealPayload(const Plan& plan, RankBuffers& buffers)
      : plan_(plan),
        buffers_(buffers),
        functions_(FunctionsOf(plan.request.type)),
        element_(SizeOf(plan.request.type)),
        op_(static_cast<std::size_t>(plan.request.op)),
        averages_(plan.request.op == ReduceOp::kAvg && Reduces(plan.request.function)) {
    scratch_.resize(plan.request.rank_count);
    for (auto& scratch : scratch_) scratch.resize(plan.scratch_count * element_);
  }

  Value Form(const OpPlace& place, const PlanOp& op, std::vector<Value>& arrivals) {
    if (op.count == 0) return nullptr;
    Value value;
    const Rank rank = plan_.blocks[place.block].rank;
    const std::byte* own = op.has_source ? At(place, rank, op.source, op.count) : nullptr;
    const bool scaled = own != nullptr && Prescales(op.source);
    std::size_t first = 0;
    if (!arrivals.empty() && (own == nullptr || arrivals.size() == 1)) {
      // Two operands add to the same bits in either order, so the arrival itself may take the sum.
      value = Writable(std::move(arrivals[0]), op.count,
                       own != nullptr || arrivals.size() > 1 || op.scale);
      if (own != nullptr) Combine(value.get(), own, op.count, scaled);
      first = 1;
    } else {
      value = pool_.Take(op.count * element_);
      if (scaled) {
        functions_.scale(value.get(), own, op.count, plan_.request.rank_count);
      } else if (own != nullptr) {
        std::memcpy(value.get(), own, op.count * element_);
      }
    }
    for (std::size_t i = first; i < arrivals.size(); ++i)
      functions_.combine[op_](value.get(), arrivals[i].get(), op.count);
    Finish(op, value);
    return value;
  }

  void Store(const OpPlace& place, const PlanOp& op, Rank rank, const Value& value) {
    if (op.count == 0) return;
    std::memcpy(At(place, rank, op.destination, op.count), value.get(), op.count * element_);
  }

  Value SwitchReduce(const OpPlace& place, const PlanOp& op) {
    Value value = pool_.Take(op.count * element_);
    constexpr std::uint64_t kTile = 512;
    alignas(64) std::array<std::byte, kTile * 8> wide;
    alignas(64) std::array<std::byte, kTile * 8> part;
    const bool scaled = Prescales(op.source);
    for (std::uint64_t done = 0; done < op.count; done += kTile) {
      const std::uint64_t count = std::min(kTile, op.count - done);
      for (std::size_t m = 0; m < op.receive_from.size(); ++m) {
        const std::byte* from =
            At(place, op.receive_from[m].rank, op.source, op.count) + done * element_;
        if (scaled) {
          functions_.scale(part.data(), from, count, plan_.request.rank_count);
          from = part.data();
        }
        if (m == 0) {
          functions_.widen(wide.data(), from, count);
        } else {
          functions_.combine_wide[op_](wide.data(), from, count);
        }
      }
      functions_.narrow(value.get() + done * element_, wide.data(), count);
    }
    Finish(op, value);
    return value;
  }

 private:
  bool Prescales(const BufferPosition& position) const {
    return averages_ && functions_.scale != nullptr && position.buffer == BufferKind::kInput;
  }

  void Finish(const PlanOp& op, const Value& value) const {
    if (op.scale && averages_ && functions_.divide != nullptr)
      functions_.divide(value.get(), op.count, plan_.request.rank_count);
  }

  // The buffer itself when it may be changed, else a copy if it is going to be.
  Value Writable(Value value, std::uint64_t count, bool changes) {
    if (!changes || value.use_count() == 1) return value;
    Value copy = pool_.Take(count * element_);
    std::memcpy(copy.get(), value.get(), count * element_);
    return copy;
  }

  void Combine(std::byte* accumulator, const std::byte* own, std::uint64_t count, bool scaled) {
    if (!scaled) {
      functions_.combine[op_](accumulator, own, count);
      return;
    }
    constexpr std::uint64_t kTile = 512;
    alignas(64) std::array<std::byte, kTile * 8> part;
    for (std::uint64_t done = 0; done < count; done += kTile) {
      const std::uint64_t now = std::min(kTile, count - done);
      functions_.scale(part.data(), own + done * element_, now, plan_.request.rank_count);
      functions_.combine[op_](accumulator + done * element_, part.data(), now);
    }
  }

  std::byte* At(const OpPlace& place, Rank rank, const BufferPosition& position,
                std::uint64_t count) {
    std::span<std::byte> buffer;
    switch (position.buffer) {
      case BufferKind::kInput:
        buffer = buffers_.input[rank];
        break;
      case BufferKind::kOutput:
        buffer = buffers_.output[rank];
        break;
      case BufferKind::kScratch:
        buffer = scratch_[rank];
        break;
    }
    const std::uint64_t have = buffer.size() / element_;
    if (position.offset > have || count > have - position.offset) {
      throw SimulationError(
          fmt::format("{} touches elements [{}, {}) of the {} of rank {}, which has {}",
                      DescribePlace(plan_, place), position.offset, position.offset + count,
                      kBufferNames[static_cast<std::size_t>(position.buffer)], rank, have));
    }
    return buffer.data() + position.offset * element_;
  }

  const Plan& plan_;
  RankBuffers& buffers_;
  const ElementFunctions& functions_;
  std::size_t element_;
  std::size_t op_;
  bool averages_;
  std::vector<std::vector<std::byte>> scratch_;
  BufferPool pool_;
};

struct NoPayload {
  struct Value {};
  Value Form(const OpPlace&, const PlanOp&, std::vector<Value>&) { return {}; }
  void Store(const OpPlace&, const PlanOp&, Rank, const Value&) {}
  Value SwitchReduce(const OpPlace&, const PlanOp&) { return {}; }
};

template <class Payload>
FunctionalResult RunOn(const Plan& plan, Payload& payload, const FunctionalOptions& options) {
  PlanMachine<Payload> machine(plan, payload, options.slots,
                               options.order == BlockOrder::kNewestFirst);
  machine.Run();
  FunctionalResult result;
  result.sent_per_rank = machine.sent_per_rank();
  for (const std::uint64_t sent : result.sent_per_rank) result.elements_sent += sent;
  result.ops = machine.ops();
  result.steps = machine.steps();
  return result;
}

}  // namespace
}  // namespace internal

FunctionalResult RunFunctional(const Plan& plan, RankBuffers& buffers,
                               const FunctionalOptions& options) {
  CheckBuffers(plan.request, buffers);
  internal::RealPayload payload(plan, buffers);
  return internal::RunOn(plan, payload, options);
}

FunctionalResult RunCounting(const Plan& plan, const FunctionalOptions& options) {
  internal::NoPayload payload;
  return internal::RunOn(plan, payload, options);
}

RankBuffers MakeBuffers(const CollectiveRequest& request) {
  FunctionsOf(request.type);  // Refuses types without arithmetic.
  const std::size_t element = SizeOf(request.type);
  RankBuffers buffers;
  for (Rank rank = 0; rank < request.rank_count; ++rank) {
    const std::size_t input = InputCount(request, rank) * element;
    const std::size_t output = OutputCount(request, rank) * element;
    if (!request.in_place) {
      buffers.memory.emplace_back(input);
      buffers.input.emplace_back(buffers.memory.back().bytes());
      buffers.memory.emplace_back(output);
      buffers.output.emplace_back(buffers.memory.back().bytes());
      continue;
    }
    if (!HasInPlaceForm(request.function)) {
      throw ConfigError({.field = "in_place",
                         .value = std::string(Name(request.function)),
                         .problem = "the call has no in-place form",
                         .expected = "separate input and output buffers"});
    }
    const InPlaceOffsets at = OffsetsInPlace(request, rank);
    buffers.memory.emplace_back(std::max(at.input * element + input, at.output * element + output));
    const std::span<std::byte> all = buffers.memory.back().bytes();
    buffers.input.push_back(all.subspan(at.input * element, input));
    buffers.output.push_back(all.subspan(at.output * element, output));
  }
  return buffers;
}

void CheckBuffers(const CollectiveRequest& request, const RankBuffers& buffers) {
  const std::size_t element = SizeOf(request.type);
  const auto fail = [](Rank rank, std::string value, std::string problem, std::string expected) {
    throw ConfigError({.field = "buffers of rank " + std::to_string(rank),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  };
  if (buffers.input.size() != request.rank_count || buffers.output.size() != request.rank_count) {
    throw ConfigError({.field = "buffers",
                       .value = std::to_string(buffers.input.size()),
                       .problem = "not one input and one output for each rank",
                       .expected = std::to_string(request.rank_count)});
  }
  for (Rank rank = 0; rank < request.rank_count; ++rank) {
    const std::span<std::byte> input = buffers.input[rank];
    const std::span<std::byte> output = buffers.output[rank];
    const std::uint64_t in_bytes = InputCount(request, rank) * element;
    const std::uint64_t out_bytes = OutputCount(request, rank) * element;
    if (input.size() != in_bytes)
      fail(rank, std::to_string(input.size()), "wrong input size", std::to_string(in_bytes));
    if (output.size() != out_bytes)
      fail(rank, std::to_string(output.size()), "wrong output size", std::to_string(out_bytes));
    if (input.empty() || output.empty()) continue;
    const std::less<const std::byte*> before;
    const bool overlap = before(input.data(), output.data() + output.size()) &&
                         before(output.data(), input.data() + input.size());
    if (!overlap) {
      if (request.in_place)
        fail(rank, "", "in place, but input and output are separate", "one memory");
      continue;
    }
    const InPlaceOffsets at = OffsetsInPlace(request, rank);
    const bool exact = HasInPlaceForm(request.function) &&
                       input.data() + at.output * element == output.data() + at.input * element;
    if (!exact || !request.in_place) {
      fail(rank, std::to_string(input.data() - output.data()) + " bytes apart",
           "input and output overlap", "no overlap, or the in-place form of the call");
    }
  }
}

}  // namespace windtunnel
