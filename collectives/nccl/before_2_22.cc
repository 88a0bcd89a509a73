// Planning of 2.10 to 2.21: even parts (2.20, 2.21) and chunk-interleaved calls (2.10 to 2.19).
#include <algorithm>

#include "collectives/nccl/enqueue.h"
#include "collectives/nccl/p2p.h"

namespace windtunnel::nccl {

GroupPlan PlanBefore222(const PlanningContext& context, std::span<const CollectiveCall> calls) {
  GroupPlan out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CollectiveCall& call = calls[i];
    const std::uint64_t bytes = ModelBytes(call, context.connections.rank_count());
    CallPlan plan;
    plan.call = call;
    plan.model_bytes = bytes;
    const auto choice = Choose(context, call, bytes, 1, &plan.candidates);
    if (!choice) ThrowNothingLeft(context, call);
    plan.algorithm = choice->algorithm;
    plan.protocol = choice->protocol;
    plan.time_us = choice->time_us;
    plan.max_channels = choice->max_channels;
    plan.warps = choice->threads / 32;
    plan.channel_hi = choice->max_channels - 1;
    plan.interleaved = true;
    const Chunking chunks =
        PlanChunks(context, call, choice->algorithm, choice->protocol, choice->max_channels, bytes);
    const std::uint64_t count =
        CountsBytes(call.function) ? call.count * SizeOf(call.type) : call.count;
    plan.shares = {{count, chunks.chunk_bytes, 0, chunks.proxy}};
    out.last_estimate_us = plan.time_us;
    out.tasks.push_back({i, 0, std::move(plan)});
  }
  out.launches = 1;
  return out;
}

P2pPlan PlanSendReceiveBefore222(const Connections&, const Environment&, const Constants&,
                                 const PeerLinks&, Rank, std::span<const P2pCall>) {
  return {};
}

}  // namespace windtunnel::nccl
