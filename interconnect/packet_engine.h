#pragma once
// The moving parts of the packet level: links with frames, credits and arbitration, on an event
// queue. Knows no topology: links are options, routes are lists of link numbers. `PacketNetwork`
// builds it from a Topology.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "interconnect/arbiter.h"
#include "interconnect/credit_counter.h"
#include "interconnect/infiniband/go_back_n.h"
#include "interconnect/link_timing.h"
#include "interconnect/network.h"
#include "interconnect/nic_pacer.h"
#include "interconnect/roce/dcqcn_rate.h"
#include "interconnect/roce/ecn_marking.h"
#include "interconnect/roce/pfc.h"
#include "interconnect/tcp/tcp_window.h"
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
class PassageModel {
 public:
  /// A burst on its way from one link to another of the device.
  struct Passage {
    SimTime now;  ///< Its first frame may be sent on from here, as far as the wires go.
    std::uint32_t in_link = 0;
    std::uint32_t out_link = 0;
    Bytes payload;
    Bytes wire;  ///< As it came in, with headers.
  };
  virtual ~PassageModel() = default;
  /// Further time until the burst may ask for its wire. Bursts between the same two links stay in
  /// order whatever is answered.
  virtual Picoseconds PassTime(const Passage& passage) = 0;
};

/// Whose turn is next on a wire that several incoming links want.
enum class Arbitration : std::uint8_t {
  kPorts,  ///< Incoming links get equal shares, whatever they bring.
  kRoutes  ///< Shares by the number of routes that come by each.
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
  /// 1 to 31 (0 means no time-out: a lost last frame would never be missed). 20 is NCCL's default
  /// (NCCL_IB_TIMEOUT). An adapter may take up to four times as long.
  std::uint32_t timeout_exponent = 20;
  std::uint32_t retry_count = 7;  ///< Losses in a row after which the connection fails.
  /// Everything behind a lost frame is sent again, as adapters without reordering do; false: the
  /// lost frame alone (selective repeat).
  bool go_back_n = false;
  std::uint64_t seed = 1;
  Picoseconds Timeout() const { return Picoseconds(4'096'000ULL << timeout_exponent); }
};

/// Who keeps the receiver of a link from overflowing.
enum class FlowControl : std::uint8_t {
  kCredits,  ///< The sender knows the room (InfiniBand, NVLink, PCIe, ICI).
  kPause,    ///< The receiver says stop (priority flow control).
  kDrop      ///< Nobody: what finds no room is lost (Ethernet).
};

/// Time during which a link carries nothing.
struct Outage {
  SimTime down;
  SimTime up;  ///< The far future (`CreditCounter::kUnknown`): never again.
};

/// How the source of a route holds itself back. One per connection (queue pair, TCP stream).
struct EndpointOptions {
  /// Most bytes sent and not yet acknowledged; 0 = any number.
  Bytes window;
  /// Or this many times what the path holds: rate of its slowest wire x round trip; 0 = no.
  double window_paths = 0;
  DcqcnOptions dcqcn{.enabled = false};
  TcpOptions tcp;
  NicOptions nic;
  /// Whose message rate it shares: an index the caller chooses; UINT32_MAX = nobody's.
  std::uint32_t nic_id = UINT32_MAX;
  /// Largest further delay of a message's start, drawn evenly from 0 on.
  Picoseconds jitter;
  std::string name;  ///< Module path of its random stream.
};

