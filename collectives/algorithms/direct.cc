#include "collectives/algorithms/direct.h"

#include "collectives/algorithms/common.h"

namespace windtunnel {
namespace {

// What all blocks of one channel share.
struct DirectChannel {
  CollectiveRequest request;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t chunk = 1;
  std::vector<Peer> peers;  // Ranks 0 .. n-1, twice: those behind any rank stand in one piece.

  std::uint32_t n() const { return request.rank_count; }
  bool is(Function function) const { return request.function == function; }
  // The elements of the channel that belong to `rank`, from the start of a buffer of all parts.
  Part PartOfRank(Rank rank) const {
    if (is(Function::kAllReduce)) {
      const Part part = PartOf(count, n(), rank);
      return {first + part.offset, part.count};
    }
    return {rank * request.count + first, count};
  }
  bool Reduces() const { return is(Function::kAllReduce) || is(Function::kReduceScatter); }
  std::uint64_t peer_count() const { return n() - 1; }
  Rank Behind(Rank rank, std::uint64_t distance) const {
    return static_cast<Rank>((rank + distance) % n());
  }
  std::span<const Peer> PeersOf(Rank rank) const { return {&peers[rank + 1], n() - 1}; }
  PlanOp Op(std::uint64_t elements, std::uint32_t step) const {
    return {.count = elements, .step = step, .slices = SlicesOf(elements, chunk)};
  }
};

// Sends: to every peer its part, then, where parts are gathered, the own one to every peer. First,
// where it has to move, the own part to its place.
class SendProgram final : public Program {
 public:
  SendProgram(std::shared_ptr<const DirectChannel> channel, Rank rank, Dependency reduced)
      : channel_(std::move(channel)),
        rank_(rank),
        reduced_(reduced),
        copies_(channel_->is(Function::kAllToAll) ||
                (channel_->is(Function::kAllGather) && !channel_->request.in_place)) {}
  std::uint64_t size() const override {
    const bool twice = channel_->is(Function::kAllReduce);
    return (copies_ ? 1 : 0) + (twice ? 2 : 1) * channel_->peer_count();
  }
  PlanOp At(std::uint64_t index) const override {
    const DirectChannel& c = *channel_;
    const Part own = c.PartOfRank(rank_);
    const std::uint64_t own_input = c.is(Function::kAllGather) ? c.first : own.offset;
    if (copies_ && index == 0) {
      PlanOp op = c.Op(own.count, 0);
      op.has_source = op.has_destination = true;
      op.source = {BufferKind::kInput, own_input};
      op.destination = {BufferKind::kOutput, own.offset};
      return op;
    }
    const std::uint64_t k = index - (copies_ ? 1 : 0);
    const bool gathers = c.is(Function::kAllGather) || k >= c.peer_count();
    const std::uint64_t turn = k % c.peer_count();
    const Part part = gathers ? own : c.PartOfRank(c.Behind(rank_, turn + 1));
    PlanOp op = c.Op(part.count, k < c.peer_count() ? 0 : 1);
    op.send_to = c.PeersOf(rank_).subspan(turn, 1);
    op.has_source = true;
    op.source = {BufferKind::kInput, gathers ? own_input : part.offset};
    op.posted = true;
    if (c.is(Function::kAllReduce) && gathers) {
      op.source.buffer = BufferKind::kOutput;
      if (turn == 0) op.wait_for = {&reduced_, 1};
    }
    return op;
  }

 private:
  std::shared_ptr<const DirectChannel> channel_;
  Rank rank_;
  Dependency reduced_;  // The sum of the own part.
  bool copies_;
};

// Receives from one peer after the other, in the order in which they address this rank: first what
// it adds to the own part, then the parts of the others.
class ReceiveProgram final : public Program {
 public:
  ReceiveProgram(std::shared_ptr<const DirectChannel> channel, Rank rank)
      : channel_(std::move(channel)), rank_(rank) {}
  std::uint64_t size() const override {
    return (channel_->is(Function::kAllReduce) ? 2 : 1) * channel_->peer_count();
  }
  PlanOp At(std::uint64_t index) const override {
    const DirectChannel& c = *channel_;
    const bool reduces = c.Reduces() && index < c.peer_count();
    const std::uint64_t turn = index % c.peer_count();
    const Part part = c.PartOfRank(reduces ? rank_ : c.Behind(rank_, c.peer_count() - turn));
    PlanOp op = c.Op(part.count, index < c.peer_count() ? 0 : 1);
    op.receive_from = c.PeersOf(rank_).subspan(c.peer_count() - 1 - turn, 1);
    op.has_destination = true;
    op.destination = {BufferKind::kOutput, part.offset};
    if (reduces) {
      if (c.is(Function::kReduceScatter)) op.destination.offset = c.first;
      op.has_source = true;
      op.source = turn == 0 ? BufferPosition{BufferKind::kInput, part.offset} : op.destination;
      op.scale = turn + 1 == c.peer_count();
    }
    return op;
  }

 private:
  std::shared_ptr<const DirectChannel> channel_;
  Rank rank_;
};

}  // namespace

std::string DirectAlgorithm::WhyNot(const CollectiveRequest& request,
                                    const ChannelLayout& layout) const {
  if (std::string why = OnlyFor(request, {Function::kAllReduce, Function::kReduceScatter,
                                          Function::kAllGather, Function::kAllToAll});
      !why.empty())
    return why;
  return IsTrivial(request) ? std::string() : WhyNoChannels(request, layout);
}

Plan DirectAlgorithm::MakePlan(const CollectiveRequest& request,
                               const ChannelLayout& layout) const {
  if (IsTrivial(request)) return TrivialPlan(request, name(), layout);
  Plan plan = EmptyPlan(request, name(), layout);
  const std::uint32_t n = request.rank_count;
  std::vector<Peer> peers;
  for (std::uint32_t i = 0; i < 2 * n; ++i) peers.push_back({i % n, 0});
  std::vector<std::shared_ptr<const DirectChannel>> channels;
  for (const ChannelLayout::Channel& from : layout.channels) {
    channels.push_back(std::make_shared<DirectChannel>(
        DirectChannel{request, from.first, from.count, from.chunk, peers}));
  }
  bool alike = true;
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c]->count == 0) continue;
      const Dependency reduced{static_cast<std::uint32_t>(plan.blocks.size() + 1), n - 2};
      plan.blocks.push_back(
          {rank, c, "direct send", std::make_shared<SendProgram>(channels[c], rank, reduced)});
      plan.blocks.push_back(
          {rank, c, "direct receive", std::make_shared<ReceiveProgram>(channels[c], rank)});
      alike = alike && (request.function != Function::kAllReduce || channels[c]->count % n == 0);
    }
  }
  if (alike) plan.symmetry = "rotations of the ranks";
  return plan;
}

}  // namespace windtunnel
