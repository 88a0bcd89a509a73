#include "interconnect/flow_network.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel {
namespace {

// Routes may cross a link twice (through a host's switch, or on a folded network); a group never.
constexpr std::size_t kMostSearchedHops = 64;
// What is free of a link is taken from this part of the rate that a message could have. ASSUMED.
constexpr std::uint64_t kLeastFreePart = 1024;
// Nobody waits longer for new rates when one in so many flows has begun or ended: lockstep
// schedules change all at one instant.
constexpr std::size_t kPartThatChanges = 8;
// The heap of completions is built anew when one in so many of them changes.
constexpr std::size_t kRebuiltPart = 8;
// Time of a switch's reduction unit from the last operand's arrival: as at packet level. ASSUMED.
constexpr Picoseconds kReduceLatency = Nanoseconds(100);

// Of 256, by Fibonacci hashing.
std::size_t SlotOf(SimTime at) {
  return static_cast<std::size_t>((at.since_start().count() * 0x9e3779b97f4a7c15ULL) >> 56);
}

}  // namespace

FlowNetwork::FlowNetwork(const Cluster& cluster, const Options& options)
    : cluster_(cluster), options_(options), slots_(kSlots) {
  const Topology& topology = cluster.topology();
  const auto link_count = static_cast<LinkId>(topology.links.size());
  links_.resize(link_count);
  link_shares_.resize(link_count);
  formats_.reserve(link_count);
  for (LinkId id = 0; id < link_count; ++id) {
    formats_.push_back(LinkWireFormat(topology, id));
    links_[id].capacity = formats_[id].PayloadRate(topology.links[id].rate).count();
  }
  use_.resize(link_count);
}

std::uint32_t FlowNetwork::AddFlow(const std::vector<LinkId>& links, Picoseconds latency,
                                   BitsPerSecond cap) {
  const auto index = static_cast<std::uint32_t>(flows_.size());
  Flow flow;
  flow.hops_begin = static_cast<std::uint32_t>(hops_.size());
  flow.latency = latency;
  flow.solo_rate = kUnlimited;
  TimingClass timing;
  const auto add_hop = [&](std::uint32_t link) {
    hops_.push_back({link, kNone});
    ++flow.hop_count;
  };
  for (const LinkId id : links) {
    const Link& link = cluster_.topology().links[id];
    WT_CHECK(!link.down) << "route over link " << id << ", which is down";
    WT_CHECK(links_[id].capacity > 0) << "link " << id << " has no rate";
    if (links_[id].capacity < flow.solo_rate) {
      flow.solo_rate = links_[id].capacity;
      timing.raw_rate = link.rate.count();
      timing.format = formats_[id];
    }
    add_hop(id);
  }
  if (cap.count() > 0 && cap.count() < flow.solo_rate) {
    flow.solo_rate = cap.count();
    timing.raw_rate = cap.count();
    timing.format = WireFormat{.max_payload = 4096, .overhead = 0};
  }
  for (std::size_t i = 1; i < links.size() && links.size() <= kMostSearchedHops; ++i) {
    const auto here = links.begin() + static_cast<std::ptrdiff_t>(i);
    flow.repeats_links = flow.repeats_links || std::find(links.begin(), here, *here) != here;
  }
  // Few classes exist in a cluster; the newest is the likeliest.
  flow.timing_class = kNone;
  for (std::size_t i = classes_.size(); i-- > 0;) {
    if (classes_[i].raw_rate == timing.raw_rate && classes_[i].format == timing.format) {
      flow.timing_class = static_cast<std::uint32_t>(i);
      break;
    }
  }
  if (flow.timing_class == kNone) {
    flow.timing_class = static_cast<std::uint32_t>(classes_.size());
    classes_.push_back(timing);
  }
  flows_.push_back(flow);
  flow_epochs_.push_back(0);
  return index;
}

RouteId FlowNetwork::AddRoute(const Route& route, BitsPerSecond cap) {
  return AddFlow(route, cluster_.Latency(route), cap);
}

