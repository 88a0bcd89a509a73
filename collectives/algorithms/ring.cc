#include "collectives/algorithms/ring.h"

#include <algorithm>

#include "collectives/algorithms/common.h"
#include "sim/check.h"

namespace windtunnel {
namespace {

// What all blocks of one channel share.
struct RingChannel {
  CollectiveRequest request;
  std::vector<Rank> ring;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t chunk = 0;
  std::uint32_t slices = 1;
  std::uint64_t granule = 1;  // Elements of 16 bytes.
};

class RingProgram : public Program {
 public:
  RingProgram(std::shared_ptr<const RingChannel> channel, std::uint32_t position)
      : channel_(std::move(channel)),
        position_(position),
        ring_size_(static_cast<std::uint32_t>(channel_->ring.size())),
        previous_{channel_->ring[(position + ring_size_ - 1) % ring_size_], 0},
        next_{channel_->ring[(position + 1) % ring_size_], 0} {}

 protected:
  const RingChannel& channel() const { return *channel_; }
  std::uint32_t position() const { return position_; }
  std::uint32_t n() const { return ring_size_; }
  std::span<const Peer> previous() const { return {&previous_, 1}; }
  std::span<const Peer> next() const { return {&next_, 1}; }
  Rank RankBefore(std::uint64_t distance) const {
    return channel_->ring[(position_ + ring_size_ - distance % ring_size_) % ring_size_];
  }
  std::uint64_t Loops(std::uint64_t loop_count) const {
    return (channel_->count + loop_count - 1) / loop_count;
  }

 private:
  std::shared_ptr<const RingChannel> channel_;
  std::uint32_t position_;
  std::uint32_t ring_size_;
  Peer previous_;
  Peer next_;
};

class AllReduceProgram final : public RingProgram {
 public:
  using RingProgram::RingProgram;
  std::uint64_t size() const override { return Loops(n() * channel().chunk) * OpsPerLoop(); }
  PlanOp At(std::uint64_t index) const override {
    const std::uint64_t loop = index < OpsPerLoop() ? 0 : index / OpsPerLoop();
    const auto j = static_cast<std::uint32_t>(index - loop * OpsPerLoop());
    const std::uint64_t begin = loop * n() * channel().chunk;
    const std::uint64_t rest = channel().count - begin;
    std::uint64_t chunk = channel().chunk;
    if (rest < n() * chunk) {
      chunk = (rest + n() - 1) / n();
      chunk = (chunk + channel().granule - 1) / channel().granule * channel().granule;
    }
    // Op j handles the chunk of the position j + 1 before the own one; the last one is i + 1.
    const std::uint32_t which = (position() + 2 * n() - 1 - j) % n();
    const std::uint64_t offset = std::min(rest, which * chunk);
    PlanOp op{.count = std::min(chunk, rest - offset), .step = j, .slices = channel().slices};
    const std::uint64_t at = channel().first + begin + offset;
    op.source = {BufferKind::kInput, at};
    op.destination = {BufferKind::kOutput, at};
    op.has_source = j < n();
    op.has_destination = j + 1 >= n();
    op.scale = j + 1 == n();
    if (j != 0) op.receive_from = previous();
    if (j + 1 != OpsPerLoop()) op.send_to = next();
    op.step = static_cast<std::uint32_t>(loop * (OpsPerLoop() - 1) + (j == 0 ? 0 : j - 1));
    return op;
  }

