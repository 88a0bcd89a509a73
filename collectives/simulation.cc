#include "collectives/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collectives/algorithms/torus.h"
#include "collectives/decision.h"
#include "collectives/endpoint_times.h"
#include "collectives/fabric_bound.h"
#include "collectives/job_facts.h"
#include "collectives/job_ranks.h"
#include "collectives/nccl/job_from_search.h"
#include "collectives/nccl_decisions.h"
#include "collectives/paths_of_job.h"
#include "collectives/symmetric_executor.h"
#include "collectives/timing/plan_facts.h"
#include "collectives/timing/time_model.h"
#include "collectives/torus_sides.h"
#include "interconnect/flow_network.h"
#include "interconnect/packet_network.h"
#include "interconnect/packet_options.h"
#include "interconnect/topology_file.h"
#include "interconnect/wire_format.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

struct UsableShares {
  double nvlink = 1, nic = 1, pcie = 1;
  friend auto operator<=>(const UsableShares&, const UsableShares&) = default;
};

/// The cluster as this kind of traffic sees it: NVLinks of a GPU, links of a NIC, and PCIe where it
/// joins the GPUs carry at most the share of their raw rate that real kernels reach.
Cluster UsableCluster(const Cluster& cluster, UsableShares shares) {
  Topology topology = cluster.topology();
  const auto is_nic = [&](DeviceId id) { return topology.devices[id].kind == DeviceKind::kNic; };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    Link& link = topology.links[i];
    const bool of_nic = link.kind == LinkKind::kNetwork && (is_nic(link.from) || is_nic(link.to));
    double share = 1;
    if (of_nic) {
      share = shares.nic;
    } else if (link.kind == LinkKind::kNvlink) {
      share = shares.nvlink;
    } else if (link.kind == LinkKind::kPcie) {
      share = shares.pcie;
    }
    if (share >= 1 || link.down) continue;
    // `share` is of payload; the network takes its frame overhead off again, so it is given back
    // here. Never above the raw rate.
    const double payload_share = LinkWireFormat(topology, static_cast<LinkId>(i)).Efficiency();
    const double factor = std::min(1.0, share / payload_share);
    link.rate = std::max(
        kSlowestLink,
        BitsPerSecond(static_cast<std::uint64_t>(static_cast<double>(link.rate.count()) * factor)));
  }
  return Cluster(std::move(topology));
}

constexpr RouteId kUnknownRoute = UINT32_MAX;

constexpr Picoseconds kTakeOff(Picoseconds whole, Picoseconds part) {
  return whole > part ? whole - part : Picoseconds(0);
}

}  // namespace

std::string_view Name(Fidelity fidelity) {
  return kFidelityNames[static_cast<std::size_t>(fidelity)];
}

struct Simulation::Impl final : ExecutionSetting {
  Cluster cluster;
  SimulationOptions options;
  std::vector<DeviceId> gpus;
  std::vector<std::string> notes;
  std::unique_ptr<JobPaths> paths;
  std::unique_ptr<DecisionMaker> decisions;
  const nccl::Communicator* communicator =
      nullptr;  // Of `decisions`; null when NCCL does not decide.
  timing::CallFacts facts;
  std::string gpu_class;
  std::string fabric_class;
  struct Level {
    Cluster usable;
    std::unique_ptr<Network> network;
    PacketNetwork* packet = nullptr;  // `network`, at the packet level.
    std::vector<RouteId> route_ids;   // By the number that `paths` gives; kUnknownRoute: not added.
    std::map<std::tuple<GroupKind, DeviceId, DeviceId, std::vector<DeviceId>>, GroupId> groups;
  };
  std::map<UsableShares, std::unique_ptr<Level>> levels;
  std::unique_ptr<FabricBound> fabric_bound;  // Of the analytic level, once asked for.
  Level* level = nullptr;
  // Of the call that runs.
  EndpointQuery query;
  BlockTimes times;
  NvlsStageTimes nvls_times;
  BlockTimes receive_times;  // Of messages between peers.
  BlockTimes launch_times;
  BlockTimes free_times;
  bool nvls_stages = false;  // The call runs NVLS on a GPU with constants for it.
  Picoseconds launch;
  Picoseconds host_launch;
  Bytes wire_message;
  std::uint32_t wire_parts = 1;  // Pieces that a step of LL or LL128 is cut into, to cut through.
  const std::vector<std::vector<JobPaths::NicPair>>* decision_nics = nullptr;
  std::vector<std::size_t> node_of_layout;

