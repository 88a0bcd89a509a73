#include "interconnect/packet_engine.h"

#include <algorithm>
#include <limits>

#include "sim/check.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

/// An index of `pool`, from its free list when that has one.
template <class T>
std::uint32_t TakeFrom(std::vector<T>& pool, std::vector<std::uint32_t>& free_list) {
  if (free_list.empty()) {
    pool.emplace_back();
    return static_cast<std::uint32_t>(pool.size() - 1);
  }
  const std::uint32_t index = free_list.back();
  free_list.pop_back();
  return index;
}

}  // namespace

std::uint32_t PacketEngine::AddLink(const LinkOptions& options) {
  LinkState& link = links_.emplace_back(options, retry_options_.seed);
  lossy_ = lossy_ || options.error_rate > 0;
  link.credits = CreditCounter(BufferFor(link, Bytes(0)));
  use_.emplace_back();
  return static_cast<std::uint32_t>(links_.size() - 1);
}

/// Credits are out for the way there, the receiver's own time and the way back, and while the burst
/// goes onto this wire and off onto the next; with one more against rounding to whole bursts the
/// wire never waits for them on an idle path.
Bytes PacketEngine::BufferFor(const LinkState& link, Bytes burst) const {
  const LinkOptions& o = link.options;
  if (o.buffer.count() != 0) return o.buffer;
  const Picoseconds loop = o.timing.propagation + o.pass_latency + o.credit_latency;
  __extension__ using Wide = unsigned __int128;
  const Wide in_loop = Wide{loop.count()} * o.timing.rate.count() / 8 / 1'000'000'000'000;
  return Bytes(static_cast<std::uint64_t>(in_loop)) + 3 * link.timing.WireSize(burst);
}

std::uint32_t PacketEngine::NewQueue(std::uint32_t link, std::uint32_t in_link, bool source) {
  queues_.push_back({.link = link, .in_link = in_link, .source = source});
  members_.emplace_back();
  return static_cast<std::uint32_t>(queues_.size() - 1);
}

std::uint32_t PacketEngine::TransitQueue(std::uint32_t in_link, std::uint32_t link) {
  const std::uint64_t key = static_cast<std::uint64_t>(in_link) << 32 | link;
  const auto at = std::lower_bound(transit_.begin(), transit_.end(), std::pair{key, 0U});
  if (at != transit_.end() && at->first == key) return at->second;
  const std::uint32_t queue = NewQueue(link, in_link, false);
  transit_.insert(at, {key, queue});
  return queue;
}

PacketEngine::Route PacketEngine::MakeRoute(std::span<const std::uint32_t> links, HopStart start,
                                            std::uint32_t in_link, HopEnd end,
                                            std::uint32_t member) {
  Route route;
  route.first_hop = static_cast<std::uint32_t>(hops_.size());
  route.hop_count = static_cast<std::uint32_t>(links.size());
  route.longest = Bytes(std::numeric_limits<std::uint64_t>::max());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkState& link = links_[links[i]];
    Hop hop{.link = links[i], .end = HopEnd::kTransit, .member = member};
    if (i + 1 == links.size()) hop.end = end;
    if (i > 0) {
      hop.queue = TransitQueue(links[i - 1], links[i]);
    } else if (start == HopStart::kTransit) {
      hop.queue = TransitQueue(in_link, links[i]);
    } else {
      hop.queue = NewQueue(links[i], kNone, start == HopStart::kSource);
      queues_[hop.queue].hop = route.first_hop;
    }
    hops_.push_back(hop);
    route.unit = std::max(route.unit, link.options.timing.max_payload);
    if (link.options.buffer.count() != 0) {
      route.longest = std::min(route.longest, link.options.buffer / 2);
    }
  }
  return route;
}

RouteId PacketEngine::AddRoute(std::span<const std::uint32_t> links) {
  routes_.push_back(MakeRoute(links, HopStart::kSource, kNone, HopEnd::kTarget, 0));
  open_orders_.emplace_back();
  return static_cast<RouteId>(routes_.size() - 1);
}

