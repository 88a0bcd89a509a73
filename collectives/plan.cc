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