  Impl(Cluster c, SimulationOptions o) : cluster(std::move(c)), options(std::move(o)) {
    gpus = ResolveRanks(cluster, options.gpus);
    CheckConnected(cluster, gpus);
    if (!options.network.empty()) {
      PacketNetwork::Options checked;  // Bad words are told before anything is searched.
      ApplyPacketOptions(options.network, "--network", cluster.topology(), &checked);
      for (std::string& note : SettingsWithoutEffect(options.network, cluster.topology()))
        notes.push_back(std::move(note));
    }
    const nccl::Environment& environment = options.environment;
    for (const std::string& name : environment.NotModelled()) {
      notes.push_back(fmt::format("{} is set and not modelled: it has no influence here", name));
    }
    paths = std::make_unique<JobPaths>(
        cluster, gpus,
        JobPaths::Options{.peer_to_peer = environment.GetInt("NCCL_P2P_DISABLE", 0) == 0,
                          .shared_memory = environment.GetInt("NCCL_SHM_DISABLE", 0) == 0,
                          .routing = options.routing,
                          .seed = options.seed});
    ChooseClasses();
    decisions = MakeDecisions();
  }

  std::uint32_t rank_count() const { return static_cast<std::uint32_t>(gpus.size()); }

  void ChooseClasses() {
    facts = FactsOfJob(cluster, *paths, options.gpus_per_thread, options.version);
    gpu_class = facts.gpu_class;
    fabric_class = facts.fabric_class;
    if (gpu_class.empty() && !options.ideal_endpoints) {
      notes.push_back(fmt::format(
          "no timing constants for GPU model '{}': endpoints cost nothing here, only links count",
          cluster.topology().devices[gpus.front()].model));
    }
  }

  std::vector<std::vector<Rank>> RanksByNode() const {
    std::map<std::uint32_t, std::vector<Rank>> by_node;
    for (Rank r = 0; r < rank_count(); ++r) by_node[paths->node(r)].push_back(r);
    std::vector<std::vector<Rank>> out;
    for (auto& [node, ranks] : by_node) out.push_back(std::move(ranks));
    return out;
  }

  // NCCL decides wherever it can: its algorithms, on hosts it would accept. Else rings and trees in
  // rank order.
  std::unique_ptr<DecisionMaker> MakeDecisions() {
    std::string algorithm;
    bool of_nccl = true;
    if (!options.algorithm.empty()) {
      algorithm = FindAlgorithm(options.algorithm).name();
      of_nccl = std::find(std::begin(kAlgorithmNames), std::end(kAlgorithmNames), algorithm) !=
                std::end(kAlgorithmNames);
    }
    const bool plain_cluster = HasPlainHosts();
    if (!of_nccl || plain_cluster || options.channels != 0) {
      PlainDecisions::Options plain;
      if (!algorithm.empty()) plain.algorithm = algorithm;
      plain.sides = options.sides;
      if (algorithm == "Torus" && plain.sides.empty()) plain.sides = TorusSides(cluster, gpus);
      plain.channels = options.channels;
      if (plain.channels == 0) {
        plain.channels = algorithm == "Torus" ? TorusChannels(plain.sides) : 1;
      }
      plain.nodes = RanksByNode();
      if (!options.protocol.empty()) plain.protocol = ProtocolNamed(options.protocol);
      if (plain_cluster) {
        notes.push_back(
            "the hosts of this cluster are no machines NCCL knows (no CPU above the GPUs): rings "
            "in rank order, one channel");
      }
      return std::make_unique<PlainDecisions>(std::move(plain));
    }
    nccl::Environment environment = options.environment;
    if (!algorithm.empty()) environment.Set("NCCL_ALGO", algorithm);
    if (!options.protocol.empty())
      environment.Set("NCCL_PROTO", std::string(Name(ProtocolNamed(options.protocol))));
    auto decider = std::make_unique<NcclDecisions>(
        nccl::Communicator(MakeJob(environment), options.version, environment));
    communicator = &decider->communicator();
    return decider;
  }

  // Imported networks (rings of NPUs, single switches) have GPUs without hosts.
  bool HasPlainHosts() const {
    return std::any_of(gpus.begin(), gpus.end(),
                       [&](DeviceId gpu) { return !cluster.HomeCpu(gpu).has_value(); });
  }

  static Protocol ProtocolNamed(const std::string& name) {
    std::vector<std::string> known;
    for (std::size_t i = 0; i < std::size(kProtocolNames); ++i) {
      if (kProtocolNames[i] == name) return static_cast<Protocol>(i);
      known.emplace_back(kProtocolNames[i]);
    }
    throw ConfigError({.field = "--proto",
                       .value = name,
                       .problem = "unknown protocol",
                       .expected = "one of " + JoinNames(known),
                       .nearest = NearestName(name, known)});
  }

