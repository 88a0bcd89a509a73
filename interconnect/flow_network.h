#pragma once
// Messages as fluid flows: max-min fair sharing of the links, no packets.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/network.h"
#include "interconnect/wire_format.h"
#include "sim/paged_vector.h"

namespace windtunnel {

/// The flow level. The head message of a route is a flow over the route's links; flows share each
/// link max-min fairly, limited by the cap of their route. A message is injected when its last byte
/// has entered the first link, and delivered the sum of the links' latencies later. What a byte
/// costs on a link is LinkWireFormat's; a route's solo time counts the frames of its slowest link
/// exactly, sharing uses the payload share of full frames.
///
/// Cost: a message whose links have the rate it asks for left over costs two entries in a batch of
/// equal times and no search; only when links run short are rates computed anew, once per instant,
/// of those flows that the change reaches.
///
/// Groups: one flow over the union of the links (each once: switches on the way replicate or
/// combine). A reduction adds the time of the switch's reduction unit; the request that fetches the
/// operands takes neither time nor room on the wire, as at packet level.
///
/// Not modelled: queues inside the network, frames of different flows held up by each other,
/// credits and pauses, loss, marks. `deepest_queue`, `pauses`, `marks`, `drops` stay zero.
class FlowNetwork final : public Network {
 public:
  struct Options {
    /// false: every message moves as if it were alone ("idle" level): with the plan's order and the
    /// routes' first-in first-out kept, no run of any level is faster.
    bool contention = true;
    /// When more flows than this share, their rates are computed anew no more often than 32 times
    /// while a short message (19 of 20 take longer) is sent and arrives, or when an eighth of them
    /// has begun or ended. In between, what has ended leaves its rate free and what begins takes
    /// what is free, so that no link ever carries too much. 0 = always at once.
    std::size_t many_flows = 512;
    /// true: a sharing computes the rates of all flows that reach a change over short links, not
    /// only of those that the change touches. Same rates but for rounding; for tests.
    bool whole_components = false;
  };
  /// `cluster` must outlive the network.
  explicit FlowNetwork(const Cluster& cluster) : FlowNetwork(cluster, Options()) {}
  FlowNetwork(const Cluster& cluster, const Options& options);
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  std::string_view name() const override { return options_.contention ? "flow" : "idle"; }
  RouteId AddRoute(const Route& route) override { return AddRoute(route, BitsPerSecond(0)); }
  /// As above, and messages of the route never move faster than `cap` payload bits per second (0 =
  /// no cap): a QP limited by its window, a channel limited by its SM.
  RouteId AddRoute(const Route& route, BitsPerSecond cap);
  GroupId AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                   std::span<const DeviceId> members) override;
  void Send(RouteId route, Bytes size, std::uint64_t token) override;
  void SendGroup(GroupId group, Bytes size, std::uint64_t token) override;
  void set_client(NetworkClient* client) override { client_ = client; }
  EventQueue& queue() override { return queue_; }
  std::span<const LinkUse> link_use() const override;
  std::uint64_t open_messages() const override { return open_messages_; }
  std::string DescribeStall() const override;
  void Reset() override;
  void RunToIdle() override;

