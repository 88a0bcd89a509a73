// An execution plan of MSCCL++ as a plan: one-sided access becomes connections.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "collectives/msccl/mscclpp_json.h"
#include "collectives/msccl/mscclpp_operations.h"
#include "sim/error.h"

namespace windtunnel::mscclpp {
namespace {

// Ports of the connections of one thread block; its index is their channel.
constexpr std::uint32_t kPutPort = 0;
constexpr std::uint32_t kAskPort = 1;
constexpr std::uint32_t kReplyPort = 2;
constexpr std::uint32_t kStagedPort = 3;
constexpr std::uint32_t kStoredPort = 4;
constexpr std::uint32_t kNeverPort = 5;  // Nobody sends on it: a wait that no signal meets.
constexpr std::uint32_t kOwnPort = 6;    // And up: further operands a block hands itself.

// An op of a block under construction, and where it is.
struct DraftOp {
  PlanOp op;
  std::vector<Peer> receive_from;
  std::vector<Peer> send_to;
  std::vector<Dependency> wait_for;  // Blocks are indices of drafts.
};
struct Draft {
  Rank rank = 0;
  std::uint32_t channel = 0;
  std::string_view role;
  std::vector<DraftOp> ops;
};
struct OpAt {
  std::size_t draft = 0;
  std::size_t op = 0;
};

enum class Helper : std::uint8_t { kLanding, kServing, kMember };
constexpr std::string_view kHelperRoles[] = {"mscclpp landing", "mscclpp serving",
                                             "mscclpp member"};

class Lowering {
 public:
  Lowering(const ExecutionPlan& plan, std::uint64_t unit) : plan_(plan), unit_(unit) {}

  std::vector<Block> Lower() {
    for (Rank rank = 0; rank < plan_.gpus.size(); ++rank) {
      const Gpu& gpu = plan_.gpus[rank];
      for (std::uint32_t b = 0; b < gpu.blocks.size(); ++b) {
        rank_ = rank;
        block_ = b;
        draft_ = drafts_.size();
        drafts_.push_back({rank, b, "mscclpp", {}});
        const auto& ops = gpu.blocks[b].operations;
        for (index_ = 0; index_ < ops.size(); ++index_) LowerOne(ops[index_]);
      }
    }
    ResolveBarriers();
    ResolveWaits();
    ResolvePackets();
    return Blocks();
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) const {
    throw ConfigError(
        {.file = plan_.file,
         .field = fmt::format("gpus[{}].threadblocks[{}].ops[{}]", rank_, block_, index_),
         .value = plan_.gpus[rank_].blocks[block_].operations[index_].name,
         .problem = problem});
  }
  BufferPosition At(const Place& place) const {
    return {place.buffer, std::uint64_t{place.chunk} * unit_};
  }
  std::uint64_t CountOf(const Place& place) const { return place.count * unit_; }

  std::size_t Append(std::size_t draft, DraftOp op) {
    op.op.step = static_cast<std::uint32_t>(index_);
    drafts_[draft].ops.push_back(std::move(op));
    return drafts_[draft].ops.size() - 1;
  }
  std::size_t AppendOwn(DraftOp op) { return Append(draft_, std::move(op)); }

  std::size_t HelperAt(Helper helper, Rank rank) {
    const auto [found, fresh] = helpers_.try_emplace({helper, rank_, block_, rank}, drafts_.size());
    if (fresh)
      drafts_.push_back({rank, block_, kHelperRoles[static_cast<std::size_t>(helper)], {}});
    return found->second;
  }

  void LowerOne(const Operation& op) {
    const OperationForm& form = *FindForm(op.name);
    switch (form.kind) {
      case OperationKind::kNothing:
        return;
      case OperationKind::kSignal:
        return Signal(op);
      case OperationKind::kWait:
        return Wait(op);
      case OperationKind::kBarrier:
        return Barrier(op);
      case OperationKind::kMove:
        for (std::size_t i = 0; i < op.destinations.size(); ++i) {
          const Place& source = op.sources[op.sources.size() == 1 ? 0 : i];
          Combine({source}, {op.destinations[i]}, form);
        }
        if (form.signals) Signal(op);
        return;
      case OperationKind::kCombine:
        return Combine(op.sources, op.destinations, form);
      case OperationKind::kSwitchReduceStore:
      case OperationKind::kSwitchStore:
        return ThroughSwitch(op, form.kind == OperationKind::kSwitchReduceStore);
    }
  }

