// Send and receive before 2.22: each message is cut in parts, one work element per part.
#include <algorithm>

#include "collectives/nccl/call_queues.h"
#include "collectives/nccl/p2p.h"

namespace windtunnel::nccl {
namespace {

constexpr int kElements = 16;  // Of one work structure: receives at even, sends at odd places.
constexpr int kWarps = 20;     // Of a block.

std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Element {
  std::int32_t peer = -1;
  bool send = false;
  bool ll = false;
  std::int64_t chunk = 0;
  std::uint64_t bytes = 0;
  int place = 0;
};

class PartPlanner {
 public:
  PartPlanner(const Connections& comm, const Environment& environment, const Constants& constants,
              const PeerLinks& links, Rank rank)
      : comm_(comm),
        env_(environment),
        constants_(constants),
        links_(links),
        rank_(rank),
        works_(static_cast<std::size_t>(comm.p2p.count)) {
    const bool late = constants.version >= NcclVersion{2, 20, 3};
    const bool one_node = comm.node_count() == 1;
    most_ = least_ = comm.p2p.per_peer;
    if (one_node || late)
      while (least_ * comm.rank_count() > comm.p2p.count && least_ > 1) least_ /= 2;
    if (one_node && !late)
      while (most_ * comm.rank_count() > comm.p2p.count * 4 && most_ > 1) most_ /= 2;
    step_ = comm.p2p_chunk;
    smallest_ = late && !one_node ? step_ / 2 : step_ / 8;
    largest_ = one_node ? step_ * 32 : step_;
  }

  P2pPlan Run(std::span<const P2pCall> calls) {
    CallQueues sends(calls, comm_.rank_count(), true);
    CallQueues receives(calls, comm_.rank_count(), false);
    const auto schedule = P2pScheduleOf(comm_, rank_, constants_.version);
    std::size_t left = calls.size();
    while (left > 0) {
      for (std::size_t round = 0; round < schedule.size(); ++round) {
        if (round % (kElements / 2) == 0) fuse_ = false;
        left -= Message(schedule[round], sends, receives);
      }
    }
    return Collect();
  }

 private:
  std::int64_t PartSize(std::int64_t bytes) const {
    std::int64_t size = std::max(smallest_, DivideUp(bytes, least_));
    int parts = least_;
    while (size > largest_ && parts <= most_ / 2) {
      parts *= 2;
      size = DivideUp(bytes, parts);
    }
    return DivideUp(size, smallest_) * smallest_;
  }

  std::size_t Message(const P2pRound& round, CallQueues& sends, CallQueues& receives) {
    const auto to = static_cast<Rank>(round.send_to);
    const auto from = static_cast<Rank>(round.receive_from);
    const bool sending = round.send_to >= 0 && !sends.Empty(to);
    const bool receiving = round.receive_from >= 0 && !receives.Empty(from);
    if (!sending && !receiving) return 0;
    std::int64_t send_left = sending ? sends.Pop(to) : 0;
    std::int64_t receive_left = receiving ? receives.Pop(from) : 0;
    const std::int64_t send_size = PartSize(send_left);
    const std::int64_t receive_size = PartSize(receive_left);
    bool send_open = sending;
    bool receive_open = receiving;
    for (int part = 0; send_open || receive_open; ++part) {
      if (receive_open) {
        const std::int64_t bytes = std::min(receive_left, receive_size);
        Add(round.receive_from, false, part, bytes);
        receive_left -= bytes;
        receive_open = receive_left > 0;
      }
      if (send_open) {
        const std::int64_t bytes = std::min(send_left, send_size);
        Add(round.send_to, true, part, bytes);
        send_left -= bytes;
        send_open = send_left > 0;
      }
    }
    return (sending ? 1U : 0U) + (receiving ? 1U : 0U);
  }

  int BaseOf(std::int32_t peer, bool send) const {
    constexpr int kGroup = kElements / 2;
    const auto other = static_cast<std::size_t>(peer);
    const int locals = comm_.max_local_ranks;
    const int nodes = comm_.node_count();
    const auto modulo = [](int a, int n) { return ((a % n) + n) % n; };
    const int sign = send ? 1 : -1;
    const int step =
        modulo(sign * (comm_.rank_to_local[other] - comm_.rank_to_local[rank_]), locals);
    const int delta = modulo(sign * (comm_.rank_to_node[other] - comm_.rank_to_node[rank_]), nodes);
    return nodes > 1 ? delta + step / kGroup : step;
  }