GroupId FlowNetwork::AddGroup(GroupKind kind, DeviceId hub, DeviceId owner,
                              std::span<const DeviceId> members) {
  const auto route = [&](DeviceId from, DeviceId to) {
    auto found = cluster_.FindRoute(from, to);
    WT_CHECK(found.has_value()) << "no route between the hub of a group and a member";
    return *std::move(found);
  };
  const bool multicast = kind == GroupKind::kMulticast;
  std::vector<LinkId> links = multicast ? route(owner, hub) : route(hub, owner);
  const Picoseconds owner_latency = cluster_.Latency(links);
  Picoseconds farthest;
  for (const DeviceId member : members) {
    const Route leg = multicast ? route(hub, member) : route(member, hub);
    farthest = std::max(farthest, cluster_.Latency(leg));
    links.insert(links.end(), leg.begin(), leg.end());
  }
  // Members below one switch share its links: it replicates or combines, so each link counts once.
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  group_flows_.push_back(
      AddFlow(links, owner_latency + farthest + (multicast ? Picoseconds(0) : kReduceLatency),
              BitsPerSecond(0)));
  return static_cast<GroupId>(group_flows_.size() - 1);
}

void FlowNetwork::Send(RouteId route, Bytes size, std::uint64_t token) {
  SendOn(route, size, token);
}

void FlowNetwork::SendGroup(GroupId group, Bytes size, std::uint64_t token) {
  SendOn(group_flows_[group], size, token);
}

void FlowNetwork::SendOn(std::uint32_t flow_index, Bytes size, std::uint64_t token) {
  ++open_messages_;
  ++effort_.messages;
  Flow& flow = flows_[flow_index];
  if (!flow.active) {
    flow.size = size.count();
    flow.token = token;
    Activate(flow_index, queue_.now());
    return;
  }
  std::uint32_t place = queued_free_;
  if (place != kNone) {
    queued_free_ = queued_[place].next;
    queued_[place] = {size.count(), token, kNone};
  } else {
    place = static_cast<std::uint32_t>(queued_.size());
    queued_.push_back({size.count(), token, kNone});
  }
  if (flow.queue_last == kNone) {
    flow.queue_first = place;
  } else {
    queued_[flow.queue_last].next = place;
  }
  flow.queue_last = place;
}

Picoseconds FlowNetwork::SoloTime(const Flow& flow) {
  TimingClass& timing = classes_[flow.timing_class];
  if (timing.last_size != flow.size) {
    timing.last_size = flow.size;
    timing.last_time = timing.raw_rate == 0
                           ? Picoseconds(0)
                           : SerializationTime(timing.format.Wire(Bytes(flow.size)),
                                               BitsPerSecond(timing.raw_rate));
  }
  return timing.last_time;
}

void FlowNetwork::Activate(std::uint32_t flow_index, SimTime now) {
  Flow& flow = flows_[flow_index];
  flow.active = true;
  bool fits = true;
  bool held_back = false;  // Somebody, by a link that a sharing is to look at.
  const std::uint32_t end = flow.hops_begin + flow.hop_count;
  for (std::uint32_t i = flow.hops_begin; i < end; ++i) {
    Hop& hop = hops_[i];
    LinkState& link = links_[hop.link];
    hop.place = static_cast<std::uint32_t>(link.flows.size());
    link.flows.push_back({flow_index, i});
    link.wanted += flow.solo_rate;
    link.used += flow.solo_rate;
    held_back |= link.bound > 0;
    if (link.wanted > link.capacity && options_.contention) {
      fits = false;
      MarkDirty(hop.link);
    }
  }
  // On links with room for all, nobody's rate changes. Otherwise the flow stands until ShareAnew,
  // at this same instant, or takes what is free until then.
  flow.rate = flow.solo_rate;
  if (!fits || held_back) begun_.push_back(flow_index);
  if (!fits) {
    SetRate(flow, 0);
    NoteChange();
    if (SharesLater()) TakeFreeRate(flow);
  }
  StartHead(flow_index, now);
}

void FlowNetwork::StartHead(std::uint32_t flow_index, SimTime now) {
  Flow& flow = flows_[flow_index];
  flow.since = now;
  flow.has_work = false;
  const Picoseconds solo = SoloTime(flow);
  if (flow.rate == flow.solo_rate) {
    ScheduleInjection(flow_index, now + solo);
    return;
  }
  flow.remaining = Wide{solo.count()} * flow.solo_rate;
  flow.has_work = true;
  if (flow.rate > 0) {
    PlanCompletion(flow_index, now + TimeFor(flow.remaining, flow.rate));
    ArmCompletions();
  }
}

