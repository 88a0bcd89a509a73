#pragma once
// Executes the programs of a plan as far as order matters, not time: blocks wait for arrivals, free
// slots and dependencies. What an element is, the `Payload` says: bytes, symbols, nothing.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/plan.h"
#include "sim/error.h"

namespace windtunnel::internal {

/// Where an op stands, for payloads and messages.
struct OpPlace {
  std::uint32_t block = 0;
  std::uint64_t op = 0;
};

/// "rank 3, block 'ring' of channel 0, op 5 of 14 (step 4)"
std::string DescribePlace(const Plan& plan, const OpPlace& place);

/// Payload: a type `Value` (cheap to copy), and
///   Value Form(const OpPlace&, const PlanOp&, std::vector<Value>& arrivals);  // May take
///   arrivals. void Store(const OpPlace&, const PlanOp&, Rank rank, const Value&);      // At
///   op.destination. Value SwitchReduce(const OpPlace&, const PlanOp&);  // Members at op.source.
template <class Payload>
class PlanMachine {
 public:
  using Value = typename Payload::Value;

  PlanMachine(const Plan& plan, Payload& payload, std::uint32_t slots, bool newest_first)
      : plan_(plan),
        payload_(payload),
        slots_(slots),
        newest_first_(newest_first),
        runs_(plan.blocks.size()),
        sent_per_rank_(plan.request.rank_count) {}

  /// @throws SimulationError when blocks are left waiting, or messages are left over.
  void Run() {
    for (std::uint32_t b = 0; b < runs_.size(); ++b) {
      runs_[b].size = plan_.blocks[b].program->size();
      runs_[b].queued = true;
      ready_.push_back(b);
    }
    while (!ready_.empty()) {
      std::uint32_t block;
      if (newest_first_) {
        block = ready_.back();
        ready_.pop_back();
      } else {
        block = ready_.front();
        ready_.pop_front();
      }
      runs_[block].queued = false;
      while (runs_[block].next < runs_[block].size && TryOp(block)) {
      }
    }
    CheckDone();
  }

  std::uint64_t ops() const { return ops_; }
  std::uint32_t steps() const { return steps_; }
  const std::vector<std::uint64_t>& sent_per_rank() const { return sent_per_rank_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class Wait : std::uint8_t { kNothing, kData, kSlot, kDependency };

  struct Key {
    Rank from, to;
    std::uint32_t channel, port;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (std::uint64_t{key.from} << 32 | key.to) * 0x9e3779b97f4a7c15ULL;
      h ^= (std::uint64_t{key.channel} << 32 | key.port) * 0xc2b2ae3d27d4eb4fULL;
      return static_cast<std::size_t>(h ^ (h >> 29));
    }
  };
  struct Message {
    std::uint64_t count;
    std::uint32_t slices;
    OpPlace from;
    Value value;
  };
  struct Connection {
    Key key;
    std::deque<Message> waiting;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint32_t sender = kNone;
    std::uint32_t receiver = kNone;
  };
  struct BlockRun {
    std::uint64_t size = 0;
    std::uint64_t next = 0;
    bool queued = false;
    Wait wait = Wait::kNothing;
    std::uint32_t wait_connection = kNone;
    Dependency wait_dependency;
    std::vector<std::pair<Peer, std::uint32_t>> sends;  // Few entries; more go to the map.
    std::vector<std::pair<Peer, std::uint32_t>> receives;
    std::vector<std::uint32_t> dependents;
  };

  std::uint32_t Find(std::uint32_t block, bool sends, const Peer& peer) {
    constexpr std::size_t kFew = 16;
    BlockRun& run = runs_[block];
    auto& few = sends ? run.sends : run.receives;
    for (const auto& [known, connection] : few) {
      if (known == peer) return connection;
    }
    const Block& self = plan_.blocks[block];
    const Key key = sends ? Key{self.rank, peer.rank, self.channel, peer.port}
                          : Key{peer.rank, self.rank, self.channel, peer.port};
    const auto [entry, fresh] =
        by_key_.try_emplace(key, static_cast<std::uint32_t>(connections_.size()));
    if (fresh) {
      connections_.emplace_back();
      connections_.back().key = key;
    }
    Connection& connection = connections_[entry->second];
    std::uint32_t& end = sends ? connection.sender : connection.receiver;
    if (end != kNone && end != block) {
      throw SimulationError(fmt::format(
          "two blocks of rank {} {} on the connection {}: '{}' and '{}'", self.rank,
          sends ? "send" : "receive", Describe(connection), plan_.blocks[end].role, self.role));
    }
    end = block;
    if (few.size() < kFew) few.emplace_back(peer, entry->second);
    return entry->second;
  }