  // The sum of `sources` to all `destinations`.
  void Combine(const std::vector<Place>& sources, const std::vector<Place>& destinations,
               const OperationForm& form) {
    DraftOp main;
    main.op.count = CountOf(sources.front());
    std::set<std::int32_t> met;
    std::uint32_t handed = 0;
    const Place* first_packets = nullptr;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Place& source = sources[i];
      const bool packets = i == 0 ? form.first_is_packets : form.others_are_packets;
      if (source.rank >= 0) {
        if (!met.insert(source.rank).second) Fail("reads twice from one rank");
        main.receive_from.push_back(Ask(source));
      } else if (!main.op.has_source) {
        main.op.has_source = true;
        main.op.source = At(source);
        if (packets) first_packets = &source;
      } else {
        const Peer own{rank_, kOwnPort + handed++};
        DraftOp hand_over;
        hand_over.op = {.count = CountOf(source), .has_source = true, .source = At(source)};
        hand_over.send_to = {own};
        const std::size_t at = AppendOwn(std::move(hand_over));
        if (packets) NotePacketRead({draft_, at}, source);
        main.receive_from.push_back(own);
      }
    }
    met.clear();
    std::vector<const Place*> remote, further;
    const Place* own_destination = nullptr;
    bool packets_in_own = false;
    for (std::size_t i = 0; i < destinations.size(); ++i) {
      const Place& place = destinations[i];
      if (place.rank >= 0) {
        if (!met.insert(place.rank).second) Fail("writes twice to one rank");
        remote.push_back(&place);
        main.send_to.push_back({static_cast<Rank>(place.rank), kPutPort});
      } else if (!main.op.has_destination) {
        main.op.has_destination = true;
        main.op.destination = At(place);
        own_destination = &place;
        packets_in_own = form.all_packets || (form.sends_packets && i > 0);
      } else {
        further.push_back(&place);
      }
    }
    const std::size_t at = AppendOwn(std::move(main));
    if (first_packets != nullptr) NotePacketRead({draft_, at}, *first_packets);
    if (packets_in_own) NotePacketWrite(rank_, *own_destination, {draft_, at});
    for (const Place* place : remote) {
      DraftOp landing;
      landing.op = {.count = CountOf(*place), .has_destination = true, .destination = At(*place)};
      landing.receive_from = {{rank_, kPutPort}};
      const auto to = static_cast<Rank>(place->rank);
      const std::size_t draft = HelperAt(Helper::kLanding, to);
      const std::size_t landed = Append(draft, std::move(landing));
      if (form.all_packets || form.sends_packets) NotePacketWrite(to, *place, {draft, landed});
    }
    for (const Place* place : further) {
      DraftOp copy;
      copy.op = {.count = CountOf(*place),
                 .has_source = true,
                 .has_destination = true,
                 .source = At(*own_destination),
                 .destination = At(*place)};
      const std::size_t copied = AppendOwn(std::move(copy));
      if (form.all_packets || form.sends_packets) NotePacketWrite(rank_, *place, {draft_, copied});
    }
  }

  // Asks the owner of `source` for it; the connection on which it comes.
  Peer Ask(const Place& source) {
    const auto owner = static_cast<Rank>(source.rank);
    DraftOp ask;
    ask.send_to = {{owner, kAskPort}};
    AppendOwn(std::move(ask));
    const std::size_t draft = HelperAt(Helper::kServing, owner);
    DraftOp asked;
    asked.receive_from = {{rank_, kAskPort}};
    Append(draft, std::move(asked));
    DraftOp reply;
    reply.op = {.count = CountOf(source), .has_source = true, .source = At(source)};
    reply.send_to = {{rank_, kReplyPort}};
    Append(draft, std::move(reply));
    return {owner, kReplyPort};
  }

  void ThroughSwitch(const Operation& op, bool reduces) {
    const Place& source = op.sources.front();
    const Place& destination = op.destinations.front();
    if (op.sources.size() != 1 || op.destinations.size() != 1) Fail("has several places");
    DraftOp store;
    store.op = {.count = CountOf(destination),
                .has_source = true,
                .has_destination = true,
                .combine = windtunnel::Combine::kSwitchMulticast,
                .source = At(source),
                .destination = At(destination)};
    if (reduces) {
      if (std::find(destination.members.begin(), destination.members.end(), rank_) ==
          destination.members.end())
        Fail("stores to a group its own rank is not in");
      DraftOp load;
      load.op = {.count = CountOf(source),
                 .has_source = true,
                 .has_destination = true,
                 .scale = true,
                 .combine = windtunnel::Combine::kSwitchReduce,
                 .source = At(source),
                 .destination = At(destination)};
      for (const Rank member : source.members) {
        load.receive_from.push_back({member, kStagedPort});
        DraftOp staged;
        staged.send_to = {{rank_, kStagedPort}};
        Append(HelperAt(Helper::kMember, member), std::move(staged));
      }
      AppendOwn(std::move(load));
      store.op.source = At(destination);
    } else if (source.rank >= 0) {
      Fail("stores what another rank holds");
    }
    for (const Rank member : destination.members) {
      store.send_to.push_back({member, kStoredPort});
      DraftOp stored;
      stored.receive_from = {{rank_, kStoredPort}};
      Append(HelperAt(Helper::kMember, member), std::move(stored));
    }
    AppendOwn(std::move(store));
  }