GroupId PacketEngine::AddMulticast(std::span<const std::uint32_t> up,
                                   std::span<const std::vector<std::uint32_t>> down) {
  WT_CHECK(!up.empty()) << "a multicast group without a way to its hub";
  Group group{.kind = MessageKind::kMulticast};
  group.up.push_back(MakeRoute(up, HopStart::kSource, kNone, HopEnd::kReplicate, 0));
  for (const std::vector<std::uint32_t>& links : down) {
    WT_CHECK(!links.empty()) << "a multicast member that is the hub";
    group.down.push_back(MakeRoute(links, HopStart::kTransit, up.back(), HopEnd::kTarget, 0));
  }
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

GroupId PacketEngine::AddReduction(std::span<const std::vector<std::uint32_t>> up,
                                   std::span<const std::uint32_t> down,
                                   Picoseconds reduce_latency) {
  WT_CHECK(!down.empty()) << "a reduction group without a way from its hub";
  Group group{.kind = MessageKind::kReduction, .reduce_latency = reduce_latency};
  for (const std::vector<std::uint32_t>& links : up) {
    WT_CHECK(!links.empty()) << "a reduction member that is the hub";
    group.up.push_back(MakeRoute(links, HopStart::kSource, kNone, HopEnd::kMerge,
                                 static_cast<std::uint32_t>(group.up.size())));
  }
  group.down.push_back(MakeRoute(down, HopStart::kMerged, kNone, HopEnd::kTarget, 0));
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size() - 1);
}

void PacketEngine::set_burst_options(const BurstOptions& options) {
  WT_CHECK(open_messages_ == 0) << "burst size changed with messages open";
  burst_options_ = options;
}

void PacketEngine::set_retry_options(const RetryOptions& options) {
  WT_CHECK(options.timeout_exponent <= 31) << "time-out exponent of 5 bits";
  retry_options_ = options;
  for (LinkState& link : links_) link.random = RandomStream(options.seed, link.options.name);
}

void PacketEngine::BreakFrame(std::uint32_t link, std::uint64_t frame) {
  links_[link].break_frame = use_[link].packets + frame;
  lossy_ = true;
}

std::uint32_t PacketEngine::NewMessage(Bytes size, std::uint64_t token, MessageKind kind,
                                       Bytes unit, Bytes longest) {
  const std::uint32_t index = TakeFrom(messages_, free_messages_);
  Message& message = messages_[index];
  message = {.token = token, .size = size, .kind = kind};
  message.last_injected = message.last_in = queue_.now();
  const std::uint64_t frames = (size.count() + unit.count() - 1) / std::max(unit.count(), 1UL);
  std::uint64_t per_burst = 1;
  if (burst_options_.bursts_per_message != 0 && !lossy_) {
    per_burst =
        (frames + burst_options_.bursts_per_message - 1) / burst_options_.bursts_per_message;
    if (burst_options_.longest_burst.count() != 0) {
      longest = std::min(longest, burst_options_.longest_burst);
    }
    per_burst = std::max<std::uint64_t>(std::min(per_burst, longest.count() / unit.count()), 1);
  }
  message.burst = per_burst * unit;
  ++open_messages_;
  return index;
}

std::uint32_t PacketEngine::BurstCount(const Message& message) const {
  const std::uint64_t count =
      (message.size.count() + message.burst.count() - 1) / message.burst.count();
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(count, 1));
}

/// Automatic buffers hold three bursts, whatever the message: the cut into bursts must not be what
/// a wire waits for.
void PacketEngine::MakeRoom(Route& route, Bytes burst) {
  if (burst <= route.room_for) return;
  route.room_for = burst;
  for (std::uint32_t i = 0; i < route.hop_count; ++i) {
    LinkState& link = links_[hops_[route.first_hop + i].link];
    link.credits.GrowTo(BufferFor(link, burst));
  }
}

void PacketEngine::Send(RouteId route_id, Bytes size, std::uint64_t token) {
  Route& route = routes_[route_id];
  if (route.hop_count == 0) {  // Source and target are one device.
    const std::uint32_t message = NewMessage(size, token, MessageKind::kPlain, Bytes(1), size);
    Schedule(queue_.now(), EventKind::kInjected, message);
    Schedule(queue_.now(), EventKind::kDelivered, message);
    return;
  }
  const std::uint32_t index =
      NewMessage(size, token, MessageKind::kPlain, route.unit, route.longest);
  Message& message = messages_[index];
  message.bursts_open = BurstCount(message);
  message.sources_open = 1;
  message.route = route_id;
  if (lossy_) {
    OpenOrder& order = open_orders_[route_id];
    (order.first == kNone ? order.first : messages_[order.last].next_open) = index;
    order.last = index;
  }
  Inject(route, index);
}

