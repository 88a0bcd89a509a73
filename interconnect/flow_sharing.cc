// The half of the flow network that shares links out: which rates a change reaches, and what they
// are.

#include <algorithm>
#include <numeric>

#include "interconnect/flow_network.h"

namespace windtunnel {
namespace {

// What begins or ends waits at most this part of the time of a short message for its new rate (see
// Options::many_flows).
constexpr std::uint64_t kSharingsPerMessage = 32;
// Fewer flows do not tell how long a short message takes; they can show that it takes less. More
// than the second tell no better.
constexpr std::size_t kEnoughToMeasure = 64;
constexpr std::size_t kMeasured = 2048;
// Whole bits per second leave less than one of them over per flow, and as much where a share keeps
// the level below it; two sharings may differ by both.
constexpr std::uint64_t kLevelTolerance = 4;
// A sharing that has opened more than one in so many of the flows that share, or has filled so
// often, goes on with all that reach each other.
constexpr std::size_t kWholePart = 3;
constexpr int kMostFillings = 8;

}  // namespace

// Rates are max-min fair if every flow has its solo rate or is bound: by a link that has nothing
// left and on which nobody is faster. So only the flows near a change are opened, their rates
// computed as if all others were fixed, and what that made unfair is opened as well, until nothing
// is: those are the rates of the whole network.
void FlowNetwork::ShareAnew(SimTime now) {
  share_scheduled_ = false;
  changed_flows_ = 0;
  ++effort_.share_rounds;
  ++epoch_;
  open_links_.clear();
  open_flows_.clear();
  flow_links_.clear();
  OpenChanged();
  int fillings = 0;
  bool whole = options_.whole_components;
  for (;;) {
    // Growing step by step would cost more than what all reach.
    whole = whole || ++fillings == kMostFillings ||
            open_flows_.size() * kWholePart > completions_.size();
    if (whole) OpenReachable();
    effort_.share_updates += open_flows_.size();
    Fill();
    if (whole || !OpenUnfair()) break;
  }
  for (const OpenLink& open : open_links_) {
    if (open.level != kUnknownLevel || open.bound_outside == 0) {
      link_shares_[open.link].level = open.level;
    }
  }
  for (const OpenFlow& open : open_flows_) Apply(open, now);
  PlanChanges();
  if (options_.many_flows != 0 && completions_.size() > options_.many_flows) {
    MeasureWait();
    share_not_before_ = now + wait_;
  }
  for (const std::uint32_t link : dirty_) links_[link].dirty = false;
  dirty_.clear();
  begun_.clear();
}

void FlowNetwork::Open(std::uint32_t flow_index) {
  if (flow_epochs_[flow_index] == epoch_) return;
  flow_epochs_[flow_index] = epoch_;
  const Flow& flow = flows_[flow_index];
  const auto begin = static_cast<std::uint32_t>(flow_links_.size());
  for (std::uint32_t i = flow.hops_begin; i < flow.hops_begin + flow.hop_count; ++i) {
    const std::uint32_t id = hops_[i].link;
    Mark& link_mark = link_shares_[id].mark;
    if (link_mark.epoch != epoch_) {
      const LinkState& link = links_[id];
      // A link with room for all that its flows want limits nobody.
      if (link.wanted <= link.capacity) continue;
      link_mark = {epoch_, static_cast<std::uint32_t>(open_links_.size())};
      open_links_.push_back({.capacity = link.capacity,
                             .outside = link.used,
                             .available = 0,
                             .level = kUnknownLevel,
                             .fastest = 0,
                             .link = id,
                             .active = static_cast<std::uint32_t>(link.flows.size()),
                             .open = 0,
                             .unfixed = 0,
                             .bound_outside = link.bound,
                             .flows_begin = 0,
                             .flows_end = 0});
    }
    OpenLink& link = open_links_[link_mark.place];
    link.outside -= flow.rate;
    ++link.open;
    flow_links_.push_back(link_mark.place);
  }
  if (flow.bound_link != kNone && link_shares_[flow.bound_link].mark.epoch == epoch_) {
    --open_links_[link_shares_[flow.bound_link].mark.place].bound_outside;
  }
  open_flows_.push_back({.solo_rate = flow.solo_rate,
                         .rate = 0,
                         .bound_link = kNone,
                         .flow = flow_index,
                         .links_begin = begin,
                         .links_end = static_cast<std::uint32_t>(flow_links_.size()),
                         .fixed = false});
}

void FlowNetwork::OpenBound(std::uint32_t link) {
  for (const Crossing& crossing : links_[link].flows) {
    if (flows_[crossing.flow].bound_link == link) Open(crossing.flow);
  }
}

// What has begun, and what was held back where something began or ended.
void FlowNetwork::OpenChanged() {
  for (const std::uint32_t flow : begun_) {
    if (flows_[flow].active) Open(flow);
  }
  for (const std::uint32_t link : dirty_) {
    if (links_[link].bound != 0) OpenBound(link);
  }
}

// All flows that reach the open ones over links that are short.
void FlowNetwork::OpenReachable() {
  for (std::size_t i = 0; i < open_links_.size(); ++i) {
    if (open_links_[i].open == open_links_[i].active) continue;
    for (const Crossing& crossing : links_[open_links_[i].link].flows) Open(crossing.flow);
  }
}

// True if there was something to open.
bool FlowNetwork::OpenUnfair() {
  const std::size_t before = open_flows_.size();
  const std::size_t links = open_links_.size();
  for (std::size_t i = 0; i < links; ++i) {
    const OpenLink open = open_links_[i];
    if (open.open == open.active) continue;
    const LinkState& link = links_[open.link];
    const std::uint64_t level = link_shares_[open.link].level;
    // Flows bound here are no longer, if room is left or somebody is faster.
    if (open.bound_outside > 0 && (open.available > kLevelTolerance * std::uint64_t{open.active} ||
                                   open.fastest > level + kLevelTolerance)) {
      OpenBound(open.link);
    }
    // Open flows are bound here, so nobody may be faster.
    if (open.level == kUnknownLevel) continue;
    if (link.bound > 0 && level <= open.level + kLevelTolerance) continue;
    for (const Crossing& crossing : link.flows) {
      if (flows_[crossing.flow].rate > open.level + kLevelTolerance) Open(crossing.flow);
    }
  }
  return open_flows_.size() > before;
}

// Puts the first of the shares, which has grown, where it belongs.
void FlowNetwork::SinkFirstShare() {
  if (share_heap_.empty()) return;
  Share* const heap = share_heap_.data();
  const std::size_t size = share_heap_.size();
  const Share moved = heap[0];
  std::size_t place = 0;
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1].Before(heap[child])) ++child;
    if (!heap[child].Before(moved)) break;
    heap[place] = heap[child];
    place = child;
  }
  heap[place] = moved;
}

