#include "interconnect/packet_engine.h"

#include <algorithm>
#include <limits>

#include "sim/check.h"

namespace windtunnel {

std::uint32_t PacketEngine::NewMessage(Bytes size, std::uint64_t token, MessageKind kind,
                                       Bytes unit, Bytes longest, bool lossy) {
  const std::uint32_t index = TakeFrom(messages_, free_messages_);
  Message& message = messages_[index];
  message = {.token = token, .size = size, .kind = kind};
  message.last_injected = message.last_in = queue_.now();
  const std::uint64_t frames = (size.count() + unit.count() - 1) / std::max(unit.count(), 1UL);
  std::uint64_t per_burst = 1;
  if (burst_options_.bursts_per_message != 0 && !lossy) {
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

std::uint32_t PacketEngine::SendAny(RouteId route, Bytes size, std::uint64_t token) {
  const std::uint32_t stripe = routes_[route].stripe;
  return stripe == kNone ? SendPlain(route, size, token)
                         : SendStriped(stripes_[stripe], size, token);
}

void PacketEngine::SendBackground(RouteId route, Bytes size) {
  messages_[SendAny(route, size, 0)].background = true;
  --open_messages_;
  ++background_messages_;
}

std::uint32_t PacketEngine::SendPlain(RouteId route_id, Bytes size, std::uint64_t token) {
  Route& route = routes_[route_id];
  if (route.hop_count == 0) {  // Source and target are one device.
    const std::uint32_t message =
        NewMessage(size, token, MessageKind::kPlain, Bytes(1), size, false);
    Schedule(queue_.now(), EventKind::kInjected, message);
    Schedule(queue_.now(), EventKind::kDelivered, message);
    return message;
  }
  const std::uint32_t index =
      NewMessage(size, token, MessageKind::kPlain, route.unit, route.longest, route.lossy);
  Message& message = messages_[index];
  message.bursts_open = BurstCount(message);
  message.sources_open = 1;
  message.route = route_id;
  if (route.lossy) {
    message.ordered = true;
    OpenOrder& order = open_orders_[route_id];
    (order.first == kNone ? order.first : messages_[order.last].next_open) = index;
    order.last = index;
  }
  if (route.endpoint == kNone) {
    Inject(route, index);
    return index;
  }
  message.endpoint = route.endpoint;
  Endpoint& endpoint = endpoints_[route.endpoint];
  message.first_number = endpoint.next_number;
  endpoint.next_number += message.bursts_open;
  if (!endpoint.delayed) {
    Inject(route, index);
  } else if (endpoint.options.nic.step_window != 0 &&
             endpoint.under_way >= endpoint.options.nic.step_window) {
    (endpoint.held_first == kNone ? endpoint.held_first : messages_[endpoint.held_last].next_held) =
        index;
    endpoint.held_last = index;
  } else {
    StartMessage(index, queue_.now());
  }
  return index;
}

void PacketEngine::SendGroup(GroupId group_id, Bytes size, std::uint64_t token) {
  Group& group = groups_[group_id];
  Bytes unit;
  Bytes longest(std::numeric_limits<std::uint64_t>::max());
  const auto fit = [&](const Route& route) {
    unit = std::max(unit, route.unit);
    longest = std::min(longest, route.longest);
  };
  for (const Route& route : group.up) fit(route);
  for (const TreeNode& node : group.nodes) {
    for (const Route& route : node.outputs) fit(route);
  }
  const std::uint32_t index = NewMessage(size, token, group.kind, unit, longest, false);
  Message& message = messages_[index];
  message.group = group_id;
  const std::uint32_t bursts = BurstCount(message);
  message.bursts_open = bursts * group.targets;
  message.sources_open = static_cast<std::uint32_t>(group.up.size());
  if (group.kind == MessageKind::kReduction) {
    message.merge = TakeFrom(merges_, free_merges_);
    merges_[message.merge].assign(bursts * group.nodes.size(), MergeSlot{});
  }
  for (Route& route : group.up) Inject(route, index);
}

void PacketEngine::Inject(Route& route, std::uint32_t message) {
  const std::uint32_t index = TakeFrom(segments_, free_segments_);
  segments_[index] = {.message = message, .left = messages_[message].size};
  messages_[message].started = true;
  const std::uint32_t queue_id = hops_[route.first_hop].queue;
  Queue& queue = queues_[queue_id];
  if (queue.first == kNone) {
    queue.first = index;
  } else {
    segments_[queue.last].next = index;
  }
  queue.last = index;
  if (queue.endpoint != kNone && endpoints_[queue.endpoint].parked) return;
  Activate(queue_id);
  Kick(queue.link, queue_.now());
}

void PacketEngine::OnEvent(SimTime now, std::uint64_t payload) {
  const auto index = static_cast<std::uint32_t>(payload);
  --pending_;
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
      const std::uint32_t parent = message.parent;
      const bool told = client_ != nullptr && !message.background;
      message.injected = true;
      FreeMessage(index);
      if (parent != kNone) {
        PartDone(parent, EventKind::kInjected, now);
      } else if (told) {
        client_->OnInjected(now, token);
      }
      return;
    }
    case EventKind::kDelivered: {
      Message& message = messages_[index];
      const std::uint64_t token = message.token;
      const std::uint32_t parent = message.parent;
      const bool background = message.background;
      message.delivered = true;
      if (message.merge != kNone) free_merges_.push_back(message.merge);
      if (message.endpoint != kNone) MessageDone(endpoints_[message.endpoint], now);
      FreeMessage(index);
      if (parent != kNone) {
        PartDone(parent, EventKind::kDelivered, now);
        return;
      }
      --(background ? background_messages_ : open_messages_);
      if (client_ != nullptr && !background) client_->OnDelivered(now, token);
      return;
    }
    case EventKind::kPause:
      links_[index].paused = true;
      ++use_[index].pauses;
      return;
    case EventKind::kResume:
      links_[index].paused = false;
      Kick(index, now);
      return;
    case EventKind::kAck:
      OnAck(index, now);
      return;
    case EventKind::kCnp:
      endpoints_[index].rate.OnCnp(now);
      return;
    case EventKind::kUnpark:
      Unpark(index, now);
      return;
    case EventKind::kStart:
      Inject(routes_[messages_[index].route], index);
      return;
    case EventKind::kGapKnown:
      StartOver(index, now);
      return;
    case EventKind::kTimer:
      if (endpoints_[index].numbers.TimerFires(now)) StartOver(index, now);
      return;
  }
}

void PacketEngine::FreeMessage(std::uint32_t index) {
  const Message& message = messages_[index];
  if (message.injected && message.delivered && message.frames_out == 0) {
    free_messages_.push_back(index);
  }
}

void PacketEngine::Activate(std::uint32_t queue_id) {
  const Queue& queue = queues_[queue_id];
  PortArbiter& arbiter = LaneOf(links_[queue.link], queue.lane).arbiter;
  if (queue.source) {
    arbiter.ActivateSource(members_, queue_id);
  } else {
    arbiter.Activate(members_, queue_id);
  }
}

void PacketEngine::ServeAt(std::uint32_t link, SimTime at) {
  if (at >= links_[link].serve_at) return;
  links_[link].serve_at = at;
  Schedule(at, EventKind::kServe, link);
}

void PacketEngine::Kick(std::uint32_t link_id, SimTime now) {
  const LinkState& link = links_[link_id];
  if (link.lane.starved && link.more_lanes.empty()) return;  // It will look itself.
  if (link.paused || link.serve_at != CreditCounter::kUnknown) return;
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
  if (link.paused) return;
  if (link.more_lanes.empty()) {
    ServeLane(link_id, link.lane, now);
    return;
  }
  const std::uint32_t lanes = link.options.virtual_channels;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const std::uint32_t lane = (link.next_lane + i) % lanes;
    if (!ServeLane(link_id, LaneOf(link, static_cast<std::uint8_t>(lane)), now)) continue;
    link.next_lane = (lane + 1) % lanes;
    ServeAt(link_id, link.timing.wire_free());  // For the other channels.
    return;
  }
}

