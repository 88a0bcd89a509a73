#include "collectives/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/nccl/pat.h"
#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

constexpr NcclVersion kCellsSince{2, 22, 3};
constexpr NcclVersion kEvenPartsSince{2, 20, 3};

// The links of a communicator as the send/receive planner asks for them.
class Links final : public PeerLinks {
 public:
  explicit Links(const Communicator& communicator) : communicator_(communicator) {}
  bool OverNetwork(Rank from, Rank to) const override {
    return communicator_.TransportBetween(from, to).kind == LocalTransport::Kind::kNetwork;
  }

 private:
  const Communicator& communicator_;
};

}  // namespace

Communicator::Communicator(Job job, NcclVersion version, Environment environment) {
  auto state = std::make_shared<State>();
  state->job = std::move(job);
  state->environment = std::move(environment);
  state->constants = &ConstantsOf(version);
  state->connections = Connect(state->job, state->environment, *state->constants);
  state->tuning = Tune(state->job, state->connections, state->environment, *state->constants);
  if (const auto file = state->environment.Get("NCCL_TUNER_CONFIG_FILE"))
    state->tuner = TunerPlugin::FromFile(*file);
  state_ = std::move(state);
}

PlanningContext Communicator::Context() const {
  return {state_->job,         state_->connections, state_->tuning,
          state_->environment, *state_->constants,  state_->tuner ? &*state_->tuner : nullptr};
}

CallPlan Communicator::Plan(const CollectiveCall& call) const {
  if (rank_count() == 1 || call.count == 0) {
    CallPlan plan;
    plan.call = call;
    plan.model_bytes = ModelBytes(call, rank_count());
    plan.channel_hi = -1;
    return plan;
  }
  return std::move(PlanGroup({&call, 1}).tasks.front().plan);
}

GroupPlan Communicator::PlanGroup(std::span<const CollectiveCall> calls) const {
  if (version() >= kCellsSince) return PlanCells(Context(), calls);
  return version() >= kEvenPartsSince ? PlanEvenParts(Context(), calls)
                                      : PlanInterleaved(Context(), calls);
}

LocalTransport Communicator::TransportBetween(Rank from, Rank to) const {
  LocalTransport network;
  network.kind = LocalTransport::Kind::kNetwork;
  const RankPlace& a = job().ranks[from];
  const RankPlace& b = job().ranks[to];
  if (a.node == b.node) return job().nodes[a.node]->transports[a.gpu][b.gpu];
  // Two parts of one host: the other part is not in the system graph. From 2.30 on such a pair
  // shares memory.
  if (a.host == b.host && version() >= NcclVersion{2, 30, 3})
    network.kind = LocalTransport::Kind::kSharedMemory;
  return network;
}

std::vector<Communicator::NetworkWork> Communicator::NetworkWorkOf(const CallPlan& plan,
                                                                   Rank rank) const {
  std::vector<NetworkWork> out;
  const Connections& comm = connections();
  const auto over_network = [&](std::int32_t from, std::int32_t to) {
    return from >= 0 && to >= 0 &&
           TransportBetween(static_cast<Rank>(from), static_cast<Rank>(to)).kind ==
               LocalTransport::Kind::kNetwork;
  };
  const auto self = static_cast<std::int32_t>(rank);
  const auto either = [&](std::int32_t peer) {
    return over_network(self, peer) || over_network(peer, self);
  };
  const Function f = plan.call.function;
  for (int c = plan.channel_lo; c <= plan.channel_hi; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    ProxyWork work = plan.ShareOf(c).proxy;
    if (work.steps == 0) continue;
    bool used = false;
    switch (plan.algorithm) {
      case AlgorithmId::kRing: {
        const auto& ring = comm.rings[channel];
        const auto at =
            static_cast<std::size_t>(std::find(ring.begin(), ring.end(), self) - ring.begin());
        const std::int32_t next = ring[(at + 1) % ring.size()];
        const std::int32_t before = ring[(at + ring.size() - 1) % ring.size()];
        const auto root = static_cast<std::int32_t>(plan.call.root);
        bool sends = true;
        bool receives = true;
        if (f == Function::kBroadcast) {
          sends = next != root;
          receives = self != root;
        } else if (f == Function::kReduce) {
          sends = self != root;
          receives = before != root;
        }
        used = (sends && over_network(self, next)) || (receives && over_network(before, self));
        break;
      }
      case AlgorithmId::kTree: {
        const TreeChannel& tree = comm.tree(channel);
        used = either(tree.up[rank]);
        for (const std::int32_t child : tree.down[rank]) used = used || either(child);
        break;
      }
      case AlgorithmId::kNvlsTree: {
        const NvlsLayout::Tree& tree = comm.nvls.trees[channel % 2];
        used = either(tree.up[rank]) || either(tree.down[rank][1]) || either(tree.down[rank][2]);
        break;
      }
      case AlgorithmId::kNvls:
        used = comm.flags.collnet && comm.nvls.head_of_rank[rank] >= 0;
        break;
      case AlgorithmId::kCollNetDirect:
        used = comm.collnet_head_of_rank[rank] >= 0;
        break;
      case AlgorithmId::kCollNetChain:
        used =
            comm.collnet_chain_first[channel][static_cast<std::size_t>(comm.rank_to_node[rank])] ==
            self;
        break;
      case AlgorithmId::kPat: {
        const auto partners = PatPartners(f == Function::kReduceScatter, static_cast<int>(rank),
                                          rank_count(), work.slot_bytes / rank_count(),
                                          work.chunk_bytes, constants().planning.buffer_steps);
        for (const PatPartner& partner : partners) {
          if (!either(partner.rank)) continue;
          work.steps = partner.steps;
          used = true;
        }
        break;
      }
    }
    if (used) out.push_back({c, work});
  }
  return out;
}

