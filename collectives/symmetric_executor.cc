#include "collectives/symmetric_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "sim/check.h"
#include "sim/random.h"

namespace windtunnel {
namespace {

constexpr std::uint64_t kComparedInFull = 1'000'000;
constexpr std::uint64_t kSampledRanks = 8;
constexpr std::uint64_t kSampledOps = 32;
constexpr std::uint64_t kMostConnections = 4'000'000;
// True for every grid, so that no other is tried.
constexpr std::string_view kWaysVary = "connections choose among equal ways as they come";

// Ranks as points of a grid that wraps around in every direction.
class Grid {
 public:
  explicit Grid(std::vector<std::uint32_t> sides) : sides_(std::move(sides)) {}
  std::size_t dimensions() const { return sides_.size(); }
  Rank Add(Rank a, Rank b) const {
    return Combine(
        a, b, [](std::uint32_t x, std::uint32_t y, std::uint32_t side) { return (x + y) % side; });
  }
  Rank Subtract(Rank a, Rank b) const {
    return Combine(a, b, [](std::uint32_t x, std::uint32_t y, std::uint32_t side) {
      return (x + side - y) % side;
    });
  }
  // The rank one step from rank 0 along a side.
  Rank Unit(std::size_t dimension) const {
    Rank unit = 1;
    for (std::size_t d = 0; d < dimension; ++d) unit *= sides_[d];
    return unit;
  }
  std::string Describe() const {
    if (sides_.size() == 1) return fmt::format("rotations of {} ranks", sides_[0]);
    if (sides_.size() > 3) return fmt::format("exchanges over {} bits of the rank", sides_.size());
    return fmt::format("translations of {} ranks", fmt::join(sides_, " x "));
  }

 private:
  template <class Digit>
  Rank Combine(Rank a, Rank b, const Digit& digit) const {
    if (sides_.size() == 1) return digit(a, b, sides_[0]);
    Rank result = 0;
    Rank stride = 1;
    for (const std::uint32_t side : sides_) {
      result += digit(a % side, b % side, side) * stride;
      a /= side;
      b /= side;
      stride *= side;
    }
    return result;
  }
  std::vector<std::uint32_t> sides_;
};

std::vector<Grid> Candidates(std::uint32_t n) {
  std::vector<Grid> grids{Grid({n})};
  if (n >= 4 && (n & (n - 1)) == 0) {
    std::vector<std::uint32_t> bits;
    for (std::uint32_t rest = n; rest > 1; rest /= 2) bits.push_back(2);
    grids.emplace_back(bits);
  }
  for (std::uint32_t a = 2; a <= n / 2; ++a) {
    if (n % a != 0) continue;
    grids.emplace_back(std::vector<std::uint32_t>{a, n / a});
    for (std::uint32_t b = 2; b <= n / a / 2; ++b) {
      if (n / a % b == 0) grids.emplace_back(std::vector<std::uint32_t>{a, b, n / a / b});
    }
  }
  return grids;
}

bool SameTimes(const BlockTimes& a, const BlockTimes& b) {
  return a.slice_overhead == b.slice_overhead && a.empty_slice_overhead == b.empty_slice_overhead &&
         a.copy_rate == b.copy_rate && a.reduce_rate == b.reduce_rate &&
         a.round_bytes == b.round_bytes && a.round_time == b.round_time &&
         a.first_round_copy == b.first_round_copy && a.first_round_reduce == b.first_round_reduce &&
         a.round_reduce_factor == b.round_reduce_factor;
}
bool SameCost(const ConnectionPath& a, const ConnectionPath& b) {
  return a.reaction == b.reaction && a.credit_return == b.credit_return && a.post == b.post &&
         a.slots == b.slots && a.wire_numerator == b.wire_numerator &&
         a.wire_denominator == b.wire_denominator && a.local == b.local;
}

// A way out of one block of every rank: to the peer at this offset, through this port.
struct Out {
  std::uint32_t block;  // Among the blocks of a rank.
  Rank offset;
  std::uint32_t port;
  friend auto operator<=>(const Out&, const Out&) = default;
};

class Fold {
 public:
  Fold(const Plan& plan, const Cluster& cluster, ExecutionSetting& setting,
       const WayOfConnection& way_of, Grid grid)
      : plan_(plan),
        cluster_(cluster),
        setting_(setting),
        way_of_(way_of),
        grid_(std::move(grid)),
        ranks_(plan.request.rank_count),
        per_rank_(static_cast<std::uint32_t>(plan.blocks.size() / ranks_)) {}