  bool TryOp(std::uint32_t block) {
    BlockRun& run = runs_[block];
    const OpPlace place{block, run.next};
    const PlanOp op = plan_.blocks[block].program->At(run.next);
    for (const Dependency& dependency : op.wait_for) {
      if (runs_[dependency.block].next > dependency.op) continue;
      run.wait = Wait::kDependency;
      run.wait_dependency = dependency;
      runs_[dependency.block].dependents.push_back(block);
      return false;
    }
    const bool group_in =
        op.combine == Combine::kSwitchReduce || op.combine == Combine::kSwitchAllReduce;
    const bool group_out =
        op.combine == Combine::kSwitchMulticast || op.combine == Combine::kSwitchAllReduce;
    for (const Peer& peer : op.receive_from) {
      const std::uint32_t index = Find(block, false, peer);
      if (connections_[index].waiting.empty()) return Blocked(run, Wait::kData, index);
    }
    for (const Peer& peer : op.send_to) {
      const std::uint32_t index = Find(block, true, peer);
      if (connections_[index].waiting.size() >= slots_) return Blocked(run, Wait::kSlot, index);
    }
    run.wait = Wait::kNothing;
    arrivals_.clear();
    for (const Peer& peer : op.receive_from)
      Receive(place, group_in ? 0 : op.count, op.slices, Find(block, false, peer));
    const Rank own = plan_.blocks[block].rank;
    Value value = group_in ? payload_.SwitchReduce(place, op) : payload_.Form(place, op, arrivals_);
    if (group_in) {
      for (const Peer& member : op.receive_from) sent_per_rank_[member.rank] += op.count;
    } else if (group_out) {
      sent_per_rank_[own] += op.count;
    }
    if (group_out) {
      for (const Peer& member : op.send_to) payload_.Store(place, op, member.rank, value);
    } else if (op.has_destination) {
      payload_.Store(place, op, own, value);
    }
    for (const Peer& peer : op.send_to) {
      Connection& connection = connections_[Find(block, true, peer)];
      if (group_out) {
        connection.waiting.push_back({0, op.slices, place, {}});
      } else {
        connection.waiting.push_back({op.count, op.slices, place, value});
        sent_per_rank_[own] += op.count;
      }
      ++connection.sent;
      if (connection.receiver != kNone && runs_[connection.receiver].wait == Wait::kData)
        Wake(connection.receiver);
    }
    ++ops_;
    steps_ = std::max(steps_, op.step + 1);
    ++run.next;
    if (!run.dependents.empty()) {
      for (const std::uint32_t other : std::exchange(run.dependents, {})) Wake(other);
    }
    return true;
  }

  void Receive(const OpPlace& place, std::uint64_t count, std::uint32_t slices,
               std::uint32_t index) {
    Connection& connection = connections_[index];
    Message& message = connection.waiting.front();
    if (message.count != count || message.slices != slices) {
      throw SimulationError(fmt::format(
          "the ends of connection {} do not match: {} sends {} elements in {} slices, {} expects "
          "{} in {}",
          Describe(connection), DescribePlace(plan_, message.from), message.count, message.slices,
          DescribePlace(plan_, place), count, slices));
    }
    arrivals_.push_back(std::move(message.value));
    connection.waiting.pop_front();
    ++connection.received;
    if (connection.sender != kNone && runs_[connection.sender].wait == Wait::kSlot)
      Wake(connection.sender);
  }

  bool Blocked(BlockRun& run, Wait wait, std::uint32_t connection) {
    run.wait = wait;
    run.wait_connection = connection;
    return false;
  }

  void Wake(std::uint32_t block) {
    if (std::exchange(runs_[block].queued, true)) return;
    ready_.push_back(block);
  }

