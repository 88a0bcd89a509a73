#include "collectives/algorithms/nvls.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

// What all blocks of one channel share.
struct NvlsChannel {
  CollectiveRequest request;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t chunk = 0;
  std::uint64_t granule = 1;
  std::vector<Peer> ranks_up;    // Port 0: a member's part is staged.
  std::vector<Peer> ranks_down;  // Port 1: a result has been multicast.
  std::vector<Peer> heads_up;
  std::vector<Peer> heads_down;

  std::uint64_t LoopCount() const {
    return request.function == Function::kAllReduce ? chunk * heads_up.size() : chunk;
  }
  std::uint64_t Loops() const { return (count + LoopCount() - 1) / LoopCount(); }
  std::uint64_t Rest(std::uint64_t loop) const {
    return std::min(LoopCount(), count - loop * LoopCount());
  }
  // The chunk of head `head` in a loop, relative to the loop.
  Part ChunkOf(std::uint64_t loop, std::size_t head) const {
    const std::uint64_t rest = Rest(loop);
    std::uint64_t size = chunk;
    if (rest < LoopCount()) {
      size = (rest + heads_up.size() - 1) / heads_up.size();
      size = (size + granule - 1) / granule * granule;
    }
    const std::uint64_t offset = std::min(rest, size * head);
    return {offset, std::min(size, rest - offset)};
  }
};
using Shared = std::shared_ptr<const NvlsChannel>;

PlanOp Copy(BufferPosition from, BufferPosition to, std::uint64_t count, std::uint32_t step) {
  return {.count = count,
          .has_source = true,
          .has_destination = true,
          .source = from,
          .destination = to,
          .step = step};
}

// Copies what the heads will read into staging, then says so: parts + 1 ops a loop.
ComputedProgram Scatter(const Shared& s) {
  const std::uint64_t parts =
      s->request.function == Function::kReduceScatter ? s->request.rank_count : 1;
  return {s->Loops() * (parts + 1), [s, parts](std::uint64_t i) {
            const std::uint64_t loop = i / (parts + 1);
            const std::uint64_t part = i % (parts + 1);
            const auto step = static_cast<std::uint32_t>(loop);
            if (part == parts) return PlanOp{.send_to = s->heads_up, .step = step};
            const std::uint64_t at = part * s->request.count + s->first + loop * s->LoopCount();
            return Copy({BufferKind::kInput, at}, {BufferKind::kScratch, at}, s->Rest(loop), step);
          }};
}

ComputedProgram Gather(const Shared& s) {
  const std::uint64_t parts =
      s->request.function == Function::kAllGather ? s->request.rank_count : 1;
  return {s->Loops() * (parts + 1), [s, parts](std::uint64_t i) {
            const std::uint64_t loop = i / (parts + 1);
            const std::uint64_t part = i % (parts + 1);
            const auto step = static_cast<std::uint32_t>(loop) + 1;
            if (part == 0) return PlanOp{.receive_from = s->heads_down, .step = step};
            const std::uint64_t at =
                (part - 1) * s->request.count + s->first + loop * s->LoopCount();
            return Copy({BufferKind::kScratch, at}, {BufferKind::kOutput, at}, s->Rest(loop), step);
          }};
}

// The switch adds, and multicasts the sum.
ComputedProgram ReduceAndMulticast(const Shared& s, std::size_t head) {
  return {s->Loops() * 2, [s, head](std::uint64_t i) {
            const std::uint64_t loop = i / 2;
            const Part part = s->ChunkOf(loop, head);
            const BufferPosition at{BufferKind::kScratch,
                                    s->first + loop * s->LoopCount() + part.offset};
            PlanOp op = Copy(at, at, part.count, static_cast<std::uint32_t>(loop));
            if (i % 2 == 0) {
              op.combine = Combine::kSwitchReduce;
              op.receive_from = s->ranks_up;
              op.scale = true;
            } else {
              op.combine = Combine::kSwitchMulticast;
              op.send_to = s->ranks_down;
            }
            return op;
          }};
}

