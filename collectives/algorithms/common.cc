#include "collectives/algorithms/common.h"

#include <algorithm>
#include <bit>

namespace windtunnel {

Plan EmptyPlan(const CollectiveRequest& request, std::string_view algorithm,
               const ChannelLayout& layout) {
  Plan plan;
  plan.request = request;
  plan.algorithm = algorithm;
  plan.protocol = layout.protocol;
  plan.channel_count = static_cast<std::uint32_t>(std::max<std::size_t>(1, layout.channels.size()));
  return plan;
}

bool IsTrivial(const CollectiveRequest& request) {
  return request.rank_count == 1 || request.count == 0;
}

Plan TrivialPlan(const CollectiveRequest& request, std::string_view algorithm,
                 const ChannelLayout& layout) {
  Plan plan = EmptyPlan(request, algorithm, layout);
  plan.channel_count = 1;
  if (request.count == 0 || request.in_place) return plan;
  auto program = std::make_shared<ListProgram>();
  program->Append({.count = request.count,
                   .has_source = true,
                   .has_destination = true,
                   .scale = true,
                   .source = {BufferKind::kInput, 0},
                   .destination = {BufferKind::kOutput, 0}});
  plan.blocks.push_back({.rank = 0, .channel = 0, .role = "copy", .program = std::move(program)});
  return plan;
}

std::string OnlyFor(const CollectiveRequest& request, std::initializer_list<Function> allowed) {
  std::string names;
  for (const Function function : allowed) {
    if (function == request.function) return {};
    if (!names.empty()) names += ", ";
    names += Name(function);
  }
  return "does " + names + " only, not " + std::string(Name(request.function));
}

std::string WhyNoChannels(const CollectiveRequest& request, const ChannelLayout& layout) {
  if (layout.channels.empty()) return "the layout has no channel";
  std::uint64_t covered = 0;
  for (const ChannelLayout::Channel& channel : layout.channels) {
    if (channel.count == 0) continue;
    if (channel.chunk == 0 || channel.slices == 0) return "a channel has chunks of no elements";
    if (channel.first != covered) return "the channels do not lie one behind the other";
    covered += channel.count;
  }
  return covered == request.count ? "" : "the channels do not cover the message";
}

std::string WhyNoRing(const CollectiveRequest& request, const ChannelLayout& layout) {
  if (std::string why = WhyNoChannels(request, layout); !why.empty()) return why;
  for (const ChannelLayout::Channel& channel : layout.channels) {
    if (channel.count == 0) continue;
    if (channel.ring.size() != request.rank_count) return "a channel has no ring over all ranks";
    std::vector<bool> seen(request.rank_count);
    for (const Rank rank : channel.ring) {
      if (rank >= request.rank_count || seen[rank]) return "a ring does not hold each rank once";
      seen[rank] = true;
    }
  }
  return {};
}

std::string WhyNoNodes(const CollectiveRequest& request, const ChannelLayout& layout) {
  std::vector<bool> seen(request.rank_count);
  std::size_t total = 0;
  for (const auto& node : layout.nodes) {
    for (const Rank rank : node) {
      if (rank >= request.rank_count || seen[rank]) return "the nodes do not hold each rank once";
      seen[rank] = true;
      ++total;
    }
  }
  return total == request.rank_count ? "" : "the nodes do not hold every rank";
}

std::string WhyNoEqualNodes(const CollectiveRequest& request, const ChannelLayout& layout) {
  if (std::string why = WhyNoNodes(request, layout); !why.empty()) return why;
  for (const auto& node : layout.nodes) {
    if (node.size() != layout.nodes.front().size())
      return "needs the same number of ranks on every node";
  }
  return {};
}

std::string WhyNoSwitchReduction(const CollectiveRequest& request) {
  if (!Reduces(request.function)) return {};
  const DataType type = request.type;
  if (SizeOf(type) == 1) return "a switch does not add " + std::string(Name(type));
  const bool wide_float = type == DataType::kFloat || type == DataType::kDouble;
  switch (request.op) {
    case ReduceOp::kSum:
      return {};
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return wide_float ? "a switch does not compare " + std::string(Name(type)) : std::string();
    case ReduceOp::kAvg:
      if (request.function == Function::kAllReduce) return {};
      break;
    case ReduceOp::kProd:
      break;
  }
  return "a switch does not reduce by " + std::string(Name(request.op));
}

Fold::Fold(std::uint32_t rank_count) : core(std::bit_floor(rank_count)), rest(rank_count - core) {}

std::uint32_t SlicesOf(std::uint64_t count, std::uint64_t chunk) {
  const std::uint64_t pieces = chunk == 0 ? 1 : (count + chunk - 1) / chunk;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(pieces, 1, UINT32_MAX));
}

}  // namespace windtunnel