// Progressive filling of what the flows that are not open leave: the link with the least to give
// per flow fixes its flows first; a flow whose solo rate is below that is fixed before.
void FlowNetwork::Fill() {
  link_flows_.resize(flow_links_.size());
  std::uint32_t next = 0;
  for (OpenLink& link : open_links_) {
    link.available = link.capacity > link.outside ? link.capacity - link.outside : 0;
    link.level = kUnknownLevel;
    link.fastest = 0;
    link.unfixed = link.open;
    link.flows_begin = link.flows_end = next;
    next += link.open;
  }
  for (std::uint32_t f = 0; f < open_flows_.size(); ++f) {
    OpenFlow& flow = open_flows_[f];
    flow.fixed = false;
    for (std::uint32_t i = flow.links_begin; i < flow.links_end; ++i) {
      link_flows_[open_links_[flow_links_[i]].flows_end++] = f;
    }
  }
  const auto slower = [this](std::uint32_t a, std::uint32_t b) {
    return open_flows_[a].solo_rate < open_flows_[b].solo_rate;
  };
  by_solo_rate_.resize(open_flows_.size());
  std::iota(by_solo_rate_.begin(), by_solo_rate_.end(), 0U);
  if (!std::is_sorted(by_solo_rate_.begin(), by_solo_rate_.end(), slower)) {
    std::stable_sort(by_solo_rate_.begin(), by_solo_rate_.end(), slower);
  }
  // Shares are whole numbers, so a link keeps less than one bit/s per flow over; what is left of
  // that must not make equal flows unequal.
  std::uint64_t level = 0;
  const auto share_of = [&](const OpenLink& link) {
    if (link.available < level * link.unfixed + link.active) return level;
    return link.available / link.unfixed;
  };
  share_heap_.clear();
  for (std::uint32_t i = 0; i < open_links_.size(); ++i) {
    const OpenLink& link = open_links_[i];
    if (link.unfixed > 0) share_heap_.push_back({share_of(link), link.link, i});
  }
  std::make_heap(share_heap_.begin(), share_heap_.end(),
                 [](const Share& a, const Share& b) { return b.Before(a); });
  std::size_t next_solo = 0;
  while (!share_heap_.empty()) {
    const Share top = share_heap_.front();
    OpenLink& link = open_links_[top.place];
    const std::uint64_t share = link.unfixed > 0 ? share_of(link) : kUnlimited;
    if (link.unfixed == 0 || share > top.share) {  // Out of date: shares only grow.
      if (link.unfixed > 0) {
        share_heap_.front().share = share;
      } else {
        share_heap_.front() = share_heap_.back();
        share_heap_.pop_back();
      }
      SinkFirstShare();
      continue;
    }
    while (next_solo < by_solo_rate_.size() && open_flows_[by_solo_rate_[next_solo]].fixed) {
      ++next_solo;
    }
    if (next_solo < by_solo_rate_.size() &&
        open_flows_[by_solo_rate_[next_solo]].solo_rate <= share) {
      OpenFlow& flow = open_flows_[by_solo_rate_[next_solo++]];
      Fix(flow, kNone, flow.solo_rate);
      continue;
    }
    level = share;
    link.level = std::max<std::uint64_t>(share, 1);
    for (std::uint32_t i = link.flows_begin; i < link.flows_end; ++i) {
      OpenFlow& flow = open_flows_[link_flows_[i]];
      if (!flow.fixed) Fix(flow, top.link, link.level);
    }
  }
  for (OpenFlow& flow : open_flows_) {
    if (!flow.fixed) Fix(flow, kNone, flow.solo_rate);
  }
}