bool PacketEngine::ServeLane(std::uint32_t link_id, Lane& lane, SimTime now) {
  LinkState& link = links_[link_id];
  std::uint32_t queue_id = kNone;
  for (;;) {
    if (lane.arbiter.empty() || lane.starved) return false;
    queue_id = lane.arbiter.Pick(members_, link.largest, [this, &link](std::uint32_t id) {
      return SizeOnWire(link, NextPayload(queues_[id])).count();
    });
    const std::uint32_t endpoint = queues_[queue_id].endpoint;
    if (endpoint == kNone || MaySend(endpoints_[endpoint], NextPayload(queues_[queue_id]), now)) {
      break;
    }
    lane.arbiter.Drop(members_, 0);
    Park(endpoint);
  }
  Queue& queue = queues_[queue_id];
  const Bytes payload = NextPayload(queue);
  const Bytes wire = SizeOnWire(link, payload);
  if (link.credited) {
    if (!lane.credits.Fits(now, wire)) {
      ++use_[link_id].pauses;
      const SimTime at = lane.credits.FreeAt(wire);
      if (at == CreditCounter::kUnknown) {
        lane.starved = true;
      } else {
        ServeAt(link_id, at);
      }
      return false;
    }
    lane.credits.Take(wire);
  }

  // Take the burst off its queue; at a source it comes into being here.
  std::uint32_t burst_id = kNone;
  std::uint32_t message_id = 0;
  std::uint32_t hop_id = 0;
  std::uint32_t burst_index = 0;
  SimTime tail = now;
  bool marked = false;
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
    burst_index = segment.burst++;
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
    burst_index = burst.index;
    tail = burst.tail;
    marked = burst.marked;
    queue.first = burst.next;
    queue_done = queue.first == kNone;
    link.waiting -= payload.count();
  }

  LinkTiming::Booking booking = link.timing.Send(now, tail, payload);
  const bool broken = lossy_ && messages_[message_id].kind == MessageKind::kPlain &&
                      Breaks(link_id, link.sized_frames, booking);
  if (broken && link.options.link_replay) Replay(link_id, payload, wire, booking);
  link.booked = payload;
  LinkUse& use = use_[link_id];
  use.payload += payload;
  use.wire += wire;
  use.busy += booking.wire_free - booking.start;
  use.packets += link.sized_frames;
  if (link.waiting > link.mark_from) {
    const std::uint64_t marks =
        MarkedFrames(link.ecn, Bytes(link.waiting), link.sized_frames, link.random);
    use.marks += marks;
    marked = marked || marks != 0;
  }
  if (observer_ != nullptr) {
    observer_->OnWireBusy(link_id, booking.start, booking.wire_free, wire);
  }

  if (queue_done) {
    lane.arbiter.Drop(members_, wire.count());
  } else {
    lane.arbiter.Charge(members_, wire.count());
  }
  if (!lane.arbiter.empty()) ServeAt(link_id, booking.wire_free);

  if (queue.source) {
    if (burst_id != kNone) bursts_[burst_id].sent = booking.start;
    if (queue.endpoint != kNone) {
      Sent(endpoints_[queue.endpoint], booking.start, payload);
      ++messages_[message_id].frames_out;
    }
  } else if (queue.in_link != kNone) {
    FreeUpstream(bursts_[burst_id], queue, booking.last_out);
    if (!links_[queue.in_link].credited) LeaveBuffer(queue.in_link, bursts_[burst_id].held, now);
  }
  if (last_of_source) {
    Message& message = messages_[message_id];
    message.last_injected = std::max(message.last_injected, booking.last_out);
    if (message.sources_open > 0 && --message.sources_open == 0) {
      Schedule(message.last_injected, EventKind::kInjected, message_id);
    }
  }

  const std::uint8_t lane_id = hops_[hop_id].lane;
  if (broken && !link.options.link_replay) {
    if (burst_id == kNone) {  // Lost on the only wire of its way.
      burst_id = TakeFrom(bursts_, free_bursts_);
      bursts_[burst_id] = {.message = message_id,
                           .hop = hop_id,
                           .index = burst_index,
                           .payload = payload,
                           .sent = booking.start};
    }
    ReturnCredit(link_id, lane_id, booking.last_in + link.options.credit_latency, wire);
    Resend(burst_id, link_id, booking.last_in);
    return true;
  }
  if (hops_[hop_id].end == HopEnd::kTarget) {
    // The target takes everything as it comes, so nothing happens there but the end.
    if (burst_id != kNone) free_bursts_.push_back(burst_id);
    ReturnCredit(link_id, lane_id, booking.last_in + link.options.credit_latency, wire);
    if (messages_[message_id].endpoint == kNone) {
      CountArrived(message_id, booking.last_in);
    } else {
      Arrived(message_id, burst_index, payload, marked, booking.last_in);
    }
    return true;
  }
  Burst& burst = bursts_[burst_id];
  burst.next = kNone;
  burst.held = wire;
  burst.marked = marked;
  burst.head = booking.head_in + link.options.pass_latency;
  burst.tail = booking.last_in + link.options.pass_latency;
  if (link.flight_first == kNone) {
    link.flight_first = burst_id;
    Schedule(burst.head, EventKind::kArrive, link_id);
  } else {
    bursts_[link.flight_last].next = burst_id;
  }
  link.flight_last = burst_id;
  return true;
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
  Queue& queue = queues_[queue_id];
  const bool buffered = queue.in_link != kNone && !links_[queue.in_link].credited &&
                        links_[queue.in_link].options.buffer_id != kNone;
  if (buffered && !Admit(burst_id, queue_id, now)) return;
  const Burst& burst = bursts_[burst_id];
  if (queue.first == kNone) {
    queue.first = burst_id;
  } else {
    bursts_[queue.last].next = burst_id;
  }
  queue.last = burst_id;
  const std::uint32_t link_id = queue.link;
  LinkState& link = links_[link_id];
  link.waiting += burst.payload.count();
  Activate(queue_id);
  Kick(link_id, now);
  LinkUse& use = use_[link_id];
  use.deepest_queue = std::max(use.deepest_queue, link.waiting);
  if (buffered) {
    LinkState& in = links_[queue.in_link];
    SharedBuffer& buffer = buffers_[in.options.buffer_id];
    buffer.Note();
    if (in.options.flow_control == FlowControl::kPause &&
        in.ingress.ShouldPause(PauseThreshold(in))) {
      in.pause_level = in.ingress.waiting();
      Schedule(now + in.pause_delay, EventKind::kPause, queue.in_link);
    }
  }
}

