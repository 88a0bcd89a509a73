#pragma once
// The moving parts of the packet level: links with frames, credits and arbitration, on an event
// queue. Knows no topology: links are options, routes are lists of link numbers. `PacketNetwork`
// builds it from a Topology.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "interconnect/arbiter.h"
#include "interconnect/credit_counter.h"
#include "interconnect/link_timing.h"
#include "interconnect/network.h"
#include "sim/event_queue.h"
#include "sim/random.h"
#include "sim/units.h"

namespace windtunnel {

/// Told about every occupation of a wire, in order of booking per link.
class WireObserver {
 public:
  virtual ~WireObserver() = default;
  virtual void OnWireBusy(std::uint32_t link, SimTime start, SimTime end, Bytes wire) = 0;
};

/// A user's own model of a device that traffic passes, in place of the time in the links.
class DeviceModel {
 public:
  /// A burst on its way from one link to another of the device.
  struct Passage {
    SimTime now;  ///< Its first frame may be sent on from here, as far as the wires go.
    std::uint32_t in_link = 0;
    std::uint32_t out_link = 0;
    Bytes payload;
    Bytes wire;  ///< As it came in, with headers.
  };
  virtual ~DeviceModel() = default;
  /// Further time until the burst may ask for its wire. Bursts between the same two links stay in
  /// order whatever is answered.
  virtual Picoseconds PassTime(const Passage& passage) = 0;
};

/// How a message is cut into what moves as one event.
struct BurstOptions {
  /// A message travels as at most this many bursts, so events per message are bounded: below this
  /// many frames every burst is one frame. 0 = every burst is one frame, always.
  std::uint32_t bursts_per_message = 32;
  /// No burst is longer than this, however long the message; 0 = no limit.
  Bytes longest_burst = KiB(512);
};

/// What a reliable connection does about a frame that does not arrive. Source: InfiniBand
/// Architecture Specification vol. 1, section 9.7.6: time-out 4.096 us x 2^exponent, 3-bit retry
/// count.
struct RetryOptions {
  std::uint32_t timeout_exponent = 20;  ///< 0 to 31. 20 is NCCL's default (NCCL_IB_TIMEOUT).
  std::uint32_t retry_count = 7;        ///< Losses in a row after which the connection fails.
  std::uint64_t seed = 1;
  Picoseconds Timeout() const { return Picoseconds(4'096'000ULL << timeout_exponent); }
};

/// Per link: a wire (LinkTiming), room at the receiver (CreditCounter), queues of those who want
/// the wire (DeficitRoundRobin). One queue per (incoming link, wire) pair, so that a blocked
/// output does not hold up another (virtual output queues), one per route at its source.
///
/// Events: one per burst and link, plus one when a wire becomes free while somebody waits. Credits
/// come back without events. The last hop of a message costs one event in all.
///
/// Contract: one thread; time moves by `queue()`.
class PacketEngine final : public EventHandler {
 public:
  struct LinkOptions {
    LinkTiming::Options timing;
    Bytes buffer;                ///< Room at the receiver. 0 = as much as keeps the wire busy.
    Picoseconds pass_latency;    ///< Receiver's port to port time for frames that travel on.
    Picoseconds credit_latency;  ///< From space freed to credit known at the sender.
    double error_rate = 0;       ///< Share of frames that arrive broken, 0 to 1.
    /// A broken frame is sent again over this link alone (NVLink, PCIe), after a round trip. false:
    /// it is dropped, and the source of the message sends it again.
    bool link_replay = false;
    std::string name;  ///< For reports: "node0/gpu3 -> node0/nvs1".
  };

  explicit PacketEngine(EventQueue& queue) : queue_(queue) {}

  std::uint32_t AddLink(const LinkOptions& options);
  /// A chain of links; at least one.
  RouteId AddRoute(std::span<const std::uint32_t> links);
  /// `up` leads from the source to the hub, `down` from the hub to each member; either may be
  /// empty where a source or member is the hub itself.
  GroupId AddMulticast(std::span<const std::uint32_t> up,
                       std::span<const std::vector<std::uint32_t>> down);
  GroupId AddReduction(std::span<const std::vector<std::uint32_t>> up,
                       std::span<const std::uint32_t> down, Picoseconds reduce_latency);
  /// Asks `model` about everything that arrives by `link` and travels on; nullptr = nobody.
  void BindModel(std::uint32_t link, DeviceModel* model) { links_[link].model = model; }
  /// Contract: before the first Send of a run.
  void set_retry_options(const RetryOptions& options);
  /// The `frame`-th frame (from 0) that goes onto `link` in the next run arrives broken, once.
  void BreakFrame(std::uint32_t link, std::uint64_t frame);
  /// Contract: idle.
  void set_burst_options(const BurstOptions& options);

