// What the engine is built from, and its return to the start.

#include <algorithm>
#include <limits>

#include "interconnect/packet_engine.h"
#include "sim/check.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {

std::uint32_t PacketEngine::AddBuffer(Bytes capacity, bool grows) {
  buffers_.emplace_back(capacity, grows);
  return static_cast<std::uint32_t>(buffers_.size() - 1);
}

std::uint32_t PacketEngine::AddLink(const LinkOptions& options) {
  LinkState& link = links_.emplace_back(options, retry_options_.seed);
  lossy_ = lossy_ || CanLose(link);
  link.lane.credits = CreditCounter(BufferOf(link));
  link.more_lanes.assign(options.virtual_channels - 1, link.lane);
  link.credited = options.flow_control == FlowControl::kCredits;
  if (!link.credited && options.buffer_id != kNone) {
    const LinkTiming::Options& timing = options.timing;
    const Bytes frame = link.timing.WireSize(timing.max_payload);
    const PfcOptions& pfc = options.pfc;
    const Picoseconds response =
        pfc.response.count() != 0 ? pfc.response : PfcResponseTime(timing.rate);
    link.resume_gap = pfc.resume_gap.count() != 0 ? pfc.resume_gap : 3 * frame;
    link.pause_delay =
        SerializationTime(kPauseFrame, timing.rate) + options.credit_latency + response;
    if (options.flow_control == FlowControl::kPause) {
      // A burst counts whole from its first frame on, and one may have begun: room for two more.
      link.headroom = pfc.headroom.count() != 0
                          ? pfc.headroom
                          : PfcHeadroom(timing.rate, timing.propagation, response, frame) +
                                2 * std::max(BurstBelowThresholds(link), frame);
      SharedBuffer& buffer = buffers_[options.buffer_id];
      buffer.Reserve(link.headroom);
      if (buffer.reserved() >= buffer.capacity()) {
        throw ConfigError({.field = options.name + ": buffer",
                           .value = FormatSize(buffer.capacity()),
                           .problem = "has no room beside the head-room of its ports",
                           .expected = "more than " + FormatSize(buffer.reserved())});
      }
    }
  }
  if (options.ecn.enabled) {
    link.ecn = EcnThresholds(options.ecn, options.timing.rate);
    link.mark_from = link.ecn.kmin.count();
  }
  use_.emplace_back();
  return static_cast<std::uint32_t>(links_.size() - 1);
}

/// Thresholds of a queue need bursts that are small beside them.
Bytes PacketEngine::BurstBelowThresholds(const LinkState& link) {
  return EcnThresholds(link.options.ecn, link.options.timing.rate).kmin / 8;
}

/// Links that replay by themselves lose nothing, but their frames still count one by one.
bool PacketEngine::CanLose(const LinkState& link) {
  return link.options.error_rate > 0 || !link.options.outages.empty() ||
         link.break_frame != UINT64_MAX || link.options.flow_control == FlowControl::kDrop ||
         (link.options.flow_control == FlowControl::kPause &&
          link.options.pfc.headroom.count() != 0);  // Somebody's own, so it may be too small.
}

void PacketEngine::FindLossyRoutes() {
  lossy_ = std::any_of(links_.begin(), links_.end(), CanLose);
  for (Route& route : routes_) {
    route.lossy = false;
    for (std::uint32_t i = 0; lossy_ && i < route.hop_count; ++i) {
      route.lossy = route.lossy || CanLose(links_[hops_[route.first_hop + i].link]);
    }
  }
}

/// What is on the wire or on its way back as credit while the wire is busy: the way there, the
/// receiver's own time and the way back.
Bytes PacketEngine::InLoop(const LinkState& link) {
  const LinkOptions& o = link.options;
  const Picoseconds loop = o.timing.propagation + o.pass_latency + o.credit_latency;
  __extension__ using Wide = unsigned __int128;
  return Bytes(static_cast<std::uint64_t>(Wide{loop.count()} * o.timing.rate.count() / 8 /
                                          1'000'000'000'000));
}

/// A long wire has as much again beside what is in its loop, and every wire room for some frames,
/// so that a wire never waits for credits on an idle path.
Bytes PacketEngine::BufferOf(const LinkState& link) {
  if (link.options.buffer.count() != 0) return link.options.buffer;
  const Bytes frame = link.timing.WireSize(link.options.timing.max_payload);
  return std::max({kPortBuffer, 2 * InLoop(link), InLoop(link) + 3 * frame});
}

/// Bursts must be small beside the room they wait in: a few of them to one output would fill what
/// frames to several share, and their room is free only when all of it has left.
Bytes PacketEngine::BurstForBuffer(const LinkState& link) {
  const Bytes buffer = BufferOf(link);
  const Bytes loop = InLoop(link);
  return buffer > loop ? (buffer - loop) / kBurstsPerBuffer : Bytes(0);
}

std::uint32_t PacketEngine::NewQueue(std::uint32_t link, std::uint32_t in_link, bool source) {
  queues_.push_back({.link = link, .in_link = in_link, .source = source});
  members_.emplace_back();
  return static_cast<std::uint32_t>(queues_.size() - 1);
}