void PacketEngine::SendGroup(GroupId group_id, Bytes size, std::uint64_t token) {
  Group& group = groups_[group_id];
  Bytes unit;
  Bytes longest(std::numeric_limits<std::uint64_t>::max());
  for (const std::vector<Route>* routes : {&group.up, &group.down}) {
    for (const Route& route : *routes) {
      unit = std::max(unit, route.unit);
      longest = std::min(longest, route.longest);
    }
  }
  const std::uint32_t index = NewMessage(size, token, group.kind, unit, longest);
  Message& message = messages_[index];
  message.group = group_id;
  const std::uint32_t bursts = BurstCount(message);
  message.bursts_open = bursts * static_cast<std::uint32_t>(group.down.size());
  message.sources_open = static_cast<std::uint32_t>(group.up.size());
  if (group.kind == MessageKind::kReduction) {
    message.merge = TakeFrom(merges_, free_merges_);
    merges_[message.merge].assign(bursts, MergeSlot{});
  }
  for (Route& route : group.down) MakeRoom(route, message.burst);
  for (Route& route : group.up) Inject(route, index);
}

void PacketEngine::Inject(Route& route, std::uint32_t message) {
  MakeRoom(route, messages_[message].burst);
  const std::uint32_t index = TakeFrom(segments_, free_segments_);
  segments_[index] = {.message = message, .left = messages_[message].size};
  const std::uint32_t queue_id = hops_[route.first_hop].queue;
  Queue& queue = queues_[queue_id];
  if (queue.first == kNone) {
    queue.first = index;
  } else {
    segments_[queue.last].next = index;
  }
  queue.last = index;
  links_[queue.link].arbiter.Activate(members_, queue_id);
  Kick(queue.link, queue_.now());
}

void PacketEngine::OnEvent(SimTime now, std::uint64_t payload) {
  const auto index = static_cast<std::uint32_t>(payload);
  switch (static_cast<EventKind>(payload >> 32)) {
    case EventKind::kServe:
      if (links_[index].serve_at != now) return;  // Replaced by an earlier one.
      links_[index].serve_at = CreditCounter::kUnknown;
      Serve(index, now);
      return;
    case EventKind::kArrive:
      Arrive(index, now);
      return;
    case EventKind::kReady:
      Enqueue(index, now);
      return;
    case EventKind::kResend:
      EnqueueAt(open_orders_[messages_[bursts_[index].message].route].resend_queue, index, now);
      return;
    case EventKind::kInjected: {
      Message& message = messages_[index];
      const std::uint64_t token = message.token;
      message.injected = true;
      if (message.delivered) free_messages_.push_back(index);
      if (client_ != nullptr) client_->OnInjected(now, token);
      return;
    }
    case EventKind::kDelivered: {
      Message& message = messages_[index];
      const std::uint64_t token = message.token;
      message.delivered = true;
      if (message.merge != kNone) free_merges_.push_back(message.merge);
      if (message.injected) free_messages_.push_back(index);
      --open_messages_;
      if (client_ != nullptr) client_->OnDelivered(now, token);
      return;
    }
  }
}

void PacketEngine::ServeAt(std::uint32_t link, SimTime at) {
  if (at >= links_[link].serve_at) return;
  links_[link].serve_at = at;
  Schedule(at, EventKind::kServe, link);
}

void PacketEngine::Kick(std::uint32_t link_id, SimTime now) {
  const LinkState& link = links_[link_id];
  if (link.starved || link.serve_at != CreditCounter::kUnknown) return;  // It will look itself.
  if (link.timing.wire_free() > now) {
    ServeAt(link_id, link.timing.wire_free());
  } else {
    Serve(link_id, now);
  }
}

Bytes PacketEngine::NextPayload(const Queue& queue) const {
  if (!queue.source) return bursts_[queue.first].payload;
  const Segment& segment = segments_[queue.first];
  return std::min(segment.left, messages_[segment.message].burst);
}

