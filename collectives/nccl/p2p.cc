#include "collectives/nccl/p2p.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collectives/nccl/call_queues.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

// Offsets 0, 1, 3, 6, 10, ... modulo the power of two at or above `count`; values that are too
// large are left out. Each offset below `count` comes once, neighbours far apart.
std::vector<int> QuadraticOffsets(int count) {
  const auto power = static_cast<int>(PowerOfTwoUp(static_cast<std::uint64_t>(count)));
  std::vector<int> out;
  int offset = 0;
  for (int round = 1; round <= power; ++round) {
    if (offset < count) out.push_back(offset);
    offset = (offset + round) & (power - 1);
  }
  return out;
}

int Modulo(int a, int n) { return ((a % n) + n) % n; }

// 2.28.7 and later: groups of ranks inside nodes.
std::vector<P2pRound> GroupSchedule(const Connections& comm, Rank rank,
                                    const NcclVersion& version) {
  const int size = P2pGroupSize(comm, version);
  const int groups = comm.rank_count() / size;
  std::vector<std::pair<int, int>> group_place;  // Node, first local rank.
  const auto node = comm.rank_to_node[rank];
  const auto local = comm.rank_to_local[rank];
  int own = local / size;
  for (int n = 0; n < comm.node_count(); ++n) {
    const int here = static_cast<int>(comm.node_ranks[static_cast<std::size_t>(n)].size()) / size;
    for (int g = 0; g < here; ++g) group_place.emplace_back(n, g * size);
    if (n < node) own += here;
  }
  const auto rank_at = [&](int group, int place) {
    const auto& [n, first] = group_place[static_cast<std::size_t>(group)];
    return comm.node_ranks[static_cast<std::size_t>(n)][static_cast<std::size_t>(first + place)];
  };
  std::vector<P2pRound> rounds;
  const int place = local % size;
  for (const int offset : QuadraticOffsets(groups))
    for (int delta = 0; delta < size; ++delta)
      rounds.push_back({rank_at(Modulo(own + offset, groups), Modulo(place + delta, size)),
                        rank_at(Modulo(own - offset, groups), Modulo(place - delta, size))});
  return rounds;
}

// 2.22 to 2.28.3: quadratic over nodes and over the ranks of a node; flat when nodes differ in
// size.
std::vector<P2pRound> NodeSchedule(const Connections& comm, Rank rank) {
  bool even = true;
  for (const auto& ranks : comm.node_ranks)
    even = even && static_cast<int>(ranks.size()) == comm.max_local_ranks;
  const int nodes = even ? comm.node_count() : 1;
  const int locals = even ? comm.max_local_ranks : comm.rank_count();
  const int node = even ? comm.rank_to_node[rank] : 0;
  const int local = even ? comm.rank_to_local[rank] : static_cast<int>(rank);
  const auto rank_at = [&](int n, int l) {
    return even ? comm.node_ranks[static_cast<std::size_t>(n)][static_cast<std::size_t>(l)]
                : static_cast<std::int32_t>(l);
  };
  std::vector<P2pRound> rounds;
  for (const int far : QuadraticOffsets(nodes))
    for (const int near : QuadraticOffsets(locals))
      rounds.push_back({rank_at(Modulo(node + far, nodes), Modulo(local + near, locals)),
                        rank_at(Modulo(node - far, nodes), Modulo(local - near, locals))});
  return rounds;
}

// Up to 2.21: node offsets d, -d, N/2 - d, -(N/2 - d); inside a node one after another, the count
// rounded so that it divides 8 or is a multiple of it.
std::vector<P2pRound> SymmetricSchedule(const Connections& comm, Rank rank) {
  constexpr int kFused = 8;
  int steps = comm.max_local_ranks;
  if (steps < kFused) {
    steps = static_cast<int>(PowerOfTwoUp(static_cast<std::uint64_t>(steps)));
  } else {
    steps = (steps + kFused - 1) / kFused * kFused;
  }
  const int nodes = comm.node_count();
  const int node = comm.rank_to_node[rank];
  const int local = comm.rank_to_local[rank];
  const auto rank_at = [&](int n, int place) {
    const auto& ranks = comm.node_ranks[static_cast<std::size_t>(n)];
    return place < static_cast<int>(ranks.size()) ? ranks[static_cast<std::size_t>(place)] : -1;
  };
  std::vector<P2pRound> rounds;
  for (int d = 0; d <= nodes / 4; ++d) {
    std::vector<int> offsets;
    for (const int offset : {d, Modulo(-d, nodes), nodes / 2 - d, Modulo(-(nodes / 2 - d), nodes)})
      if (std::find(offsets.begin(), offsets.end(), offset) == offsets.end())
        offsets.push_back(offset);
    for (const int offset : offsets)
      for (int step = 0; step < steps; ++step)
        rounds.push_back({rank_at(Modulo(node + offset, nodes), Modulo(local + step, steps)),
                          rank_at(Modulo(node - offset, nodes), Modulo(local - step, steps))});
  }
  return rounds;
}