  const Grid& grid() const { return grid_; }
  std::uint32_t per_rank() const { return per_rank_; }
  /// The way of rank 0 out of its block `block`; null when it has no such one.
  const ConnectionWay* WayOf(const Out& out) const {
    const auto found = std::lower_bound(outs_.begin(), outs_.end(), out);
    if (found == outs_.end() || *found != out) return nullptr;
    return &ways_[static_cast<std::size_t>(found - outs_.begin())];
  }
  LinkId Representative(LinkId link) const { return orbit_[link]; }
  bool IsUsed(LinkId link) const { return used_[link]; }
  /// Ranks that load each link as rank 0 loads the one it stands for: 1, or more where the
  /// translations map a link to itself.
  std::uint32_t Sharers(LinkId link) const { return sharers_[orbit_[link]]; }
  bool SharesLinks() const {
    return std::any_of(sharers_.begin(), sharers_.end(), [](std::uint32_t n) { return n > 1; });
  }
  /// The network that rank 0 meets: of a link with several sharers its part.
  Topology FoldedTopology() const {
    Topology topology = cluster_.topology();
    for (LinkId link = 0; link < topology.links.size(); ++link) {
      if (!used_[link]) continue;
      BitsPerSecond& rate = topology.links[link].rate;
      rate = std::max(BitsPerSecond(1), rate / Sharers(link));
    }
    return topology;
  }

