#include "collectives/timed_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

struct ConnectionKey {
  Rank from;
  Rank to;
  std::uint32_t channel;
  std::uint32_t port;
  friend bool operator==(const ConnectionKey&, const ConnectionKey&) = default;
};
struct ConnectionKeyHash {
  std::size_t operator()(const ConnectionKey& key) const {
    std::uint64_t h = (std::uint64_t{key.from} << 32 | key.to) * 0x9e3779b97f4a7c15ULL;
    h ^= (std::uint64_t{key.channel} << 32 | key.port) + 0x7f4a7c15ULL + (h << 6) + (h >> 2);
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL >> 3);
  }
};

struct Connection {
  ConnectionKey key;
  ConnectionPath path;
  std::uint64_t sent = 0;                  // Slices started by the sender.
  std::uint64_t arrived = 0;               // Slices the receiving block may read.
  std::uint64_t consumed = 0;              // Slices read.
  std::uint64_t credited = 0;              // Slots the sender knows to be free again.
  std::uint32_t waiting_receiver = kNone;  // Block.
  std::uint32_t waiting_sender = kNone;
};

struct Message {
  std::uint32_t block;       // Sender.
  std::uint32_t connection;  // kNone for a group operation: it completes its own block.
  SimTime work_end;          // When the sender's own copying ends.
  std::uint32_t next_free;
};

enum class BlockState : std::uint8_t {
  kReady,
  kWaitData,
  kWaitCredit,
  kWaitDependency,
  kWorking,
  kDone
};

struct BlockRun {
  std::uint64_t op_index = 0;
  std::uint32_t slice = 0;
  std::uint32_t outstanding =
      0;  // Messages of the current slice not yet injected (or group operations not delivered).
  bool work_pending = false;  // The work timer of the current slice is running.
  BlockState state = BlockState::kReady;
  SimTime since;  // Start of the current wait or work.
  SimTime work_end;
  Picoseconds group_reaction;
  PlanOp op;
  bool op_loaded = false;
  std::vector<std::pair<Peer, std::uint32_t>>
      sends;  // Peer -> connection, few entries or sorted by use.
  std::vector<std::pair<Peer, std::uint32_t>> receives;
  std::unordered_map<std::uint64_t, std::uint32_t> many_sends;
  std::unordered_map<std::uint64_t, std::uint32_t> many_receives;
  std::vector<std::uint32_t> dependents;  // Blocks that wait for an op of this one.
};

class Executor final : public EventHandler, public NetworkClient {
 public:
  Executor(const Plan& plan, Network& network, ExecutionSetting& setting,
           const std::function<void(const TimedSpan&)>& on_span)
      : plan_(plan),
        network_(network),
        setting_(setting),
        on_span_(on_span),
        queue_(network.queue()),
        runs_(plan.blocks.size()),
        element_bytes_(SizeOf(plan.request.type)) {
    result_.accounts.resize(plan.blocks.size());
    result_.rank_end.resize(plan.request.rank_count);
  }