int ReverseBits(int value, int bits) {
  int out = 0;
  for (int b = 0; b < bits; ++b)
    if ((value >> b) & 1) out |= 1 << (bits - 1 - b);
  return out;
}

// A chunk size travels as a number of 8 bits: three bits behind the leading one.
std::int64_t RoundToEightBits(std::int64_t size) {
  const int log = Log2Floor(static_cast<std::uint64_t>(size));
  if (log <= 3) return size;
  return size >> (log - 3) << (log - 3);
}

std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class MessagePlanner {
 public:
  MessagePlanner(const Connections& comm, const Environment& environment,
                 const Constants& constants, const PeerLinks& links, Rank rank)
      : comm_(comm), env_(environment), constants_(constants), links_(links), rank_(rank) {
    most_ = comm.p2p.per_peer;
    least_ = most_;
    while (least_ * comm.rank_count() > comm.p2p.count && least_ > 1) least_ /= 2;
    const NcclVersion& version = constants.version;
    group_size_ =
        version >= NcclVersion{2, 28, 3} ? P2pGroupSize(comm, version) : comm.max_local_ranks;
  }

  int Base(int round) const {
    const NcclVersion& version = constants_.version;
    int base = round;
    if (comm_.node_count() > 1) {
      const int size = group_size_;
      const int batch = constants_.planning.p2p_per_batch;
      base = round / size * ((size + batch - 1) / batch) + round % size / batch;
    }
    if (version < NcclVersion{2, 28, 3}) return base & 0xff;
    return ReverseBits(base, Log2Ceil(static_cast<std::uint64_t>(comm_.p2p.count)));
  }

  P2pMessage Message(std::int32_t peer, bool send, std::int64_t bytes) const {
    P2pMessage out;
    const auto other = static_cast<Rank>(peer);
    const bool self = other == rank_;
    const bool network =
        !self && (send ? links_.OverNetwork(rank_, other) : links_.OverNetwork(other, rank_));
    const bool has_ll_buffer = !network || env_.GetInt("NCCL_ALLOC_P2P_NET_LL_BUFFERS", 0) == 1;
    const std::int64_t threshold =
        most_ * env_.GetInt("NCCL_P2P_LL_THRESHOLD", constants_.planning.p2p_ll_threshold);
    out.present = true;
    const std::int64_t simple_step = comm_.p2p_chunk;
    const std::int64_t ll_step =
        comm_.buffer[Index(Protocol::kLl)] / constants_.planning.buffer_steps;
    const bool late = constants_.version >= NcclVersion{2, 29, 2};
    if (late) out.channels = Parts(bytes, simple_step);
    const std::int64_t limit =
        late ? out.channels *
                   env_.GetInt("NCCL_P2P_LL_THRESHOLD", constants_.planning.p2p_ll_threshold)
             : threshold;
    out.ll = !self && has_ll_buffer && bytes <= limit;
    const std::int64_t step = out.ll ? ll_step : simple_step;
    std::int64_t chunk = step;
    if (network) {
      if (!out.ll && bytes < step) {
        chunk /= 4;
      } else if (bytes < 8 * step) {
        chunk /= 2;
      }
    }
    out.chunk_bytes = RoundToEightBits(out.ll ? chunk / 2 : chunk);
    if (!late) out.channels = Parts(bytes, step);
    return out;
  }

 private:
  int Parts(std::int64_t bytes, std::int64_t step) const {
    if (bytes == 0) return 1;
    const bool several = comm_.node_count() > 1;
    const std::int64_t smallest = several ? step / 2 : step / 8;
    const std::int64_t largest = several ? step : step * 32;
    auto parts = static_cast<int>(std::min<std::int64_t>(least_, DivideUp(bytes, smallest)));
    std::int64_t size = std::max(smallest, DivideUp(bytes, parts));
    while (size > largest && parts <= most_ / 2) {
      parts *= 2;
      size = DivideUp(bytes, parts);
    }
    return parts;
  }

  const Connections& comm_;
  const Environment& env_;
  const Constants& constants_;
  const PeerLinks& links_;
  const Rank rank_;
  int most_ = 1;
  int least_ = 1;
  int group_size_ = 1;
};

