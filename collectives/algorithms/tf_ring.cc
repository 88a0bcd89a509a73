#include "collectives/algorithms/tf_ring.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/common.h"

namespace windtunnel {
std::string TfRingAlgorithm::WhyNot(const CollectiveRequest& request,
                                    const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce}); !why.empty()) return why;
  if (IsTrivial(request)) return {};
  switch (request.type) {
    case DataType::kBfloat16:
    case DataType::kHalf:
    case DataType::kFloat:
    case DataType::kDouble:
    case DataType::kInt32:
    case DataType::kInt64:
      break;
    default:
      return "TensorFlow's ring does not add " + std::string(Name(request.type));
  }
  if (request.op == ReduceOp::kAvg)
    return "TensorFlow's ring has no average: it divides the sum afterwards";
  return WhyNoChannels(request, layout);
}

Plan TfRingAlgorithm::MakePlan(const CollectiveRequest& request,
                               const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < layout.channels.size(); ++c) {
      const ChannelLayout::Channel& channel = layout.channels[c];
      if (channel.count == 0) continue;
      constexpr std::uint64_t kAlignment = 64;  // Bytes.
      const std::uint64_t base = (channel.count + n - 1) / n * SizeOf(request.type);
      const std::uint64_t chunk = (base / kAlignment + 1) * kAlignment / SizeOf(request.type);
      auto peers = std::make_shared<std::vector<Peer>>();
      peers->push_back({(rank + 1) % n, 0});
      peers->push_back({(rank + n - 1) % n, 0});
      const auto piece = [chunk, first = channel.first, total = channel.count,
                          slice = channel.chunk](std::uint64_t k) {
        const std::uint64_t offset = std::min(total, k * chunk);
        PlanOp op{.count = std::min(chunk, total - offset)};
        op.slices = SlicesOf(op.count, slice);
        op.source = {BufferKind::kInput, first + offset};
        op.destination = {BufferKind::kOutput, first + offset};
        return op;
      };
      auto sender = std::make_shared<ListProgram>();
      auto receiver = std::make_shared<ListProgram>();
      const auto send_block = static_cast<std::uint32_t>(plan.blocks.size());
      for (std::uint32_t step = 0; step + 2 < 2 * n; ++step) {
        // Step j sends chunk r - j and receives chunk r - 1 - j; the second pass goes on in that
        // order.
        PlanOp give = piece((rank + 2 * n - step) % n);
        give.send_to = {peers->data(), 1};
        give.has_source = true;
        if (step != 0) give.source.buffer = BufferKind::kOutput;
        give.step = step;
        const Dependency formed[] = {{send_block + 1, step == 0 ? 0 : step - std::uint64_t{1}}};
        if (step != 0) give.wait_for = formed;
        sender->Append(give);
        PlanOp take = piece((rank + 2 * n - 1 - step) % n);
        take.receive_from = {peers->data() + 1, 1};
        take.has_source = step + 1 < n;
        take.has_destination = true;
        take.scale = step + 2 == n;
        take.step = step;
        receiver->Append(take);
      }
      plan.blocks.push_back({rank, c, "ring send", std::move(sender)});
      plan.blocks.push_back({rank, c, "ring receive", std::move(receiver)});
    }
  }
  return plan;
}

}  // namespace windtunnel