Bytes PacketEngine::SizeOnWire(LinkState& link, Bytes payload) {
  if (link.sized_payload != payload) {
    link.sized_payload = payload;
    link.sized_wire = link.timing.WireSize(payload);
    link.sized_frames = link.timing.Frames(payload);
    link.largest = std::max(link.largest, link.sized_wire.count());
  }
  return link.sized_wire;
}

/// Puts the next burst on a free wire, when there is one and its receiver has room.
void PacketEngine::Serve(std::uint32_t link_id, SimTime now) {
  LinkState& link = links_[link_id];
  if (link.arbiter.empty()) return;
  const std::uint32_t queue_id =
      link.arbiter.Pick(members_, link.largest, [this, &link](std::uint32_t id) {
        return SizeOnWire(link, NextPayload(queues_[id])).count();
      });
  Queue& queue = queues_[queue_id];
  const Bytes payload = NextPayload(queue);
  const Bytes wire = SizeOnWire(link, payload);
  if (!link.credits.Fits(now, wire)) {
    ++use_[link_id].pauses;
    const SimTime at = link.credits.FreeAt(wire);
    if (at == CreditCounter::kUnknown) {
      link.starved = true;
    } else {
      ServeAt(link_id, at);
    }
    return;
  }
  link.credits.Take(wire);

  // Take the burst off its queue; at a source it comes into being here.
  std::uint32_t burst_id = kNone;
  std::uint32_t message_id = 0;
  std::uint32_t hop_id = 0;
  SimTime tail = now;
  bool last_of_source = false;
  bool queue_done = false;
  if (queue.source) {
    Segment& segment = segments_[queue.first];
    message_id = segment.message;
    hop_id = queue.hop;
    segment.left = segment.left - payload;
    last_of_source = segment.left.count() == 0;
    if (hops_[hop_id].end != HopEnd::kTarget) {
      burst_id = TakeFrom(bursts_, free_bursts_);
      bursts_[burst_id] = {
          .message = message_id, .hop = hop_id, .index = segment.burst, .payload = payload};
    }
    ++segment.burst;
    if (last_of_source) {
      free_segments_.push_back(queue.first);
      queue.first = segment.next;
      queue_done = queue.first == kNone;
    }
  } else {
    burst_id = queue.first;
    const Burst& burst = bursts_[burst_id];
    message_id = burst.message;
    hop_id = burst.hop;
    tail = burst.tail;
    queue.first = burst.next;
    queue_done = queue.first == kNone;
    link.waiting -= payload.count();
  }

  LinkTiming::Booking booking = link.timing.Send(now, tail, payload);
  const bool broken = lossy_ && messages_[message_id].kind == MessageKind::kPlain &&
                      Breaks(link_id, link.sized_frames);
  if (broken && link.options.link_replay) Replay(link_id, payload, wire, booking);
  LinkUse& use = use_[link_id];
  use.payload += payload;
  use.wire += wire;
  use.busy += booking.wire_free - booking.start;
  use.packets += link.sized_frames;
  if (observer_ != nullptr) {
    observer_->OnWireBusy(link_id, booking.start, booking.wire_free, wire);
  }

  if (queue_done) {
    link.arbiter.DropFirst(members_);
  } else {
    link.arbiter.Charge(members_, wire.count());
  }
  if (!link.arbiter.empty()) ServeAt(link_id, booking.wire_free);

  if (!queue.source && queue.in_link != kNone) {
    FreeUpstream(bursts_[burst_id], queue.in_link, booking.last_out);
  }
  if (last_of_source) {
    Message& message = messages_[message_id];
    message.last_injected = std::max(message.last_injected, booking.last_out);
    if (--message.sources_open == 0) {
      Schedule(message.last_injected, EventKind::kInjected, message_id);
    }
  }

  if (broken && !link.options.link_replay) {
    if (burst_id == kNone) {  // Lost on the only wire of its way.
      burst_id = TakeFrom(bursts_, free_bursts_);
      bursts_[burst_id] = {.message = message_id, .hop = hop_id, .payload = payload};
      bursts_[burst_id].index = last_of_source ? BurstCount(messages_[message_id]) - 1 : 0;
    }
    ReturnCredit(link_id, booking.last_in + link.options.credit_latency, wire);
    Resend(burst_id, link_id, booking);
    return;
  }
  if (hops_[hop_id].end == HopEnd::kTarget) {
    // The target takes everything as it comes, so nothing happens there but the end.
    if (burst_id != kNone) free_bursts_.push_back(burst_id);
    ReturnCredit(link_id, booking.last_in + link.options.credit_latency, wire);
    CountArrived(message_id, booking.last_in);
    return;
  }
  Burst& burst = bursts_[burst_id];
  burst.next = kNone;
  burst.held = wire;
  burst.head = booking.head_in + link.options.pass_latency;
  burst.tail = booking.last_in + link.options.pass_latency;
  if (link.flight_first == kNone) {
    link.flight_first = burst_id;
    Schedule(burst.head, EventKind::kArrive, link_id);
  } else {
    bursts_[link.flight_last].next = burst_id;
  }
  link.flight_last = burst_id;
}

