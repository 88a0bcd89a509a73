#include "interconnect/packet_network.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "interconnect/catalogue.h"
#include "interconnect/packet_options.h"
#include "interconnect/route_choice.h"
#include "interconnect/switch_tree.h"
#include "interconnect/virtual_channels.h"
#include "interconnect/wire_format.h"
#include "sim/check.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "sim/systemc_bridge.h"

namespace windtunnel {
namespace {

/// What a frame must have brought in before the next device starts to send it on.
Bytes ForwardAfter(const Link& link, const WireFormat& format,
                   const PacketNetwork::Options& options) {
  if (link.kind == LinkKind::kNetwork && !options.network_cut_through) return Bytes(0);
  return Bytes(std::max<std::uint32_t>(format.overhead, 16));
}

LinkTiming::Options TimingOf(const Topology& topology, LinkId id,
                             const PacketNetwork::Options& options) {
  const Link& link = topology.links[id];
  const WireFormat format = LinkWireFormat(topology, id);
  return {.rate = link.rate,
          .propagation = link.latency,
          .max_payload = Bytes(format.max_payload),
          .frame_overhead = Bytes(format.overhead),
          .forward_after = ForwardAfter(link, format, options)};
}

}  // namespace

struct PacketNetwork::Impl {
  Impl(const Topology& t, const Options& o)
      : topology(t),
        options(o),
        engine(queue, o.arbitration),
        order(o.virtual_channels),
        background(queue, o.retry.seed, [this](std::uint64_t own) { return OthersActive(own); }) {}

  /// Whether anybody but the background still has something to do: events of its own, or messages
  /// that move. A message that stands still longer than any retry may take never will move.
  bool OthersActive(std::uint64_t background_events) {
    if (engine.arrivals() != seen_arrivals || seen_at > queue.now()) {
      seen_arrivals = engine.arrivals();
      seen_at = queue.now();
    }
    if (queue.size() > engine.pending_events() + background_events) return true;
    if (engine.open_messages() == 0) return false;
    Picoseconds patience = Seconds(1);
    if (!options.error_rates.empty() || !options.outages.empty()) {
      patience = patience + (options.retry.retry_count + 1) * options.retry.Timeout();
    }
    if (options.tcp.enabled) patience = patience + 64 * options.tcp.smallest_timeout;
    return queue.now() - seen_at < patience;
  }