void FlowNetwork::Fix(OpenFlow& open, std::uint32_t bound_link, std::uint64_t rate) {
  open.fixed = true;
  open.rate = rate;
  open.bound_link = bound_link;
  for (std::uint32_t i = open.links_begin; i < open.links_end; ++i) {
    OpenLink& link = open_links_[flow_links_[i]];
    link.available = link.available > rate ? link.available - rate : 0;
    link.fastest = std::max(link.fastest, rate);
    --link.unfixed;
  }
}

void FlowNetwork::Apply(const OpenFlow& open, SimTime now) {
  Flow& flow = flows_[open.flow];
  if (open.bound_link != flow.bound_link) {
    if (flow.bound_link != kNone) --links_[flow.bound_link].bound;
    if (open.bound_link != kNone) ++links_[open.bound_link].bound;
    flow.bound_link = open.bound_link;
  }
  if (open.rate == flow.rate) return;
  Settle(flow, now);
  SetRate(flow, open.rate);
  changes_.push_back({now + TimeFor(flow.remaining, flow.rate), 0, open.flow});
}

// A short message's time is that from sending to arrival at present rates, of the flows that have
// less than they could; all but one in twenty of their messages take longer.
void FlowNetwork::MeasureWait() {
  message_times_.clear();
  const std::size_t stride = open_flows_.size() / kMeasured + 1;
  for (std::size_t i = 0; i < open_flows_.size(); i += stride) {
    const OpenFlow& open = open_flows_[i];
    if (open.bound_link == kNone) continue;
    const Flow& flow = flows_[open.flow];
    message_times_.push_back(static_cast<double>(SoloTime(flow).count()) *
                                 static_cast<double>(flow.solo_rate) /
                                 static_cast<double>(flow.rate) +
                             static_cast<double>(flow.latency.count()));
  }
  if (message_times_.empty()) return;
  const auto short_one =
      message_times_.begin() + static_cast<std::ptrdiff_t>(message_times_.size() / 20);
  std::nth_element(message_times_.begin(), short_one, message_times_.end());
  const Picoseconds wait =
      Picoseconds(static_cast<std::uint64_t>(std::min(*short_one, 1e18))) / kSharingsPerMessage;
  const bool few = message_times_.size() < kEnoughToMeasure && wait_.count() != 0;
  wait_ = few ? std::min(wait_, wait) : wait;
}

}  // namespace windtunnel