// Contract: `flow` is active and has no rate.
void FlowNetwork::TakeFreeRate(Flow& flow) {
  std::uint64_t rate = flow.solo_rate;
  const std::uint32_t end = flow.hops_begin + flow.hop_count;
  for (std::uint32_t i = flow.hops_begin; i < end; ++i) {
    const LinkState& link = links_[hops_[i].link];
    std::uint64_t crossings = 1;
    if (flow.repeats_links) {
      crossings = static_cast<std::uint64_t>(
          std::count_if(hops_.begin() + flow.hops_begin, hops_.begin() + end,
                        [&](const Hop& hop) { return hop.link == hops_[i].link; }));
    }
    rate = std::min(rate, link.capacity > link.used ? (link.capacity - link.used) / crossings : 0);
  }
  // Crumbs of rounding would make it look as if it never ended.
  if (rate >= flow.solo_rate / kLeastFreePart) SetRate(flow, rate);
}

void FlowNetwork::SetRate(Flow& flow, std::uint64_t rate) {
  const std::uint64_t more = rate - flow.rate;  // Modulo 2^64: right if it shrinks, too.
  for (std::uint32_t i = flow.hops_begin; i < flow.hops_begin + flow.hop_count; ++i) {
    links_[hops_[i].link].used += more;
  }
  flow.rate = rate;
}

void FlowNetwork::Deactivate(std::uint32_t flow_index) {
  Flow& flow = flows_[flow_index];
  flow.active = false;
  if (flow.bound_link != kNone) {
    --links_[flow.bound_link].bound;
    flow.bound_link = kNone;
  }
  const std::uint32_t end = flow.hops_begin + flow.hop_count;
  bool short_of_rate = false;
  for (std::uint32_t i = flow.hops_begin; i < end; ++i) {
    const Hop& hop = hops_[i];
    LinkState& link = links_[hop.link];
    if (hop.place + 1 != link.flows.size()) {
      link.flows[hop.place] = link.flows.back();  // Takes the place.
      hops_[link.flows[hop.place].hop].place = hop.place;
    }
    link.flows.pop_back();
    link.wanted -= flow.solo_rate;
    link.used -= flow.rate;
    if (link.bound > 0) {
      MarkDirty(hop.link);
      short_of_rate = true;
    }
  }
  if (short_of_rate) NoteChange();
}

void FlowNetwork::MarkDirty(std::uint32_t link) {
  if (!links_[link].dirty) {
    links_[link].dirty = true;
    dirty_.push_back(link);
  }
  if (!share_scheduled_) {
    share_scheduled_ = true;
    // Behind everything already due now, so that one round serves all changes of this instant.
    share_at_ = queue_.now();
    if (options_.many_flows != 0 && completions_.size() > options_.many_flows &&
        share_not_before_ > share_at_) {
      share_at_ = share_not_before_;
    }
    queue_.Schedule(share_at_, share_handler_, 0);
  }
}

// One more flow began or ended where rates are short.
void FlowNetwork::NoteChange() {
  ++changed_flows_;
  if (!SharesLater() || changed_flows_ * kPartThatChanges < completions_.size()) return;
  share_at_ = queue_.now();
  queue_.Schedule(share_at_, share_handler_, 0);
}

void FlowNetwork::Place(std::size_t place, const Completion& completion) {
  completions_[place] = completion;
  flows_[completion.flow].completion = static_cast<std::uint32_t>(place);
}

void FlowNetwork::SiftUp(std::size_t place) {
  const Completion moved = completions_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 4;
    if (!moved.Before(completions_[parent])) break;
    Place(place, completions_[parent]);
    place = parent;
  }
  Place(place, moved);
}

void FlowNetwork::SiftDown(std::size_t place) {
  const Completion moved = completions_[place];
  for (;;) {
    const std::size_t first = 4 * place + 1;
    if (first >= completions_.size()) break;
    std::size_t best = first;
    const std::size_t last = std::min(first + 4, completions_.size());
    for (std::size_t child = first + 1; child < last; ++child) {
      if (completions_[child].Before(completions_[best])) best = child;
    }
    if (!completions_[best].Before(moved)) break;
    Place(place, completions_[best]);
    place = best;
  }
  Place(place, moved);
}

void FlowNetwork::PlanCompletion(std::uint32_t flow_index, SimTime at) {
  Flow& flow = flows_[flow_index];
  ++flow.generation;  // What stands in a batch is out of date.
  const Completion planned{at, ++completion_order_, flow_index};
  if (flow.completion == kNone) {
    completions_.push_back(planned);
    SiftUp(completions_.size() - 1);
    return;
  }
  const bool earlier = planned.Before(completions_[flow.completion]);
  completions_[flow.completion] = planned;
  if (earlier) {
    SiftUp(flow.completion);
  } else {
    SiftDown(flow.completion);
  }
}

void FlowNetwork::BuildHeap() {
  for (std::size_t place = completions_.size() / 4 + 1; place-- > 0;) {
    if (place < completions_.size()) SiftDown(place);
  }
}