ComputedProgram ReduceOwnPart(const Shared& s, Rank rank) {
  return {s->Loops(), [s, rank](std::uint64_t loop) {
            const std::uint64_t at = s->first + loop * s->LoopCount();
            PlanOp op =
                Copy({BufferKind::kScratch, rank * s->request.count + at},
                     {BufferKind::kOutput, at}, s->Rest(loop), static_cast<std::uint32_t>(loop));
            op.combine = Combine::kSwitchReduce;
            op.receive_from = s->ranks_up;
            op.scale = true;
            return op;
          }};
}

ComputedProgram MulticastOwnPart(const Shared& s, Rank rank) {
  return {s->Loops(), [s, rank](std::uint64_t loop) {
            const std::uint64_t at = s->first + loop * s->LoopCount();
            PlanOp op =
                Copy({BufferKind::kInput, at}, {BufferKind::kScratch, rank * s->request.count + at},
                     s->Rest(loop), static_cast<std::uint32_t>(loop));
            op.combine = Combine::kSwitchMulticast;
            op.send_to = s->ranks_down;
            return op;
          }};
}

}  // namespace

std::string NvlsAlgorithm::WhyNot(const CollectiveRequest& request,
                                  const ChannelLayout& layout) const {
  if (std::string why =
          OnlyFor(request, {Function::kAllReduce, Function::kAllGather, Function::kReduceScatter});
      !why.empty())
    return why;
  if (IsTrivial(request)) return {};
  if (std::string why = WhyNoChannels(request, layout); !why.empty()) return why;
  if (layout.nodes.size() > 1) return "needs all ranks behind one NVLink switch";
  if (layout.nvls_heads.empty()) return "no rank is head of an NVLink multicast group";
  if (request.function != Function::kAllReduce && layout.nvls_heads.size() != request.rank_count)
    return "needs every rank as head of its part";
  return WhyNoSwitchReduction(request);
}

Plan NvlsAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  plan.scratch_count = request.function == Function::kAllReduce ? request.count : request.count * n;
  std::vector<Shared> channels;
  for (const ChannelLayout::Channel& from : layout.channels) {
    auto s = std::make_shared<NvlsChannel>();
    s->request = request;
    s->first = from.first;
    s->count = from.count;
    s->chunk = from.chunk;
    s->granule = 16384 / SizeOf(request.type);  // Last loops of NVLS are cut in 16 KiB.
    for (Rank rank = 0; rank < n; ++rank) {
      s->ranks_up.push_back({rank, 0});
      s->ranks_down.push_back({rank, 1});
    }
    for (const Rank head : layout.nvls_heads) {
      s->heads_up.push_back({head, 0});
      s->heads_down.push_back({head, 1});
    }
    channels.push_back(std::move(s));
  }
  for (Rank rank = 0; rank < n; ++rank) {
    const auto found = std::find(layout.nvls_heads.begin(), layout.nvls_heads.end(), rank);
    const auto head = static_cast<std::size_t>(found - layout.nvls_heads.begin());
    for (std::uint32_t c = 0; c < channels.size(); ++c) {
      const Shared& s = channels[c];
      if (s->count == 0) continue;
      const auto add = [&](std::string_view role, ComputedProgram program) {
        plan.blocks.push_back(
            {rank, c, role, std::make_shared<ComputedProgram>(std::move(program))});
      };
      if (request.function != Function::kAllGather) add("nvls scatter", Scatter(s));
      if (found != layout.nvls_heads.end()) {
        if (request.function == Function::kAllReduce) {
          add("nvls reduce", ReduceAndMulticast(s, head));
        } else if (request.function == Function::kReduceScatter) {
          add("nvls reduce", ReduceOwnPart(s, rank));
        } else {
          add("nvls multicast", MulticastOwnPart(s, rank));
        }
      }
      if (request.function != Function::kReduceScatter) add("nvls gather", Gather(s));
    }
  }
  return plan;
}

}  // namespace windtunnel
