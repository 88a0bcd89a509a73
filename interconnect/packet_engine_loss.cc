// Frames that are lost: by which link, and how they come to be sent again.

#include <algorithm>

#include "interconnect/packet_engine.h"
#include "sim/check.h"
#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {

namespace {

/// The two ends in a link's name: "a -> b".
std::string From(const std::string& link) { return link.substr(0, link.find(" -> ")); }
std::string To(const std::string& link) {
  const std::size_t at = link.find(" -> ");
  return at == std::string::npos ? link : link.substr(at + 4);
}

}  // namespace

bool PacketEngine::IsDown(const LinkState& link, SimTime from, SimTime to) const {
  return std::any_of(link.options.outages.begin(), link.options.outages.end(),
                     [&](const Outage& outage) { return from < outage.up && to > outage.down; });
}

/// Whether the burst that was just booked as frames `packets` onward arrives broken.
bool PacketEngine::Breaks(std::uint32_t link_id, std::uint64_t frames,
                          const LinkTiming::Booking& booking) {
  LinkState& link = links_[link_id];
  const std::uint64_t first = use_[link_id].packets;
  if (link.break_frame >= first && link.break_frame < first + frames) {
    link.break_frame = UINT64_MAX;
    return true;
  }
  if (IsDown(link, booking.start, booking.last_in)) return true;
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
    SimTime known = booking.last_in + link.options.timing.propagation;
    for (const Outage& outage : link.options.outages) {
      if (known < outage.down || known >= outage.up) continue;
      if (outage.up == CreditCounter::kUnknown) {
        throw SimulationError("link " + link.options.name + " is down from " +
                              FormatTime(outage.down.since_start()) +
                              " on, and what it carries has no other way");
      }
      known = outage.up;
    }
    const SimTime start = booking.start;
    booking = link.timing.Send(known, payload);
    booking.start = start;
    use_[link_id].wire += wire;
    ++use_[link_id].drops;
  } while (link.options.error_rate > 0 && link.random.Unit() < link.options.error_rate);
}

/// The frame is gone. A later frame of the connection that comes in shows the gap, and the source
/// hears of it a round trip later; after the last frame only the source's timer can.
void PacketEngine::Resend(std::uint32_t burst_id, std::uint32_t link_id, SimTime lost_at) {
  Burst& burst = bursts_[burst_id];
  const std::uint32_t message_id = burst.message;
  Message& message = messages_[message_id];
  const Route& route = routes_[message.route];
  LinkState& link = links_[link_id];
  ++use_[link_id].drops;
  Endpoint* endpoint = message.endpoint == kNone ? nullptr : &endpoints_[message.endpoint];
  const bool tcp = endpoint != nullptr && endpoint->options.tcp.enabled;
  Picoseconds timeout = retry_options_.Timeout();
  if (tcp) timeout = endpoint->options.tcp.smallest_timeout;
  if (endpoint != nullptr && message.ordered && retry_options_.go_back_n && !tcp) {
    const std::uint64_t number = message.first_number + burst.index;
    const SimTime timer = burst.sent + timeout;
    free_bursts_.push_back(burst_id);
    --message.frames_out;
    if (number == endpoint->numbers.expected() &&
        endpoint->numbers.retries() == retry_options_.retry_count) {
      RetriesExhausted(message, retry_options_.retry_count + 1, timeout, link.options.name);
    }
    if (endpoint->numbers.Lose(number, timer)) {
      Schedule(std::max(timer, queue_.now()), EventKind::kTimer, message.endpoint);
    }
    FreeMessage(message_id);
    return;
  }
  const std::uint32_t most = tcp ? kTcpRetries : retry_options_.retry_count;
  if (burst.tries++ == most) RetriesExhausted(message, burst.tries, timeout, link.options.name);
  // Frames of later messages of the connection show a gap as well as those of this one.
  const bool last = burst.index + 1 == BurstCount(message) &&
                    (!message.ordered || open_orders_[message.route].last == message_id);
  const bool seen = !last && burst.tries == 1 && !IsDown(link, lost_at, lost_at) &&
                    link.random.Unit() >= link.options.error_rate;
  // TCP waits twice as long each time (RFC 6298, 5.5), up to 2 minutes.
  if (tcp) {
    timeout = std::min(timeout * (1ULL << std::min(burst.tries - 1, 16U)), Seconds(120));
    if (seen) {
      endpoint->tcp.OnLoss();
    } else {
      endpoint->tcp.OnTimeout();
    }
    endpoint->window = endpoint->tcp.window();
  }
  SimTime again = burst.sent + timeout;
  if (seen) {
    again = lost_at;
    for (std::uint32_t i = 0; i < route.hop_count; ++i) {
      again = again + 2 * links_[hops_[route.first_hop + i].link].options.timing.propagation;
    }
  }
  again = std::max(again, queue_.now());
  OpenOrder& order = open_orders_[message.route];
  if (order.resend_queue == kNone) {
    order.resend_queue = NewQueue(hops_[route.first_hop].link, kNone, false);
    queues_[order.resend_queue].lane = hops_[route.first_hop].lane;
  }
  burst.hop = route.first_hop;
  burst.next = kNone;
  burst.marked = false;
  burst.head = burst.tail = burst.sent = again;
  Schedule(again, EventKind::kResend, burst_id);
}