  // Empty when the translations of the grid leave plan and network unchanged.
  std::string Prove() {
    for (const auto step :
         {&Fold::CompareBlocks, &Fold::ComparePlans, &Fold::CompareEndpoints, &Fold::MapLinks}) {
      std::string why = (this->*step)();
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  const Block& BlockOf(Rank rank, std::uint32_t i) const {
    return plan_.blocks[std::size_t{rank} * per_rank_ + i];
  }

  std::string CompareBlocks() {
    for (Rank r = 0; r < ranks_; ++r) {
      for (std::uint32_t i = 0; i < per_rank_; ++i) {
        const Block& own = BlockOf(r, i);
        const Block& first = BlockOf(0, i);
        if (own.rank != r || own.channel != first.channel || own.role != first.role ||
            own.program->size() != first.program->size()) {
          return fmt::format("rank {} has other blocks than rank 0", r);
        }
      }
    }
    return {};
  }

  bool SamePeers(Rank r, std::span<const Peer> own, std::span<const Peer> first) const {
    return std::equal(own.begin(), own.end(), first.begin(), first.end(),
                      [&](const Peer& a, const Peer& b) {
                        return a.port == b.port && a.rank == grid_.Add(b.rank, r);
                      });
  }
  bool SameOp(Rank r, const PlanOp& own, const PlanOp& first) const {
    const auto same_dependency = [&](const Dependency& a, const Dependency& b) {
      return a.op == b.op && a.block == b.block + r * per_rank_;
    };
    return own.count == first.count && own.slices == first.slices &&
           own.combine == Combine::kBlock && first.combine == Combine::kBlock &&
           own.has_source == first.has_source && own.step == first.step &&
           SamePeers(r, own.receive_from, first.receive_from) &&
           SamePeers(r, own.send_to, first.send_to) &&
           std::equal(own.wait_for.begin(), own.wait_for.end(), first.wait_for.begin(),
                      first.wait_for.end(), same_dependency);
  }
  std::string CompareOp(Rank r, std::uint32_t i, std::uint64_t index) const {
    if (SameOp(r, BlockOf(r, i).program->At(index), BlockOf(0, i).program->At(index))) return {};
    return fmt::format("op {} of rank {} is not that of rank 0", index, r);
  }

  std::string ComparePlans() {
    std::uint64_t ops = 0;
    for (std::uint32_t i = 0; i < per_rank_; ++i) ops += BlockOf(0, i).program->size();
    const bool in_full = ops <= kComparedInFull / ranks_;
    if (!in_full && plan_.symmetry.empty()) {
      // Before any sampling, so that the answer does not depend on luck.
      return "the plan is too long to compare and does not vouch for its symmetry";
    }
    RandomStream random(0, "symmetric_executor");
    for (Rank r = 1; r < ranks_; ++r) {
      const bool all = in_full || r == 1 || r + 1 == ranks_ || random.Below(ranks_) < kSampledRanks;
      for (std::uint32_t i = 0; i < per_rank_; ++i) {
        const std::uint64_t size = BlockOf(0, i).program->size();
        if (all) {
          for (std::uint64_t op = 0; op < size; ++op) {
            if (std::string why = CompareOp(r, i, op); !why.empty()) return why;
          }
          continue;
        }
        for (std::uint64_t k = 0; k < kSampledOps && size > 0; ++k) {
          const std::uint64_t op = k == 0 ? 0 : k == 1 ? size - 1 : random.Below(size);
          if (std::string why = CompareOp(r, i, op); !why.empty()) return why;
        }
      }
    }
    std::set<Out> outs;
    Out last{UINT32_MAX, 0, 0};
    for (std::uint32_t i = 0; i < per_rank_; ++i) {
      const Program& program = *BlockOf(0, i).program;
      for (std::uint64_t op = 0; op < program.size(); ++op) {
        for (const Peer& peer : program.At(op).send_to) {
          const Out out{i, peer.rank, peer.port};
          if (out != last) outs.insert(out);
          last = out;
        }
      }
    }
    outs_.assign(outs.begin(), outs.end());
    if (outs_.size() > kMostConnections / ranks_) return "too many connections to compare";
    return {};
  }

  std::string CompareEndpoints() {
    for (Rank r = 0; r < ranks_; ++r) {
      if (setting_.StartOf(r) != setting_.StartOf(0) || setting_.EndOf(r) != setting_.EndOf(0)) {
        return fmt::format("rank {} starts or ends at another time than rank 0", r);
      }
      for (std::uint32_t i = 0; i < per_rank_; ++i) {
        if (!SameTimes(setting_.TimesOf(r, BlockOf(r, i)), setting_.TimesOf(0, BlockOf(0, i)))) {
          return fmt::format("rank {} works at another speed than rank 0", r);
        }
      }
    }
    return {};
  }

  std::string MapLinks() {
    const Topology& topology = cluster_.topology();
    // Routes of all ranks, rank by rank in the order of `outs_`, end to end.
    std::vector<LinkId> links;
    std::vector<std::size_t> begin{0};
    for (Rank r = 0; r < ranks_; ++r) {
      for (std::size_t o = 0; o < outs_.size(); ++o) {
        const Out& out = outs_[o];
        ConnectionWay way = way_of_(BlockOf(r, out.block), {grid_.Add(out.offset, r), out.port});
        if (!way.fixed) return std::string(kWaysVary);
        if (way.cost.local) way.route.clear();
        if (r != 0 &&
            (!SameCost(way.cost, ways_[o].cost) || way.route.size() != ways_[o].route.size())) {
          return fmt::format("a connection of rank {} costs other than that of rank 0", r);
        }
        links.insert(links.end(), way.route.begin(), way.route.end());
        begin.push_back(links.size());
        if (r == 0) ways_.push_back(std::move(way));
      }
    }
    used_.assign(topology.links.size(), false);
    for (const LinkId link : links) used_[link] = true;
    orbit_.resize(topology.links.size());
    std::iota(orbit_.begin(), orbit_.end(), LinkId{0});
    constexpr LinkId kNone = UINT32_MAX;
    std::vector<LinkId> image(topology.links.size());
    std::vector<LinkId> origin(topology.links.size());
    for (std::size_t d = 0; d < grid_.dimensions(); ++d) {
      std::fill(image.begin(), image.end(), kNone);
      std::fill(origin.begin(), origin.end(), kNone);
      for (Rank r = 0; r < ranks_; ++r) {
        const Rank moved = grid_.Add(r, grid_.Unit(d));
        for (std::size_t o = 0; o < outs_.size(); ++o) {
          const std::size_t from = begin[r * outs_.size() + o];
          const std::size_t to = begin[moved * outs_.size() + o];
          const std::size_t count = begin[r * outs_.size() + o + 1] - from;
          for (std::size_t h = 0; h < count; ++h) {
            const LinkId a = links[from + h];
            const LinkId b = links[to + h];
            if (image[a] == b && origin[b] == a) continue;
            if (image[a] != kNone || origin[b] != kNone) {
              return "the routes of different ranks share links in different ways";
            }
            if (!SameLink(a, b)) return "the links of different ranks differ";
            image[a] = b;
            origin[b] = a;
            Unite(a, b);
          }
        }
      }
    }
    for (LinkId link = 0; link < orbit_.size(); ++link) orbit_[link] = Root(link);
    return CountSharers();
  }

  // The translations of a link make up an orbit; all ranks load it alike, so each of its links is
  // loaded by as many as there are ranks for one link.
  std::string CountSharers() {
    std::vector<std::uint32_t> sizes(orbit_.size());
    for (LinkId link = 0; link < orbit_.size(); ++link) {
      if (used_[link]) ++sizes[orbit_[link]];
    }
    sharers_.assign(orbit_.size(), 1);
    for (LinkId link = 0; link < orbit_.size(); ++link) {
      if (sizes[link] == 0) continue;
      WT_CHECK(ranks_ % sizes[link] == 0) << "an orbit of links that no group of ranks has";
      sharers_[link] = ranks_ / sizes[link];
    }
    // Messages of one route follow each other: those of different ranks must not meet there.
    for (const ConnectionWay& way : ways_) {
      if (!way.route.empty() && std::all_of(way.route.begin(), way.route.end(),
                                            [&](LinkId link) { return Sharers(link) > 1; })) {
        return "connections of different ranks may be one route";
      }
    }
    return {};
  }

  bool SameLink(LinkId a, LinkId b) const {
    const Link& x = cluster_.topology().links[a];
    const Link& y = cluster_.topology().links[b];
    return x.rate == y.rate && x.latency == y.latency &&
           LinkWireFormat(cluster_.topology(), a) == LinkWireFormat(cluster_.topology(), b);
  }
  LinkId Root(LinkId link) {
    while (orbit_[link] != link) {
      orbit_[link] = orbit_[orbit_[link]];
      link = orbit_[link];
    }
    return link;
  }
  void Unite(LinkId a, LinkId b) {
    a = Root(a);
    b = Root(b);
    orbit_[std::max(a, b)] = std::min(a, b);
  }

  const Plan& plan_;
  const Cluster& cluster_;
  ExecutionSetting& setting_;
  const WayOfConnection& way_of_;
  Grid grid_;
  std::uint32_t ranks_;
  std::uint32_t per_rank_;
  std::vector<Out> outs_;
  std::vector<ConnectionWay> ways_;  // Of rank 0, in the order of `outs_`.
  std::vector<LinkId> orbit_;
  std::vector<bool> used_;
  std::vector<std::uint32_t> sharers_;  // By the link that stands for its orbit.
};

// Ways of the folded plan: offset and port of the sender, as a port of rank 0 to itself.
class Ports {
 public:
  std::uint32_t Of(Rank offset, std::uint32_t port) {
    const auto [entry, fresh] =
        ports_.try_emplace({offset, port}, static_cast<std::uint32_t>(ways_.size()));
    if (fresh) ways_.emplace_back(offset, port);
    return entry->second;
  }
  std::pair<Rank, std::uint32_t> Decode(std::uint32_t folded) const {
    WT_CHECK(folded < ways_.size()) << "unknown folded port " << folded;
    return ways_[folded];
  }

 private:
  std::map<std::pair<Rank, std::uint32_t>, std::uint32_t> ports_;
  std::vector<std::pair<Rank, std::uint32_t>> ways_;  // By folded port.
};

// The program of rank 0 with every peer replaced by rank 0 itself.
class FoldedProgram final : public Program {
 public:
  FoldedProgram(std::shared_ptr<const Program> program, const Grid& grid, Ports& ports)
      : program_(std::move(program)), grid_(grid), ports_(ports) {}
  std::uint64_t size() const override { return program_->size(); }
  PlanOp At(std::uint64_t index) const override {
    PlanOp op = program_->At(index);
    op.send_to = Folded(op.send_to, true);
    op.receive_from = Folded(op.receive_from, false);
    return op;
  }

 private:
  std::span<const Peer> Folded(std::span<const Peer> peers, bool sends) const {
    if (peers.empty()) return {};
    std::vector<Peer> folded;
    folded.reserve(peers.size());
    for (const Peer& peer : peers) {
      const Rank offset = sends ? peer.rank : grid_.Subtract(0, peer.rank);
      folded.push_back({0, ports_.Of(offset, peer.port)});
    }
    return *known_.insert(std::move(folded)).first;
  }
  std::shared_ptr<const Program> program_;
  const Grid& grid_;
  Ports& ports_;
  mutable std::set<std::vector<Peer>> known_;  // Few: a schedule repeats its peers.
};

// The folded network, watched for the one thing that the proof cannot see: messages of two
// connections put on one route at one instant. Which of them goes first is told by the order in
// which the ranks of the full run come up, and that is not the same for all.
class WatchedNetwork final : public Network {
 public:
  WatchedNetwork(const Cluster& cluster, const FlowNetwork::Options& options)
      : network_(cluster, options) {}
  bool tied() const { return tied_; }
  /// A further connection uses the route.
  void Share(RouteId route) { shared_[route] = true; }

  std::string_view name() const override { return network_.name(); }
  RouteId AddRoute(const Route& route) override {
    const RouteId id = network_.AddRoute(route);
    shared_.resize(id + 1, false);
    last_send_.resize(id + 1, kNever);
    return id;
  }
  GroupId AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                   std::span<const DeviceId> members) override {
    return network_.AddGroup(kind, hub, owner, members);
  }
  void Send(RouteId route, Bytes size, std::uint64_t token) override {
    const std::uint64_t now = network_.queue().now().since_start().count();
    tied_ = tied_ || (shared_[route] && last_send_[route] == now);
    last_send_[route] = now;
    network_.Send(route, size, token);
  }
  void SendGroup(GroupId group, Bytes size, std::uint64_t token) override {
    network_.SendGroup(group, size, token);
  }
  void set_client(NetworkClient* client) override { network_.set_client(client); }
  EventQueue& queue() override { return network_.queue(); }
  void EndOfRun() override { network_.EndOfRun(); }
  std::span<const LinkUse> link_use() const override { return network_.link_use(); }
  std::uint64_t open_messages() const override { return network_.open_messages(); }
  std::string DescribeStall() const override { return network_.DescribeStall(); }
  void Reset() override { network_.Reset(); }
  void RunToIdle() override { network_.RunToIdle(); }

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;
  FlowNetwork network_;
  std::vector<bool> shared_;
  std::vector<std::uint64_t> last_send_;
  bool tied_ = false;
};

class FoldedSetting final : public ExecutionSetting {
 public:
  FoldedSetting(const Plan& plan, const Fold& fold, ExecutionSetting& setting, const Ports& ports,
                WatchedNetwork& network)
      : plan_(plan), fold_(fold), setting_(setting), ports_(ports), network_(network) {}
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    // Several blocks of a rank may share channel and role: the way tells which one is meant.
    const auto [offset, port] = ports_.Decode(to.port);
    for (std::uint32_t i = 0; i < fold_.per_rank(); ++i) {
      const Block& block = plan_.blocks[i];
      if (block.channel != sender.channel || block.role != sender.role) continue;
      const ConnectionWay* way = fold_.WayOf({i, offset, port});
      if (way == nullptr) continue;
      ConnectionPath path = way->cost;
      if (path.local) return path;
      const auto [shared, fresh] = routes_.try_emplace(way->route, 0);
      if (fresh || !way->one_per_route) {
        Route folded = way->route;
        for (LinkId& link : folded) link = fold_.Representative(link);
        shared->second = network_.AddRoute(folded);
      } else {
        network_.Share(shared->second);
      }
      path.route = shared->second;
      return path;
    }
    WT_CHECK(false) << "a way out of the folded plan that the plan does not have";
    return {};
  }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override {
    WT_CHECK(false) << "a folded plan has no switch operations";
    return {};
  }
  const BlockTimes& TimesOf(Rank rank, const Block& block) override {
    return setting_.TimesOf(rank, block);
  }
  SimTime StartOf(Rank rank) override { return setting_.StartOf(rank); }
  Picoseconds EndOf(Rank rank) override { return setting_.EndOf(rank); }

