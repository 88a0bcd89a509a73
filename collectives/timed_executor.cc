#include "collectives/timed_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/error.h"
#include "sim/number_table.h"

namespace windtunnel {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kSeveral = UINT32_MAX - 1;

struct ConnectionKey {
  Rank from;
  Rank to;
  std::uint32_t channel;
  std::uint32_t port;
  friend bool operator==(const ConnectionKey&, const ConnectionKey&) = default;
};

struct ConnectionKeyHash {
  std::uint64_t operator()(const ConnectionKey& key) const {
    const std::uint64_t hash = MixHash(0, std::uint64_t{key.channel} << 32 | key.port);
    return NearHash(MixHash(hash, key.from), key.to);
  }
};

// Counters wrap around; only their differences count, and those are at most the slots.
struct Connection {
  std::uint32_t sent = 0;                  // Slices started by the sender.
  std::uint32_t arrived = 0;               // Slices the receiving block may read.
  std::uint32_t consumed = 0;              // Slices read.
  std::uint32_t credited = 0;              // Slots the sender knows to be free again.
  std::uint32_t waiting_receiver = kNone;  // Block.
  std::uint32_t waiting_sender = kNone;
  std::uint32_t sender = kNone;  // The block that sends on it, or kSeveral.
  RouteId route = 0;             // Asked for, with the cost, when a sender is first seen.
  std::uint32_t cost = 0;        // Of `costs_`: all of its path but the route, few kinds.
};

// A message that needs more than its connection to be told: a group operation, work of the sender
// that may end after the wire, a late post.
struct Message {
  std::uint32_t block;       // Sender.
  std::uint32_t connection;  // kNone for a group operation: it completes its own block.
  SimTime work_end;          // When the sender's own copying ends.
  Bytes wire;
  std::uint32_t next_free;
  bool posted;
};

enum class BlockState : std::uint8_t {
  kReady,
  kWaitData,
  kWaitCredit,
  kWaitDependency,
  kWorking,
  kDraining,  // At its end but for posted bytes that have not left.
  kDone
};

// Of a block whose ops have several peers or are combined by a switch.
struct WideOp {
  std::span<const Peer> receive_from;
  std::span<const Peer> send_to;
  // Connections found so far of the spans above; a schedule repeats its spans.
  std::vector<std::uint32_t> receives;
  std::vector<std::uint32_t> sends;
  // Peers of the current slice that are known to be ready.
  std::uint32_t ready_receives = 0;
  std::uint32_t ready_sends = 0;
  Picoseconds group_reaction;
};

// A block and its current op. What every message touches fills two cache lines.
struct alignas(64) BlockRun {
  const Program* program = nullptr;
  std::uint64_t op_index = 0;
  std::uint64_t op_count = 0;
  std::uint64_t count = 0;  // Elements of the op.
  SimTime since;            // Start of the current wait or work.
  SimTime work_end;
  const BlockTimes* times = nullptr;
  std::unique_ptr<WideOp> wide;
  // The last single peers and their connections (kNone: not looked up yet).
  Peer from;
  Peer to;
  std::uint32_t receive = kNone;
  std::uint32_t send = kNone;
  std::uint32_t slice = 0;
  std::uint32_t slices = 1;
  std::uint32_t outstanding =
      0;  // Messages of the current slice not yet injected (or group operations not delivered).
  std::uint32_t posted_outstanding = 0;
  std::uint32_t receive_count = 0;
  std::uint32_t send_count = 0;
  std::uint32_t first_dependent = kNone;  // Blocks that wait for an op of this one, oldest first.
  BlockState state = BlockState::kReady;
  Combine combine = Combine::kBlock;
  bool work_pending = false;  // The work timer of the current slice is running.
  bool op_loaded = false;
  bool reduces = false;
  bool posted = false;
  bool waits = false;  // The op has dependencies left, in BlockOrder.
};
static_assert(sizeof(BlockRun) == 128);

// The rest of a block, which few messages touch.
struct BlockOrder {
  std::span<const Dependency> wait_for;  // What is left of it.
  std::uint32_t last_dependent = kNone;
  std::uint32_t next_dependent = kNone;
};

class Executor final : public EventHandler, public NetworkClient {
 public:
  Executor(const Plan& plan, Network& network, ExecutionSetting& setting,
           const ExecutionWatch& watch)
      : plan_(plan),
        network_(network),
        setting_(setting),
        on_span_(watch.on_span),
        watched_(watch.connections),
        queue_(network.queue()),
        runs_(plan.blocks.size()),
        orders_(plan.blocks.size()),
        element_bytes_(SizeOf(plan.request.type)) {
    result_.accounts.resize(plan.blocks.size());
    result_.rank_end.resize(plan.request.rank_count);
  }