// Few changes move one by one; many are put in place and the heap is built anew.
void FlowNetwork::PlanChanges() {
  if (changes_.size() * kRebuiltPart < completions_.size()) {
    for (const Completion& change : changes_) PlanCompletion(change.flow, change.at);
  } else {
    for (Completion& change : changes_) {
      Flow& flow = flows_[change.flow];
      ++flow.generation;
      change.order = ++completion_order_;
      if (flow.completion == kNone) {
        flow.completion = static_cast<std::uint32_t>(completions_.size());
        completions_.push_back(change);
      } else {
        completions_[flow.completion] = change;
      }
    }
    BuildHeap();
  }
  changes_.clear();
  ArmCompletions();
}

void FlowNetwork::ArmCompletions() {
  if (completions_.empty()) return;
  const SimTime first = completions_.front().at;
  if (completions_armed_ && armed_at_ <= first) return;
  completions_armed_ = true;
  armed_at_ = first;
  queue_.Schedule(first, completion_handler_, 0);
}

void FlowNetwork::RunCompletions(SimTime now) {
  if (!completions_armed_ || armed_at_ != now) return;  // Overtaken by an earlier one.
  completions_armed_ = false;
  TakeDue(now);
  for (const Completion& due : due_) {
    ++effort_.events;
    Finish(due.flow, now);
  }
  ArmCompletions();
}

// Moves what is due from the heap to `due_`, in order. Nothing that happens at this instant makes
// it due later: rates change behind it.
void FlowNetwork::TakeDue(SimTime now) {
  due_.clear();
  due_places_.clear();
  if (!completions_.empty() && completions_.front().at == now) due_places_.push_back(0);
  for (std::size_t i = 0; i < due_places_.size(); ++i) {
    const std::size_t first = 4 * std::size_t{due_places_[i]} + 1;
    const std::size_t last = std::min(first + 4, completions_.size());
    for (std::size_t child = first; child < last; ++child) {
      if (completions_[child].at == now) due_places_.push_back(static_cast<std::uint32_t>(child));
    }
  }
  if (due_places_.size() * kRebuiltPart < completions_.size()) {
    for (std::size_t i = 0; i < due_places_.size(); ++i) {
      due_.push_back(completions_.front());
      const Completion last = completions_.back();
      completions_.pop_back();
      if (!completions_.empty()) {
        completions_.front() = last;
        SiftDown(0);
      }
    }
  } else {
    std::size_t kept = 0;
    for (const Completion& completion : completions_) {
      if (completion.at == now) {
        due_.push_back(completion);
      } else {
        Place(kept++, completion);
      }
    }
    completions_.resize(kept);
    BuildHeap();
    const auto before = [](const Completion& a, const Completion& b) { return a.Before(b); };
    if (!std::is_sorted(due_.begin(), due_.end(), before)) {
      std::sort(due_.begin(), due_.end(), before);
    }
  }
  for (const Completion& due : due_) flows_[due.flow].completion = kNone;
}

void FlowNetwork::ScheduleInjection(std::uint32_t flow_index, SimTime at) {
  const std::uint32_t generation = ++flows_[flow_index].generation;
  BatchAt(at, recent_injection_).injections.push_back({flow_index, generation});
}

// Lockstep schedules ask for the same instant again and again.
FlowNetwork::Batch& FlowNetwork::BatchAt(SimTime at, Slot& recent) {
  if (recent.batch == kNone || recent.at != at) recent = {at, FindBatch(at)};
  return batches_[recent.batch];
}

std::uint32_t FlowNetwork::FindBatch(SimTime at) {
  Slot& slot = slots_[SlotOf(at)];
  if (slot.batch != kNone && slot.at == at) return slot.batch;
  std::uint32_t batch;
  if (batches_free_.empty()) {
    batch = static_cast<std::uint32_t>(batches_.size());
    batches_.emplace_back();
  } else {
    batch = batches_free_.back();
    batches_free_.pop_back();
  }
  batches_[batch].at = at;
  slot = {at, batch};
  queue_.Schedule(at, batch_handler_, batch);
  return batch;
}

void FlowNetwork::BatchHandler::OnEvent(SimTime now, std::uint64_t batch) {
  network_.RunBatch(now, static_cast<std::uint32_t>(batch));
}