  // A channel from both ends: (rank, peer, memory or port, which of those to this peer).
  using ChannelKey = std::tuple<Rank, Rank, bool, std::uint32_t>;
  struct Signals {
    std::uint32_t block = 0;
    std::vector<OpAt> landings;
  };
  struct WaitAt {
    OpAt op;
    ChannelKey channel;  // As the signalling rank sees it.
    std::size_t which = 0;
  };

  ChannelKey KeyOf(std::uint32_t channel) const {
    const Gpu& gpu = plan_.gpus[rank_];
    const bool memory = channel < gpu.memory_channels;
    std::uint32_t before = 0;
    for (std::uint32_t c = memory ? 0 : gpu.memory_channels; c < channel; ++c)
      before += gpu.channel_peers[c] == gpu.channel_peers[channel] ? 1 : 0;
    return {rank_, gpu.channel_peers[channel], memory, before};
  }

  void Signal(const Operation& op) {
    for (const std::uint32_t channel : op.channels) {
      const ChannelKey key = KeyOf(channel);
      const Rank peer = std::get<1>(key);
      DraftOp signal;
      signal.send_to = {{peer, kPutPort}};
      AppendOwn(std::move(signal));
      const std::size_t draft = HelperAt(Helper::kLanding, peer);
      DraftOp landing;
      landing.receive_from = {{rank_, kPutPort}};
      const std::size_t at = Append(draft, std::move(landing));
      const auto [found, fresh] = signals_.try_emplace(key, Signals{block_, {}});
      if (!fresh && found->second.block != block_)
        Fail("a second thread block signals on this channel");
      found->second.landings.push_back({draft, at});
    }
  }

  void Wait(const Operation& op) {
    for (const std::uint32_t channel : op.channels) {
      const auto [own, peer, memory, which] = KeyOf(channel);
      const ChannelKey there{peer, own, memory, which};
      const auto [found, fresh] = waits_on_.try_emplace(there, std::pair{block_, std::size_t{0}});
      if (!fresh && found->second.first != block_)
        Fail("a second thread block waits on this channel");
      waits_.push_back({{draft_, AppendOwn({})}, there, found->second.second++});
    }
  }

  void Barrier(const Operation& op) {
    // The op to be waited for, then the op that waits for the others.
    const std::size_t arrive = AppendOwn({});
    const std::size_t leave = AppendOwn({});
    barriers_[{rank_, op.barrier}][draft_].push_back({arrive, leave});
    auto& expected = barrier_blocks_[{rank_, op.barrier}];
    if (expected != 0 && expected != op.barrier_blocks)
      Fail("an earlier use of this barrier had another number of thread blocks");
    expected = op.barrier_blocks;
  }

  void ResolveBarriers() {
    for (const auto& [key, uses] : barriers_) {
      const std::size_t times = uses.begin()->second.size();
      const bool even = std::all_of(uses.begin(), uses.end(),
                                    [&](const auto& use) { return use.second.size() == times; });
      if (uses.size() != barrier_blocks_[key] || !even) {
        throw ConfigError(
            {.file = plan_.file,
             .field = fmt::format("gpus[{}] barrier {}", key.first, key.second),
             .value = std::to_string(uses.size()),
             .problem = "thread blocks that use the barrier do not fit",
             .expected = fmt::format("{}, each equally often", barrier_blocks_[key])});
      }
      for (std::size_t i = 0; i < times; ++i) {
        for (const auto& [draft, ops] : uses) {
          for (const auto& [other, others] : uses) {
            if (other == draft) continue;
            drafts_[draft].ops[ops[i].second].wait_for.push_back(
                {static_cast<std::uint32_t>(other), others[i].first});
          }
        }
      }
    }
  }

  void ResolveWaits() {
    for (const WaitAt& wait : waits_) {
      DraftOp& op = drafts_[wait.op.draft].ops[wait.op.op];
      const auto found = signals_.find(wait.channel);
      if (found == signals_.end() || wait.which >= found->second.landings.size()) {
        op.receive_from = {{std::get<0>(wait.channel), kNeverPort}};
        continue;
      }
      const OpAt& landing = found->second.landings[wait.which];
      op.wait_for.push_back({static_cast<std::uint32_t>(landing.draft), landing.op});
    }
  }