  ExecutionResult Run() {
    network_.set_client(this);
    const std::uint64_t events_before = queue_.executed();
    open_blocks_ = plan_.blocks.size();
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const Rank rank = plan_.blocks[b].rank;
      queue_.Schedule(setting_.StartOf(rank), *this, Pack(kStart, b));
    }
    network_.RunToIdle();
    network_.set_client(nullptr);
    if (open_blocks_ != 0) throw SimulationError(Diagnose());
    SimTime last;
    for (Rank r = 0; r < plan_.request.rank_count; ++r)
      last = std::max(last, result_.rank_end[r] + setting_.EndOf(r));
    result_.time = last.since_start();
    if (!plan_.blocks.empty())
      result_.start = setting_.StartOf(plan_.blocks[result_.last_block].rank).since_start();
    result_.events = queue_.executed() - events_before;
    return std::move(result_);
  }

  void OnEvent(SimTime now, std::uint64_t payload) override {
    const auto kind = static_cast<EventKind>(payload >> 56);
    const auto index = static_cast<std::uint32_t>(payload);
    switch (kind) {
      case kStart:
        runs_[index].since = now;
        Advance(now, index);
        break;
      case kWorkEnd: {
        BlockRun& run = runs_[index];
        run.work_pending = false;
        if (run.outstanding == 0) FinishSlice(now, index);
        break;
      }
      case kArrival:
        Arrive(now, index);
        break;
      case kCredit: {
        Connection& connection = connections_[index];
        ++connection.credited;
        if (connection.waiting_sender != kNone) {
          const std::uint32_t block = std::exchange(connection.waiting_sender, kNone);
          Resume(now, block);
        }
        break;
      }
      case kPost: {
        const Message& message = messages_[index];
        SendOnWire(message, index);
        break;
      }
      case kWake:
        Resume(now, index);
        break;
      case kLocalDone:
        OnInjected(now, index);
        OnDelivered(now, index);
        break;
    }
  }

  void OnInjected(SimTime now, std::uint64_t token) override {
    const Message& message = messages_[token];
    if (message.connection == kNone) return;  // A group operation counts when it is delivered.
    BlockRun& run = runs_[message.block];
    WT_CHECK(run.outstanding > 0) << "message injected twice";
    if (--run.outstanding == 0 && !run.work_pending) FinishSlice(now, message.block);
  }

  void OnDelivered(SimTime now, std::uint64_t token) override {
    const auto index = static_cast<std::uint32_t>(token);
    const Message message = messages_[index];
    ReleaseMessage(index);
    if (message.connection == kNone) {
      GroupDelivered(now, message.block);
      return;
    }
    // The flag follows the data: the receiver may go on when the bytes are there and what the
    // sender stored last has crossed the way too.
    const ConnectionPath& path = connections_[message.connection].path;
    const SimTime ready = std::max(now, message.work_end + path.flight) + path.reaction;
    if (ready == now) {
      Arrive(now, message.connection);
    } else {
      queue_.Schedule(ready, *this, Pack(kArrival, message.connection));
    }
  }

 private:
  enum EventKind : std::uint8_t { kStart, kWorkEnd, kArrival, kCredit, kPost, kLocalDone, kWake };
  static std::uint64_t Pack(EventKind kind, std::uint32_t index) {
    return std::uint64_t{kind} << 56 | index;
  }

  std::uint32_t FindConnection(std::uint32_t block, bool sends, const Peer& peer) {
    BlockRun& run = runs_[block];
    auto& few = sends ? run.sends : run.receives;
    for (const auto& [known, connection] : few) {
      if (known == peer) return connection;
    }
    auto& many = sends ? run.many_sends : run.many_receives;
    const std::uint64_t packed = std::uint64_t{peer.rank} << 32 | peer.port;
    if (const auto found = many.find(packed); found != many.end()) return found->second;
    const Rank own = plan_.blocks[block].rank;
    const std::uint32_t channel = plan_.blocks[block].channel;
    const ConnectionKey key = sends ? ConnectionKey{own, peer.rank, channel, peer.port}
                                    : ConnectionKey{peer.rank, own, channel, peer.port};
    const auto [entry, fresh] =
        by_key_.try_emplace(key, static_cast<std::uint32_t>(connections_.size()));
    if (fresh) connections_.push_back({.key = key});
    if (sends) connections_[entry->second].path = setting_.PathOf(plan_.blocks[block], peer);
    constexpr std::size_t kFew = 8;
    if (few.size() < kFew) {
      few.emplace_back(peer, entry->second);
    } else {
      many.emplace(packed, entry->second);
    }
    return entry->second;
  }

  void Arrive(SimTime now, std::uint32_t index) {
    Connection& connection = connections_[index];
    ++connection.arrived;
    if (connection.waiting_receiver != kNone) {
      const std::uint32_t block = std::exchange(connection.waiting_receiver, kNone);
      Resume(now, block);
    }
  }

  // Ends the wait of a block, books it, and tries again.
  void Resume(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    BlockAccount& account = result_.accounts[block];
    if (run.state == BlockState::kWaitCredit) {
      account.wait_credit += now - run.since;
    } else {
      account.wait_data += now - run.since;
    }
    run.state = BlockState::kReady;
    run.since = now;
    Advance(now, block);
  }

  std::uint64_t SliceCount(const PlanOp& op, std::uint32_t slice) const {
    const std::uint64_t size = (op.count + op.slices - 1) / op.slices;
    const std::uint64_t begin = std::min(op.count, size * slice);
    return std::min(op.count - begin, size);
  }

  // Goes on with a block until it has to wait for something. A loop, not a recursion: a plan may
  // hold any number of ops that take no time.
  void Advance(SimTime now, std::uint32_t block) {
    while (ReadyToStart(now, block) && StartSlice(now, block)) {
      RetireSlice(now, block);
    }
  }

  // True when the current slice may start now; else the wait is registered, or the block is at its
  // end.
  bool ReadyToStart(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const Program& program = *plan_.blocks[block].program;
    if (!run.op_loaded) {
      if (run.op_index == program.size()) {
        CloseBlock(now, block);
        return false;
      }
      run.op = program.At(run.op_index);
      run.op_loaded = true;
      run.slice = 0;
    }
    const PlanOp& op = run.op;
    for (const Dependency& dependency : op.wait_for) {
      BlockRun& other = runs_[dependency.block];
      if (other.state != BlockState::kDone && other.op_index <= dependency.op) {
        run.state = BlockState::kWaitDependency;
        other.dependents.push_back(block);
        return false;
      }
    }
    for (const Peer& peer : op.receive_from) {
      Connection& connection = connections_[FindConnection(block, false, peer)];
      if (connection.arrived == connection.consumed) {
        connection.waiting_receiver = block;
        run.state = BlockState::kWaitData;
        return false;
      }
    }
    for (const Peer& peer : op.send_to) {
      Connection& connection = connections_[FindConnection(block, true, peer)];
      if (connection.sent - connection.credited >= connection.path.slots) {
        connection.waiting_sender = block;
        run.state = BlockState::kWaitCredit;
        return false;
      }
    }
    return true;
  }

  // Starts work and messages of the current slice. True when it took no time at all and is
  // complete.
  bool StartSlice(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const PlanOp& op = run.op;
    const Bytes bytes(SliceCount(op, run.slice) * element_bytes_);
    const bool reduces = !op.receive_from.empty() &&
                         (op.has_source || op.receive_from.size() > 1) &&
                         op.combine == Combine::kBlock;
    const BlockTimes& times = setting_.TimesOf(plan_.blocks[block].rank, plan_.blocks[block]);
    const Picoseconds work = times.SliceTime(bytes, reduces);
    const Picoseconds fixed =
        std::min(work, bytes.count() == 0 ? times.empty_slice_overhead : times.slice_overhead);
    run.state = BlockState::kWorking;
    run.since = now;
    run.work_end = now + work;
    result_.accounts[block].overhead += fixed;
    result_.accounts[block].copy += work - fixed;
    run.outstanding = 0;
    run.work_pending = work.count() != 0;
    if (run.work_pending) queue_.Schedule(run.work_end, *this, Pack(kWorkEnd, block));
    if (op.combine == Combine::kBlock) {
      run.outstanding = static_cast<std::uint32_t>(op.send_to.size());
      for (const Peer& peer : op.send_to)
        Post(now, block, FindConnection(block, true, peer), bytes);
    } else {
      StartGroup(block, bytes);
    }
    return run.outstanding == 0 && !run.work_pending;
  }

  void Post(SimTime now, std::uint32_t block, std::uint32_t index, Bytes bytes) {
    Connection& connection = connections_[index];
    ++connection.sent;
    ++result_.messages;
    const std::uint32_t token = AcquireMessage({block, index, runs_[block].work_end, kNone});
    const ConnectionPath& path = connection.path;
    sizes_[token] = Bytes((bytes.count() * path.wire_numerator + path.wire_denominator - 1) /
                          path.wire_denominator);
    if (path.local) {
      queue_.Schedule(now, *this, Pack(kLocalDone, token));
    } else if (path.post.count() != 0) {
      queue_.Schedule(now + path.post, *this, Pack(kPost, token));
    } else {
      SendOnWire(messages_[token], token);
    }
  }

  void SendOnWire(const Message& message, std::uint32_t token) {
    network_.Send(connections_[message.connection].path.route, sizes_[token], token);
  }

  // A switch-combined op is one operation of the network; the block waits until it is complete.
  void StartGroup(std::uint32_t block, Bytes bytes) {
    BlockRun& run = runs_[block];
    const PlanOp& op = run.op;
    const bool multicast = op.combine == Combine::kSwitchMulticast;
    const GroupPath path = setting_.GroupOf(
        multicast ? GroupKind::kMulticast : GroupKind::kReduce, plan_.blocks[block].rank,
        multicast ? op.send_to : op.receive_from, plan_.blocks[block].channel);
    run.outstanding = 1;
    run.group_reaction = path.reaction;
    ++result_.messages;
    for (const Peer& peer : op.send_to) ++connections_[FindConnection(block, true, peer)].sent;
    network_.SendGroup(path.group, bytes, AcquireMessage({block, kNone, run.work_end, kNone}));
  }

  void GroupDelivered(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const SimTime ready = std::max(now, run.work_end) + run.group_reaction;
    for (const Peer& peer : run.op.send_to) {
      queue_.Schedule(ready, *this, Pack(kArrival, FindConnection(block, true, peer)));
    }
    if (--run.outstanding == 0 && !run.work_pending) FinishSlice(now, block);
  }

  void FinishSlice(SimTime now, std::uint32_t block) {
    RetireSlice(now, block);
    Advance(now, block);
  }

  // Books a complete slice: frees the slots it read, moves on to the next slice or op.
  void RetireSlice(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const PlanOp& op = run.op;
    if (now > run.work_end) result_.accounts[block].wait_link += now - run.work_end;
    if (on_span_) {
      on_span_({block, op.step, run.since, now, Bytes(SliceCount(op, run.slice) * element_bytes_)});
    }
    for (const Peer& peer : op.receive_from) {
      const std::uint32_t index = FindConnection(block, false, peer);
      Connection& connection = connections_[index];
      ++connection.consumed;
      if (connection.path.credit_return.count() == 0 && connection.waiting_sender == kNone) {
        ++connection.credited;
      } else {
        queue_.Schedule(now + connection.path.credit_return, *this, Pack(kCredit, index));
      }
    }
    run.since = now;
    run.state = BlockState::kReady;
    if (++run.slice < op.slices) return;
    run.op_loaded = false;
    ++run.op_index;
    if (!run.dependents.empty()) {
      // Woken by events, so that the wake-up order does not depend on how deep this call is nested.
      for (const std::uint32_t other : run.dependents)
        queue_.Schedule(now, *this, Pack(kWake, other));
      run.dependents.clear();
    }
  }

  void CloseBlock(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    run.state = BlockState::kDone;
    --open_blocks_;
    SimTime& end = result_.rank_end[plan_.blocks[block].rank];
    end = std::max(end, now);
    if (now >= last_end_) {
      last_end_ = now;
      result_.last_block = block;
    }
  }

  std::uint32_t AcquireMessage(Message message) {
    if (first_free_ != kNone) {
      const std::uint32_t token = first_free_;
      first_free_ = messages_[token].next_free;
      messages_[token] = message;
      return token;
    }
    messages_.push_back(message);
    sizes_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  void ReleaseMessage(std::uint32_t token) {
    messages_[token].next_free = first_free_;
    first_free_ = token;
  }

  // Names what every stuck rank waits for, first the root causes: peers whose program has ended or
  // that wait for nobody.
  std::string Diagnose() const {
    std::string out =
        fmt::format("deadlock in {} ({}) at {:.3f} us: {} of {} blocks cannot go on",
                    Name(plan_.request.function), plan_.algorithm,
                    ToMicroseconds(queue_.now().since_start()), open_blocks_, runs_.size());
    constexpr std::size_t kShown = 8;
    std::size_t shown = 0;
    for (std::uint32_t b = 0; b < runs_.size() && shown < kShown; ++b) {
      const BlockRun& run = runs_[b];
      if (run.state == BlockState::kDone) continue;
      ++shown;
      const Block& block = plan_.blocks[b];
      out +=
          fmt::format("\n  rank {} channel {} {} op {} of {} (step {}): ", block.rank,
                      block.channel, block.role, run.op_index, block.program->size(), run.op.step);
      out += Reason(b);
    }
    const std::string stall = network_.DescribeStall();
    if (!stall.empty()) out += "\n  network: " + stall;
    return out;
  }

  std::string Reason(std::uint32_t block) const {
    const BlockRun& run = runs_[block];
    if (run.state == BlockState::kWaitData || run.state == BlockState::kWaitCredit) {
      const bool data = run.state == BlockState::kWaitData;
      for (const Connection& connection : connections_) {
        if ((data ? connection.waiting_receiver : connection.waiting_sender) != block) continue;
        return data
                   ? fmt::format(
                         "waits for rank {} to send (port {}; {} messages arrived, all {} read)",
                         connection.key.from, connection.key.port, connection.arrived,
                         connection.consumed)
                   : fmt::format(
                         "waits for rank {} to free a slot (port {}; {} sent, {} of {} slots held)",
                         connection.key.to, connection.key.port, connection.sent,
                         connection.sent - connection.credited, connection.path.slots);
      }
    }
    if (run.state == BlockState::kWaitDependency) return "waits for another block of its rank";
    if (run.state == BlockState::kWorking)
      return fmt::format("has {} messages on the network that never ended", run.outstanding);
    return "was never started";
  }

  const Plan& plan_;
  Network& network_;
  ExecutionSetting& setting_;
  const std::function<void(const TimedSpan&)>& on_span_;
  EventQueue& queue_;
  std::vector<BlockRun> runs_;
  std::uint64_t element_bytes_;
  std::vector<Connection> connections_;
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionKeyHash> by_key_;
  std::vector<Message> messages_;
  std::vector<Bytes> sizes_;
  std::uint32_t first_free_ = kNone;
  std::uint64_t open_blocks_ = 0;
  SimTime last_end_;
  ExecutionResult result_;
};

}  // namespace

ExecutionResult RunTimed(const Plan& plan, Network& network, ExecutionSetting& setting,
                         const std::function<void(const TimedSpan&)>& on_span) {
  return Executor(plan, network, setting, on_span).Run();
}

}  // namespace windtunnel