  void Send(RouteId route, Bytes size, std::uint64_t token);
  void SendGroup(GroupId group, Bytes size, std::uint64_t token);

  void set_client(NetworkClient* client) { client_ = client; }
  void set_observer(WireObserver* observer) { observer_ = observer; }
  EventQueue& queue() { return queue_; }
  std::span<const LinkUse> link_use() const { return use_; }
  std::uint64_t open_messages() const { return open_messages_; }
  /// Frames sent, summed over links.
  std::uint64_t packets() const;
  const CreditCounter& credits(std::uint32_t link) const { return links_[link].credits; }
  std::string DescribeStall() const;
  /// @throws InternalError when credits are missing. Contract: no open message.
  void Reset();

  void OnEvent(SimTime now, std::uint64_t payload) override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class EventKind : std::uint8_t { kServe, kArrive, kReady, kResend, kInjected, kDelivered };

  /// Part of a message between two devices, moved by one event.
  struct Burst {
    std::uint32_t next = kNone;  ///< In its queue or in flight.
    std::uint32_t message = 0;
    std::uint32_t hop = 0;         ///< Of `hops_`: the wire it waits for or is on.
    std::uint32_t index = 0;       ///< Among the bursts of its message.
    std::uint32_t shared = kNone;  ///< Of `shared_`: multicast copies free the buffer together.
    std::uint32_t tries = 0;       ///< Times it was lost.
    Bytes payload;
    Bytes held;    ///< Credit it occupies of the link it came by.
    SimTime head;  ///< First frame there.
    SimTime tail;  ///< Last frame there.
  };
  enum class MessageKind : std::uint8_t { kPlain, kMulticast, kReduction };
  struct Message {
    std::uint64_t token = 0;
    Bytes size;
    Bytes burst;                    ///< Payload of each burst but the last.
    std::uint32_t bursts_open = 0;  ///< Not yet on their last wire.
    std::uint32_t sources_open = 0;
    std::uint32_t merge = kNone;  ///< Reduction: of `merges_`.
    GroupId group = 0;
    RouteId route = kNone;            ///< Plain messages.
    std::uint32_t next_open = kNone;  ///< On its route, where frames can be lost.
    bool complete = false;
    MessageKind kind = MessageKind::kPlain;
    bool injected = false;
    bool delivered = false;
    SimTime last_injected;
    SimTime last_in;
  };
  /// A message waiting at one source.
  struct Segment {
    std::uint32_t next = kNone;
    std::uint32_t message = 0;
    std::uint32_t burst = 0;  ///< Next to send.
    Bytes left;
  };
  enum class HopEnd : std::uint8_t { kTransit, kTarget, kReplicate, kMerge };
  struct Hop {
    std::uint32_t link = 0;
    std::uint32_t queue = 0;
    HopEnd end = HopEnd::kTransit;
    std::uint32_t member = 0;  ///< kMerge: which member's data these are.
  };
  struct Queue {
    std::uint32_t link = 0;
    std::uint32_t in_link = kNone;  ///< Whose credits its bursts hold; kNone: nobody's.
    SimTime last_ready;             ///< Behind a user's model: latest answer so far.
    bool source = false;            ///< `first` and `last` are segments, else bursts.
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t hop = 0;  ///< Source: its first hop.
  };
  struct LinkState {
    LinkState(const LinkOptions& o, std::uint64_t seed)
        : timing(o.timing), options(o), random(seed, o.name) {}
    LinkTiming timing;
    LinkOptions options;
    CreditCounter credits;
    DeficitRoundRobin arbiter;
    SimTime serve_at = CreditCounter::kUnknown;  ///< Pending serve event.
    bool starved = false;                        ///< Waits for a credit whose return is not known.
    std::uint32_t flight_first = kNone;
    std::uint32_t flight_last = kNone;
    std::uint64_t waiting = 0;  ///< Payload bytes in transit queues.
    std::uint64_t largest = 1;  ///< Largest burst so far on the wire: the arbiter's quantum.
    Bytes sized_payload{UINT64_MAX};
    Bytes sized_wire;
    std::uint64_t sized_frames = 0;
    RandomStream random;
    std::uint64_t break_frame = UINT64_MAX;
    DeviceModel* model = nullptr;  ///< Of the device at the link's end.
  };
  struct Shared {
    std::uint32_t copies = 0;
    SimTime free_at;
  };
  struct Route {
    std::uint32_t first_hop = 0;
    std::uint32_t hop_count = 0;
    Bytes unit;      ///< Largest frame payload on the way: bursts are whole multiples of it.
    Bytes longest;   ///< Burst that fits twice in the smallest buffer of given size on the way.
    Bytes room_for;  ///< Largest burst that the automatic buffers on the way were fitted to.
  };
  /// Messages of a route that can lose frames, in order of sending.
  struct OpenOrder {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    SimTime last_delivered;
    std::uint32_t resend_queue = kNone;
  };
  struct Group {
    MessageKind kind = MessageKind::kMulticast;
    std::vector<Route> up;
    std::vector<Route> down;
    Picoseconds reduce_latency;
  };
  struct MergeSlot {
    std::uint32_t arrived = 0;
    SimTime tail;
  };

