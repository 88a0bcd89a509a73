#include "collectives/algorithms/p2p_rounds.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "collectives/algorithms/common.h"

namespace windtunnel {

P2pRounds P2pRounds::Pairwise(std::uint32_t rank_count) {
  P2pRounds rounds;
  rounds.rank_count_ = rank_count;
  rounds.exclusive_or_ = IsPowerOfTwo(rank_count);
  return rounds;
}

P2pRounds P2pRounds::Nccl(const CollectiveRequest& request, const ChannelLayout& layout) {
  P2pRounds rounds;
  rounds.rank_count_ = request.rank_count;
  if (!WhyNoEqualNodes(request, layout).empty()) return rounds;
  const auto local = static_cast<std::uint32_t>(layout.nodes.front().size());
  rounds.group_size_ = layout.nodes.size() == 1 ? local : std::gcd(8U, local);
  const std::uint32_t groups = request.rank_count / rounds.group_size_;
  const std::uint32_t modulus = std::bit_ceil(groups);
  std::uint32_t offset = 0;
  for (std::uint32_t k = 0; k < modulus; ++k) {
    offset = (offset + k) % modulus;
    if (offset < groups) rounds.group_offsets_.push_back(offset);
  }
  rounds.position_of_.resize(request.rank_count);
  for (const auto& node : layout.nodes) {
    for (const Rank rank : node) {
      rounds.position_of_[rank] = static_cast<std::uint32_t>(rounds.rank_at_.size());
      rounds.rank_at_.push_back(rank);
    }
  }
  return rounds;
}

Rank P2pRounds::Partner(Rank rank, std::uint32_t round, bool forward) const {
  if (exclusive_or_) return rank ^ round;
  if (group_size_ == 0) {
    return static_cast<Rank>((std::uint64_t{rank} + (forward ? round : rank_count_ - round)) %
                             rank_count_);
  }
  const std::uint32_t groups = rank_count_ / group_size_;
  const std::uint32_t far = group_offsets_[round / group_size_];
  const std::uint32_t near = round % group_size_;
  const std::uint32_t group = position_of_[rank] / group_size_;
  const std::uint32_t place = position_of_[rank] % group_size_;
  const std::uint32_t to_group = (group + (forward ? far : groups - far)) % groups;
  const std::uint32_t to_place = (place + (forward ? near : group_size_ - near)) % group_size_;
  return rank_at_[to_group * group_size_ + to_place];
}

Rank P2pRounds::SendTo(Rank rank, std::uint32_t round) const { return Partner(rank, round, true); }
Rank P2pRounds::ReceiveFrom(Rank rank, std::uint32_t round) const {
  return Partner(rank, round, false);
}

namespace {

// One direction of one rank: rounds window, window + windows, ... of part `part` of each message.
class ExchangeProgram final : public Program {
 public:
  struct Shared {
    CollectiveRequest request;
    std::shared_ptr<const P2pRounds> rounds;
    std::vector<Peer> peers;               // Of every rank.
    std::vector<std::uint64_t> v_offsets;  // alltoallv: by (rank + peer) mod n ... see Offset.
    std::uint32_t windows = 1;
    std::uint32_t parts = 1;
    std::uint64_t chunk = 1;
  };
  ExchangeProgram(std::shared_ptr<const Shared> shared, Rank rank, std::uint32_t window,
                  std::uint32_t part, bool sends)
      : shared_(std::move(shared)), rank_(rank), window_(window), part_(part), sends_(sends) {}

  std::uint64_t size() const override {
    const std::uint32_t rounds = shared_->rounds->count();
    // The receiving side has nothing to do for the own part, which round 0 holds.
    const std::uint32_t first = FirstRound();
    return first >= rounds ? 0 : (rounds - first + shared_->windows - 1) / shared_->windows;
  }
  PlanOp At(std::uint64_t index) const override {
    const Shared& s = *shared_;
    const auto round = static_cast<std::uint32_t>(FirstRound() + index * s.windows);
    const Rank peer = sends_ ? s.rounds->SendTo(rank_, round) : s.rounds->ReceiveFrom(rank_, round);
    const bool uneven = s.request.function == Function::kAllToAllV;
    const std::uint32_t n = s.request.rank_count;
    const std::uint64_t total =
        uneven ? AllToAllVCount(n, s.request.count, rank_, peer) : s.request.count;
    const Part part = PartOf(total, s.parts, part_);
    const std::uint64_t own = Offset(rank_, peer) + part.offset;
    PlanOp op{.count = part.count, .step = round, .slices = SlicesOf(part.count, s.chunk)};
    op.source = {BufferKind::kInput, own};
    op.destination = {BufferKind::kOutput, own};
    op.has_source = sends_;
    op.has_destination = !sends_ || peer == rank_;
    if (peer != rank_) (sends_ ? op.send_to : op.receive_from) = {&s.peers[peer], 1};
    return op;
  }

 private:
  std::uint32_t FirstRound() const { return !sends_ && window_ == 0 ? shared_->windows : window_; }
  std::uint64_t Offset(Rank rank, Rank peer) const {
    const Shared& s = *shared_;
    if (s.request.function != Function::kAllToAllV) return peer * s.request.count;
    // Sizes depend on (rank + peer) mod n only: prefix sums over two turns of it.
    return s.v_offsets[std::size_t{rank} + peer] - s.v_offsets[rank];
  }

  std::shared_ptr<const Shared> shared_;
  Rank rank_;
  std::uint32_t window_;
  std::uint32_t part_;
  bool sends_;
};

}  // namespace

void AppendAllToAll(Plan& plan, const ChannelLayout& layout,
                    const std::shared_ptr<const P2pRounds>& rounds, std::uint32_t windows) {
  const CollectiveRequest& request = plan.request;
  const std::uint32_t n = request.rank_count;
  auto shared = std::make_shared<ExchangeProgram::Shared>();
  shared->request = request;
  shared->rounds = rounds;
  shared->windows = windows;
  shared->parts = static_cast<std::uint32_t>(layout.channels.size());
  shared->chunk = layout.channels.front().chunk;
  for (Rank rank = 0; rank < n; ++rank) shared->peers.push_back({rank, 0});
  if (request.function == Function::kAllToAllV) {
    shared->v_offsets.push_back(0);
    for (std::uint32_t turn = 0; turn < 2 * n; ++turn) {
      shared->v_offsets.push_back(shared->v_offsets.back() +
                                  AllToAllVCount(n, request.count, 0, turn % n));
    }
  }
  plan.channel_count = windows * shared->parts;
  for (Rank rank = 0; rank < n; ++rank) {
    for (std::uint32_t window = 0; window < windows; ++window) {
      for (std::uint32_t part = 0; part < shared->parts; ++part) {
        const std::uint32_t channel = window * shared->parts + part;
        for (const bool sends : {true, false}) {
          plan.blocks.push_back(
              {rank, channel, sends ? "send" : kPeerReceiveRole,
               std::make_shared<ExchangeProgram>(shared, rank, window, part, sends)});
        }
      }
    }
  }
}

}  // namespace windtunnel