  /// What the run cost: for reports of speed.
  struct Effort {
    std::uint64_t messages = 0;
    std::uint64_t events = 0;         ///< Batch entries executed.
    std::uint64_t share_rounds = 0;   ///< Times that rates were computed anew.
    std::uint64_t share_updates = 0;  ///< Flows opened in those, once per filling.
  };
  const Effort& effort() const { return effort_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint64_t kUnknownLevel = UINT64_MAX;
  // Rate of a flow that no link limits (source and target are one device).
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;
  __extension__ using Wide = unsigned __int128;

  // A flow crosses a link.
  struct Hop {
    std::uint32_t link;
    std::uint32_t place;  // Of an active flow in the link's `flows`.
  };
  // An active flow of a link, and which of the flow's hops that is.
  struct Crossing {
    std::uint32_t flow;
    std::uint32_t hop;
  };
  struct alignas(64) LinkState {
    std::uint64_t capacity = 0;  // Payload bits per second in full frames.
    std::uint64_t wanted = 0;    // Sum of the solo rates of active flows; up to `capacity` the
                                 // link limits nobody.
    std::uint64_t used = 0;      // Sum of the rates of active flows.
    // The active flows; in lockstep schedules there is one.
    boost::container::small_vector<Crossing, 1> flows;
    std::uint32_t bound = 0;  // Flows below their solo rate because of this link.
    bool dirty = false;
  };
  // Where a sharing keeps what it knows of a link; of an older epoch: nowhere.
  struct Mark {
    std::uint32_t epoch = 0;
    std::uint32_t place = 0;  // In `open_links_`.
  };
  struct LinkShare {
    std::uint64_t level =
        kUnknownLevel;  // With flows bound: their rate; no flow that a sharing has seen is faster.
    Mark mark;
  };
  // A flow whose rate a sharing computes anew, and a link that such a flow crosses.
  struct OpenFlow {
    std::uint64_t solo_rate;
    std::uint64_t rate;  // As computed.
    std::uint32_t bound_link;
    std::uint32_t flow;
    std::uint32_t links_begin;  // In `flow_links_`.
    std::uint32_t links_end;
    bool fixed;
  };
  struct OpenLink {
    std::uint64_t capacity;
    std::uint64_t outside;    // Rates of its flows that are not open.
    std::uint64_t available;  // For the open flows that have no rate yet.
    std::uint64_t level;      // Of the open flows bound here; kUnknownLevel: none is.
    std::uint64_t fastest;    // Rate of the fastest open flow.
    std::uint32_t link;
    std::uint32_t active;
    std::uint32_t open;
    std::uint32_t unfixed;
    std::uint32_t bound_outside;  // Flows bound here that are not open.
    std::uint32_t flows_begin;    // In `link_flows_`.
    std::uint32_t flows_end;
  };
  // One route or group and the message at its head. The first cache line serves the idle path.
  struct alignas(64) Flow {
    std::uint32_t hops_begin = 0;
    std::uint16_t hop_count = 0;
    bool active : 1 = false;
    bool repeats_links : 1 = false;
    bool has_work : 1 = false;          // `remaining` is set; else at solo rate since `since`.
    std::uint32_t generation = 0;       // Injections in batches with another generation are stale.
    std::uint32_t queue_first = kNone;  // Messages behind the head.
    std::uint32_t timing_class = 0;
    std::uint32_t bound_link = kNone;  // Keeps it below its solo rate.
    std::uint64_t rate = 0;
    std::uint64_t solo_rate = 0;
    std::uint64_t token = 0;
    std::uint64_t size = 0;
    Picoseconds latency;
    SimTime since;                   // When `remaining` was true.
    std::uint64_t counted_size = 0;  // Run of equal messages not yet in the links' counters.
    std::uint64_t counted = 0;
    std::uint32_t queue_last = kNone;
    std::uint32_t completion = kNone;  // Its place in `completions_`.
    Wide remaining = 0;                // Payload bits x 10^12: bits per second times picoseconds.
  };
  struct Queued {
    std::uint64_t size;
    std::uint64_t token;
    std::uint32_t next;
  };
  // Routes whose slowest link has the same rate and frames take the same time for the same size.
  struct TimingClass {
    std::uint64_t raw_rate = 0;
    WireFormat format;
    std::uint64_t last_size = UINT64_MAX;  // The answer to the last question: sizes repeat.
    Picoseconds last_time;
  };
  struct Injection {
    std::uint32_t flow;
    std::uint32_t generation;
  };
  // What happens at one instant, in the order it was found out: first last bytes that leave, then
  // messages that are there.
  struct Batch {
    SimTime at;
    std::vector<Injection> injections;
    std::vector<std::uint64_t> deliveries;  // Tokens.
  };
  struct Slot {
    SimTime at;
    std::uint32_t batch = kNone;
  };
  // When the last byte of a flow that shares leaves. Moves with its rate.
  struct Completion {
    SimTime at;
    std::uint64_t order;  // Of planning.
    std::uint32_t flow;
    bool Before(const Completion& other) const {
      return at != other.at ? at < other.at : order < other.order;
    }
  };
  class BatchHandler final : public EventHandler {
   public:
    explicit BatchHandler(FlowNetwork& network) : network_(network) {}
    void OnEvent(SimTime now, std::uint64_t batch) override;

   private:
    FlowNetwork& network_;
  };
  class ShareHandler final : public EventHandler {
   public:
    explicit ShareHandler(FlowNetwork& network) : network_(network) {}
    void OnEvent(SimTime now, std::uint64_t) override {
      if (network_.share_scheduled_ && network_.share_at_ == now) network_.ShareAnew(now);
    }

   private:
    FlowNetwork& network_;
  };

  class CompletionHandler final : public EventHandler {
   public:
    explicit CompletionHandler(FlowNetwork& network) : network_(network) {}
    void OnEvent(SimTime now, std::uint64_t) override { network_.RunCompletions(now); }

   private:
    FlowNetwork& network_;
  };

  std::uint32_t AddFlow(const std::vector<LinkId>& links, Picoseconds latency, BitsPerSecond cap);
  Picoseconds SoloTime(const Flow& flow);
  static Picoseconds TimeFor(Wide work, std::uint64_t rate);
  void StartHead(std::uint32_t flow_index, SimTime now);
  void Settle(Flow& flow, SimTime now);
  void SendOn(std::uint32_t flow, Bytes size, std::uint64_t token);
  void Activate(std::uint32_t flow_index, SimTime now);
  void Deactivate(std::uint32_t flow_index);
  void MarkDirty(std::uint32_t link);
  void NoteChange();
  void Finish(std::uint32_t flow_index, SimTime now);
  void ScheduleInjection(std::uint32_t flow_index, SimTime at);
  void PlanCompletion(std::uint32_t flow_index, SimTime at);
  void BuildHeap();
  void PlanChanges();
  void TakeDue(SimTime now);
  void Place(std::size_t place, const Completion& completion);
  void SiftUp(std::size_t place);
  void SiftDown(std::size_t place);
  void ArmCompletions();
  void RunCompletions(SimTime now);
  bool SharesLater() const { return share_scheduled_ && share_at_ > queue_.now(); }
  void TakeFreeRate(Flow& flow);
  void SetRate(Flow& flow, std::uint64_t rate);
  Batch& BatchAt(SimTime at, Slot& recent);
  std::uint32_t FindBatch(SimTime at);
  void RunBatch(SimTime now, std::uint32_t batch);
  void ShareAnew(SimTime now);
  void Open(std::uint32_t flow_index);
  void OpenBound(std::uint32_t link);
  void OpenChanged();
  void OpenReachable();
  bool OpenUnfair();
  void Fill();
  void Fix(OpenFlow& open, std::uint32_t bound_link, std::uint64_t rate);
  void SinkFirstShare();
  void Apply(const OpenFlow& open, SimTime now);
  void MeasureWait();
  void FlushCounters(Flow& flow) const;

  const Cluster& cluster_;
  const Options options_;
  NetworkClient* client_ = nullptr;
  EventQueue queue_;
  BatchHandler batch_handler_{*this};
  ShareHandler share_handler_{*this};
  CompletionHandler completion_handler_{*this};
  std::vector<LinkState> links_;
  std::vector<LinkShare> link_shares_;
  std::vector<WireFormat> formats_;
  mutable PagedVector<Flow> flows_;  // Their runs are counted when somebody asks.
  std::vector<Hop> hops_;
  std::vector<TimingClass> classes_;
  std::vector<std::uint32_t> group_flows_;
  std::vector<Queued> queued_;
  std::uint32_t queued_free_ = kNone;
  std::deque<Batch> batches_;  // Addresses stay while handlers add more.
  std::vector<std::uint32_t> batches_free_;
  static constexpr std::size_t kSlots = 256;
  std::vector<Slot> slots_;  // Pending batches by a hash of their time; losers stay scheduled.
  Slot recent_injection_;
  Slot recent_delivery_;
  std::vector<Completion> completions_;  // A 4-ary heap.
  std::vector<Completion> changes_;      // Of a sharing, before they enter the heap.
  std::vector<Completion> due_;
  std::vector<std::uint32_t> due_places_;  // In `completions_`.
  std::uint64_t completion_order_ = 0;
  bool completions_armed_ = false;
  SimTime armed_at_;
  std::vector<std::uint32_t> dirty_;
  bool share_scheduled_ = false;
  SimTime share_at_;
  SimTime share_not_before_;
  Picoseconds wait_;               // From one sharing to the next, with many flows.
  std::size_t changed_flows_ = 0;  // Since the last sharing, where rates are short.
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> flow_epochs_;  // Of the last sharing that opened it.
  // Flows that have begun since the last sharing where rates are short or somebody is held back.
  std::vector<std::uint32_t> begun_;
  std::vector<OpenLink> open_links_;
  std::vector<OpenFlow> open_flows_;
  std::vector<std::uint32_t> link_flows_;
  std::vector<std::uint32_t> flow_links_;
  std::vector<std::uint32_t> by_solo_rate_;
  std::vector<double> message_times_;
  struct Share {
    std::uint64_t share;
    std::uint32_t link;
    std::uint32_t place;
    bool Before(const Share& other) const {
      return share != other.share ? share < other.share : link < other.link;
    }
  };
  std::vector<Share> share_heap_;
  mutable std::vector<LinkUse> use_;
  std::uint64_t open_messages_ = 0;
  Effort effort_;
};

}  // namespace windtunnel
