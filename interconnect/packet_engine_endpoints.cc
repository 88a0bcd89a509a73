// The sources of routes: windows, rates, NICs, striping.

#include <algorithm>

#include "interconnect/packet_engine.h"
#include "sim/check.h"

namespace windtunnel {
void PacketEngine::SetEndpoint(RouteId route_id, const EndpointOptions& options) {
  Route& route = routes_[route_id];
  WT_CHECK(route.endpoint == kNone) << "a route with two endpoints";
  if (route.hop_count == 0) return;
  Endpoint& endpoint = endpoints_.emplace_back();
  route.endpoint = static_cast<std::uint32_t>(endpoints_.size() - 1);
  endpoint.options = options;
  endpoint.route = route_id;
  endpoint.queue = hops_[route.first_hop].queue;
  queues_[endpoint.queue].endpoint = route.endpoint;
  endpoint.line = BitsPerSecond(UINT64_MAX);
  endpoint.segment = Bytes(UINT64_MAX);
  Picoseconds frame;  // A full frame that is stored and forwarded where links do so.
  for (std::uint32_t i = 0; i < route.hop_count; ++i) {
    const LinkState& link = links_[hops_[route.first_hop + i].link];
    const LinkTiming::Options& timing = link.options.timing;
    endpoint.back = endpoint.back + timing.propagation + link.options.pass_latency;
    if (timing.rate < endpoint.line) {
      endpoint.line = timing.rate;
      endpoint.line_link = hops_[route.first_hop + i].link;
    }
    endpoint.segment = std::min(endpoint.segment, timing.max_payload);
    const Bytes whole = link.timing.WireSize(timing.max_payload);
    const bool last = i + 1 == route.hop_count;
    frame = frame + SerializationTime(
                        timing.forward_after.count() == 0 || last ? whole : timing.forward_after,
                        timing.rate);
  }
  if (options.window_paths > 0) {
    const Picoseconds round_trip = 2 * endpoint.back + frame;
    const double bytes = options.window_paths * static_cast<double>(endpoint.line.count()) / 8 *
                         ToMicroseconds(round_trip) * 1e-6;
    endpoint.options.window = std::max(Bytes(static_cast<std::uint64_t>(bytes)), endpoint.segment);
  }
  if (endpoint.options.window.count() != 0) {
    route.longest = std::min(route.longest, endpoint.options.window / 4);
  }
  if (options.tcp.enabled) {
    route.longest = std::min(route.longest, endpoint.segment);
  }
  const NicOptions& nic = options.nic;
  endpoint.delayed = nic.post.count() != 0 || nic.message_rate != 0 || nic.step.count() != 0 ||
                     nic.step_window != 0 || options.jitter.count() != 0;
  if (options.nic_id != UINT32_MAX && options.nic_id >= nics_.size()) {
    nics_.resize(options.nic_id + 1, NicPacer(nic));
  }
  StartFresh(endpoint);
}

void PacketEngine::StartFresh(Endpoint& endpoint) {
  const EndpointOptions& options = endpoint.options;
  endpoint.window = options.window;
  if (options.tcp.enabled) {
    endpoint.tcp = TcpWindow(options.tcp, endpoint.segment);
    endpoint.window = endpoint.tcp.window();
  }
  endpoint.rate = DcqcnRate(options.dcqcn, endpoint.line);
  endpoint.in_flight = Bytes(0);
  endpoint.next_send = endpoint.last_ack = endpoint.last_cnp = SimTime();
  endpoint.last_post = endpoint.last_start = SimTime();
  endpoint.parked = endpoint.timed = endpoint.cnp_sent = false;
  endpoint.numbers = GoBackN();
  endpoint.next_number = 0;
  endpoint.random = RandomStream(retry_options_.seed, options.name);
}

RouteId PacketEngine::AddStripe(std::span<const RouteId> routes, bool split) {
  WT_CHECK(!routes.empty()) << "a stripe over no route";
  stripes_.push_back({.routes = {routes.begin(), routes.end()}, .split = split});
  Route& route = routes_.emplace_back();
  route.stripe = static_cast<std::uint32_t>(stripes_.size() - 1);
  open_orders_.emplace_back();
  return static_cast<RouteId>(routes_.size() - 1);
}

/// Parts are cut at 128 bytes as NCCL does (net_ib.cc, ncclIbMultiSend: DIVUP(DIVUP(size, nqps),
/// 128) * 128); the last ones may be short or missing.
std::uint32_t PacketEngine::SendStriped(Stripe& stripe, Bytes size, std::uint64_t token) {
  constexpr std::uint64_t kAlign = 128;
  const std::uint64_t count = stripe.split ? stripe.routes.size() : 1;
  const std::uint64_t even = (size.count() + count - 1) / count;
  const Bytes part((even + kAlign - 1) / kAlign * kAlign);
  const std::uint32_t parent =
      NewMessage(size, token, MessageKind::kStriped, Bytes(1), size, false);
  (stripe.first_open == kNone ? stripe.first_open : messages_[stripe.last_open].next_open) = parent;
  stripe.last_open = parent;
  messages_[parent].route = static_cast<RouteId>(&stripe - stripes_.data());
  Bytes left = size;
  do {
    const Bytes now = stripe.split ? std::min(left, part) : left;
    left = left - now;
    const RouteId route = stripe.routes[stripe.next];
    stripe.next = (stripe.next + 1) % static_cast<std::uint32_t>(stripe.routes.size());
    ++messages_[parent].sources_open;
    ++messages_[parent].bursts_open;
    messages_[SendPlain(route, now, token)].parent = parent;
    --open_messages_;  // The parent counts.
  } while (left.count() != 0);
  if (stripe.split) stripe.next = 0;
  return parent;
}

/// A part of a striped message has left its source or reached its target.
void PacketEngine::PartDone(std::uint32_t parent, EventKind kind, SimTime now) {
  Message& message = messages_[parent];
  if (kind == EventKind::kInjected) {
    if (--message.sources_open == 0) Schedule(now, EventKind::kInjected, parent);
    return;
  }
  if (--message.bursts_open != 0) return;
  message.complete = true;
  Stripe& stripe = stripes_[message.route];
  while (stripe.first_open != kNone && messages_[stripe.first_open].complete) {
    Schedule(now, EventKind::kDelivered, stripe.first_open);
    stripe.first_open = messages_[stripe.first_open].next_open;
  }
}

/// Software, NIC and jitter before a message may leave. Messages of a connection start in order.
void PacketEngine::StartMessage(std::uint32_t message, SimTime at) {
  Endpoint& endpoint = endpoints_[messages_[message].endpoint];
  const EndpointOptions& options = endpoint.options;
  SimTime start = std::max(at, endpoint.last_post) + options.nic.step;
  endpoint.last_post = start;
  start =
      options.nic_id == UINT32_MAX ? start + options.nic.post : nics_[options.nic_id].Start(start);
  if (options.jitter.count() != 0) {
    start = start + Picoseconds(endpoint.random.Below(options.jitter.count() + 1));
    start = std::max(start, endpoint.last_start);
  }
  endpoint.last_start = start;
  ++endpoint.under_way;
  Schedule(start, EventKind::kStart, message);
}

void PacketEngine::MessageDone(Endpoint& endpoint, SimTime now) {
  if (!endpoint.delayed) return;
  --endpoint.under_way;
  if (endpoint.held_first == kNone) return;
  const std::uint32_t message = endpoint.held_first;
  endpoint.held_first = messages_[message].next_held;
  StartMessage(message, now + endpoint.back);
}

bool PacketEngine::MaySend(const Endpoint& endpoint, Bytes payload, SimTime now) {
  if (endpoint.next_send > now) return false;
  return endpoint.window.count() == 0 || endpoint.in_flight.count() == 0 ||
         endpoint.in_flight + payload <= endpoint.window;
}

void PacketEngine::Park(std::uint32_t index) {
  Endpoint& endpoint = endpoints_[index];
  endpoint.parked = true;
  endpoint.timed = endpoint.next_send > queue_.now();
  if (endpoint.timed) Schedule(endpoint.next_send, EventKind::kUnpark, index);
}

void PacketEngine::Unpark(std::uint32_t index, SimTime now) {
  Endpoint& endpoint = endpoints_[index];
  endpoint.parked = endpoint.timed = false;
  const Queue& queue = queues_[endpoint.queue];
  if (queue.first == kNone) return;
  Activate(endpoint.queue);
  Kick(queue.link, now);
}

void PacketEngine::Sent(Endpoint& endpoint, SimTime start, Bytes payload) {
  const EndpointOptions& options = endpoint.options;
  if (options.tcp.enabled && endpoint.in_flight.count() == 0 && start > endpoint.last_ack) {
    endpoint.tcp.OnIdle(start - endpoint.last_ack);
    endpoint.window = endpoint.tcp.window();
  }
  endpoint.in_flight += payload;
  if (options.dcqcn.enabled) {
    const Bytes wire = links_[endpoint.line_link].timing.WireSize(payload);
    endpoint.next_send = std::max(endpoint.next_send, endpoint.rate.Send(start, wire));
  }
  if (options.tcp.enabled) {
    endpoint.next_send = std::max(endpoint.next_send, start + TcpCpuTime(options.tcp, payload));
  }
}

/// A burst of a message with an endpoint is in at its target.
void PacketEngine::Arrived(std::uint32_t message_id, std::uint32_t burst_index, Bytes payload,
                           bool marked, SimTime last_in) {
  Message& message = messages_[message_id];
  Endpoint& endpoint = endpoints_[message.endpoint];
  --message.frames_out;
  if (message.ordered && retry_options_.go_back_n && !endpoint.options.tcp.enabled) {
    const GoBackN::Verdict verdict = endpoint.numbers.Arrive(message.first_number + burst_index);
    if (verdict != GoBackN::Verdict::kAccept) {
      if (verdict == GoBackN::Verdict::kGap) {
        Schedule(last_in + endpoint.back, EventKind::kGapKnown, message.endpoint);
      }
      FreeMessage(message_id);
      return;
    }
  }
  if (endpoint.options.window.count() != 0 || endpoint.options.tcp.enabled) {
    Acknowledge(message.endpoint, payload, last_in);
  }
  if (marked && endpoint.options.dcqcn.enabled &&
      (!endpoint.cnp_sent || last_in >= endpoint.last_cnp + endpoint.options.dcqcn.cnp_interval)) {
    endpoint.cnp_sent = true;
    endpoint.last_cnp = last_in;
    Schedule(last_in + endpoint.back + endpoint.options.dcqcn.cnp_delay, EventKind::kCnp,
             message.endpoint);
  }
  CountArrived(message_id, last_in);
}

/// The acknowledgement is back one way of the path later; its frame takes no room on the wires.
void PacketEngine::Acknowledge(std::uint32_t endpoint, Bytes payload, SimTime last_in) {
  const std::uint32_t ack = TakeFrom(bursts_, free_bursts_);
  bursts_[ack] = {.hop = endpoint, .payload = payload};
  Schedule(last_in + endpoints_[endpoint].back, EventKind::kAck, ack);
}

void PacketEngine::OnAck(std::uint32_t burst, SimTime now) {
  const std::uint32_t index = bursts_[burst].hop;
  const Bytes payload = bursts_[burst].payload;
  free_bursts_.push_back(burst);
  Endpoint& endpoint = endpoints_[index];
  endpoint.in_flight = endpoint.in_flight - std::min(payload, endpoint.in_flight);
  endpoint.last_ack = now;
  if (endpoint.options.tcp.enabled) {
    endpoint.tcp.OnAck(payload);
    endpoint.window = endpoint.tcp.window();
  }
  if (endpoint.parked && !endpoint.timed) Unpark(index, now);
}

}  // namespace windtunnel