/// Whether the burst that was just booked as frames `packets` onward arrives broken.
bool PacketEngine::Breaks(std::uint32_t link_id, std::uint64_t frames) {
  LinkState& link = links_[link_id];
  const std::uint64_t first = use_[link_id].packets;
  if (link.break_frame >= first && link.break_frame < first + frames) {
    link.break_frame = UINT64_MAX;
    return true;
  }
  return link.options.error_rate > 0 && link.random.Unit() < link.options.error_rate;
}

/// The link's own replay: the sender hears of it a round trip later and sends again until the frame
/// is in. Frames behind it wait, as they would be replayed with it.
void PacketEngine::Replay(std::uint32_t link_id, Bytes payload, Bytes wire,
                          LinkTiming::Booking& booking) {
  constexpr int kRetrain = 1000;  // Beyond any working link.
  LinkState& link = links_[link_id];
  int tries = 0;
  do {
    if (++tries == kRetrain) {
      throw SimulationError("link " + link.options.name + ": a frame was replayed " +
                            std::to_string(kRetrain) + " times and never came in whole");
    }
    const SimTime known = booking.last_in + link.options.timing.propagation;
    const SimTime start = booking.start;
    booking = link.timing.Send(known, payload);
    booking.start = start;
    use_[link_id].wire += wire;
    ++use_[link_id].drops;
  } while (link.options.error_rate > 0 && link.random.Unit() < link.options.error_rate);
}

/// The frame is gone. A later frame of the message that comes in shows the gap, and the source
/// hears of it a round trip later; after the last frame only the source's timer can.
void PacketEngine::Resend(std::uint32_t burst_id, std::uint32_t link_id,
                          const LinkTiming::Booking& booking) {
  Burst& burst = bursts_[burst_id];
  const Message& message = messages_[burst.message];
  const Route& route = routes_[message.route];
  LinkState& link = links_[link_id];
  ++use_[link_id].drops;
  if (burst.tries++ == retry_options_.retry_count) {
    throw SimulationError("link " + link.options.name + ": retries exhausted: a frame of a " +
                          FormatSize(message.size) + " message was lost " +
                          std::to_string(burst.tries) + " times; retry count " +
                          std::to_string(retry_options_.retry_count) + " x time-out " +
                          FormatTime(retry_options_.Timeout()));
  }
  const bool last = burst.index + 1 == BurstCount(message);
  const bool seen = !last && burst.tries == 1 && link.random.Unit() >= link.options.error_rate;
  SimTime again = booking.start + retry_options_.Timeout();
  if (seen) {
    again = booking.last_in;
    for (std::uint32_t i = 0; i < route.hop_count; ++i) {
      again = again + 2 * links_[hops_[route.first_hop + i].link].options.timing.propagation;
    }
  }
  OpenOrder& order = open_orders_[message.route];
  if (order.resend_queue == kNone) {
    order.resend_queue = NewQueue(hops_[route.first_hop].link, kNone, false);
  }
  burst.hop = route.first_hop;
  burst.next = kNone;
  burst.head = burst.tail = again;
  Schedule(again, EventKind::kResend, burst_id);
}