  // Equal hosts are searched once: the same XML and the same GPUs in the same order.
  nccl::Job MakeJob(const nccl::Environment& environment) {
    const std::vector<std::vector<Rank>> nodes = RanksByNode();
    std::map<std::pair<std::string, std::vector<int>>, nccl::SearchedHost> searched;
    std::vector<const nccl::SearchedHost*> hosts;
    const bool one_domain = nodes.size() > 1 && facts.nodes == 1;
    if (one_domain) return MakeDomainJob(environment, nodes);
    if (SharesNvlinkDomain(nodes)) {
      notes.push_back(
          "several NVLink domains of several hosts: NCCL's decisions are made host by host, data "
          "move over NVLink where it joins them");
    }
    for (const std::vector<Rank>& ranks : nodes) {
      std::vector<int> devs;
      for (const Rank rank : ranks)
        devs.push_back(static_cast<int>(cluster.topology().devices[gpus[rank]].index));
      std::string xml = NodeNcclXml(cluster.topology(), paths->node(ranks.front()));
      auto [entry, fresh] = searched.try_emplace({std::move(xml), devs});
      if (fresh) {
        const nccl::NodeSearchRequest request =
            SearchRequestOf(environment, devs, static_cast<int>(nodes.size()));
        entry->second = nccl::DescribeHost(Search(entry->first.first, request), request);
      }
      hosts.push_back(&entry->second);
    }
    nccl::Job job = nccl::JobOfHosts(hosts, nodes);
    job.name = cluster.topology().name;
    return job;
  }

  nccl::NodeSearchRequest SearchRequestOf(const nccl::Environment& environment,
                                          const std::vector<int>& devs, int node_count) const {
    return {
        .gpus = devs, .nodes = node_count, .version = options.version, .environment = environment};
  }

  nccl::NodeSearchResult Search(const std::string& xml, const nccl::NodeSearchRequest& request) {
    const nccl::XmlDocument document = nccl::ParseXml(xml, cluster.topology().source);
    nccl::NodeSearchResult result = nccl::SearchNode(document, request);
    for (const std::string& warning : result.warnings) notes.push_back(warning);
    return result;
  }

  // The first two hosts are joined by NVLink.
  bool SharesNvlinkDomain(const std::vector<std::vector<Rank>>& nodes) {
    return nodes.size() > 1 && paths->Between(nodes[0].front(), nodes[1].front(), {}).transport ==
                                   Transport::kPeerToPeer;
  }

  // Hosts of one NVLink domain: one system over all of them.
  nccl::Job MakeDomainJob(const nccl::Environment& environment,
                          const std::vector<std::vector<Rank>>& nodes) {
    std::vector<int> devs;
    for (const Rank rank : nodes.front())
      devs.push_back(static_cast<int>(cluster.topology().devices[gpus[rank]].index));
    nccl::NodeSearchRequest request =
        SearchRequestOf(environment, devs, static_cast<int>(nodes.size()));
    request.nvlink_fabric = true;
    nccl::Job job = nccl::JobOfEqualHosts(
        Search(NodeNcclXml(cluster.topology(), paths->node(nodes.front().front())), request),
        request);
    job.name = cluster.topology().name;
    return job;
  }

  // Without a closed form, the analytic level is the plan on an idle network or its busiest link.
  FlowNetwork::Options FlowOptions() const {
    FlowNetwork::Options flows{.contention = options.fidelity != Fidelity::kAnalytic};
    if (options.exact_rates) flows.many_flows = 0;
    return flows;
  }

  Level& LevelFor(UsableShares shares) {
    auto& entry = levels[shares];
    if (!entry) {
      entry = std::make_unique<Level>(Level{.usable = UsableCluster(cluster, shares)});
      if (options.fidelity != Fidelity::kPacket) {
        entry->network = std::make_unique<FlowNetwork>(entry->usable, FlowOptions());
      } else {
        PacketNetwork::Options packets = PacketOptionsOf(entry->usable.topology());
        packets.retry.seed = options.seed;
        ApplyPacketOptions(options.network, "--network", entry->usable.topology(), &packets);
        auto packet = std::make_unique<PacketNetwork>(entry->usable.topology(), packets);
        entry->packet = packet.get();
        entry->network = std::move(packet);
      }
    }
    return *entry;
  }

