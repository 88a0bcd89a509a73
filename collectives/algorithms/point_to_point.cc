#include "collectives/algorithms/point_to_point.h"

#include <algorithm>

#include "collectives/algorithms/common.h"
#include "collectives/algorithms/p2p_rounds.h"

namespace windtunnel {
namespace {

// Channels that carry different rounds at once. ASSUMED: 32 point-to-point channels, as NCCL has on
// 8 GPUs behind NVLink switches.
constexpr std::uint32_t kChannels = 32;

// One message, or a copy when both ends are the same rank, cut over the channels.
struct Message {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t source = 0;       // Element of the sender's input.
  std::uint64_t destination = 0;  // Element of the receiver's output.
};

// Sends and receives in which every message has blocks of its own.
void AppendMessages(Plan& plan, const ChannelLayout& layout, const std::vector<Message>& messages,
                    std::uint32_t windows) {
  const auto parts = static_cast<std::uint32_t>(layout.channels.size());
  plan.channel_count = windows * parts;
  struct Ends {
    std::shared_ptr<ListProgram> send, receive;
  };
  std::vector<Ends> ends(std::size_t{plan.request.rank_count} * plan.channel_count);
  std::vector<std::uint32_t> next_window(plan.request.rank_count);
  const Rank hub = plan.request.root;
  for (const Message& message : messages) {
    // The windows turn at the rank that has many messages.
    const std::uint32_t window = next_window[hub]++ % windows;
    for (std::uint32_t part = 0; part < parts; ++part) {
      const Part piece = PartOf(plan.request.count, parts, part);
      const std::size_t channel = std::size_t{window} * parts + part;
      PlanOp op{.count = piece.count,
                .source = {BufferKind::kInput, message.source + piece.offset},
                .destination = {BufferKind::kOutput, message.destination + piece.offset},
                .slices = SlicesOf(piece.count, layout.channels.front().chunk)};
      auto& send = ends[message.from * std::size_t{plan.channel_count} + channel].send;
      if (!send) send = std::make_shared<ListProgram>();
      op.has_source = true;
      if (message.from == message.to) {
        op.has_destination = true;
        send->Append(op);
        continue;
      }
      const Peer to[] = {{message.to, 0}};
      const Peer from[] = {{message.from, 0}};
      op.send_to = to;
      send->Append(op);
      auto& receive = ends[message.to * std::size_t{plan.channel_count} + channel].receive;
      if (!receive) receive = std::make_shared<ListProgram>();
      op.send_to = {};
      op.has_source = false;
      op.has_destination = true;
      op.receive_from = from;
      receive->Append(op);
    }
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto rank = static_cast<Rank>(i / plan.channel_count);
    const auto channel = static_cast<std::uint32_t>(i % plan.channel_count);
    if (ends[i].send) plan.blocks.push_back({rank, channel, "send", ends[i].send});
    if (ends[i].receive) plan.blocks.push_back({rank, channel, kPeerReceiveRole, ends[i].receive});
  }
}

// An all-gather by doubling: in round k the 2^k parts held go to the partner at distance 2^k. Each
// round is a launch of its own, behind all of the one before it; the own part is copied first.
void AppendHypercube(Plan& plan, const ChannelLayout& layout) {
  const CollectiveRequest& request = plan.request;
  const auto most_parts = static_cast<std::uint32_t>(layout.channels.size());
  plan.channel_count = most_parts;
  PlanBuilder builder(plan);
  for (Rank rank = 0; rank < request.rank_count; ++rank) {
    const std::uint32_t launch = builder.Add(rank, 0, kLaunchRole);
    if (!request.in_place) {
      builder.Append(launch, {.count = request.count,
                              .has_source = true,
                              .has_destination = true,
                              .source = {BufferKind::kInput, 0},
                              .destination = {BufferKind::kOutput, rank * request.count}});
    }
    struct Ends {
      std::uint32_t send, receive;
    };
    std::vector<Ends> ends;
    for (std::uint32_t part = 0; part < most_parts; ++part)
      ends.push_back({builder.Add(rank, part, "send"), builder.Add(rank, part, kPeerReceiveRole)});
    std::vector<Dependency> round_done;
    std::uint32_t step = 0;
    for (std::uint32_t mask = 1; mask < request.rank_count; mask *= 2, ++step) {
      if (step > 0) builder.Append(launch, {.wait_for = round_done, .step = step});
      round_done.clear();
      const Peer partner[] = {{rank ^ mask, 0}};
      const std::uint64_t held = (rank & ~(mask - 1)) * request.count;
      const std::uint64_t missing = ((rank & ~(mask - 1)) ^ mask) * request.count;
      const std::uint32_t parts =
          layout.round_channels.empty() ? most_parts : layout.round_channels[step];
      for (std::uint32_t part = 0; part < parts; ++part) {
        const Part piece = PartOf(request.count * mask, parts, part);
        PlanOp op{.count = piece.count,
                  .step = step,
                  .slices = SlicesOf(piece.count, layout.channels.front().chunk)};
        const Dependency launched[] = {{launch, builder.SizeOf(launch) - 1}};
        if (builder.SizeOf(launch) != 0) op.wait_for = launched;
        op.send_to = partner;
        op.has_source = true;
        op.source = {BufferKind::kOutput, held + piece.offset};
        builder.Append(ends[part].send, op);
        op.send_to = {};
        op.has_source = false;
        op.receive_from = partner;
        op.has_destination = true;
        op.destination = {BufferKind::kOutput, missing + piece.offset};
        builder.Append(ends[part].receive, op);
        for (const std::uint32_t block : {ends[part].send, ends[part].receive})
          round_done.push_back({block, builder.SizeOf(block) - 1});
      }
    }
  }
}

}  // namespace

std::string PointToPointAlgorithm::WhyNot(const CollectiveRequest& request,
                                          const ChannelLayout& layout) const {
  if (std::string why =
          OnlyFor(request, {Function::kAllToAll, Function::kAllToAllV, Function::kGather,
                            Function::kScatter, Function::kSendRecv, Function::kHypercube});
      !why.empty())
    return why;
  if (IsTrivial(request)) return {};
  if (request.function == Function::kHypercube && !IsPowerOfTwo(request.rank_count))
    return "needs a power-of-two rank count";
  return WhyNoChannels(request, layout);
}

Plan PointToPointAlgorithm::MakePlan(const CollectiveRequest& request,
                                     const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  const auto parts = static_cast<std::uint32_t>(layout.channels.size());
  const std::uint32_t windows = std::clamp(kChannels / parts, 1U, n);
  std::vector<Message> messages;
  switch (request.function) {
    case Function::kGather:
    case Function::kScatter:
      for (std::uint32_t k = 0; k < n; ++k) {
        const Rank other = (request.root + k) % n;
        if (other == request.root && request.in_place) continue;
        if (request.function == Function::kGather) {
          messages.push_back({other, request.root, 0, other * request.count});
        } else {
          messages.push_back({request.root, other, other * request.count, 0});
        }
      }
      AppendMessages(plan, layout, messages, windows);
      break;
    case Function::kSendRecv:
      for (Rank rank = 0; rank < n; ++rank) messages.push_back({rank, (rank + 1) % n, 0, 0});
      AppendMessages(plan, layout, messages, 1);
      break;
    case Function::kHypercube:
      AppendHypercube(plan, layout);
      break;
    default:
      AppendAllToAll(plan, layout, std::make_shared<P2pRounds>(P2pRounds::Nccl(request, layout)),
                     windows);
  }
  return plan;
}

}  // namespace windtunnel