void PacketEngine::Arrive(std::uint32_t link_id, SimTime now) {
  LinkState& link = links_[link_id];
  const std::uint32_t burst_id = link.flight_first;
  Burst& burst = bursts_[burst_id];
  link.flight_first = burst.next;
  burst.next = kNone;
  if (link.flight_first != kNone) {
    Schedule(bursts_[link.flight_first].head, EventKind::kArrive, link_id);
  }
  switch (hops_[burst.hop].end) {
    case HopEnd::kTransit:
      ++burst.hop;
      if (link.model != nullptr) {
        PassModel(link_id, burst_id, now);
      } else {
        Enqueue(burst_id, now);
      }
      return;
    case HopEnd::kReplicate:
      Replicate(burst_id, now);
      return;
    case HopEnd::kMerge:
      Merge(burst_id, now);
      return;
    case HopEnd::kTarget:
      WT_CHECK(false) << "a burst that was counted at booking arrives";
  }
}

void PacketEngine::PassModel(std::uint32_t link_id, std::uint32_t burst_id, SimTime now) {
  Burst& burst = bursts_[burst_id];
  Queue& queue = queues_[hops_[burst.hop].queue];
  const Picoseconds pass = links_[link_id].model->PassTime({.now = now,
                                                            .in_link = link_id,
                                                            .out_link = queue.link,
                                                            .payload = burst.payload,
                                                            .wire = burst.held});
  queue.last_ready = std::max(queue.last_ready, now + pass);
  burst.tail = burst.tail + (queue.last_ready - now);
  burst.head = queue.last_ready;
  Schedule(burst.head, EventKind::kReady, burst_id);
}

void PacketEngine::EnqueueAt(std::uint32_t queue_id, std::uint32_t burst_id, SimTime now) {
  const Burst& burst = bursts_[burst_id];
  Queue& queue = queues_[queue_id];
  if (queue.first == kNone) {
    queue.first = burst_id;
  } else {
    bursts_[queue.last].next = burst_id;
  }
  queue.last = burst_id;
  const std::uint32_t link_id = queue.link;
  LinkState& link = links_[link_id];
  link.waiting += burst.payload.count();
  link.arbiter.Activate(members_, queue_id);
  Kick(link_id, now);
  LinkUse& use = use_[link_id];
  use.deepest_queue = std::max(use.deepest_queue, link.waiting);
}

void PacketEngine::Replicate(std::uint32_t burst_id, SimTime now) {
  const Burst original = bursts_[burst_id];
  const Group& group = groups_[messages_[original.message].group];
  const std::uint32_t shared = TakeFrom(shared_, free_shared_);
  shared_[shared] = {.copies = static_cast<std::uint32_t>(group.down.size()), .free_at = now};
  free_bursts_.push_back(burst_id);
  for (const Route& route : group.down) {
    const std::uint32_t copy = TakeFrom(bursts_, free_bursts_);
    bursts_[copy] = original;
    bursts_[copy].hop = route.first_hop;
    bursts_[copy].shared = shared;
    Enqueue(copy, now);
  }
}

void PacketEngine::Merge(std::uint32_t burst_id, SimTime now) {
  Burst& burst = bursts_[burst_id];
  const Message& message = messages_[burst.message];
  const Group& group = groups_[message.group];
  MergeSlot& slot = merges_[message.merge][burst.index];
  slot.tail = std::max(slot.tail, burst.tail);
  // The operand moves into the reduction unit's memory, which is apart from the link's buffer.
  ReturnCredit(hops_[burst.hop].link,
               burst.tail + links_[hops_[burst.hop].link].options.credit_latency, burst.held);
  if (++slot.arrived < group.up.size()) {
    free_bursts_.push_back(burst_id);
    return;
  }
  burst.hop = group.down.front().first_hop;
  burst.head = now + group.reduce_latency;
  burst.tail = slot.tail + group.reduce_latency;
  Schedule(burst.head, EventKind::kReady, burst_id);
}

void PacketEngine::FreeUpstream(const Burst& burst, std::uint32_t in_link, SimTime at) {
  const SimTime known = at + links_[in_link].options.credit_latency;
  const Bytes held = burst.held;
  if (burst.shared == kNone) {
    ReturnCredit(in_link, known, held);
    return;
  }
  Shared& shared = shared_[burst.shared];
  shared.free_at = std::max(shared.free_at, known);
  if (--shared.copies == 0) {
    const SimTime free_at = shared.free_at;
    free_shared_.push_back(burst.shared);
    ReturnCredit(in_link, free_at, held);
  }
}

