#include "collectives/buffer_pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "collectives/elements.h"
#include "collectives/functional.h"
#include "sim/check.h"

namespace windtunnel {

bool HasInPlaceForm(Function function) {
  return function != Function::kAllToAll && function != Function::kAllToAllV &&
         function != Function::kSendRecv;
}

InPlaceOffsets OffsetsInPlace(const CollectiveRequest& request, Rank rank) {
  const std::uint64_t own = rank * request.count;
  switch (request.function) {
    case Function::kAllGather:
    case Function::kHypercube:
      return {own, 0};
    case Function::kGather:
      return {rank == request.root ? own : 0, 0};
    case Function::kReduceScatter:
      return {0, own};
    case Function::kScatter:
      return {0, rank == request.root ? own : 0};
    default:
      return {0, 0};
  }
}

std::vector<OutputPart> ExpectedOutput(const CollectiveRequest& request, Rank rank) {
  const std::uint32_t n = request.rank_count;
  const std::uint64_t count = request.count;
  std::vector<OutputPart> parts;
  if (OutputCount(request, rank) == 0) return parts;
  switch (request.function) {
    case Function::kAllReduce:
    case Function::kReduce:
      parts.push_back({0, count, 0, n - 1, 0});
      break;
    case Function::kReduceScatter:
      parts.push_back({0, count, 0, n - 1, rank * count});
      break;
    case Function::kBroadcast:
      parts.push_back({0, count, request.root, request.root, 0});
      break;
    case Function::kScatter:
      parts.push_back({0, count, request.root, request.root, rank * count});
      break;
    case Function::kSendRecv: {
      const Rank from = (rank + n - 1) % n;
      parts.push_back({0, count, from, from, 0});
      break;
    }
    case Function::kAllGather:
    case Function::kGather:
    case Function::kHypercube:
      for (Rank from = 0; from < n; ++from) parts.push_back({from * count, count, from, from, 0});
      break;
    case Function::kAllToAll:
      for (Rank from = 0; from < n; ++from)
        parts.push_back({from * count, count, from, from, rank * count});
      break;
    case Function::kAllToAllV: {
      std::uint64_t begin = 0;
      for (Rank from = 0; from < n; ++from) {
        const std::uint64_t part = AllToAllVCount(n, count, from, rank);
        if (part != 0)
          parts.push_back({begin, part, from, from, AllToAllVOffset(n, count, from, rank)});
        begin += part;
      }
      break;
    }
  }
  return parts;
}

namespace {

// Largest integer up to which all integers are exact, so that sums in any order are too.
std::uint64_t ExactLimit(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return 127;
    case DataType::kUint8:
      return 255;
    case DataType::kHalf:
      return 2048;
    case DataType::kBfloat16:
      return 256;
    default:
      return 1U << 24;
  }
}

// The value of element `i` of the input of a rank.
class Pattern {
 public:
  explicit Pattern(const CollectiveRequest& request) : op_(request.op), n_(request.rank_count) {
    const std::uint64_t each = ExactLimit(request.type) / n_;
    if (op_ == ReduceOp::kSum || op_ == ReduceOp::kAvg) {
      mask_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(15, std::bit_floor(each + 1) - 1));
      if (each == 0) stride_ = static_cast<std::uint32_t>(n_ / ExactLimit(request.type) + 1);
    } else {
      mask_ = 63;
    }
  }