 private:
  std::uint32_t OpsPerLoop() const { return 2 * n() - 1; }
};

// All-gather (has no sums) and reduce-scatter (has no copies) walk the ring the same way: n ops per
// chunk, in which every rank's part passes once.
class PartsProgram final : public RingProgram {
 public:
  using RingProgram::RingProgram;
  std::uint64_t size() const override { return Loops(channel().chunk) * n(); }
  PlanOp At(std::uint64_t index) const override {
    const std::uint64_t loop = index / n();
    const auto j = static_cast<std::uint32_t>(index % n());
    const std::uint64_t begin = loop * channel().chunk;
    const std::uint64_t at = channel().first + begin;
    PlanOp op{.count = std::min(channel().chunk, channel().count - begin),
              .step = static_cast<std::uint32_t>(loop * (n() - 1) + (j == 0 ? 0 : j - 1)),
              .slices = channel().slices};
    if (j != 0) op.receive_from = previous();
    if (j + 1 != n()) op.send_to = next();
    if (channel().request.function == Function::kReduceScatter) {
      const bool own = j + 1 == n();
      op.has_source = true;
      op.source = {BufferKind::kInput, RankBefore(j + 1) * channel().request.count + at};
      op.has_destination = own;
      op.scale = own;
      op.destination = {BufferKind::kOutput, at};
    } else {
      op.has_source = j == 0;
      op.source = {BufferKind::kInput, at};
      // In place the own part already lies where it belongs.
      op.has_destination = j != 0 || !channel().request.in_place;
      op.destination = {BufferKind::kOutput, RankBefore(j) * channel().request.count + at};
    }
    return op;
  }
};

// Broadcast and reduce: the chain that the ring is when it is cut at the root.
class ChainProgram final : public RingProgram {
 public:
  ChainProgram(std::shared_ptr<const RingChannel> channel, std::uint32_t position)
      : RingProgram(std::move(channel), position) {
    const Rank root = this->channel().request.root;
    from_root_ = 0;
    while (RankBefore(from_root_) != root) ++from_root_;
  }
  std::uint64_t size() const override { return Loops(channel().chunk); }
  PlanOp At(std::uint64_t index) const override {
    const CollectiveRequest& request = channel().request;
    const std::uint64_t begin = index * channel().chunk;
    const std::uint64_t at = channel().first + begin;
    PlanOp op{.count = std::min(channel().chunk, channel().count - begin),
              .source = {BufferKind::kInput, at},
              .destination = {BufferKind::kOutput, at},
              .slices = channel().slices};
    if (request.function == Function::kBroadcast) {
      const bool root = from_root_ == 0;
      op.has_source = root;
      op.has_destination = !root || !request.in_place;
      if (!root) op.receive_from = previous();
      if (from_root_ + 1 != n()) op.send_to = next();
      op.step = static_cast<std::uint32_t>(index) + (root ? 0 : from_root_ - 1);
    } else {
      const bool root = from_root_ == 0;
      const std::uint32_t place = root ? n() - 1 : from_root_ - 1;
      op.has_source = true;
      op.has_destination = root;
      op.scale = root;
      if (place != 0) op.receive_from = previous();
      if (!root) op.send_to = next();
      op.step = static_cast<std::uint32_t>(index) + (place == 0 ? 0 : place - 1);
    }
    return op;
  }

 private:
  std::uint32_t from_root_ = 0;  // Hops behind the root.
};

std::shared_ptr<const Program> MakeProgram(const std::shared_ptr<const RingChannel>& channel,
                                           std::uint32_t position) {
  switch (channel->request.function) {
    case Function::kAllReduce:
      return std::make_shared<AllReduceProgram>(channel, position);
    case Function::kAllGather:
    case Function::kReduceScatter:
      return std::make_shared<PartsProgram>(channel, position);
    default:
      return std::make_shared<ChainProgram>(channel, position);
  }
}

}  // namespace

std::string RingAlgorithm::WhyNot(const CollectiveRequest& request,
                                  const ChannelLayout& layout) const {
  if (std::string why =
          OnlyFor(request, {Function::kAllReduce, Function::kAllGather, Function::kReduceScatter,
                            Function::kBroadcast, Function::kReduce});
      !why.empty())
    return why;
  return IsTrivial(request) ? std::string() : WhyNoRing(request, layout);
}

namespace {

// Do all positions of a ring run the same program, with neighbours and chunks moved on? All-reduce:
// when the last, short loop cuts equal chunks too.
bool PositionsAreAlike(const CollectiveRequest& request,
                       const std::vector<std::shared_ptr<const RingChannel>>& channels) {
  if (request.function == Function::kAllGather || request.function == Function::kReduceScatter) {
    return true;
  }
  if (request.function != Function::kAllReduce) return false;
  return std::all_of(channels.begin(), channels.end(), [&](const auto& channel) {
    if (channel->count == 0) return true;
    const std::uint64_t rest = channel->count % (request.rank_count * channel->chunk);
    return rest % (request.rank_count * channel->granule) == 0;
  });
}

}  // namespace

Plan RingAlgorithm::MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  std::vector<std::shared_ptr<const RingChannel>> channels;
  std::vector<std::vector<std::uint32_t>> positions;
  for (const ChannelLayout::Channel& from : layout.channels) {
    auto channel = std::make_shared<RingChannel>(RingChannel{
        request, from.ring, from.first, from.count, from.chunk, from.slices, std::uint64_t{1}});
    channel->granule = 16 / SizeOf(request.type);
    positions.emplace_back(n);
    for (std::uint32_t i = 0; i < n; ++i) positions.back()[from.ring[i]] = i;
    channels.push_back(std::move(channel));
  }
  plan.blocks.reserve(std::size_t{n} * channels.size());
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c]->count == 0) continue;
      plan.blocks.push_back({.rank = rank,
                             .channel = c,
                             .role = "ring",
                             .program = MakeProgram(channels[c], positions[c][rank])});
    }
  }
  if (PositionsAreAlike(request, channels)) plan.symmetry = "ring positions";
  return plan;
}

}  // namespace windtunnel