Bytes PacketEngine::PauseThreshold(const LinkState& in) const {
  if (in.options.pfc.xoff.count() != 0) return in.options.pfc.xoff;
  return buffers_[in.options.buffer_id].Threshold(in.options.pfc.alpha);
}

/// Takes a burst into the memory of the device at the end of its link; false: it is lost.
bool PacketEngine::Admit(std::uint32_t burst_id, std::uint32_t queue_id, SimTime now) {
  const Burst& burst = bursts_[burst_id];
  const Queue& queue = queues_[queue_id];
  LinkState& in = links_[queue.in_link];
  SharedBuffer& buffer = buffers_[in.options.buffer_id];
  bool room = true;
  if (in.options.flow_control == FlowControl::kDrop) {
    // Dynamic threshold per output (Choudhury and Hahne, 1998); an idle output always takes one.
    const std::uint64_t waiting = links_[queue.link].waiting;
    room = waiting == 0 || Bytes(waiting) + burst.held <= buffer.Threshold(1);
  } else if (in.ingress.paused()) {
    room = in.ingress.waiting() + burst.held <= in.pause_level + in.headroom;
  }
  if (!room && messages_[burst.message].kind == MessageKind::kPlain) {
    WT_CHECK(messages_[burst.message].ordered)
        << in.options.name << ": the head-room of a lossless link overflowed";
    Resend(burst_id, queue.in_link, now);
    return false;
  }
  buffer.Add(burst.held);
  in.ingress.Add(burst.held);
  return true;
}