void PacketEngine::ReturnCredit(std::uint32_t link_id, SimTime at, Bytes size) {
  LinkState& link = links_[link_id];
  link.credits.Return(at, size);
  if (link.starved) {
    link.starved = false;
    ServeAt(link_id, at);
  }
}

void PacketEngine::CountArrived(std::uint32_t message_id, SimTime last_in) {
  Message& message = messages_[message_id];
  message.last_in = std::max(message.last_in, last_in);
  if (--message.bursts_open != 0) return;
  if (!lossy_ || message.kind != MessageKind::kPlain) {
    Schedule(message.last_in, EventKind::kDelivered, message_id);
    return;
  }
  // A message that lost a frame holds up those behind it on its route.
  message.complete = true;
  OpenOrder& order = open_orders_[message.route];
  while (order.first != kNone && messages_[order.first].complete) {
    const std::uint32_t done = order.first;
    order.first = messages_[done].next_open;
    order.last_delivered = std::max(order.last_delivered, messages_[done].last_in);
    Schedule(order.last_delivered, EventKind::kDelivered, done);
  }
}

std::uint64_t PacketEngine::packets() const {
  std::uint64_t sum = 0;
  for (const LinkUse& use : use_) sum += use.packets;
  return sum;
}

std::string PacketEngine::DescribeStall() const {
  std::string text;
  for (const LinkState& link : links_) {
    if (link.arbiter.empty()) continue;
    text += "link " + link.options.name + ": ";
    link.arbiter.ForEach(members_, [&](std::uint32_t id) {
      const Queue& queue = queues_[id];
      text += queue.source             ? "a source"
              : queue.in_link == kNone ? "a reduction"
                                       : links_[queue.in_link].options.name;
      text += " waits with " + FormatSize(NextPayload(queue)) + "; ";
    });
    text += "credits: " + FormatSize(link.credits.available()) + " of " +
            FormatSize(link.credits.capacity()) + " free, " + FormatSize(link.credits.held()) +
            " held by the receiver, " + FormatSize(link.credits.returning()) + " on the way back\n";
  }
  for (const Message& message : messages_) {
    if (message.merge == kNone || message.delivered) continue;
    const std::size_t want = groups_[message.group].up.size();
    for (const MergeSlot& slot : merges_[message.merge]) {
      if (slot.arrived == 0 || slot.arrived == want) continue;
      text += "reduction of group " + std::to_string(message.group) + " has data of " +
              std::to_string(slot.arrived) + " of " + std::to_string(want) + " members\n";
      break;
    }
  }
  return text;
}

void PacketEngine::Reset() {
  WT_CHECK(open_messages_ == 0) << open_messages_ << " messages open";
  for (LinkState& link : links_) {
    WT_CHECK(link.arbiter.empty()) << link.options.name << " has waiting bursts";
    WT_CHECK(link.flight_first == kNone) << link.options.name << " has bursts in flight";
    link.credits.Reset();
    link.credits.ShrinkTo(BufferFor(link, Bytes(0)));
    link.timing.Reset();
    link.serve_at = CreditCounter::kUnknown;
    link.largest = 1;
    link.sized_payload = Bytes(UINT64_MAX);
    link.random = RandomStream(retry_options_.seed, link.options.name);
    link.break_frame = UINT64_MAX;
  }
  for (Queue& queue : queues_) queue.last_ready = SimTime();
  for (OpenOrder& order : open_orders_) order.last_delivered = SimTime();
  lossy_ = std::any_of(links_.begin(), links_.end(),
                       [](const LinkState& link) { return link.options.error_rate > 0; });
  for (Route& route : routes_) route.room_for = Bytes(0);
  for (Group& group : groups_) {
    for (Route& route : group.up) route.room_for = Bytes(0);
    for (Route& route : group.down) route.room_for = Bytes(0);
  }
  std::fill(use_.begin(), use_.end(), LinkUse{});
}

}  // namespace windtunnel
