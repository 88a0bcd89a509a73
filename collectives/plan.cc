#include "collectives/plan.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel {

std::uint64_t AllToAllVCount(std::uint32_t rank_count, std::uint64_t count, Rank from, Rank to) {
  const std::uint64_t n = rank_count;
  const std::uint64_t part = count * 2 / n;
  const std::uint64_t turn = (std::uint64_t{from} + to) % n;
  if (turn != 0) return turn * part;
  return count * n - part * (n * (n - 1) / 2);
}

double AllToAllVUnevenness(std::uint32_t rank_count, std::uint64_t count) {
  constexpr std::uint64_t kMostRounds = 1 << 17;
  const std::uint64_t n = rank_count;
  if (n == 0 || count == 0) return 1;
  const std::uint64_t stride = n * n / kMostRounds + 1;
  double larger = 0;
  double ranks = 0;
  for (std::uint64_t rank = 0; rank < n; rank += stride, ++ranks) {
    for (std::uint64_t round = 0; round < n; ++round) {
      const auto self = static_cast<Rank>(rank);
      const std::uint64_t sent =
          AllToAllVCount(rank_count, count, self, static_cast<Rank>((rank + round) % n));
      const std::uint64_t received =
          AllToAllVCount(rank_count, count, static_cast<Rank>((rank + n - round) % n), self);
      larger += static_cast<double>(std::max(sent, received));
    }
  }
  return larger / (ranks * static_cast<double>(count * n));
}

std::uint64_t AllToAllVOffset(std::uint32_t rank_count, std::uint64_t count, Rank rank, Rank peer) {
  std::uint64_t offset = 0;
  for (Rank before = 0; before < peer; ++before)
    offset += AllToAllVCount(rank_count, count, rank, before);
  return offset;
}

std::uint64_t InputCount(const CollectiveRequest& request, Rank rank) {
  const std::uint64_t n = request.rank_count;
  switch (request.function) {
    case Function::kAllReduce:
    case Function::kReduce:
    case Function::kAllGather:
    case Function::kGather:
    case Function::kHypercube:
    case Function::kSendRecv:
      return request.count;
    case Function::kReduceScatter:
    case Function::kAllToAll:
    case Function::kAllToAllV:
      return request.count * n;
    case Function::kBroadcast:
      return rank == request.root ? request.count : 0;
    case Function::kScatter:
      return rank == request.root ? request.count * n : 0;
  }
  WT_CHECK(false) << "unknown function";
  return 0;
}

std::uint64_t OutputCount(const CollectiveRequest& request, Rank rank) {
  const std::uint64_t n = request.rank_count;
  switch (request.function) {
    case Function::kAllReduce:
    case Function::kBroadcast:
    case Function::kReduceScatter:
    case Function::kScatter:
    case Function::kSendRecv:
      return request.count;
    case Function::kAllGather:
    case Function::kHypercube:
    case Function::kAllToAll:
    case Function::kAllToAllV:
      return request.count * n;
    case Function::kReduce:
      return rank == request.root ? request.count : 0;
    case Function::kGather:
      return rank == request.root ? request.count * n : 0;
  }
  WT_CHECK(false) << "unknown function";
  return 0;
}

std::uint64_t LogicalBytes(const CollectiveRequest& request) {
  const std::uint64_t one = request.count * SizeOf(request.type);
  switch (request.function) {
    case Function::kAllReduce:
    case Function::kBroadcast:
    case Function::kReduce:
    case Function::kSendRecv:
      return one;
    default:
      return one * request.rank_count;
  }
}

void ListProgram::Append(const PlanOp& op) {
  const auto keep = [](const auto& span, auto& storage) {
    using Element = std::remove_const_t<typename std::decay_t<decltype(span)>::element_type>;
    if (span.empty()) return std::span<const Element>();
    auto copy = std::make_unique<Element[]>(span.size());
    std::copy(span.begin(), span.end(), copy.get());
    storage.push_back(std::move(copy));
    return std::span<const Element>(storage.back().get(), span.size());
  };
  PlanOp kept = op;
  kept.receive_from = keep(op.receive_from, peers_);
  kept.send_to = keep(op.send_to, peers_);
  kept.wait_for = keep(op.wait_for, dependencies_);
  ops_.push_back(kept);
}

}  // namespace windtunnel