std::vector<P2pRound> Communicator::P2pSchedule(Rank rank) const {
  return P2pScheduleOf(connections(), rank, version());
}

P2pPlan Communicator::PlanP2p(Rank rank, std::span<const P2pCall> calls) const {
  return PlanSendReceive(connections(), environment(), constants(), Links(*this), rank, calls);
}

std::vector<std::string> Communicator::TuningLines() const {
  return FormatTuningTable(tuning(), version());
}

std::vector<std::string> Communicator::InitLines(Rank rank) const {
  const Connections& comm = connections();
  std::vector<std::string> lines;
  const int width = static_cast<int>(std::to_string(rank_count() - 1).size());
  for (int c = 0; c < comm.channel_count; ++c) {
    const auto& ring = comm.rings[static_cast<std::size_t>(c)];
    std::string line = fmt::format("Channel {:02}/{:02} :", c, comm.channel_count);
    for (const std::int32_t r : ring) line += fmt::format(" {:{}}", r, width);
    lines.push_back(line);
  }
  for (int c = 0; c < comm.channel_count; ++c) {
    const auto& ring = comm.rings[static_cast<std::size_t>(c)];
    const auto at = static_cast<std::size_t>(
        std::find(ring.begin(), ring.end(), static_cast<std::int32_t>(rank)) - ring.begin());
    lines.push_back(fmt::format("Ring {:02} : {} -> {} -> {}", c,
                                ring[(at + ring.size() - 1) % ring.size()], rank,
                                ring[(at + 1) % ring.size()]));
  }
  std::string trees = "Trees";
  for (int c = 0; c < comm.channel_count; ++c) {
    const TreeChannel& tree = comm.tree(static_cast<std::size_t>(c));
    const auto& down = tree.down[rank];
    trees +=
        fmt::format(" [{}] {}/{}/{}->{}->{}", c, down[0], down[1], down[2], rank, tree.up[rank]);
  }
  lines.push_back(trees);
  for (std::size_t h = 0; h < comm.nvls.heads.size() && comm.node_count() > 1; ++h) {
    std::string line = fmt::format("NVLS Head {:2}:", h);
    for (const std::int32_t head : comm.nvls.heads[h]) line += fmt::format(" {:2}", head);
    lines.push_back(line);
  }
  const auto threshold = [&](AlgorithmId a, Protocol p) {
    return tuning().thread_thresholds[Index(a)][Index(p)];
  };
  lines.push_back(fmt::format(
      "threadThresholds {}/{}/{} | {}/{}/{} | {} | {}",
      threshold(AlgorithmId::kTree, Protocol::kLl), threshold(AlgorithmId::kTree, Protocol::kLl128),
      threshold(AlgorithmId::kTree, Protocol::kSimple),
      threshold(AlgorithmId::kRing, Protocol::kLl), threshold(AlgorithmId::kRing, Protocol::kLl128),
      threshold(AlgorithmId::kRing, Protocol::kSimple),
      threshold(AlgorithmId::kCollNetDirect, Protocol::kSimple),
      threshold(AlgorithmId::kCollNetChain, Protocol::kSimple)));
  // Without CollNet, 2.20 prints no channel of it, later releases the collective ones again (seen
  // in logs of 2.20.5, 2.22.3, 2.23.4 and 2.26.2).
  const bool repeated = version() >= NcclVersion{2, 22, 0} || comm.flags.collnet;
  lines.push_back(fmt::format(
      "{} coll channels, {} collnet channels, {} nvls channels, {} p2p channels, {} p2p channels "
      "per peer",
      comm.channel_count, repeated ? comm.channel_count : 0, comm.nvls_channels, comm.p2p.count,
      comm.p2p.per_peer));
  return lines;
}

}  // namespace windtunnel::nccl