std::uint32_t PacketEngine::TransitQueue(std::uint32_t in_link, std::uint8_t in_lane,
                                         std::uint32_t link, std::uint8_t lane) {
  // 28 bits of link number and 4 of virtual channel on either side.
  const std::uint64_t key = static_cast<std::uint64_t>(in_link) << 36 |
                            static_cast<std::uint64_t>(in_lane) << 32 |
                            static_cast<std::uint64_t>(link) << 4 | lane;
  const auto [at, fresh] = transit_.try_emplace(key, 0);
  if (!fresh) return at->second;
  const std::uint32_t queue = NewQueue(link, in_link, false);
  queues_[queue].lane = lane;
  queues_[queue].in_lane = in_lane;
  at->second = queue;
  return queue;
}

/// One more route comes by a queue.
void PacketEngine::AddWeight(std::uint32_t queue) {
  if (arbitration_ == Arbitration::kPorts) return;
  std::uint16_t& weight = members_[queue].weight;
  if (weight < std::numeric_limits<std::uint16_t>::max()) ++weight;
}

PacketEngine::Route PacketEngine::MakeRoute(std::span<const std::uint32_t> links, HopStart start,
                                            std::uint32_t in_link, HopEnd end, std::uint32_t node,
                                            std::span<const std::uint8_t> lanes) {
  Route route;
  route.first_hop = static_cast<std::uint32_t>(hops_.size());
  route.hop_count = static_cast<std::uint32_t>(links.size());
  route.longest = Bytes(std::numeric_limits<std::uint64_t>::max());
  for (std::size_t i = 0; i < links.size(); ++i) {
    LinkState& link = links_[links[i]];
    Hop hop{.link = links[i], .end = HopEnd::kTransit, .node = node};
    if (!lanes.empty()) hop.lane = lanes[i];
    for (; hop.lane >= link.options.virtual_channels; ++link.options.virtual_channels) {
      link.more_lanes.push_back({.credits = CreditCounter(BufferOf(link))});
    }
    if (i + 1 == links.size()) hop.end = end;
    if (i > 0) {
      hop.queue = TransitQueue(links[i - 1], hops_.back().lane, links[i], hop.lane);
    } else if (start == HopStart::kTransit) {
      hop.queue = TransitQueue(in_link, 0, links[i], hop.lane);
    } else {
      hop.queue = NewQueue(links[i], kNone, start == HopStart::kSource);
      queues_[hop.queue].hop = route.first_hop;
      queues_[hop.queue].lane = hop.lane;
      PortArbiter& arbiter = LaneOf(link, hop.lane).arbiter;
      if (start == HopStart::kSource && arbiter.own() == kNone) {
        arbiter.set_own(NewQueue(links[i], kNone, true));
      }
    }
    AddWeight(queues_[hop.queue].source ? LaneOf(link, hop.lane).arbiter.own() : hop.queue);
    route.lossy = route.lossy || CanLose(link);
    hops_.push_back(hop);
    route.unit = std::max(route.unit, link.options.timing.max_payload);
    if (link.credited) route.longest = std::min(route.longest, BurstForBuffer(link));
    if (!link.credited || link.options.ecn.enabled) {
      route.longest = std::min(route.longest, BurstBelowThresholds(link));
    }
  }
  // The smallest burst is one frame of the link with the largest frames.
  for (const std::uint32_t id : links) {
    const LinkState& link = links_[id];
    const Bytes buffer = link.options.buffer;
    if (!link.credited || buffer.count() == 0 || link.timing.WireSize(route.unit) <= buffer)
      continue;
    throw ConfigError({.field = "link-buffer",
                       .value = FormatSize(buffer),
                       .problem = "holds no frame of the way over " + link.options.name + ":",
                       .expected = "at least " + FormatSize(link.timing.WireSize(route.unit))});
  }
  return route;
}

RouteId PacketEngine::AddRoute(std::span<const std::uint32_t> links,
                               std::span<const std::uint8_t> channels) {
  routes_.push_back(MakeRoute(links, HopStart::kSource, kNone, HopEnd::kTarget, 0, channels));
  open_orders_.emplace_back();
  return static_cast<RouteId>(routes_.size() - 1);
}

GroupId PacketEngine::AddMulticast(std::span<const std::uint32_t> up,
                                   std::span<const std::vector<std::uint32_t>> down) {
  std::vector<TreeEdge> members;
  for (const std::vector<std::uint32_t>& links : down) members.push_back({.links = links});
  return AddMulticastTree(up, {}, members);
}

GroupId PacketEngine::AddReduction(std::span<const std::vector<std::uint32_t>> up,
                                   std::span<const std::uint32_t> down,
                                   Picoseconds reduce_latency) {
  std::vector<TreeEdge> members;
  for (const std::vector<std::uint32_t>& links : up) members.push_back({.links = links});
  return AddReductionTree(members, {}, down, reduce_latency);
}