/// Per link: a wire (LinkTiming), room at the receiver (CreditCounter), queues of those who want
/// the wire (PortArbiter). One queue per (incoming link, wire) pair, so that a blocked
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
    Bytes buffer;  ///< Room at the receiver, per channel. 0 = `kPortBuffer`, more if long.
    Picoseconds pass_latency;    ///< Receiver's port to port time for frames that travel on.
    Picoseconds credit_latency;  ///< From space freed to credit known at the sender.
    double error_rate = 0;       ///< Share of frames that arrive broken, 0 to 1.
    /// A broken frame is sent again over this link alone (NVLink, PCIe), after a round trip. false:
    /// it is dropped, and the source of the message sends it again.
    bool link_replay = false;
    FlowControl flow_control = FlowControl::kCredits;
    /// Without credits: the shared memory of the device at the link's end (`AddBuffer`).
    std::uint32_t buffer_id = UINT32_MAX;
    PfcOptions pfc;                      ///< FlowControl::kPause.
    EcnOptions ecn{.enabled = false};    ///< Marks frames that wait for this link.
    std::vector<Outage> outages;         ///< In order of time.
    std::uint32_t virtual_channels = 1;  ///< To begin with; each with `buffer` of its own.
    std::string name;                    ///< For reports: "node0/gpu3 -> node0/nvs1".
  };

  /// Room of one virtual channel at a receiver: the most that InfiniBand's credits can grant, 2,048
  /// blocks of 64 bytes (IBA vol. 1, 7.9.4; recalled). ASSUMED of the other links with credits,
  /// whose buffers are not public.
  static constexpr Bytes kPortBuffer = KiB(128);
  static constexpr std::uint64_t kBurstsPerBuffer = 8;  ///< Beside what is in the loop; at least.

  explicit PacketEngine(EventQueue& queue, Arbitration arbitration = Arbitration::kPorts)
      : queue_(queue), arbitration_(arbitration) {}

  /// Memory that several links without credits share at their end.
  /// `grows`: never smaller than twice the head-room of its links.
  std::uint32_t AddBuffer(Bytes capacity, bool grows = false);
  /// @throws ConfigError when the head-room of a buffer's links is more than the buffer.
  std::uint32_t AddLink(const LinkOptions& options);
  /// A chain of links, empty where source and target are one device. `channels`: virtual channel on
  /// each link, which gets more where it has fewer; empty = 0 everywhere.
  RouteId AddRoute(std::span<const std::uint32_t> links,
                   std::span<const std::uint8_t> channels = {});
  /// Gives the source of a route a window, a rate, a NIC. Contract: once per route, before its
  /// first message.
  void SetEndpoint(RouteId route, const EndpointOptions& options);
  /// A route whose messages travel over several others, cut evenly (`split`) or in turn. They are
  /// delivered in order of sending.
  RouteId AddStripe(std::span<const RouteId> routes, bool split);
  /// `up` leads from the source to the hub, `down` from the hub to each member; either may be
  /// empty where a source or member is the hub itself.
  GroupId AddMulticast(std::span<const std::uint32_t> up,
                       std::span<const std::vector<std::uint32_t>> down);
  GroupId AddReduction(std::span<const std::vector<std::uint32_t>> up,
                       std::span<const std::uint32_t> down, Picoseconds reduce_latency);
  /// One edge of a tree of switches: node 0 is the hub, `inner[i]` leads to or from node i + 1.
  struct TreeEdge {
    std::uint32_t node = 0;            ///< The other end: node nearer to the hub.
    std::vector<std::uint32_t> links;  ///< In the direction of the data; at least one.
  };
  /// The same over several levels: a node copies to, or reduces what comes from, its members and
  /// the nodes behind it. Contract: the nearer node of an inner edge has the lower number.
  GroupId AddMulticastTree(std::span<const std::uint32_t> up, std::span<const TreeEdge> inner,
                           std::span<const TreeEdge> members);
  GroupId AddReductionTree(std::span<const TreeEdge> members, std::span<const TreeEdge> inner,
                           std::span<const std::uint32_t> down, Picoseconds reduce_latency);
  /// Asks `model` about everything that arrives by `link` and travels on; nullptr = nobody.
  void BindModel(std::uint32_t link, PassageModel* model) { links_[link].model = model; }
  /// Contract: before the first Send of a run.
  void set_retry_options(const RetryOptions& options);
  /// The `frame`-th frame (from 0) that goes onto `link` in the next run arrives broken, once.
  void BreakFrame(std::uint32_t link, std::uint64_t frame);
  /// Contract: idle.
  void set_burst_options(const BurstOptions& options);

  void Send(RouteId route, Bytes size, std::uint64_t token) { SendAny(route, size, token); }
  /// A message that nobody is told about and that does not count as open.
  void SendBackground(RouteId route, Bytes size);
  void SendGroup(GroupId group, Bytes size, std::uint64_t token);

  void set_client(NetworkClient* client) { client_ = client; }
  void set_observer(WireObserver* observer) { observer_ = observer; }
  EventQueue& queue() { return queue_; }
  /// Keeps the counters as they are at this instant until the next Reset. A burst on a wire counts
  /// as busy up to now and with the frames that have begun.
  void EndOfRun();
  std::span<const LinkUse> link_use() const { return ended_use_.empty() ? use_ : ended_use_; }
  std::uint64_t open_messages() const { return open_messages_; }
  /// Frames sent, summed over links.
  std::uint64_t packets() const;
  const CreditCounter& credits(std::uint32_t link) const { return links_[link].lane.credits; }
  const SharedBuffer& buffer(std::uint32_t id) const { return buffers_[id]; }
  Bytes headroom(std::uint32_t link) const { return links_[link].headroom; }
  /// Bursts that came in at their targets, background ones aside: stands still when nothing moves.
  std::uint64_t arrivals() const { return arrivals_; }
  /// Events of ours that are scheduled.
  std::uint64_t pending_events() const { return pending_; }
  /// Why nothing moves, in at most some 2 KB: one circle of links that wait for one another,
  /// examples of what waits, counts of the rest. Empty when nothing is stuck.
  std::string DescribeStall() const;
  /// @throws InternalError when credits are missing. Contract: no open message.
  void Reset();

  void OnEvent(SimTime now, std::uint64_t payload) override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Time-outs of one segment after which TCP gives up. Source: Linux, net.ipv4.tcp_retries2.
  static constexpr std::uint32_t kTcpRetries = 15;
  enum class EventKind : std::uint8_t {
    kServe,
    kArrive,
    kReady,
    kResend,
    kInjected,
    kDelivered,
    kPause,
    kResume,
    kAck,
    kCnp,
    kUnpark,
    kStart,
    kGapKnown,
    kTimer
  };

  /// Part of a message between two devices, moved by one event.
  struct Burst {
    std::uint32_t next = kNone;  ///< In its queue or in flight.
    std::uint32_t message = 0;
    std::uint32_t hop = 0;         ///< Of `hops_`: the wire it waits for or is on.
    std::uint32_t index = 0;       ///< Among the bursts of its message.
    std::uint32_t shared = kNone;  ///< Of `shared_`: multicast copies free the buffer together.
    std::uint32_t tries = 0;       ///< Times it was lost.
    bool marked = false;           ///< Some frame carries a congestion mark.
    Bytes payload;
    Bytes held;    ///< Room it occupies at the end of the link it came by.
    SimTime head;  ///< First frame there.
    SimTime tail;  ///< Last frame there.
    SimTime sent;  ///< By its source, for the retry timer.
  };
  enum class MessageKind : std::uint8_t { kPlain, kMulticast, kReduction, kStriped };
  struct Message {
    std::uint64_t token = 0;
    Bytes size;
    Bytes burst;                    ///< Payload of each burst but the last.
    std::uint32_t bursts_open = 0;  ///< Not yet on their last wire.
    std::uint32_t sources_open = 0;
    std::uint32_t merge = kNone;  ///< Reduction: of `merges_`.
    GroupId group = 0;
    RouteId route = kNone;            ///< Plain messages.
    std::uint32_t endpoint = kNone;   ///< Of `endpoints_`.
    std::uint32_t parent = kNone;     ///< The striped message it is a part of.
    std::uint32_t next_open = kNone;  ///< On its route, where frames can be lost; of its stripe.
    std::uint32_t next_held = kNone;  ///< Waits behind the endpoint's step window.
    std::uint32_t frames_out = 0;     ///< Under way, where a frame can be sent twice.
    std::uint64_t first_number = 0;   ///< Sequence number of its first burst.
    bool ordered = false;             ///< Frames can be lost: a list keeps the order.
    bool started = false;
    bool background = false;  ///< Nobody waits for it.
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
    std::uint8_t lane = 0;   ///< Virtual channel.
    std::uint32_t node = 0;  ///< kMerge, kReplicate: which node of the group's tree.
  };
  struct Queue {
    std::uint32_t link = 0;
    std::uint32_t in_link = kNone;  ///< Whose credits its bursts hold; kNone: nobody's.
    std::uint8_t lane = 0;
    std::uint8_t in_lane = 0;
    std::uint32_t endpoint = kNone;  ///< Source: what holds it back.
    SimTime last_ready;              ///< Behind a user's model: latest answer so far.
    bool source = false;             ///< `first` and `last` are segments, else bursts.
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t hop = 0;  ///< Source: its first hop.
  };
  /// One virtual channel of a link.
  struct Lane {
    CreditCounter credits;
    PortArbiter arbiter;
    bool starved = false;  ///< Waits for a credit whose return is not known.
  };
  struct LinkState {
    LinkState(const LinkOptions& o, std::uint64_t seed)
        : timing(o.timing), options(o), random(seed, o.name) {}
    LinkTiming timing;
    LinkOptions options;
    Lane lane;                     ///< The first virtual channel.
    std::vector<Lane> more_lanes;  ///< The others.
    std::uint32_t next_lane = 0;   ///< Whose turn it is.
    bool credited = true;          ///< FlowControl::kCredits.
    bool paused = false;           ///< By the receiver.
    PfcIngress ingress;            ///< Of the receiver.
    Bytes headroom;
    Bytes resume_gap;
    Bytes pause_level;  ///< What waited when the last pause was decided.
    Picoseconds pause_delay;
    std::uint64_t mark_from = UINT64_MAX;  ///< Bytes waiting above which frames are marked.
    EcnOptions ecn;
    SimTime serve_at = CreditCounter::kUnknown;  ///< Pending serve event.
    std::uint32_t flight_first = kNone;
    std::uint32_t flight_last = kNone;
    std::uint64_t waiting = 0;  ///< Payload bytes in transit queues.
    std::uint64_t largest = 1;  ///< Largest burst so far on the wire: the arbiter's quantum.
    Bytes booked;               ///< Payload of the last burst on the wire.
    Bytes sized_payload{UINT64_MAX};
    Bytes sized_wire;
    std::uint64_t sized_frames = 0;
    RandomStream random;
    std::uint64_t break_frame = UINT64_MAX;
    PassageModel* model = nullptr;  ///< Of the device at the link's end.
  };
  struct Shared {
    std::uint32_t copies = 0;
    SimTime free_at;
  };
  struct Route {
    std::uint32_t first_hop = 0;
    std::uint32_t hop_count = 0;
    Bytes unit;     ///< Largest frame payload on the way: bursts are whole multiples of it.
    Bytes longest;  ///< Burst that is small beside every buffer on the way.
    std::uint32_t endpoint = kNone;
    std::uint32_t stripe = kNone;
    bool lossy = false;  ///< Frames can be lost on the way: every burst is one frame.
  };
  /// Messages of a route that can lose frames, in order of sending.
  struct OpenOrder {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    SimTime last_delivered;
    std::uint32_t resend_queue = kNone;
  };
  /// A switch that reduces (one output) or copies (one input).
  struct TreeNode {
    std::uint32_t inputs = 0;
    std::vector<Route> outputs;
  };
  struct Group {
    MessageKind kind = MessageKind::kMulticast;
    std::vector<Route> up;        ///< From each source to its node.
    std::vector<TreeNode> nodes;  ///< The hub first.
    std::uint32_t targets = 0;
    Picoseconds reduce_latency;
  };
  /// The sending side of one connection, and what its target knows of it.
  struct Endpoint {
    EndpointOptions options;
    RouteId route = 0;
    std::uint32_t queue = kNone;
    Picoseconds back;  ///< From the target to the source: acknowledgement, CNP.
    BitsPerSecond line;
    std::uint32_t line_link = 0;  ///< The slowest of the way: its frames are what the rate counts.
    Bytes segment;                ///< Payload of a full frame.
    Bytes window;                 ///< Present limit; 0 = none.
    Bytes in_flight;
    SimTime next_send;
    SimTime last_ack;
    bool parked = false;   ///< Out of the round until an event says otherwise.
    bool timed = false;    ///< That event is scheduled; else an acknowledgement is waited for.
    bool delayed = false;  ///< Starts of messages go through `StartMessage`.
    DcqcnRate rate;
    bool cnp_sent = false;
    SimTime last_cnp;
    TcpWindow tcp;
    GoBackN numbers;
    std::uint64_t next_number = 0;
    std::uint32_t under_way = 0;  ///< Messages, against the step window.
    std::uint32_t held_first = kNone;
    std::uint32_t held_last = kNone;
    SimTime last_post;
    SimTime last_start;  ///< With jitter.
    RandomStream random{0, {}};
  };
  struct Stripe {
    std::vector<RouteId> routes;
    bool split = true;
    std::uint32_t next = 0;
    std::uint32_t first_open = kNone;
    std::uint32_t last_open = kNone;
  };
  struct MergeSlot {
    std::uint32_t arrived = 0;
    SimTime tail;
  };

  /// A virtual channel of a link that somebody wants.
  struct StalledLane {
    std::uint32_t link;
    std::uint8_t number;
    const Lane* lane;
  };
  std::vector<StalledLane> StalledLanes() const;  ///< packet_engine_stall.cc.
  std::string DescribeCircle(std::vector<StalledLane>* stalled) const;

  enum class HopStart : std::uint8_t { kSource, kTransit, kMerged };
  Route MakeRoute(std::span<const std::uint32_t> links, HopStart start, std::uint32_t in_link,
                  HopEnd end, std::uint32_t node, std::span<const std::uint8_t> lanes = {});
  void AddWeight(std::uint32_t queue);
  std::uint32_t NewQueue(std::uint32_t link, std::uint32_t in_link, bool source);
  std::uint32_t TransitQueue(std::uint32_t in_link, std::uint8_t in_lane, std::uint32_t link,
                             std::uint8_t lane);
  static bool CanLose(const LinkState& link);
  static Bytes BurstBelowThresholds(const LinkState& link);
  void FindLossyRoutes();
  /// Cuts the message: sets its burst size for `unit` and `longest` of its routes.
  std::uint32_t NewMessage(Bytes size, std::uint64_t token, MessageKind kind, Bytes unit,
                           Bytes longest, bool lossy);
  std::uint32_t SendPlain(RouteId route, Bytes size, std::uint64_t token);
  std::uint32_t SendStriped(Stripe& stripe, Bytes size, std::uint64_t token);
  std::uint32_t SendAny(RouteId route, Bytes size, std::uint64_t token);
  std::uint32_t BurstCount(const Message& message) const;
  void Inject(Route& route, std::uint32_t message);
  void Activate(std::uint32_t queue);
  void ServeAt(std::uint32_t link, SimTime at);
  void Kick(std::uint32_t link, SimTime now);
  void Serve(std::uint32_t link, SimTime now);
  bool ServeLane(std::uint32_t link, Lane& lane, SimTime now);
  Lane& LaneOf(LinkState& link, std::uint8_t lane) {
    return lane == 0 ? link.lane : link.more_lanes[lane - 1U];
  }
  // Endpoints: packet_engine_endpoints.cc.
  void StartMessage(std::uint32_t message, SimTime at);
  static bool MaySend(const Endpoint& endpoint, Bytes payload, SimTime now);
  void Sent(Endpoint& endpoint, SimTime start, Bytes payload);
  void Park(std::uint32_t endpoint);
  void Unpark(std::uint32_t endpoint, SimTime now);
  void Acknowledge(std::uint32_t endpoint, Bytes payload, SimTime last_in);
  void OnAck(std::uint32_t burst, SimTime now);
  void MessageDone(Endpoint& endpoint, SimTime now);
  void StartFresh(Endpoint& endpoint);
  void Arrived(std::uint32_t message, std::uint32_t burst_index, Bytes payload, bool marked,
               SimTime last_in);
  void StartOver(std::uint32_t endpoint, SimTime now);
  void PartDone(std::uint32_t parent, EventKind kind, SimTime now);
  [[noreturn]] void RetriesExhausted(const Message& message, std::uint32_t losses,
                                     Picoseconds timeout, const std::string& link) const;
  // Lossless and lossy Ethernet.
  bool Admit(std::uint32_t burst, std::uint32_t queue, SimTime now);
  Bytes PauseThreshold(const LinkState& in) const;
  void LeaveBuffer(std::uint32_t in_link, Bytes size, SimTime now);
  bool IsDown(const LinkState& link, SimTime from, SimTime to) const;
  void PassModel(std::uint32_t link_id, std::uint32_t burst, SimTime now);
  bool Breaks(std::uint32_t link_id, std::uint64_t frames, const LinkTiming::Booking& booking);
  void Replay(std::uint32_t link_id, Bytes payload, Bytes wire, LinkTiming::Booking& booking);
  void Resend(std::uint32_t burst, std::uint32_t link_id, SimTime lost_at);
  void FreeMessage(std::uint32_t message);
  void Arrive(std::uint32_t link, SimTime now);
  void Replicate(std::uint32_t burst, SimTime now);
  void Merge(std::uint32_t burst, SimTime now);
  void Enqueue(std::uint32_t burst, SimTime now) {
    EnqueueAt(hops_[bursts_[burst].hop].queue, burst, now);
  }
  void EnqueueAt(std::uint32_t queue, std::uint32_t burst, SimTime now);
  void FreeUpstream(const Burst& burst, const Queue& queue, SimTime at);
  void ReturnCredit(std::uint32_t link, std::uint8_t lane, SimTime at, Bytes size);
  void CountArrived(std::uint32_t message, SimTime last_in);
  Bytes SizeOnWire(LinkState& link, Bytes payload);
  Bytes NextPayload(const Queue& queue) const;
  static Bytes InLoop(const LinkState& link);
  static Bytes BufferOf(const LinkState& link);
  static Bytes BurstForBuffer(const LinkState& link);

  /// An index of `pool`, from its free list when that has one.
  template <class T>
  static std::uint32_t TakeFrom(std::vector<T>& pool, std::vector<std::uint32_t>& free_list) {
    if (free_list.empty()) {
      pool.emplace_back();
      return static_cast<std::uint32_t>(pool.size() - 1);
    }
    const std::uint32_t index = free_list.back();
    free_list.pop_back();
    return index;
  }

  void Schedule(SimTime at, EventKind kind, std::uint32_t index) {
    ++pending_;
    queue_.Schedule(at, *this, static_cast<std::uint64_t>(kind) << 32 | index);
  }

  EventQueue& queue_;
  Arbitration arbitration_;
  NetworkClient* client_ = nullptr;
  WireObserver* observer_ = nullptr;
  BurstOptions burst_options_;
  RetryOptions retry_options_;
  bool lossy_ = false;                  ///< Some link may lose frames.
  std::vector<OpenOrder> open_orders_;  ///< One per route.
  std::vector<LinkState> links_;
  std::vector<LinkUse> use_;
  std::vector<LinkUse> ended_use_;  ///< As EndOfRun found it; empty before.
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
  std::unordered_map<std::uint64_t, std::uint32_t> transit_;  ///< (in, out) -> queue; never walked.
  std::vector<SharedBuffer> buffers_;
  std::vector<Endpoint> endpoints_;
  std::vector<Stripe> stripes_;
  std::vector<NicPacer> nics_;
  std::uint64_t open_messages_ = 0;
  std::uint64_t background_messages_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t pending_ = 0;
};

}  // namespace windtunnel