  enum class HopStart : std::uint8_t { kSource, kTransit, kMerged };
  Route MakeRoute(std::span<const std::uint32_t> links, HopStart start, std::uint32_t in_link,
                  HopEnd end, std::uint32_t member);
  std::uint32_t NewQueue(std::uint32_t link, std::uint32_t in_link, bool source);
  std::uint32_t TransitQueue(std::uint32_t in_link, std::uint32_t link);
  /// Cuts the message: sets its burst size for `unit` and `longest` of its routes.
  std::uint32_t NewMessage(Bytes size, std::uint64_t token, MessageKind kind, Bytes unit,
                           Bytes longest);
  std::uint32_t BurstCount(const Message& message) const;
  void Inject(Route& route, std::uint32_t message);
  void ServeAt(std::uint32_t link, SimTime at);
  void Kick(std::uint32_t link, SimTime now);
  void Serve(std::uint32_t link, SimTime now);
  void PassModel(std::uint32_t link_id, std::uint32_t burst, SimTime now);
  bool Breaks(std::uint32_t link_id, std::uint64_t frames);
  void Replay(std::uint32_t link_id, Bytes payload, Bytes wire, LinkTiming::Booking& booking);
  void Resend(std::uint32_t burst, std::uint32_t link_id, const LinkTiming::Booking& booking);
  void Arrive(std::uint32_t link, SimTime now);
  void Replicate(std::uint32_t burst, SimTime now);
  void Merge(std::uint32_t burst, SimTime now);
  void Enqueue(std::uint32_t burst, SimTime now) {
    EnqueueAt(hops_[bursts_[burst].hop].queue, burst, now);
  }
  void EnqueueAt(std::uint32_t queue, std::uint32_t burst, SimTime now);
  void FreeUpstream(const Burst& burst, std::uint32_t in_link, SimTime at);
  void ReturnCredit(std::uint32_t link, SimTime at, Bytes size);
  void CountArrived(std::uint32_t message, SimTime last_in);
  Bytes SizeOnWire(LinkState& link, Bytes payload);
  Bytes NextPayload(const Queue& queue) const;
  Bytes BufferFor(const LinkState& link, Bytes burst) const;
  void MakeRoom(Route& route, Bytes burst);

  void Schedule(SimTime at, EventKind kind, std::uint32_t index) {
    queue_.Schedule(at, *this, static_cast<std::uint64_t>(kind) << 32 | index);
  }

  EventQueue& queue_;
  NetworkClient* client_ = nullptr;
  WireObserver* observer_ = nullptr;
  BurstOptions burst_options_;
  RetryOptions retry_options_;
  bool lossy_ = false;                  ///< Some frame may be lost: every burst is then one frame.
  std::vector<OpenOrder> open_orders_;  ///< One per route.
  std::vector<LinkState> links_;
  std::vector<LinkUse> use_;
  std::vector<Queue> queues_;
  std::vector<DeficitRoundRobin::Member> members_;  ///< One per queue.
  std::vector<Hop> hops_;
  std::vector<Route> routes_;
  std::vector<Group> groups_;
  std::vector<Burst> bursts_;
  std::vector<Message> messages_;
  std::vector<Segment> segments_;
  std::vector<Shared> shared_;
  std::vector<std::vector<MergeSlot>> merges_;
  std::vector<std::uint32_t> free_bursts_, free_messages_, free_segments_, free_shared_,
      free_merges_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> transit_;  ///< (in, out) -> queue, sorted.
  std::uint64_t open_messages_ = 0;
};

}  // namespace windtunnel