  /// Fewest links from `from` to `to`, ties by file order.
  std::vector<std::uint32_t> ShortestChain(DeviceId from, DeviceId to) const {
    std::vector<std::uint32_t> came_by(topology.devices.size(), UINT32_MAX);
    std::vector<bool> seen(topology.devices.size());
    std::deque<DeviceId> open{from};
    seen[from] = true;
    while (!open.empty() && !seen[to]) {
      const DeviceId at = open.front();
      open.pop_front();
      for (const LinkId id : links_out[at]) {
        const Link& link = topology.links[id];
        if (link.down || seen[link.to] || (at != from && !link.forward)) continue;
        seen[link.to] = true;
        came_by[link.to] = id;
        open.push_back(link.to);
      }
    }
    if (!seen[to] || from == to) {
      throw ConfigError({.file = topology.source,
                         .field = "way between devices",
                         .value = topology.devices[from].name,
                         .problem = "has no way to " + topology.devices[to].name,
                         .expected = "devices with links that are up between them"});
    }
    std::vector<std::uint32_t> chain;
    for (DeviceId at = to; at != from; at = topology.links[came_by[at]].from) {
      chain.push_back(came_by[at]);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  bool IsRoce(LinkId id) const {
    return topology.links[id].kind == LinkKind::kNetwork && LinkProtocol(topology, id) == "roce";
  }
  bool IsTcp(LinkId id) const {
    return topology.links[id].kind == LinkKind::kNetwork &&
           LinkProtocol(topology, id) == "ethernet";
  }

  /// Shared memory of the device at the end of a link without credits.
  std::uint32_t BufferId(DeviceId device) {
    const auto [at, fresh] = buffers.try_emplace(device, 0);
    if (fresh) at->second = NewBuffer(device);
    return at->second;
  }
  std::uint32_t NewBuffer(DeviceId id) {
    const Device& device = topology.devices[id];
    if (device.kind != DeviceKind::kNetworkSwitch) return engine.AddBuffer(kNicBuffer, true);
    if (options.switch_buffer.count() != 0) return engine.AddBuffer(options.switch_buffer);
    if (const auto it = device.attributes.find("buffer"); it != device.attributes.end()) {
      return engine.AddBuffer(
          ParseSize(it->second, {.file = topology.source, .field = device.name + ".buffer"}));
    }
    const auto ports = static_cast<std::uint64_t>(std::count_if(
        topology.links.begin(), topology.links.end(),
        [id](const Link& link) { return link.to == id && link.kind == LinkKind::kNetwork; }));
    const DeviceModel* model = Catalogue::Shipped().FindDevice(device.model);
    if (model == nullptr || model->buffer.count() == 0) {
      return engine.AddBuffer(std::max(kDefaultSwitchBuffer, ports * kBufferPerPort), true);
    }
    // A switch with more ports than the product has stands for several.
    const std::uint64_t products =
        model->ports == 0 ? 1
                          : std::max<std::uint64_t>((ports + model->ports - 1) / model->ports, 1);
    return engine.AddBuffer(products * model->buffer);
  }

  /// What holds back the source of a route; nothing where all of it is off.
  std::optional<EndpointOptions> EndpointOf(const Route& route) const {
    const auto first = std::find_if(route.begin(), route.end(), [this](LinkId id) {
      return topology.links[id].kind == LinkKind::kNetwork;
    });
    if (first == route.end()) return std::nullopt;
    EndpointOptions endpoint{.window = options.window,
                             .window_paths = options.window_paths,
                             .nic = options.nic,
                             .nic_id = topology.links[*first].from,
                             .jitter = options.jitter};
    endpoint.dcqcn = options.dcqcn;
    endpoint.dcqcn.enabled = options.dcqcn.enabled && options.ecn.enabled && IsRoce(*first) &&
                             topology.links[*first].rate < options.dcqcn_below;
    endpoint.tcp = options.tcp;
    endpoint.tcp.enabled = options.tcp.enabled && IsTcp(*first);
    if (options.grpc.enabled && IsTcp(*first)) {
      endpoint.nic.step = endpoint.nic.step + options.grpc.per_message;
    }
    const NicOptions plain;
    const bool paced = endpoint.nic.queue_pairs > 1 || endpoint.nic.post != plain.post ||
                       endpoint.nic.message_rate != plain.message_rate ||
                       endpoint.nic.step != plain.step ||
                       endpoint.nic.step_window != plain.step_window;
    if (endpoint.window.count() == 0 && endpoint.window_paths == 0 && !endpoint.dcqcn.enabled &&
        !endpoint.tcp.enabled && !paced && endpoint.jitter.count() == 0 &&
        !options.retry.go_back_n) {
      return std::nullopt;
    }
    return endpoint;
  }

  /// Virtual channels of a route; links that pause instead of taking credits have one.
  std::vector<std::uint8_t> Channels(const Route& route) {
    if (std::any_of(route.begin(), route.end(), [this](LinkId id) { return buffered[id]; })) {
      return {};
    }
    return order.Assign(route);
  }

  /// All ways as short and as wide between the first and the last network switch of a route.
  struct EqualWays {
    std::size_t begin = 0;  ///< Of the links of the route between the two switches.
    std::size_t end = 0;
    RouteSet between;
  };
  EqualWays EqualWaysOf(const Route& route) {
    const auto is_switch = [this](DeviceId id) {
      return topology.devices[id].kind == DeviceKind::kNetworkSwitch;
    };
    EqualWays ways;
    while (ways.begin < route.size() && !is_switch(topology.links[route[ways.begin]].from))
      ++ways.begin;
    ways.end = route.size();
    while (ways.end > ways.begin && !is_switch(topology.links[route[ways.end - 1]].to)) --ways.end;
    if (ways.begin == ways.end) return ways;
    if (!switch_routes) {
      cluster = std::make_unique<Cluster>(topology);
      switch_routes = std::make_unique<SwitchRoutes>(*cluster);
    }
    ways.between = switch_routes->Between(topology.links[route[ways.begin]].from,
                                          topology.links[route[ways.end - 1]].to);
    return ways;
  }

  /// The way of queue pair `number` of a connection over `route`.
  Route WayOf(const Route& route, const EqualWays& ways, std::uint32_t number) const {
    const std::uint64_t count = ways.between.count();
    if (number == 0 || count < 2) return route;
    std::uint64_t index = 0;
    if (options.queue_pair_paths == QueuePairPaths::kEven) {
      const std::span<const LinkId> own(route.data() + ways.begin, ways.end - ways.begin);
      index = (ways.between.IndexOf(own) + number) % count;
    } else {
      const FlowKey key{.from = topology.links[route.front()].from,
                        .to = topology.links[route.back()].to,
                        .port = number};
      index = HashRouteIndex(key, options.retry.seed, count);
    }
    Route way(route.begin(), route.begin() + static_cast<std::ptrdiff_t>(ways.begin));
    ways.between.ForEachLink(index, [&](LinkId link) {
      way.push_back(link);
      return true;
    });
    way.insert(way.end(), route.begin() + static_cast<std::ptrdiff_t>(ways.end), route.end());
    return way;
  }

  RouteId AddEngineRoute(const Route& route, const std::optional<EndpointOptions>& endpoint,
                         std::uint32_t queue_pair) {
    const RouteId id = engine.AddRoute(route, Channels(route));
    if (endpoint) {
      EndpointOptions named = *endpoint;
      named.name = "route" + std::to_string(routes.size()) + ".qp" + std::to_string(queue_pair);
      engine.SetEndpoint(id, named);
    }
    return id;
  }

  const Topology& topology;
  const Options options;
  EventQueue queue;
  PacketEngine engine;
  std::vector<std::vector<LinkId>> links_out;
  struct RouteHash {
    std::size_t operator()(const Route& route) const {
      std::uint64_t state = route.size();
      for (const LinkId link : route) state = (state ^ link) * 1099511628211ULL;  // FNV-1a's prime.
      return static_cast<std::size_t>(state ^ (state >> 32));
    }
  };
  std::unordered_map<Route, RouteId, RouteHash> routes;  ///< Never walked.
  std::map<DeviceId, std::uint32_t> buffers;
  std::vector<bool> buffered;  ///< By link: without credits.
  ChannelOrder order;
  BackgroundTraffic background;
  std::uint64_t seen_arrivals = 0;  ///< When the background last looked.
  SimTime seen_at;
  std::unique_ptr<Cluster> cluster;  ///< With `switch_routes`: once queue pairs ask for ways.
  std::unique_ptr<SwitchRoutes> switch_routes;
  std::vector<bool> grpc;  ///< By route.
};

PacketNetwork::PacketNetwork(const Topology& topology)
    : PacketNetwork(topology, PacketOptionsOf(topology)) {}

PacketNetwork::PacketNetwork(const Topology& topology, const Options& options)
    : impl_(std::make_unique<Impl>(topology, options)) {
  impl_->engine.set_burst_options(options.burst);
  if (options.virtual_channels < 1 || options.virtual_channels > 16) {
    throw ConfigError({.field = "virtual channels",
                       .value = std::to_string(options.virtual_channels),
                       .problem = "is out of range",
                       .expected = "1 to 16"});
  }
  if (options.retry.timeout_exponent < 1 || options.retry.timeout_exponent > 31) {
    throw ConfigError({.field = "time-out exponent",
                       .value = std::to_string(options.retry.timeout_exponent),
                       .problem = "is out of range",
                       .expected = "1 to 31; 0 would mean no time-out"});
  }
  impl_->engine.set_retry_options(options.retry);
  impl_->links_out.resize(topology.devices.size());
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    impl_->links_out[link.from].push_back(id);
    PacketEngine::LinkOptions wire{
        .timing = link.down ? LinkTiming::Options{.rate = BitsPerSecond(1), .max_payload = Bytes(1)}
                            : TimingOf(topology, id, options),
        .buffer = options.link_buffer,
        .credit_latency = link.latency,
        .link_replay = link.kind != LinkKind::kNetwork,
        .name = topology.devices[link.from].name + " -> " + topology.devices[link.to].name};
    if (!link.down && impl_->IsRoce(id)) {
      wire.flow_control = options.pfc.enabled ? FlowControl::kPause : FlowControl::kDrop;
      if (topology.devices[link.from].kind == DeviceKind::kNetworkSwitch) wire.ecn = options.ecn;
    } else if (!link.down && options.tcp.enabled && impl_->IsTcp(id)) {
      wire.flow_control = FlowControl::kDrop;
    }
    if (wire.flow_control != FlowControl::kCredits) {
      wire.buffer_id = impl_->BufferId(link.to);
      wire.pfc = options.pfc;
    }
    if (const auto at = options.outages.find(id); at != options.outages.end()) {
      wire.outages = at->second;
    }
    if (const auto rate = options.error_rates.find(id); rate != options.error_rates.end()) {
      if (!(rate->second >= 0 && rate->second <= 1)) {
        throw ConfigError({.file = topology.source,
                           .field = wire.name + ": error rate",
                           .value = std::to_string(rate->second),
                           .problem = "is no share",
                           .expected = "0 to 1"});
      }
      wire.error_rate = rate->second;
    }
    impl_->buffered.push_back(wire.flow_control != FlowControl::kCredits);
    impl_->engine.AddLink(wire);
  }
  AddBackground();
}

PacketNetwork::~PacketNetwork() = default;

void PacketNetwork::AddBackground() {
  for (std::size_t i = 0; i < impl_->options.background.size(); ++i) {
    const BackgroundFlow& flow = impl_->options.background[i];
    if (!(flow.share > 0 && flow.share <= 1) || flow.message.count() == 0) {
      throw ConfigError({.file = impl_->topology.source,
                         .field = "background",
                         .value = std::to_string(flow.share),
                         .problem = "is no load",
                         .expected = "a share above 0, at most 1, and messages above 0 bytes"});
    }
    const Route route = impl_->ShortestChain(flow.from, flow.to);
    Picoseconds slowest;
    for (const LinkId link : route) {
      slowest = std::max(slowest,
                         SerializationTime(LinkWireFormat(impl_->topology, link).Wire(flow.message),
                                           impl_->topology.links[link].rate));
    }
    const RouteId id = AddRoute(route);
    impl_->background.AddSource(
        {.name = "background" + std::to_string(i),
         .interval = Picoseconds(
             static_cast<std::uint64_t>(static_cast<double>(slowest.count()) / flow.share)),
         .send = [this, id, size = flow.message] { impl_->engine.SendBackground(id, size); }});
  }
}

RouteId PacketNetwork::AddRoute(const Route& route) {
  const auto known = impl_->routes.find(route);
  if (known != impl_->routes.end()) return known->second;
  const Topology& topology = impl_->topology;
  for (std::size_t i = 0; i < route.size(); ++i) {
    WT_CHECK(route[i] < topology.links.size()) << "route over link " << route[i];
    const Link& link = topology.links[route[i]];
    const auto refuse = [&](const char* problem) {
      throw ConfigError(
          {.file = topology.source,
           .field = "route",
           .value = topology.devices[link.from].name + " -> " + topology.devices[link.to].name,
           .problem = problem,
           .expected = "links that are up and follow one another"});
    };
    if (link.down) refuse("is down");
    if (i > 0 && topology.links[route[i - 1]].to != link.from) refuse("does not follow");
  }
  const std::optional<EndpointOptions> endpoint = impl_->EndpointOf(route);
  const std::uint32_t queue_pairs =
      endpoint && impl_->options.nic.queue_pairs > 1 ? impl_->options.nic.queue_pairs : 1;
  RouteId id = 0;
  if (queue_pairs == 1) {
    id = impl_->AddEngineRoute(route, endpoint, 0);
  } else {
    QueuePairPaths paths = impl_->options.queue_pair_paths;
    if (paths == QueuePairPaths::kAuto) {
      const bool hashed = std::any_of(route.begin(), route.end(), [this](LinkId link) {
        return impl_->IsRoce(link) || impl_->IsTcp(link);
      });
      paths = hashed ? QueuePairPaths::kHash : QueuePairPaths::kSame;
    }
    const Impl::EqualWays ways =
        paths == QueuePairPaths::kSame ? Impl::EqualWays{} : impl_->EqualWaysOf(route);
    std::vector<RouteId> parts;
    for (std::uint32_t i = 0; i < queue_pairs; ++i) {
      parts.push_back(impl_->AddEngineRoute(impl_->WayOf(route, ways, i), endpoint, i));
    }
    id = impl_->engine.AddStripe(parts, impl_->options.nic.split_messages);
  }
  impl_->grpc.resize(id + 1);
  impl_->grpc[id] =
      impl_->options.grpc.enabled &&
      std::any_of(route.begin(), route.end(), [this](LinkId link) { return impl_->IsTcp(link); });
  impl_->routes.emplace(route, id);
  return id;
}

GroupId PacketNetwork::AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                                std::span<const DeviceId> members) {
  const bool down = kind == GroupKind::kMulticast;
  SwitchTree tree(
      impl_->topology, hub,
      [this, down](DeviceId device, DeviceId centre) {
        return down ? impl_->ShortestChain(centre, device) : impl_->ShortestChain(device, centre);
      },
      down);
  for (const DeviceId member : members) tree.Add(member);
  tree.DropNodesThatOnlyPass();
  if (down) {
    return impl_->engine.AddMulticastTree(impl_->ShortestChain(owner, hub), tree.inner(),
                                          tree.members());
  }
  return impl_->engine.AddReductionTree(tree.members(), tree.inner(),
                                        impl_->ShortestChain(hub, owner),
                                        impl_->options.reduce_latency);
}

void PacketNetwork::Send(RouteId route, Bytes size, std::uint64_t token) {
  if (!impl_->background.empty()) impl_->background.Start();
  if (impl_->grpc[route]) size = GrpcBytes(impl_->options.grpc, size);
  impl_->engine.Send(route, size, token);
}
void PacketNetwork::SendGroup(GroupId group, Bytes size, std::uint64_t token) {
  if (!impl_->background.empty()) impl_->background.Start();
  impl_->engine.SendGroup(group, size, token);
}
void PacketNetwork::set_client(NetworkClient* client) { impl_->engine.set_client(client); }
EventQueue& PacketNetwork::queue() { return impl_->queue; }
void PacketNetwork::EndOfRun() { impl_->engine.EndOfRun(); }
std::span<const LinkUse> PacketNetwork::link_use() const { return impl_->engine.link_use(); }
std::uint64_t PacketNetwork::open_messages() const { return impl_->engine.open_messages(); }
std::string PacketNetwork::DescribeStall() const { return impl_->engine.DescribeStall(); }
void PacketNetwork::set_observer(WireObserver* observer) { impl_->engine.set_observer(observer); }
void PacketNetwork::set_burst_options(const BurstOptions& options) {
  impl_->engine.set_burst_options(options);
}
void PacketNetwork::BindModel(DeviceId device, PassageModel* model) {
  for (LinkId id = 0; id < impl_->topology.links.size(); ++id) {
    if (impl_->topology.links[id].to == device) impl_->engine.BindModel(id, model);
  }
}
void PacketNetwork::BreakFrame(LinkId link, std::uint64_t frame) {
  impl_->engine.BreakFrame(link, frame);
}
const PacketNetwork::Options& PacketNetwork::options() const { return impl_->options; }
std::uint64_t PacketNetwork::packets() const { return impl_->engine.packets(); }
const PacketEngine& PacketNetwork::engine() const { return impl_->engine; }
std::uint64_t PacketNetwork::credit_circles() const { return impl_->order.circles(); }

void PacketNetwork::Reset() {
  impl_->engine.Reset();
  impl_->queue.Reset();
  impl_->background.Reset();
}

void PacketNetwork::RunToIdle() {
  SystemcBridge::Instance().Run(impl_->queue);
  if (open_messages() == 0) return;
  throw SimulationError("nothing moves any more and " + std::to_string(open_messages()) +
                        " messages are open\n" + DescribeStall());
}

}  // namespace windtunnel