  void Fill(Rank rank, std::uint64_t first, std::int64_t* values, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) values[k] = Value(rank, first + k);
  }
  void Combine(Rank rank, std::uint64_t first, std::int64_t* values, std::size_t count) const {
    switch (op_) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        for (std::size_t k = 0; k < count; ++k) values[k] += Value(rank, first + k);
        break;
      case ReduceOp::kProd:
        for (std::size_t k = 0; k < count; ++k) values[k] *= Value(rank, first + k);
        break;
      case ReduceOp::kMin:
        for (std::size_t k = 0; k < count; ++k)
          values[k] = std::min(values[k], Value(rank, first + k));
        break;
      case ReduceOp::kMax:
        for (std::size_t k = 0; k < count; ++k)
          values[k] = std::max(values[k], Value(rank, first + k));
        break;
    }
  }

 private:
  std::int64_t Value(Rank rank, std::uint64_t i) const {
    if (op_ == ReduceOp::kProd)
      return (i % n_ == rank ? 2 : 1) * ((i * 7 + 1) % n_ == rank ? 2 : 1);
    if (stride_ != 0) return (i + rank) % stride_ == 0 ? 1 : 0;
    const auto low = static_cast<std::uint32_t>(i);
    return static_cast<std::int64_t>((low + (low >> 4) + 5 * rank) & mask_);
  }

  ReduceOp op_;
  std::uint32_t n_;
  std::uint32_t mask_ = 0;
  std::uint32_t stride_ = 0;
};

constexpr std::uint64_t kTile = 1024;

}  // namespace

void FillInputs(const CollectiveRequest& request, RankBuffers& buffers) {
  const ElementFunctions& functions = FunctionsOf(request.type);
  const std::size_t element = SizeOf(request.type);
  const Pattern pattern(request);
  const auto fill = [&](Rank first, Rank stride) {
    std::vector<std::int64_t> values(kTile);
    for (Rank rank = first; rank < request.rank_count; rank += stride) {
      const std::uint64_t total = buffers.input[rank].size() / element;
      for (std::uint64_t done = 0; done < total; done += kTile) {
        const std::uint64_t count = std::min(kTile, total - done);
        pattern.Fill(rank, done, values.data(), count);
        functions.from_integers(buffers.input[rank].data() + done * element, values.data(), count);
      }
    }
  };
  // Each rank's buffer is its own: fresh pages of large ones come to several threads at once.
  constexpr std::size_t kWorthThreads = std::size_t{16} << 20;
  const bool large = !buffers.input.empty() && buffers.input.front().size() >= kWorthThreads;
  const Rank threads = large ? std::clamp<Rank>(std::thread::hardware_concurrency(), 1, 8) : 1;
  std::vector<std::jthread> others;
  for (Rank t = 1; t < threads; ++t) others.emplace_back(fill, t, threads);
  fill(0, threads);
}

std::uint64_t CountWrong(const CollectiveRequest& request, const RankBuffers& buffers) {
  const ElementFunctions& functions = FunctionsOf(request.type);
  const std::size_t element = SizeOf(request.type);
  const Pattern pattern(request);
  const bool averages = request.op == ReduceOp::kAvg && Reduces(request.function);
  const double divisor = averages ? request.rank_count : 1;
  const double ulps = averages ? request.rank_count + 2.0 : 0;
  std::vector<std::int64_t> values(kTile);
  std::vector<std::byte> bytes(kTile * element);
  std::uint64_t wrong = 0;
  const auto check = [&](const OutputPart& part, Rank first_output, Rank last_output) {
    for (std::uint64_t done = 0; done < part.count; done += kTile) {
      const std::uint64_t count = std::min(kTile, part.count - done);
      pattern.Fill(part.first_rank, part.source + done, values.data(), count);
      for (Rank from = part.first_rank + 1; from <= part.last_rank; ++from)
        pattern.Combine(from, part.source + done, values.data(), count);
      // Equal bytes are right; what differs is looked at by value.
      if (!averages) functions.from_integers(bytes.data(), values.data(), count);
      for (Rank rank = first_output; rank <= last_output; ++rank) {
        const std::byte* got = buffers.output[rank].data() + (part.begin + done) * element;
        if (!averages && std::memcmp(got, bytes.data(), count * element) == 0) continue;
        wrong += functions.differing(got, values.data(), count, divisor, ulps);
      }
    }
  };
  if (request.function == Function::kAllReduce) {
    // All ranks expect the same: add once, compare n times.
    for (const OutputPart& part : ExpectedOutput(request, 0))
      check(part, 0, request.rank_count - 1);
    return wrong;
  }
  for (Rank rank = 0; rank < request.rank_count; ++rank) {
    for (const OutputPart& part : ExpectedOutput(request, rank)) check(part, rank, rank);
  }
  return wrong;
}

}  // namespace windtunnel