  static std::string Describe(const Connection& connection) {
    return fmt::format("rank {} -> rank {} (channel {}, port {})", connection.key.from,
                       connection.key.to, connection.key.channel, connection.key.port);
  }

  // Which block the waiting one waits for, or kNone when no such block exists.
  std::uint32_t WaitsFor(const BlockRun& run) const {
    switch (run.wait) {
      case Wait::kData:
        return connections_[run.wait_connection].sender;
      case Wait::kSlot:
        return connections_[run.wait_connection].receiver;
      case Wait::kDependency:
        return run.wait_dependency.block;
      case Wait::kNothing:
        break;
    }
    return kNone;
  }

  std::string DescribeWait(std::uint32_t block) const {
    const BlockRun& run = runs_[block];
    std::string text = DescribePlace(plan_, {block, run.next});
    if (run.wait == Wait::kDependency) {
      return text + " waits for " +
             DescribePlace(plan_, {run.wait_dependency.block, run.wait_dependency.op});
    }
    const Connection& connection = connections_[run.wait_connection];
    const bool data = run.wait == Wait::kData;
    text += data ? " waits for message " + std::to_string(connection.received + 1) + " on "
                 : " waits for a free slot on ";
    text += Describe(connection);
    const std::uint32_t other = WaitsFor(run);
    if (other == kNone) {
      text += data ? fmt::format(": no block of rank {} has sent on it", connection.key.from)
                   : fmt::format(": no block of rank {} has received on it", connection.key.to);
    } else if (runs_[other].next == runs_[other].size) {
      text += ": the other end has ended after " +
              std::to_string(data ? connection.sent : connection.received) + " messages";
    }
    return text;
  }

  void CheckDone() const {
    std::vector<std::uint32_t> open;
    for (std::uint32_t b = 0; b < runs_.size(); ++b) {
      if (runs_[b].next != runs_[b].size) open.push_back(b);
    }
    if (!open.empty()) throw SimulationError(DescribeDeadlock(open));
    for (const Connection& connection : connections_) {
      if (connection.waiting.empty()) continue;
      throw SimulationError(fmt::format(
          "the ends of connection {} do not match: {} messages sent, {} received; the first left "
          "over comes from {}",
          Describe(connection), connection.sent, connection.received,
          DescribePlace(plan_, connection.waiting.front().from)));
    }
  }

  std::string DescribeDeadlock(const std::vector<std::uint32_t>& open) const {
    std::string text = fmt::format("deadlock in {} {}: {} of {} blocks wait.", plan_.algorithm,
                                   Name(plan_.request.function), open.size(), runs_.size());
    // Follow who waits for whom until somebody is met twice, or nobody is there to wait for.
    std::vector<std::uint32_t> path;
    std::vector<bool> seen(runs_.size());
    std::uint32_t block = open.front();
    while (block != kNone && !seen[block] && runs_[block].next != runs_[block].size) {
      seen[block] = true;
      path.push_back(block);
      block = WaitsFor(runs_[block]);
    }
    const auto start = block == kNone ? path.end() : std::find(path.begin(), path.end(), block);
    if (start != path.end()) {
      path.erase(path.begin(), start);
      text += fmt::format(" A cycle of {}:", path.size());
    } else {
      path.erase(path.begin(), path.end() - 1);
      text += " The root of it:";
    }
    constexpr std::size_t kShown = 8;
    for (std::size_t i = 0; i < std::min(kShown, path.size()); ++i)
      text += (i == 0 ? " " : "; ") + DescribeWait(path[i]);
    if (path.size() > kShown) text += fmt::format("; and {} more", path.size() - kShown);
    return text;
  }

  const Plan& plan_;
  Payload& payload_;
  std::uint32_t slots_;
  bool newest_first_;
  std::vector<BlockRun> runs_;
  std::deque<Connection> connections_;
  std::unordered_map<Key, std::uint32_t, KeyHash> by_key_;
  std::deque<std::uint32_t> ready_;
  std::vector<Value> arrivals_;
  std::vector<std::uint64_t> sent_per_rank_;
  std::uint64_t ops_ = 0;
  std::uint32_t steps_ = 0;
};

}  // namespace windtunnel::internal