  // ExecutionSetting: what the executor asks while it runs.
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    const JobPaths::Path way = WayOf(*paths, sender, to);
    const std::span<const LinkId> route = paths->RouteOf(way);
    ConnectionPath path = CostOf(way, route, sender);
    if (path.local) return path;
    std::vector<RouteId>& ids = level->route_ids;
    if (ids.size() <= way.route) ids.resize(way.route + std::size_t{1}, kUnknownRoute);
    RouteId& id = ids[way.route];
    if (id == kUnknownRoute) id = level->network->AddRoute({route.begin(), route.end()});
    path.route = id;
    return path;
  }

  JobPaths::Path WayOf(JobPaths& ways, const Block& sender, const Peer& to) const {
    return ways.Between(sender.rank, to.rank, NicsFor(sender.rank, to.rank, sender.channel));
  }

  ConnectionPath CostOf(const JobPaths::Path& way, std::span<const LinkId> route,
                        const Block& sender) const {
    ConnectionPath path;
    if (way.transport == Transport::kLocal || sender.role == "nvls scatter") {
      path.local = true;
      return path;
    }
    switch (query.protocol) {
      case Protocol::kLl:
        path.wire_numerator = 2;
        break;
      case Protocol::kLl128:
        path.wire_numerator = 128, path.wire_denominator = 120;
        break;
      case Protocol::kSimple:
        break;
    }
    path.slots *= wire_parts;
    if (options.ideal_endpoints) return path;
    const Picoseconds flight = cluster.Latency(route);
    path.flight = flight;
    path.credit_return = flight;
    if (way.transport == Transport::kNetwork && !fabric_class.empty()) {
      const auto& fabric = timing::TimingConstants::Shipped().Fabric(fabric_class);
      path.reaction =
          kTakeOff(NetworkHopReaction(query, fabric, timing::TimingConstants::Shipped().shared(),
                                      wire_message, paths->node_count()),
                   flight);
      path.post = FromMicroseconds(fabric.message_us / wire_parts);
    } else if (!gpu_class.empty()) {
      path.reaction = kTakeOff(
          NodeHopReaction(query, timing::TimingConstants::Shipped().Gpu(gpu_class)), flight);
    }
    return path;
  }

  JobPaths::NicPair NicsFor(Rank from, Rank to, std::uint32_t channel) const {
    if (paths->node(from) == paths->node(to)) return {};
    if (decision_nics == nullptr || channel >= decision_nics->size()) {
      // One NIC after the other, so that channels share the work.
      return {.out = paths->NicInTurn(from, channel), .in = paths->NicInTurn(to, channel)};
    }
    const auto& nodes = (*decision_nics)[channel];
    return {.out = nodes[node_of_layout[from]].out, .in = nodes[node_of_layout[to]].in};
  }

  GroupPath GroupOf(GroupKind kind, Rank owner, std::span<const Peer> members,
                    std::uint32_t channel) override {
    (void)channel;
    std::vector<DeviceId> devices;
    for (const Peer& peer : members) devices.push_back(gpus[peer.rank]);
    const DeviceId hub = HubOf(gpus[owner]);
    auto [entry, fresh] = level->groups.try_emplace({kind, hub, gpus[owner], devices}, 0);
    if (fresh) entry->second = level->network->AddGroup(kind, hub, gpus[owner], devices);
    return {.group = entry->second};
  }

  DeviceId HubOf(DeviceId gpu) const {
    for (const LinkId link : cluster.links_out(gpu)) {
      const DeviceId to = cluster.topology().links[link].to;
      if (cluster.topology().devices[to].kind == DeviceKind::kNvSwitch) return to;
    }
    throw ConfigError({.file = cluster.topology().source,
                       .field = cluster.topology().devices[gpu].name,
                       .problem = "is not behind an NVSwitch",
                       .expected = "an NVSwitch for in-switch operations"});
  }

  const BlockTimes& TimesOf(Rank, const Block& block) override {
    if (options.ideal_endpoints) return free_times;
    if (block.role == kLaunchRole) return launch_times;
    if (block.role == kPeerReceiveRole) return receive_times;
    if (!nvls_stages || !block.role.starts_with("nvls")) return times;
    const bool copies = block.role == "nvls scatter" || block.role == "nvls gather";
    return copies ? nvls_times.copying : nvls_times.reducing;
  }
  SimTime StartOf(Rank) override { return SimTime(launch); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }

  // Algorithms that NCCL does not have cost what a ring costs per hop.
  static AlgorithmId IdOf(std::string_view algorithm) {
    for (std::size_t i = 0; i < std::size(kAlgorithmNames); ++i) {
      if (kAlgorithmNames[i] == algorithm) return static_cast<AlgorithmId>(i);
    }
    return AlgorithmId::kRing;
  }

  // What one hop puts on the wire at a time.
  Bytes WireMessage(const CollectiveRequest& request, const CallDecision& decision) const {
    std::uint64_t bytes = decision.channel_bytes.count();
    if (request.function == Function::kAllReduce && query.algorithm == AlgorithmId::kRing)
      bytes /= std::max(1U, request.rank_count);
    if (decision.chunk.count() != 0) bytes = std::min(bytes, decision.chunk.count());
    if (query.protocol == Protocol::kLl) bytes *= 2;
    if (query.protocol == Protocol::kLl128) bytes = bytes * 128 / 120;
    return Bytes(bytes);
  }

  Picoseconds HostLaunchOf(const CollectiveRequest& request, const CallDecision& decision) const {
    timing::CallFacts call = facts;
    call.function = request.function;
    call.channels = decision.channels;
    return FromMicroseconds(timing::HostLaunchUs(call, timing::TimingConstants::Shipped()));
  }

  void PrepareCall(const CollectiveRequest& request, const CallDecision& decision) {
    query = {.function = request.function,
             .type = request.type,
             .protocol = decision.layout.protocol,
             .algorithm = IdOf(decision.algorithm),
             .threads = decision.threads,
             .channels = decision.channels,
             .heads = static_cast<std::uint32_t>(
                 std::max<std::size_t>(1, decision.layout.nvls_heads.size())),
             .several_nodes = paths->node_count() > 1,
             .gpus_per_node = facts.gpus_per_node(),
             .nics_per_node = facts.nics_per_node,
             .chunk = decision.chunk,
             .message = decision.channel_bytes,
             .size = Bytes(LogicalBytes(request)),
             .ranks = request.rank_count};
    wire_parts = 1;
    for (const ChannelLayout::Channel& channel : decision.layout.channels)
      if (query.algorithm == AlgorithmId::kTree) wire_parts = std::max(wire_parts, channel.slices);
    times = {};
    receive_times = launch_times = {};
    nvls_stages = false;
    launch = {};
    host_launch = {};
    wire_message = WireMessage(request, decision);
    decision_nics = decision.nics.empty() ? nullptr : &decision.nics;
    node_of_layout.assign(rank_count(), 0);
    for (std::size_t node = 0; node < decision.layout.nodes.size(); ++node) {
      for (const Rank rank : decision.layout.nodes[node]) node_of_layout[rank] = node;
    }
    UsableShares shares;
    if (!options.ideal_endpoints && !gpu_class.empty()) {
      const auto& constants = timing::TimingConstants::Shipped();
      const auto& gpu = constants.Gpu(gpu_class);
      times = RingBlockTimes(query, gpu, constants.shared());
      receive_times = PeerReceiveTimes(times);
      nvls_times = NvlsTimes(query, gpu);
      nvls_stages = query.algorithm == AlgorithmId::kNvls && gpu.nvls_channel_gbps > 0;
      launch = DeviceLaunch(query, gpu);
      launch_times = {.empty_slice_overhead = launch,
                      .copy_rate = FromGigabytesPerSecond(constants.shared().own_block_gbps)};
      if (query.several_nodes && !fabric_class.empty())
        launch += PeerSetUp(query, constants.Fabric(fabric_class));
      host_launch = HostLaunchOf(request, decision);
      shares.nvlink = UsableLinkShare(query, gpu);
      if (!query.several_nodes && facts.path != timing::InNodePath::kNvlink) {
        shares.pcie = facts.path == timing::InNodePath::kPciePeer
                          ? constants.shared().pcie_peer_share
                          : constants.shared().pcie_host_share;
      }
      if (query.several_nodes && !fabric_class.empty())
        shares.nic = UsableNicShare(query, constants.Fabric(fabric_class), constants.shared(),
                                    facts.nic_rate);
    }
    if (!HasClosedForm(request)) level = &LevelFor(shares);
  }

  CallOutcome Run(const CollectiveRequest& request, const RunObservers& observers) {
    CallDecision decision = Decide(request);
    CallOutcome out;
    out.algorithm = decision.algorithm;
    out.protocol = decision.layout.protocol;
    out.channels = decision.channels;
    out.chunk = decision.chunk;
    out.notice = decision.notice;
    PrepareCall(request, decision);
    if (HasClosedForm(request)) {
      RunClosedForm(request, decision, out);
      return out;
    }
    const Plan plan = MakePlan(request, decision);
    level->network->Reset();
    ExecutionWatch watch;
    if (observers.on_span) watch.on_span = [&](const TimedSpan& s) { observers.on_span(plan, s); };
    std::vector<ConnectionUse> connections;
    if (observers.flows != nullptr) watch.connections = &connections;
    if (level->packet != nullptr) level->packet->set_observer(observers.wires);
    const bool watched = watch.on_span || watch.connections != nullptr;
    if (auto folded = watched ? std::nullopt : RunFolded(plan, out.no_symmetry)) {
      out.symmetry = std::move(folded->symmetry);
      Report(plan, folded->result, folded->link_use, out);
      return out;
    }
    const ExecutionResult result = RunTimed(plan, *level->network, *this, watch);
    if (observers.flows != nullptr) *observers.flows = FlowsOf(connections);
    Report(plan, result, level->network->link_use(), out);
    return out;
  }

  // At flow level: one rank in place of all, where they are provably alike. Small jobs are run in
  // full, since that is quick. The proof asks a copy of the ways, so that a run behind it chooses
  // as it would have.
  std::optional<SymmetricRun> RunFolded(const Plan& plan, std::string& why_not) {
    constexpr std::uint32_t kQuickRanks = 64;
    if (!options.fold_symmetry || options.fidelity == Fidelity::kPacket ||
        rank_count() <= kQuickRanks) {
      return std::nullopt;
    }
    auto ways = std::make_unique<JobPaths>(*paths);
    const auto way_of = [&](const Block& sender, const Peer& to) {
      const JobPaths::Path way = WayOf(*ways, sender, to);
      const std::span<const LinkId> route = ways->RouteOf(way);
      return ConnectionWay{.cost = CostOf(way, route, sender),
                           .route = {route.begin(), route.end()},
                           .fixed = !way.by_load,
                           .one_per_route = true};
    };
    auto run = RunSymmetric(plan, level->usable, *this, way_of, &why_not, FlowOptions());
    // Later calls find the ways taken that this one takes.
    if (run) paths = std::move(ways);
    return run;
  }

  std::vector<FlowUse> FlowsOf(const std::vector<ConnectionUse>& connections) {
    const Topology& topology = cluster.topology();
    std::vector<FlowUse> flows;
    flows.reserve(connections.size());
    for (const ConnectionUse& use : connections) {
      FlowUse& flow = flows.emplace_back(FlowUse{.use = use});
      if (use.from == use.to) continue;
      const JobPaths::Path way =
          paths->Between(use.from, use.to, NicsFor(use.from, use.to, use.channel));
      for (const LinkId link : paths->RouteOf(way)) {
        const DeviceId device = topology.links[link].to;
        if (topology.devices[device].kind != DeviceKind::kNic) continue;
        (flow.nic_out ? flow.nic_in : flow.nic_out) = device;
      }
    }
    return flows;
  }

  void Report(const Plan& plan, const ExecutionResult& result, std::span<const LinkUse> use,
              CallOutcome& out) const {
    // The host launches the next call while the devices run this one: the slower sets the pace.
    out.time = std::max(result.time, host_launch);
    out.messages = result.messages;
    out.events = result.events;
    if (options.fidelity == Fidelity::kAnalytic) {
      for (const LinkUse& link : use) out.time = std::max(out.time, launch + link.busy);
      out.notice = "no closed form: the plan on an idle network, or its busiest link";
    }
    ExplainRun(plan, result, use, out);
  }

  // Forms exist for what NCCL decides, and for messages between peers.
  bool HasClosedForm(const CollectiveRequest& request) const {
    if (options.fidelity != Fidelity::kAnalytic || communicator == nullptr) return false;
    if (options.schedule != nullptr || gpu_class.empty()) return false;
    switch (request.function) {
      case Function::kAllReduce:
      case Function::kAllGather:
      case Function::kReduceScatter:
      case Function::kBroadcast:
      case Function::kReduce:
        return true;
      default:
        return timing::IsPointToPoint(request.function);
    }
  }

  void RunClosedForm(const CollectiveRequest& request, const CallDecision& decision,
                     CallOutcome& out) {
    timing::CallFacts call = facts;
    call.function = request.function;
    call.size = Bytes(LogicalBytes(request));
    call.in_place = request.in_place;
    call.eight_bit_integer = request.type == DataType::kInt8 || request.type == DataType::kUint8;
    timing::TimeBreakdown time;
    if (request.function == Function::kHypercube) {
      if (!request.in_place) {
        const double gbps = timing::TimingConstants::Shipped().shared().own_block_gbps;
        time.Add(timing::Cause::kOwnBlock,
                 static_cast<double>(call.size.count()) / call.ranks / (gbps * 1000));
      }
      for (const auto& round : timing::RoundsOfHypercube(*communicator, call))
        time.Add(timing::PredictTime(round));
    } else if (timing::IsPointToPoint(request.function)) {
      if (request.function == Function::kAllToAllV)
        call.unevenness = AllToAllVUnevenness(request.rank_count, request.count);
      timing::ApplyPointToPoint(*communicator, call);
      time = timing::PredictTime(call);
    } else {
      timing::ApplyPlan(*communicator,
                        communicator->Plan({.function = request.function,
                                            .count = request.count,
                                            .type = request.type,
                                            .op = request.op,
                                            .root = request.root}),
                        call);
      time = timing::PredictTime(call);
    }
    const std::string link = AddFabric(request, decision, time);
    out.time = time.time();
    for (const auto& share : time.shares)
      out.shares.push_back(
          {std::string(timing::ToString(share.cause)), FromMicroseconds(share.us)});
    out.bound = time.shares.empty() ? "nothing to do" : timing::ToString(time.bound());
    if (!link.empty()) out.bound = "link " + link;
    if (time.extrapolated)
      out.notice = "constants of this GPU class follow from a rule, not from runs";
  }

  // Links that carry the data of the call longer than all of it but the launch takes: the call
  // then waits for them. The name of the busiest, when it is so.
  std::string AddFabric(const CollectiveRequest& request, const CallDecision& decision,
                        timing::TimeBreakdown& time) {
    if (facts.nodes < 2 || paths->node_count() < 2) return {};
    if (!fabric_bound) fabric_bound = std::make_unique<FabricBound>(cluster, *paths);
    const FabricBound::Result bound = fabric_bound->Of(
        request, decision,
        [&](Rank from, Rank to, std::uint32_t channel) { return NicsFor(from, to, channel); });
    using timing::Cause;
    const double rest = time.us() - time.us(Cause::kKernel) - time.us(Cause::kPeerSetup);
    if (bound.us <= rest) return {};
    time.Add(Cause::kFabric, bound.us - rest);
    const Link& busiest = cluster.topology().links[bound.busiest];
    return cluster.topology().devices[busiest.from].name + " -> " +
           cluster.topology().devices[busiest.to].name;
  }

  // An algorithm that cannot run the call gives way to one that can, and the outcome says so.
  CallDecision Decide(const CollectiveRequest& request) const {
    if (options.schedule != nullptr) return DecideBySchedule(request);
    CallDecision decision = decisions->Decide(request);
    const std::string why_not = FindAlgorithm(decision.algorithm).WhyNot(request, decision.layout);
    if (why_not.empty()) return decision;
    for (const char* other : {"Ring", "PointToPoint"}) {
      if (!FindAlgorithm(other).WhyNot(request, decision.layout).empty()) continue;
      decision.notice =
          fmt::format("{} does not apply ({}): {} taken", decision.algorithm, why_not, other);
      decision.algorithm = other;
      return decision;
    }
    throw ConfigError({.field = "--algo",
                       .value = decision.algorithm,
                       .problem = "cannot run this call (" + why_not + ") and no other can:",
                       .expected = "another operation"});
  }

  // The user's schedule: its own channels and chunks, whatever NCCL would do.
  CallDecision DecideBySchedule(const CollectiveRequest& request) const {
    const ScheduleFile& schedule = *options.schedule;
    const Plan plan = schedule.MakePlan(schedule.smallest_count(), request.type, request.op);
    const auto refuse = [&](std::string field, std::string value, std::string expected) {
      throw ConfigError({.file = schedule.file(),
                         .field = std::move(field),
                         .value = std::move(value),
                         .problem = "does not fit the job:",
                         .expected = std::move(expected)});
    };
    if (plan.request.function != request.function) {
      refuse("collective", std::string(Name(plan.request.function)),
             fmt::format("{}, as asked for", Name(request.function)));
    }
    if (plan.request.rank_count != request.rank_count) {
      refuse("ranks", fmt::to_string(plan.request.rank_count),
             fmt::format("{}, the GPUs that take part (--ranks chooses)", request.rank_count));
    }
    CallDecision decision;
    decision.algorithm = plan.algorithm;
    decision.layout.protocol = plan.protocol;
    decision.layout.nodes = RanksByNode();
    decision.channels = plan.channel_count;
    decision.chunk = Bytes(request.count / schedule.smallest_count() * SizeOf(request.type));
    return decision;
  }

  Plan MakePlan(const CollectiveRequest& request, const CallDecision& decision) const {
    if (options.schedule != nullptr) {
      return options.schedule->MakePlan(request.count, request.type, request.op);
    }
    return FindAlgorithm(decision.algorithm).MakePlan(request, decision.layout);
  }

  void ExplainRun(const Plan& plan, const ExecutionResult& result, std::span<const LinkUse> use,
                  CallOutcome& out) const {
    const Topology& topology = cluster.topology();
    Picoseconds ideal;
    for (LinkId id = 0; id < use.size(); ++id) {
      if (use[id].payload.count() == 0) continue;
      ideal = std::max(ideal, SerializationTime(use[id].payload, topology.links[id].rate));
    }
    out.links = BusiestLinks(topology, use, out.time, use.size());
    out.ideal = ideal;
    if (plan.blocks.empty()) {
      out.bound = "nothing to do";
      return;
    }
    BlockAccount account = result.accounts[result.last_block];
    // Later launches of the call: the block waited for them.
    const Picoseconds relaunch =
        std::min(LaunchesOf(plan, plan.blocks[result.last_block].rank, result), account.wait_data);
    account.wait_data = account.wait_data - relaunch;
    const Picoseconds launched = result.start + relaunch;
    out.shares = {
        {"launch by one host thread, beyond the devices", kTakeOff(host_launch, result.time)},
        {"launch", launched},
        {"slice overhead", account.overhead},
        {"copying and adding", account.copy},
        {"link", account.wait_link},
        {"waiting for data", account.wait_data},
        {"waiting for room", account.wait_credit}};
    out.bound = BoundOf(out, account, launched, result.time);
  }

  static Picoseconds LaunchesOf(const Plan& plan, Rank rank, const ExecutionResult& result) {
    Picoseconds sum;
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      if (plan.blocks[b].rank == rank && plan.blocks[b].role == kLaunchRole)
        sum += result.accounts[b].overhead;
    }
    return sum;
  }

  // The cause that would have to shrink for the call to become faster.
  std::string BoundOf(const CallOutcome& out, const BlockAccount& account, Picoseconds launched,
                      Picoseconds time) const {
    constexpr double kBusy = 0.8;
    if (!out.links.rows.empty() && out.links.rows.front().utilisation >= kBusy)
      return "link " + out.links.rows.front().name;
    const std::pair<Picoseconds, const char*> causes[] = {
        {host_launch > time ? host_launch : Picoseconds(0), "launch by one host thread"},
        {launched, "launch"},
        {account.overhead, "overhead per slice"},
        {account.copy, "copy and reduction rate of the thread blocks"},
        {account.wait_link + account.wait_credit, "links along the way"},
        {account.wait_data, "hop latency"}};
    const auto* const most =
        std::max_element(std::begin(causes), std::end(causes),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    if (most != std::end(causes) - 1) return most->second;  // Not what waits for data.
    const std::string queue = LongestQueue(out);
    return queue.empty() ? most->second : queue;
  }

  /// Names the link whose queue held a message up for longest; empty where that is less than the
  /// latency of a way through the cluster.
  std::string LongestQueue(const CallOutcome& out) const {
    Picoseconds longest;
    const LinkLoadReport::Row* slowest = nullptr;
    for (const LinkLoadReport::Row& row : out.links.rows) {
      if (row.use.deepest_queue == 0) continue;
      const Picoseconds wait =
          SerializationTime(Bytes(row.use.deepest_queue), cluster.topology().links[row.link].rate);
      if (wait <= longest) continue;
      longest = wait;
      slowest = &row;
    }
    if (slowest == nullptr || gpus.size() < 2) return "";
    const std::optional<Route> way = cluster.FindRoute(gpus.front(), gpus.back());
    if (!way || longest < cluster.Latency(*way)) return "";
    return fmt::format("queues in the network, the longest before {}{}", slowest->name,
                       slowest->use.pauses == 0 ? "" : ", which waited for room behind it");
  }
};

Simulation::Simulation(Cluster cluster, SimulationOptions options)
    : impl_(std::make_unique<Impl>(std::move(cluster), std::move(options))) {}
Simulation::~Simulation() = default;
std::uint32_t Simulation::rank_count() const { return impl_->rank_count(); }
const Cluster& Simulation::cluster() const { return impl_->cluster; }
const std::vector<DeviceId>& Simulation::gpus() const { return impl_->gpus; }
const std::vector<std::string>& Simulation::notes() const { return impl_->notes; }
std::vector<std::string> Simulation::DecisionLines() const {
  if (impl_->communicator == nullptr) return {};
  std::vector<std::string> lines = impl_->communicator->InitLines();
  for (std::string& line : impl_->communicator->TuningLines()) lines.push_back(std::move(line));
  return lines;
}
Plan Simulation::PlanOf(const CollectiveRequest& request) const {
  return impl_->MakePlan(request, impl_->Decide(request));
}
CallOutcome Simulation::Run(const CollectiveRequest& request, const RunObservers& observers) {
  return impl_->Run(request, observers);
}

}  // namespace windtunnel