  // Packets: every chunk carries a flag that changes once a run, so one write per chunk counts.
  struct PacketRead {
    OpAt op;
    Place place;
    Rank rank = 0;
  };
  void NotePacketWrite(Rank rank, const Place& place, OpAt op) {
    for (std::uint32_t c = 0; c < place.count; ++c) {
      if (!packets_.try_emplace({rank, place.buffer, place.chunk + c}, op).second)
        Fail(fmt::format("packets go to chunk {} of rank {} a second time", place.chunk + c, rank));
    }
  }
  void NotePacketRead(OpAt op, const Place& place) { packet_reads_.push_back({op, place, rank_}); }
  void ResolvePackets() {
    for (const PacketRead& read : packet_reads_) {
      DraftOp& op = drafts_[read.op.draft].ops[read.op.op];
      for (std::uint32_t c = 0; c < read.place.count; ++c) {
        const auto found = packets_.find({read.rank, read.place.buffer, read.place.chunk + c});
        if (found == packets_.end()) continue;  // The proof names the read of what nobody wrote.
        const Dependency dependency{static_cast<std::uint32_t>(found->second.draft),
                                    found->second.op};
        const bool known =
            std::any_of(op.wait_for.begin(), op.wait_for.end(), [&](const Dependency& other) {
              return other.block == dependency.block && other.op == dependency.op;
            });
        if (!known) op.wait_for.push_back(dependency);
      }
    }
  }

  // Drafts in the order of ranks.
  std::vector<Block> Blocks() {
    std::vector<std::size_t> order(drafts_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(drafts_[a].rank, drafts_[a].channel) <
             std::tie(drafts_[b].rank, drafts_[b].channel);
    });
    std::vector<std::uint32_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
    std::vector<Block> blocks;
    for (const std::size_t index : order) {
      Draft& draft = drafts_[index];
      auto list = std::make_shared<ListProgram>();
      for (DraftOp& op : draft.ops) {
        for (Dependency& dependency : op.wait_for) dependency.block = place[dependency.block];
        op.op.receive_from = op.receive_from;
        op.op.send_to = op.send_to;
        op.op.wait_for = op.wait_for;
        list->Append(op.op);
      }
      blocks.push_back({draft.rank, draft.channel, draft.role, std::move(list)});
    }
    return blocks;
  }

  const ExecutionPlan& plan_;
  std::uint64_t unit_;
  Rank rank_ = 0;
  std::uint32_t block_ = 0;
  std::size_t index_ = 0;
  std::size_t draft_ = 0;
  std::vector<Draft> drafts_;
  std::map<std::tuple<Helper, Rank, std::uint32_t, Rank>, std::size_t> helpers_;
  std::map<ChannelKey, Signals> signals_;
  std::map<ChannelKey, std::pair<std::uint32_t, std::size_t>> waits_on_;
  std::vector<WaitAt> waits_;
  using BarrierKey = std::pair<Rank, std::uint32_t>;
  std::map<BarrierKey, std::map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>>>
      barriers_;
  std::map<BarrierKey, std::uint32_t> barrier_blocks_;
  std::map<std::tuple<Rank, BufferKind, std::uint32_t>, OpAt> packets_;
  std::vector<PacketRead> packet_reads_;
};

}  // namespace

Plan MakePlan(const ExecutionPlan& plan, std::uint64_t count, DataType type) {
  const std::uint64_t smallest = SmallestCount(plan);
  if (count % smallest != 0) {
    throw ConfigError({.file = plan.file,
                       .field = "count",
                       .value = std::to_string(count),
                       .problem = "cannot be cut in the chunks of this plan",
                       .expected = "a multiple of " + std::to_string(smallest)});
  }
  const std::uint64_t unit = count / smallest;
  Plan out;
  out.request = {.function = plan.function,
                 .rank_count = static_cast<std::uint32_t>(plan.gpus.size()),
                 .type = type,
                 .op = plan.op,
                 .count = count,
                 .in_place = plan.in_place};
  out.algorithm = plan.name;
  out.protocol = plan.protocol;
  for (const Gpu& gpu : plan.gpus) {
    out.scratch_count = std::max(out.scratch_count, gpu.scratch_chunks * unit);
    out.channel_count = std::max(out.channel_count, static_cast<std::uint32_t>(gpu.blocks.size()));
  }
  out.blocks = Lowering(plan, unit).Lower();
  return out;
}

}  // namespace windtunnel::mscclpp