void CheckCalls(std::span<const P2pCall> calls, Rank rank, Rank rank_count) {
  std::int64_t to_itself = 0;
  for (const P2pCall& call : calls) {
    if (call.peer >= rank_count) {
      throw ConfigError({.field = call.send ? "send" : "receive",
                         .value = std::to_string(call.peer),
                         .problem = "peer is not in the communicator:",
                         .expected = fmt::format("0 to {}", rank_count - 1)});
    }
    if (call.peer == rank) to_itself += call.send ? 1 : -1;
  }
  if (to_itself != 0) {
    throw ConfigError({.field = "send, receive",
                       .value = std::to_string(rank),
                       .problem = "a message to oneself has no other half (NCCL answers: invalid "
                                  "usage); rank"});
  }
}

}  // namespace

int P2pGroupSize(const Connections& connections, const NcclVersion& version) {
  constexpr int kGroup = 8;
  int size = kGroup;
  if (version >= NcclVersion{2, 28, 9} && connections.node_count() == 1)
    size = connections.max_local_ranks;
  for (const auto& ranks : connections.node_ranks) {
    const auto locals = static_cast<int>(ranks.size());
    if (locals % size != 0 || locals < size) size = std::gcd(size, locals);
  }
  return size;
}

int P2pChannelOfPart(const NcclVersion& version, int p2p_channels, int base, int part) {
  const int bits = Log2Ceil(static_cast<std::uint64_t>(p2p_channels));
  if (version < NcclVersion{2, 22, 3})
    return (ReverseBits(base % p2p_channels, bits) + part) % p2p_channels;
  const int step = version >= NcclVersion{2, 28, 3} ? part : ReverseBits(part, bits);
  return (base + step) & (p2p_channels - 1);
}

std::vector<P2pRound> P2pScheduleOf(const Connections& connections, Rank rank,
                                    const NcclVersion& version) {
  if (version >= NcclVersion{2, 28, 7}) return GroupSchedule(connections, rank, version);
  if (version >= NcclVersion{2, 22, 3}) return NodeSchedule(connections, rank);
  return SymmetricSchedule(connections, rank);
}

P2pPlan PlanSendReceive(const Connections& connections, const Environment& environment,
                        const Constants& constants, const PeerLinks& links, Rank rank,
                        std::span<const P2pCall> calls) {
  CheckCalls(calls, rank, static_cast<Rank>(connections.rank_count()));
  if (constants.version < NcclVersion{2, 22, 3})
    return PlanSendReceiveBefore222(connections, environment, constants, links, rank, calls);
  CallQueues sends(calls, connections.rank_count(), true);
  CallQueues receives(calls, connections.rank_count(), false);
  const MessagePlanner planner(connections, environment, constants, links, rank);
  const auto schedule = P2pScheduleOf(connections, rank, constants.version);
  // Room of one launch: kernel arguments for batches, half of a buffer for the work.
  constexpr std::int64_t kArguments = 4096 - 32;
  constexpr std::int64_t kBatchBytes = 16;
  P2pPlan out;
  std::size_t left = calls.size();
  std::int64_t batches = 0;
  while (left > 0) {
    for (std::size_t round = 0; round < schedule.size(); ++round) {
      const auto to = static_cast<Rank>(schedule[round].send_to);
      const auto from = static_cast<Rank>(schedule[round].receive_from);
      if (sends.Empty(to) && receives.Empty(from)) continue;
      P2pItem item;
      item.send_to = schedule[round].send_to;
      item.receive_from = schedule[round].receive_from;
      item.channel_base = planner.Base(static_cast<int>(round));
      if (!sends.Empty(to)) {
        item.send = planner.Message(item.send_to, true, sends.Pop(to));
        --left;
      }
      if (!receives.Empty(from)) {
        item.receive = planner.Message(item.receive_from, false, receives.Pop(from));
        --left;
      }
      const std::int64_t more = std::max(item.send.channels, item.receive.channels);
      if ((batches + more) * kBatchBytes > kArguments) {
        ++out.launches;
        batches = 0;
      }
      batches += more;
      item.launch = out.launches;
      out.items.push_back(item);
    }
  }
  out.launches += out.items.empty() ? 0 : 1;
  return out;
}

}  // namespace windtunnel::nccl