 private:
  const Plan& plan_;
  const Fold& fold_;
  ExecutionSetting& setting_;
  const Ports& ports_;
  WatchedNetwork& network_;
  std::map<Route, RouteId> routes_;  // Of rank 0, unfolded.
};

// Nothing when the order of two messages would have to be guessed.
std::optional<SymmetricRun> RunFolded(const Plan& plan, const Cluster& cluster,
                                      ExecutionSetting& setting, const Fold& fold,
                                      const FlowNetwork::Options& options) {
  const std::uint32_t ranks = plan.request.rank_count;
  Ports ports;
  Plan folded;
  folded.request = plan.request;
  folded.request.rank_count = 1;
  folded.algorithm = plan.algorithm;
  folded.protocol = plan.protocol;
  folded.channel_count = plan.channel_count;
  for (std::uint32_t i = 0; i < fold.per_rank(); ++i) {
    Block block = plan.blocks[i];
    block.program = std::make_shared<FoldedProgram>(block.program, fold.grid(), ports);
    folded.blocks.push_back(std::move(block));
  }
  // On an idle network a message has its links to itself, so only their use counts for all.
  std::optional<Cluster> part;
  if (options.contention && fold.SharesLinks()) part.emplace(fold.FoldedTopology());
  WatchedNetwork network(part ? *part : cluster, options);
  FoldedSetting folded_setting(plan, fold, setting, ports, network);
  const ExecutionResult one = RunTimed(folded, network, folded_setting);
  if (network.tied()) return std::nullopt;
  SymmetricRun run;
  run.symmetry = fmt::format("{}: 1 of {} simulated", fold.grid().Describe(), ranks);
  run.result.time = one.time;
  run.result.start = one.start;
  run.result.rank_end.assign(ranks, one.rank_end[0]);
  run.result.last_block = (ranks - 1) * fold.per_rank() + one.last_block;
  run.result.messages = one.messages * ranks;
  run.result.events = one.events;
  run.result.accounts.reserve(plan.blocks.size());
  for (Rank r = 0; r < ranks; ++r) {
    run.result.accounts.insert(run.result.accounts.end(), one.accounts.begin(), one.accounts.end());
  }
  const std::span<const LinkUse> use = network.link_use();
  run.link_use.resize(use.size());
  for (LinkId link = 0; link < use.size(); ++link) {
    if (!fold.IsUsed(link)) continue;
    LinkUse& own = run.link_use[link];
    own = use[fold.Representative(link)];
    const std::uint32_t sharers = fold.Sharers(link);
    own.payload = own.payload * sharers;
    own.wire = own.wire * sharers;
    own.packets *= sharers;
    if (!options.contention) own.busy = own.busy * sharers;
  }
  return run;
}

}  // namespace

std::optional<SymmetricRun> RunSymmetric(const Plan& plan, const Cluster& cluster,
                                         ExecutionSetting& setting, const WayOfConnection& way_of,
                                         std::string* why_not,
                                         const FlowNetwork::Options& options) {
  const auto refuse = [&](std::string why) {
    if (why_not != nullptr) *why_not = std::move(why);
    return std::nullopt;
  };
  const std::uint32_t ranks = plan.request.rank_count;
  if (ranks < 2) return refuse("there is one rank only");
  if (plan.blocks.empty() || plan.blocks.size() % ranks != 0) {
    return refuse("the ranks have different numbers of blocks");
  }
  std::string first_reason;
  for (Grid& grid : Candidates(ranks)) {
    Fold fold(plan, cluster, setting, way_of, std::move(grid));
    std::string why = fold.Prove();
    if (why.empty()) {
      if (auto run = RunFolded(plan, cluster, setting, fold, options)) return run;
      return refuse("two connections of a rank send on one route at one instant");
    }
    if (why == kWaysVary) return refuse(std::move(why));
    if (first_reason.empty()) first_reason = std::move(why);
  }
  return refuse(std::move(first_reason));
}

}  // namespace windtunnel