  ExecutionResult Run() {
    network_.set_client(this);
    const std::uint64_t events_before = queue_.executed();
    open_blocks_ = plan_.blocks.size();
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const Block& block = plan_.blocks[b];
      runs_[b].program = block.program.get();
      runs_[b].op_count = block.program->size();
      queue_.Schedule(setting_.StartOf(block.rank), *this, Pack(kStart, b));
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
    if (watched_ != nullptr) {
      watched_->clear();
      for (const ConnectionUse& use : uses_) {
        if (use.messages > 0) watched_->push_back(use);
      }
      std::sort(watched_->begin(), watched_->end(), [](const auto& a, const auto& b) {
        return std::tie(a.from, a.to, a.channel, a.port) <
               std::tie(b.from, b.to, b.channel, b.port);
      });
    }
    return std::move(result_);
  }

  void OnEvent(SimTime now, std::uint64_t payload) override {
    const auto kind = static_cast<EventKind>(payload >> 56);
    const auto index = static_cast<std::uint32_t>(payload);
    switch (kind) {
      case kStart: {
        BlockRun& run = runs_[index];
        run.since = now;
        run.times = &setting_.TimesOf(plan_.blocks[index].rank, plan_.blocks[index]);
        Advance(now, index);
        break;
      }
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
        network_.Send(connections_[message.connection].route, message.wire, index);
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
    if ((token & kPlainToken) != 0) {
      Injected(now, connections_[static_cast<std::uint32_t>(token)].sender,
               (token & kPostedToken) != 0);
      return;
    }
    const Message& message = messages_[token];
    if (message.connection == kNone) return;  // A group operation counts when it is delivered.
    Injected(now, message.block, message.posted);
  }

  void OnDelivered(SimTime now, std::uint64_t token) override {
    const auto index = static_cast<std::uint32_t>(token);
    if ((token & kPlainToken) != 0) {
      Delivered(now, now, index);
      return;
    }
    const Message message = messages_[index];
    ReleaseMessage(index);
    if (message.connection == kNone) {
      GroupDelivered(now, message.block);
    } else {
      Delivered(now, message.work_end + CostAt(message.connection).flight, message.connection);
    }
  }

 private:
  enum EventKind : std::uint8_t { kStart, kWorkEnd, kArrival, kCredit, kPost, kLocalDone, kWake };
  static std::uint64_t Pack(EventKind kind, std::uint32_t index) {
    return std::uint64_t{kind} << 56 | index;
  }
  // Tokens below 2^32 are messages; a plain one is its connection and nothing else.
  static constexpr std::uint64_t kPlainToken = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kPostedToken = std::uint64_t{1} << 41;

  void Injected(SimTime now, std::uint32_t block, bool posted) {
    BlockRun& run = runs_[block];
    if (posted) {
      if (--run.posted_outstanding == 0 && run.state == BlockState::kDraining) {
        if (now > run.since) result_.accounts[block].wait_link += now - run.since;
        CloseBlock(now, block);
      }
      return;
    }
    WT_CHECK(run.outstanding > 0) << "message injected twice";
    if (--run.outstanding == 0 && !run.work_pending) FinishSlice(now, block);
  }

  // The flag follows the data: the receiver may go on when the bytes are there and what the
  // sender stored last has crossed the way too.
  void Delivered(SimTime now, SimTime last_store, std::uint32_t index) {
    const SimTime ready = std::max(now, last_store) + CostAt(index).reaction;
    if (ready == now) {
      Arrive(now, index);
    } else {
      queue_.Schedule(ready, *this, Pack(kArrival, index));
    }
  }

  // Paths of equal cost share one entry; the newest are the likeliest.
  std::uint32_t CostOf(ConnectionPath path) {
    path.route = 0;
    constexpr std::size_t kLookedAt = 16;
    for (std::size_t i = costs_.size(); i-- > 0 && i + kLookedAt >= costs_.size();) {
      if (costs_[i] == path) return static_cast<std::uint32_t>(i);
    }
    costs_.push_back(path);
    return static_cast<std::uint32_t>(costs_.size() - 1);
  }
  const ConnectionPath& CostAt(std::uint32_t connection) const {
    return costs_[connections_[connection].cost];
  }

  std::uint32_t FindConnection(std::uint32_t block, bool sends, const Peer& peer) {
    const Block& own = plan_.blocks[block];
    const auto [index, fresh] =
        table_.NumberOf(sends ? ConnectionKey{own.rank, peer.rank, own.channel, peer.port}
                              : ConnectionKey{peer.rank, own.rank, own.channel, peer.port});
    if (fresh) connections_.emplace_back();
    if (sends) {
      Connection& connection = connections_[index];
      if (connection.sender == kNone) {
        connection.sender = block;
        const ConnectionPath path = setting_.PathOf(own, peer);
        connection.route = path.route;
        connection.cost = CostOf(path);
      } else if (connection.sender != block) {
        connection.sender = kSeveral;
      }
    }
    return index;
  }
  std::uint32_t ReceiveOf(BlockRun& run, std::uint32_t block, std::uint32_t k) {
    if (run.receive_count == 1) {
      if (run.receive == kNone) run.receive = FindConnection(block, false, run.from);
      return run.receive;
    }
    WideOp& wide = *run.wide;
    if (k == wide.receives.size()) {
      wide.receives.push_back(FindConnection(block, false, wide.receive_from[k]));
    }
    return wide.receives[k];
  }
  std::uint32_t SendOf(BlockRun& run, std::uint32_t block, std::uint32_t k) {
    if (run.send_count == 1) {
      if (run.send == kNone) run.send = FindConnection(block, true, run.to);
      return run.send;
    }
    WideOp& wide = *run.wide;
    if (k == wide.sends.size()) {
      wide.sends.push_back(FindConnection(block, true, wide.send_to[k]));
    }
    return wide.sends[k];
  }

  void NoteSend(SimTime now, std::uint32_t block, std::uint32_t index, Bytes bytes) {
    if (uses_.size() < connections_.size()) uses_.resize(connections_.size());
    ConnectionUse& use = uses_[index];
    if (use.messages++ == 0) {
      const BlockRun& run = runs_[block];
      use.from = plan_.blocks[block].rank;
      use.channel = plan_.blocks[block].channel;
      const Peer to = PeerOf(run, index);
      use.to = to.rank;
      use.port = to.port;
      use.first_send = now;
    }
    use.bytes += bytes;
  }
  // The peer that the running op reaches by a connection.
  static Peer PeerOf(const BlockRun& run, std::uint32_t index) {
    if (run.send_count == 1) return run.to;
    const WideOp& wide = *run.wide;
    for (std::size_t k = 0; k < wide.sends.size(); ++k) {
      if (wide.sends[k] == index) return wide.send_to[k];
    }
    return {};
  }

  void Arrive(SimTime now, std::uint32_t index) {
    Connection& connection = connections_[index];
    ++connection.arrived;
    if (watched_ != nullptr && index < uses_.size()) uses_[index].last_ready = now;
    if (connection.waiting_receiver != kNone) {
      const std::uint32_t block = std::exchange(connection.waiting_receiver, kNone);
      Resume(now, block);
    }
  }

  // Ends the wait of a block, books it, and tries again.
  void Resume(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    if (now != run.since) {
      BlockAccount& account = result_.accounts[block];
      (run.state == BlockState::kWaitCredit ? account.wait_credit : account.wait_data) +=
          now - run.since;
    }
    run.state = BlockState::kReady;
    run.since = now;
    Advance(now, block);
  }

  std::uint64_t SliceCount(const BlockRun& run) const {
    if (run.slices == 1) return run.count;
    const std::uint64_t size = (run.count + run.slices - 1) / run.slices;
    const std::uint64_t begin = std::min(run.count, size * run.slice);
    return std::min(run.count - begin, size);
  }

  // Goes on with a block until it has to wait for something. A loop, not a recursion: a plan may
  // hold any number of ops that take no time.
  void Advance(SimTime now, std::uint32_t block) {
    while (ReadyToStart(now, block) && StartSlice(now, block)) {
      RetireSlice(now, block);
    }
  }

  static std::uint32_t StepOf(const BlockRun& run) {
    return run.op_index < run.op_count ? run.program->At(run.op_index).step : 0;
  }

  void LoadOp(BlockRun& run, std::uint32_t block) {
    const PlanOp op = run.program->At(run.op_index);
    run.op_loaded = true;
    run.slice = 0;
    run.slices = op.slices;
    run.count = op.count;
    run.combine = op.combine;
    run.posted = op.posted && op.combine == Combine::kBlock;
    run.reduces = !op.receive_from.empty() && (op.has_source || op.receive_from.size() > 1) &&
                  op.combine == Combine::kBlock;
    run.waits = !op.wait_for.empty();
    if (run.waits) orders_[block].wait_for = op.wait_for;
    run.receive_count = static_cast<std::uint32_t>(op.receive_from.size());
    run.send_count = static_cast<std::uint32_t>(op.send_to.size());
    if (run.receive_count == 1 && op.receive_from[0] != run.from) {
      run.from = op.receive_from[0];
      run.receive = kNone;
    }
    if (run.send_count == 1 && op.send_to[0] != run.to) {
      run.to = op.send_to[0];
      run.send = kNone;
    }
    if (run.receive_count <= 1 && run.send_count <= 1 && run.combine == Combine::kBlock) return;
    if (run.wide == nullptr) run.wide = std::make_unique<WideOp>();
    const auto take = [](std::span<const Peer> peers, std::span<const Peer>& known,
                         std::vector<std::uint32_t>& connections) {
      if (peers.data() == known.data() && peers.size() == known.size()) return;
      known = peers;
      connections.clear();
    };
    take(op.receive_from, run.wide->receive_from, run.wide->receives);
    take(op.send_to, run.wide->send_to, run.wide->sends);
  }

  // Else the wait is registered.
  bool DependenciesAreDone(BlockRun& run, std::uint32_t block) {
    std::span<const Dependency>& wait_for = orders_[block].wait_for;
    for (; !wait_for.empty(); wait_for = wait_for.subspan(1)) {
      const Dependency& dependency = wait_for.front();
      BlockRun& other = runs_[dependency.block];
      if (other.state == BlockState::kDone || other.op_index > dependency.op) continue;
      run.state = BlockState::kWaitDependency;
      BlockOrder& order = orders_[dependency.block];
      (other.first_dependent == kNone ? other.first_dependent
                                      : orders_[order.last_dependent].next_dependent) = block;
      order.last_dependent = block;
      return false;
    }
    run.waits = false;
    return true;
  }

  // True when the current slice may start now; else the wait is registered, or the block is at its
  // end.
  bool ReadyToStart(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    if (!run.op_loaded) {
      if (run.op_index == run.op_count) {
        if (run.posted_outstanding != 0) {
          run.state = BlockState::kDraining;
        } else {
          CloseBlock(now, block);
        }
        return false;
      }
      LoadOp(run, block);
    }
    if (run.waits && !DependenciesAreDone(run, block)) return false;
    if (run.receive_count != 0) {
      std::uint32_t alone = 0;
      std::uint32_t& k = run.receive_count == 1 ? alone : run.wide->ready_receives;
      for (; k < run.receive_count; ++k) {
        Connection& connection = connections_[ReceiveOf(run, block, k)];
        if (connection.arrived == connection.consumed) {
          connection.waiting_receiver = block;
          run.state = BlockState::kWaitData;
          return false;
        }
      }
    }
    if (run.send_count != 0) {
      std::uint32_t alone = 0;
      std::uint32_t& k = run.send_count == 1 ? alone : run.wide->ready_sends;
      for (; k < run.send_count; ++k) {
        Connection& connection = connections_[SendOf(run, block, k)];
        if (connection.sent - connection.credited >= costs_[connection.cost].slots) {
          connection.waiting_sender = block;
          run.state = BlockState::kWaitCredit;
          return false;
        }
      }
    }
    return true;
  }

  // What a slice costs the block. Few different slices occur at a time.
  struct Work {
    const BlockTimes* times = nullptr;
    Bytes bytes;
    bool reduces = false;
    Picoseconds whole;
    Picoseconds fixed;
  };
  const Work& WorkOf(const BlockTimes& times, Bytes bytes, bool reduces) {
    Work& work = works_[(bytes.count() + (bytes.count() >> 5) + (reduces ? 1 : 0)) % kWorks];
    if (work.times != &times || work.bytes != bytes || work.reduces != reduces) {
      const Picoseconds whole = times.SliceTime(bytes, reduces);
      work = {
          &times, bytes, reduces, whole,
          std::min(whole, bytes.count() == 0 ? times.empty_slice_overhead : times.slice_overhead)};
    }
    return work;
  }

  // Starts work and messages of the current slice. True when it took no time at all and is
  // complete.
  bool StartSlice(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const Bytes bytes(SliceCount(run) * element_bytes_);
    const Work& work = WorkOf(*run.times, bytes, run.reduces);
    run.state = BlockState::kWorking;
    run.since = now;
    run.work_end = now;
    run.outstanding = 0;
    run.work_pending = work.whole.count() != 0;
    if (run.work_pending) {
      run.work_end = now + work.whole;
      result_.accounts[block].overhead += work.fixed;
      result_.accounts[block].copy += work.whole - work.fixed;
      queue_.Schedule(run.work_end, *this, Pack(kWorkEnd, block));
    }
    if (run.combine == Combine::kBlock) {
      (run.posted ? run.posted_outstanding : run.outstanding) += run.send_count;
      const std::uint32_t count = run.send_count;
      for (std::uint32_t k = 0; k < count; ++k) Post(now, run, block, SendOf(run, block, k), bytes);
    } else {
      StartGroup(block, bytes);
    }
    return run.outstanding == 0 && !run.work_pending;
  }

  void Post(SimTime now, const BlockRun& run, std::uint32_t block, std::uint32_t index,
            Bytes bytes) {
    Connection& connection = connections_[index];
    ++connection.sent;
    ++result_.messages;
    if (watched_ != nullptr) NoteSend(now, block, index, bytes);
    const ConnectionPath& path = costs_[connection.cost];
    const Bytes wire =
        path.wire_numerator == path.wire_denominator
            ? bytes
            : Bytes((bytes.count() * path.wire_numerator + path.wire_denominator - 1) /
                    path.wire_denominator);
    const bool late = path.local || path.post.count() != 0;
    if (!late && !run.work_pending && path.flight.count() == 0 && connection.sender == block) {
      network_.Send(connection.route, wire, kPlainToken | (run.posted ? kPostedToken : 0) | index);
      return;
    }
    const std::uint32_t token =
        AcquireMessage({block, index, run.work_end, wire, kNone, run.posted});
    if (path.local) {
      queue_.Schedule(now, *this, Pack(kLocalDone, token));
    } else if (late) {
      queue_.Schedule(now + path.post, *this, Pack(kPost, token));
    } else {
      network_.Send(connection.route, wire, token);
    }
  }

  // A switch-combined op is one operation of the network; the block waits until it is complete.
  void StartGroup(std::uint32_t block, Bytes bytes) {
    BlockRun& run = runs_[block];
    WideOp& wide = *run.wide;
    const bool multicast = run.combine == Combine::kSwitchMulticast;
    const GroupPath path = setting_.GroupOf(
        multicast ? GroupKind::kMulticast : GroupKind::kReduce, plan_.blocks[block].rank,
        multicast ? wide.send_to : wide.receive_from, plan_.blocks[block].channel);
    run.outstanding = 1;
    wide.group_reaction = path.reaction;
    ++result_.messages;
    for (std::uint32_t k = 0; k < run.send_count; ++k) ++connections_[SendOf(run, block, k)].sent;
    network_.SendGroup(path.group, bytes,
                       AcquireMessage({block, kNone, run.work_end, bytes, kNone, false}));
  }

  void GroupDelivered(SimTime now, std::uint32_t block) {
    BlockRun& run = runs_[block];
    const SimTime ready = std::max(now, run.work_end) + run.wide->group_reaction;
    for (std::uint32_t k = 0; k < run.send_count; ++k) {
      queue_.Schedule(ready, *this, Pack(kArrival, SendOf(run, block, k)));
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
    if (now > run.work_end) result_.accounts[block].wait_link += now - run.work_end;
    if (on_span_) {
      on_span_({block, StepOf(run), run.since, now, Bytes(SliceCount(run) * element_bytes_)});
    }
    for (std::uint32_t k = 0; k < run.receive_count; ++k) {
      const std::uint32_t index = ReceiveOf(run, block, k);
      Connection& connection = connections_[index];
      ++connection.consumed;
      const Picoseconds credit_return = costs_[connection.cost].credit_return;
      if (credit_return.count() == 0 && connection.waiting_sender == kNone) {
        ++connection.credited;
      } else {
        queue_.Schedule(now + credit_return, *this, Pack(kCredit, index));
      }
    }
    run.since = now;
    run.state = BlockState::kReady;
    if (run.wide != nullptr) run.wide->ready_receives = run.wide->ready_sends = 0;
    if (++run.slice < run.slices) return;
    run.op_loaded = false;
    ++run.op_index;
    // Woken by events, so that the wake-up order does not depend on how deep this call is nested.
    for (std::uint32_t other = std::exchange(run.first_dependent, kNone); other != kNone;
         other = std::exchange(orders_[other].next_dependent, kNone)) {
      queue_.Schedule(now, *this, Pack(kWake, other));
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
    if (open_blocks_ == 0) network_.EndOfRun();
  }

  std::uint32_t AcquireMessage(const Message& message) {
    if (first_free_ != kNone) {
      const std::uint32_t token = first_free_;
      first_free_ = messages_[token].next_free;
      messages_[token] = message;
      return token;
    }
    messages_.push_back(message);
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
      out += fmt::format("\n  rank {} channel {} {} op {} of {} (step {}): ", block.rank,
                         block.channel, block.role, run.op_index, run.op_count, StepOf(run));
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
      for (std::uint32_t i = 0; i < connections_.size(); ++i) {
        const Connection& connection = connections_[i];
        const ConnectionKey& key = table_.key(i);
        if ((data ? connection.waiting_receiver : connection.waiting_sender) != block) continue;
        return data
                   ? fmt::format(
                         "waits for rank {} to send (port {}; {} messages arrived, all {} read)",
                         key.from, key.port, connection.arrived, connection.consumed)
                   : fmt::format(
                         "waits for rank {} to free a slot (port {}; {} sent, {} of {} slots held)",
                         key.to, key.port, connection.sent, connection.sent - connection.credited,
                         costs_[connection.cost].slots);
      }
    }
    if (run.state == BlockState::kWaitDependency) return "waits for another block of its rank";
    if (run.state == BlockState::kWorking || run.state == BlockState::kDraining)
      return fmt::format("has {} messages on the network that never ended",
                         run.outstanding + run.posted_outstanding);
    return "was never started";
  }

  const Plan& plan_;
  Network& network_;
  ExecutionSetting& setting_;
  const std::function<void(const TimedSpan&)>& on_span_;
  std::vector<ConnectionUse>* watched_;
  std::vector<ConnectionUse> uses_;  // By connection, when watched.
  EventQueue& queue_;
  std::vector<BlockRun> runs_;
  std::vector<BlockOrder> orders_;
  std::uint64_t element_bytes_;
  std::vector<Connection> connections_;
  std::vector<ConnectionPath> costs_ = std::vector<ConnectionPath>(1);
  NumberTable<ConnectionKey, ConnectionKeyHash> table_;  // Their numbers by key.
  std::vector<Message> messages_;
  static constexpr std::size_t kWorks = 16;
  std::array<Work, kWorks> works_;
  std::uint32_t first_free_ = kNone;
  std::uint64_t open_blocks_ = 0;
  SimTime last_end_;
  ExecutionResult result_;
};

}  // namespace

ExecutionResult RunTimed(const Plan& plan, Network& network, ExecutionSetting& setting,
                         const ExecutionWatch& watch) {
  return Executor(plan, network, setting, watch).Run();
}

}  // namespace windtunnel