void PacketEngine::LeaveBuffer(std::uint32_t in_link, Bytes size, SimTime now) {
  LinkState& in = links_[in_link];
  if (in.options.buffer_id == kNone) return;
  buffers_[in.options.buffer_id].Remove(size);
  in.ingress.Remove(size);
  if (in.ingress.ShouldResume(PauseThreshold(in), in.resume_gap)) {
    Schedule(now + in.pause_delay, EventKind::kResume, in_link);
  }
}

void PacketEngine::Replicate(std::uint32_t burst_id, SimTime now) {
  const Burst original = bursts_[burst_id];
  const TreeNode& node = groups_[messages_[original.message].group].nodes[hops_[original.hop].node];
  const std::uint32_t shared = TakeFrom(shared_, free_shared_);
  shared_[shared] = {.copies = static_cast<std::uint32_t>(node.outputs.size()), .free_at = now};
  free_bursts_.push_back(burst_id);
  for (const Route& route : node.outputs) {
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
  const Hop& hop = hops_[burst.hop];
  const TreeNode& node = group.nodes[hop.node];
  MergeSlot& slot = merges_[message.merge][burst.index * group.nodes.size() + hop.node];
  slot.tail = std::max(slot.tail, burst.tail);
  // The operand moves into the reduction unit's memory, which is apart from the link's buffer.
  ReturnCredit(hop.link, hop.lane, burst.tail + links_[hop.link].options.credit_latency,
               burst.held);
  if (++slot.arrived < node.inputs) {
    free_bursts_.push_back(burst_id);
    return;
  }
  burst.hop = node.outputs.front().first_hop;
  burst.head = now + group.reduce_latency;
  burst.tail = slot.tail + group.reduce_latency;
  Schedule(burst.head, EventKind::kReady, burst_id);
}

void PacketEngine::FreeUpstream(const Burst& burst, const Queue& queue, SimTime at) {
  const SimTime known = at + links_[queue.in_link].options.credit_latency;
  const Bytes held = burst.held;
  if (burst.shared == kNone) {
    ReturnCredit(queue.in_link, queue.in_lane, known, held);
    return;
  }
  Shared& shared = shared_[burst.shared];
  shared.free_at = std::max(shared.free_at, known);
  if (--shared.copies == 0) {
    const SimTime free_at = shared.free_at;
    free_shared_.push_back(burst.shared);
    ReturnCredit(queue.in_link, queue.in_lane, free_at, held);
  }
}

void PacketEngine::ReturnCredit(std::uint32_t link_id, std::uint8_t lane_id, SimTime at,
                                Bytes size) {
  LinkState& link = links_[link_id];
  if (!link.credited) return;
  Lane& lane = LaneOf(link, lane_id);
  lane.credits.Return(at, size);
  if (lane.starved) {
    lane.starved = false;
    ServeAt(link_id, at);
  }
}

void PacketEngine::CountArrived(std::uint32_t message_id, SimTime last_in) {
  Message& message = messages_[message_id];
  message.last_in = std::max(message.last_in, last_in);
  arrivals_ += message.background ? 0 : 1;
  if (--message.bursts_open != 0) return;
  if (!message.ordered) {
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

void PacketEngine::EndOfRun() {
  if (!ended_use_.empty()) return;
  ended_use_ = use_;
  const SimTime now = queue_.now();
  for (std::size_t id = 0; id < links_.size(); ++id) {
    const LinkTiming& timing = links_[id].timing;
    if (timing.wire_free() <= now) continue;
    LinkUse& use = ended_use_[id];
    const Picoseconds rest = timing.wire_free() - now;
    use.busy = use.busy - rest;
    // Whole frames of the last burst that have not begun.
    const Bytes full = timing.options().max_payload;
    const std::uint64_t frames = std::min(rest.count() / timing.WireTime(full).count(),
                                          links_[id].booked.count() / full.count());
    use.payload = use.payload - frames * full;
    use.wire = use.wire - frames * timing.WireSize(full);
    use.packets -= frames;
  }
}

std::uint64_t PacketEngine::packets() const {
  std::uint64_t sum = 0;
  for (const LinkUse& use : use_) sum += use.packets;
  return sum;
}

}  // namespace windtunnel