/// Every frame from the first missing one on is sent again, messages in their order.
void PacketEngine::StartOver(std::uint32_t index, SimTime now) {
  Endpoint& endpoint = endpoints_[index];
  const OpenOrder& order = open_orders_[endpoint.route];
  if (order.first == kNone) return;
  const std::uint32_t retries = endpoint.numbers.Restart();
  if (retries > retry_options_.retry_count) {
    const Hop& last =
        hops_[routes_[endpoint.route].first_hop + routes_[endpoint.route].hop_count - 1];
    RetriesExhausted(messages_[order.first], retries, retry_options_.Timeout(),
                     links_[last.link].options.name);
  }
  Queue& queue = queues_[endpoint.queue];
  const bool waiting = queue.first != kNone && !endpoint.parked;
  for (std::uint32_t segment = queue.first; segment != kNone; segment = segments_[segment].next) {
    free_segments_.push_back(segment);
  }
  queue.first = kNone;
  for (std::uint32_t id = order.first; id != kNone; id = messages_[id].next_open) {
    const Message& message = messages_[id];
    if (!message.started || message.complete) continue;
    const std::uint64_t expected = endpoint.numbers.expected();
    const std::uint64_t skip =
        expected > message.first_number ? expected - message.first_number : 0;
    if (skip >= BurstCount(message)) continue;
    const std::uint32_t segment = TakeFrom(segments_, free_segments_);
    segments_[segment] = {.message = id,
                          .burst = static_cast<std::uint32_t>(skip),
                          .left = message.size - skip * message.burst};
    (queue.first == kNone ? queue.first : segments_[queue.last].next) = segment;
    queue.last = segment;
  }
  endpoint.in_flight = Bytes(0);
  if (waiting) return;  // In the round already.
  if (endpoint.parked && endpoint.timed) return;
  Unpark(index, now);
}

void PacketEngine::RetriesExhausted(const Message& message, std::uint32_t losses,
                                    Picoseconds timeout, const std::string& link) const {
  const Route& route = routes_[message.route];
  const std::string& first = links_[hops_[route.first_hop].link].options.name;
  const std::string& last = links_[hops_[route.first_hop + route.hop_count - 1].link].options.name;
  throw SimulationError("retries exhausted from " + From(first) + " to " + To(last) +
                        ": a frame of a " + FormatSize(message.size) + " message was lost " +
                        std::to_string(losses) + " times, last on link " + link + "; retry count " +
                        std::to_string(losses - 1) + " x time-out " + FormatTime(timeout));
}

}  // namespace windtunnel