  void Add(std::int32_t peer, bool send, int part, std::int64_t bytes) {
    const auto other = static_cast<Rank>(peer);
    const bool self = other == rank_;
    const bool network =
        !self && (send ? links_.OverNetwork(rank_, other) : links_.OverNetwork(other, rank_));
    const bool has_ll = !self && (!network || env_.GetInt("NCCL_ALLOC_P2P_NET_LL_BUFFERS", 0) == 1);
    Element element;
    element.peer = peer;
    element.send = send;
    element.bytes = static_cast<std::uint64_t>(bytes);
    element.ll = has_ll && bytes <= env_.GetInt("NCCL_P2P_LL_THRESHOLD",
                                                constants_.planning.p2p_ll_threshold);
    const std::int64_t step =
        element.ll ? comm_.buffer[Index(Protocol::kLl)] / constants_.planning.buffer_steps : step_;
    element.chunk = step;
    if (network && bytes < step) {
      element.chunk /= 4;
    } else if (network && bytes < 8 * step) {
      element.chunk /= 2;
    }
    const int channel = P2pChannelOfPart(constants_.version, comm_.p2p.count, BaseOf(peer, send),
                                         part % comm_.p2p.per_peer);
    Append(works_[static_cast<std::size_t>(channel)], element);
    fuse_ = true;
  }

  // Elements of one work run at the same time, so none may share its connection with another.
  void Append(std::vector<std::vector<Element>>& works, Element element) const {
    const int first = element.send ? 1 : 0;
    if (!works.empty() && fuse_) {
      int next = first;
      bool same_peer = false;
      for (const Element& other : works.back()) {
        if (other.send != element.send) continue;
        next = std::max(next, other.place + 2);
        same_peer = same_peer || other.peer == element.peer;
      }
      if (next < kElements && !same_peer) {
        element.place = next;
        works.back().push_back(element);
        return;
      }
    }
    element.place = first;
    works.push_back({element});
  }

  P2pPlan Collect() const {
    P2pPlan out;
    out.launches = 1;
    // Place in `out.parts` of the parts from and to a peer.
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<std::size_t> places(2 * static_cast<std::size_t>(comm_.rank_count()), kNone);
    for (std::size_t c = 0; c < works_.size(); ++c)
      for (const auto& work : works_[c]) {
        int last = 0;
        for (const Element& element : work) last = std::max(last, element.place + 1);
        int groups = 1;
        while (groups < last) groups *= 2;
        int warps = 1;
        while (warps * groups <= kWarps / 2) warps *= 2;
        std::vector<Element> sorted = work;
        std::sort(sorted.begin(), sorted.end(),
                  [](const Element& a, const Element& b) { return a.place < b.place; });
        for (const Element& element : sorted) {
          std::size_t& place =
              places[2 * static_cast<std::size_t>(element.peer) + (element.send ? 1 : 0)];
          if (place == kNone) {
            place = out.parts.size();
            P2pPart part;
            part.peer = element.peer;
            part.send = element.send;
            part.ll = element.ll;
            part.chunk_bytes = element.chunk;
            part.warps = warps + (warps >= 2 ? element.place % 2 : 0);
            part.groups = groups;
            out.parts.push_back(part);
          }
          P2pPart& part = out.parts[place];
          part.channels.push_back(static_cast<int>(c));
          part.bytes.push_back(element.bytes);
        }
      }
    return out;
  }

  const Connections& comm_;
  const Environment& env_;
  const Constants& constants_;
  const PeerLinks& links_;
  const Rank rank_;
  std::vector<std::vector<std::vector<Element>>> works_;  // [channel][work][element]
  bool fuse_ = false;
  int most_ = 1;
  int least_ = 1;
  std::int64_t step_ = 0;
  std::int64_t smallest_ = 0;
  std::int64_t largest_ = 0;
};

}  // namespace

P2pPlan PlanSendReceiveBefore222(const Connections& connections, const Environment& environment,
                                 const Constants& constants, const PeerLinks& links, Rank rank,
                                 std::span<const P2pCall> calls) {
  return PartPlanner(connections, environment, constants, links, rank).Run(calls);
}

}  // namespace windtunnel::nccl