GroupId PacketEngine::AddMulticastTree(std::span<const std::uint32_t> up,
                                       std::span<const TreeEdge> inner,
                                       std::span<const TreeEdge> members) {
  WT_CHECK(!up.empty()) << "a multicast group without a way to its hub";
  Group group{.kind = MessageKind::kMulticast,
              .targets = static_cast<std::uint32_t>(members.size())};
  group.up.push_back(MakeRoute(up, HopStart::kSource, kNone, HopEnd::kReplicate, 0));
  group.nodes.resize(inner.size() + 1);
  std::vector<std::uint32_t> came_by{up.back()};
  group.nodes[0].inputs = 1;
  for (std::uint32_t i = 0; i < inner.size(); ++i) {
    const TreeEdge& edge = inner[i];
    WT_CHECK(!edge.links.empty() && edge.node <= i) << "a switch before the one it hangs at";
    group.nodes[edge.node].outputs.push_back(
        MakeRoute(edge.links, HopStart::kTransit, came_by[edge.node], HopEnd::kReplicate, i + 1));
    came_by.push_back(edge.links.back());
    group.nodes[i + 1].inputs = 1;
  }
  for (const TreeEdge& edge : members) {
    WT_CHECK(!edge.links.empty()) << "a multicast member that is the hub";
    group.nodes[edge.node].outputs.push_back(
        MakeRoute(edge.links, HopStart::kTransit, came_by[edge.node], HopEnd::kTarget, 0));
  }
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

GroupId PacketEngine::AddReductionTree(std::span<const TreeEdge> members,
                                       std::span<const TreeEdge> inner,
                                       std::span<const std::uint32_t> down,
                                       Picoseconds reduce_latency) {
  WT_CHECK(!down.empty()) << "a reduction group without a way from its hub";
  Group group{.kind = MessageKind::kReduction, .targets = 1, .reduce_latency = reduce_latency};
  group.nodes.resize(inner.size() + 1);
  for (const TreeEdge& edge : members) {
    WT_CHECK(!edge.links.empty()) << "a reduction member that is the hub";
    group.up.push_back(MakeRoute(edge.links, HopStart::kSource, kNone, HopEnd::kMerge, edge.node));
    ++group.nodes[edge.node].inputs;
  }
  for (std::uint32_t i = 0; i < inner.size(); ++i) {
    const TreeEdge& edge = inner[i];
    WT_CHECK(!edge.links.empty() && edge.node <= i) << "a switch before the one it hangs at";
    group.nodes[i + 1].outputs.push_back(
        MakeRoute(edge.links, HopStart::kMerged, kNone, HopEnd::kMerge, edge.node));
    ++group.nodes[edge.node].inputs;
  }
  group.nodes[0].outputs.push_back(MakeRoute(down, HopStart::kMerged, kNone, HopEnd::kTarget, 0));
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

void PacketEngine::set_burst_options(const BurstOptions& options) {
  WT_CHECK(open_messages_ == 0) << "burst size changed with messages open";
  burst_options_ = options;
}

void PacketEngine::set_retry_options(const RetryOptions& options) {
  WT_CHECK(options.timeout_exponent >= 1 && options.timeout_exponent <= 31)
      << "time-out exponent of 5 bits, not 0";
  retry_options_ = options;
  for (LinkState& link : links_) link.random = RandomStream(options.seed, link.options.name);
}

void PacketEngine::BreakFrame(std::uint32_t link, std::uint64_t frame) {
  links_[link].break_frame = use_[link].packets + frame;
  FindLossyRoutes();
}

void PacketEngine::Reset() {
  WT_CHECK(open_messages_ == 0) << open_messages_ << " messages open";
  WT_CHECK(background_messages_ == 0) << background_messages_ << " background messages open";
  for (LinkState& link : links_) {
    for (std::uint32_t i = 0; i < link.options.virtual_channels; ++i) {
      Lane& lane = LaneOf(link, static_cast<std::uint8_t>(i));
      WT_CHECK(lane.arbiter.empty()) << link.options.name << " has waiting bursts";
      lane.credits.Reset();
    }
    WT_CHECK(link.flight_first == kNone) << link.options.name << " has bursts in flight";
    link.next_lane = 0;
    link.ingress.Reset();
    link.paused = false;
    link.timing.Reset();
    link.serve_at = CreditCounter::kUnknown;
    link.largest = 1;
    link.sized_payload = Bytes(UINT64_MAX);
    link.random = RandomStream(retry_options_.seed, link.options.name);
    link.break_frame = UINT64_MAX;
  }
  for (SharedBuffer& buffer : buffers_) buffer.Reset();
  for (Queue& queue : queues_) queue.last_ready = SimTime();
  for (OpenOrder& order : open_orders_) order.last_delivered = SimTime();
  FindLossyRoutes();
  for (Endpoint& endpoint : endpoints_) StartFresh(endpoint);
  for (NicPacer& nic : nics_) nic.Reset();
  for (Stripe& stripe : stripes_) stripe.next = 0;
  std::fill(use_.begin(), use_.end(), LinkUse{});
  ended_use_.clear();
}

}  // namespace windtunnel