void FlowNetwork::RunBatch(SimTime now, std::uint32_t index) {
  // Handlers may ask for this very instant again: that is another batch.
  for (Slot* slot : {&slots_[SlotOf(now)], &recent_injection_, &recent_delivery_}) {
    if (slot->batch == index) slot->batch = kNone;
  }
  Batch& batch = batches_[index];
  effort_.events += batch.injections.size() + batch.deliveries.size();
  for (const Injection& injection : batch.injections) {
    const Flow& flow = flows_[injection.flow];
    if (flow.active && flow.generation == injection.generation) Finish(injection.flow, now);
  }
  open_messages_ -= batch.deliveries.size();
  for (const std::uint64_t token : batch.deliveries) client_->OnDelivered(now, token);
  batch.injections.clear();
  batch.deliveries.clear();
  batches_free_.push_back(index);
}

void FlowNetwork::Finish(std::uint32_t flow_index, SimTime now) {
  std::uint64_t token;
  {
    Flow& flow = flows_[flow_index];
    token = flow.token;
    if (flow.counted_size != flow.size) {
      FlushCounters(flow);
      flow.counted_size = flow.size;
    }
    ++flow.counted;
    ++flow.generation;  // A second completion of this message would be stale.
    BatchAt(now + flow.latency, recent_delivery_).deliveries.push_back(token);
  }
  // The route stays taken meanwhile: a message sent from here follows without a new sharing.
  client_->OnInjected(now, token);
  Flow& flow = flows_[flow_index];
  if (flow.queue_first == kNone) {
    Deactivate(flow_index);
    return;
  }
  const std::uint32_t place = flow.queue_first;
  const Queued next = queued_[place];
  flow.queue_first = next.next;
  if (flow.queue_first == kNone) flow.queue_last = kNone;
  queued_[place].next = queued_free_;
  queued_free_ = place;
  flow.size = next.size;
  flow.token = next.token;
  StartHead(flow_index, now);
}

Picoseconds FlowNetwork::TimeFor(Wide work, std::uint64_t rate) {
  if (work <= UINT64_MAX) {
    const auto small = static_cast<std::uint64_t>(work);
    return Picoseconds(small / rate + (small % rate != 0 ? 1 : 0));
  }
  return Picoseconds(static_cast<std::uint64_t>((work + rate - 1) / rate));
}

void FlowNetwork::Settle(Flow& flow, SimTime now) {
  if (!flow.has_work) {
    flow.remaining = Wide{SoloTime(flow).count()} * flow.solo_rate;
    flow.has_work = true;
  }
  const Wide done = Wide{(now - flow.since).count()} * flow.rate;
  flow.remaining = done < flow.remaining ? flow.remaining - done : 0;
  flow.since = now;
}

void FlowNetwork::FlushCounters(Flow& flow) const {
  if (flow.counted == 0) return;
  const std::uint64_t count = flow.counted;
  for (std::uint32_t i = flow.hops_begin; i < flow.hops_begin + flow.hop_count; ++i) {
    const std::uint32_t id = hops_[i].link;
    LinkUse& use = use_[id];
    const WireFormat& format = formats_[id];
    use.payload += Bytes(flow.counted_size * count);
    use.wire += Bytes(format.Wire(Bytes(flow.counted_size)).count() * count);
    use.packets += format.Frames(Bytes(flow.counted_size)) * count;
  }
  flow.counted = 0;
}

std::span<const LinkUse> FlowNetwork::link_use() const {
  for (std::size_t i = 0; i < flows_.size(); ++i) FlushCounters(flows_[i]);
  for (LinkId id = 0; id < use_.size(); ++id) {
    if (use_[id].wire.count() > 0) {
      use_[id].busy = SerializationTime(use_[id].wire, cluster_.topology().links[id].rate);
    }
  }
  return use_;
}

std::string FlowNetwork::DescribeStall() const {
  std::string text;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    if (!flow.active || !queue_.empty()) continue;
    text += "flow of " + std::to_string(flow.size) + " bytes over";
    for (std::uint32_t i = 0; i < flow.hop_count; ++i) {
      const Link& link = cluster_.topology().links[hops_[flow.hops_begin + i].link];
      text += " " + cluster_.topology().devices[link.from].name + "->" +
              cluster_.topology().devices[link.to].name;
    }
    text += " never ended\n";
  }
  return text;
}

void FlowNetwork::Reset() {
  WT_CHECK(open_messages_ == 0) << open_messages_ << " messages are under way";
  for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i].counted = 0;
  std::fill(use_.begin(), use_.end(), LinkUse{});
  effort_ = {};
  share_not_before_ = SimTime();
  wait_ = Picoseconds(0);
  queue_.Reset();
}

void FlowNetwork::RunToIdle() { queue_.Run(); }

}  // namespace windtunnel
