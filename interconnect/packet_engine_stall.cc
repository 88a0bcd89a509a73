// What a run that stands still is told of: one circle of links that wait for one another, a few
// examples of what waits, and what would change it.

#include <algorithm>
#include <utility>

#include "interconnect/packet_engine.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

constexpr std::size_t kExamples = 2;       ///< Of links, sources and reductions that wait.
constexpr std::size_t kMembers = 3;        ///< Of the queues that want one link.
constexpr std::size_t kDevicesShown = 16;  ///< Of a circle.

std::string AndMore(std::size_t all, std::size_t shown, const char* what) {
  if (all <= shown) return "";
  return "and " + std::to_string(all - shown) + " more " + what + "\n";
}

/// A circle in the graph `next`, from its smallest member on; empty when there is none. The first
/// in order of numbers. No recursion: circles may be long.
std::vector<std::uint32_t> FindCircle(const std::vector<std::vector<std::uint32_t>>& next) {
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(next.size(), Mark::kNew);
  for (std::uint32_t start = 0; start < next.size(); ++start) {
    std::vector<std::pair<std::uint32_t, std::size_t>> way;
    if (marks[start] == Mark::kNew) way.emplace_back(start, 0);
    while (!way.empty()) {
      const auto [at, tried] = way.back();
      marks[at] = Mark::kOpen;
      if (tried == next[at].size()) {
        marks[at] = Mark::kDone;
        way.pop_back();
        continue;
      }
      ++way.back().second;
      const std::uint32_t to = next[at][tried];
      if (marks[to] == Mark::kNew) way.emplace_back(to, 0);
      if (marks[to] != Mark::kOpen) continue;
      std::vector<std::uint32_t> circle;
      for (std::size_t i = way.size(); i-- > 0;) {
        circle.push_back(way[i].first);
        if (way[i].first == to) break;
      }
      std::reverse(circle.begin(), circle.end());
      std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
      return circle;
    }
  }
  return {};
}

}  // namespace

std::vector<PacketEngine::StalledLane> PacketEngine::StalledLanes() const {
  std::vector<StalledLane> lanes;
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const LinkState& link = links_[id];
    for (std::uint32_t i = 0; i < link.options.virtual_channels; ++i) {
      const Lane& lane = i == 0 ? link.lane : link.more_lanes[i - 1];
      if (!lane.arbiter.empty()) lanes.push_back({id, static_cast<std::uint8_t>(i), &lane});
    }
  }
  return lanes;
}

/// Links whose receivers hold what can only leave by the next of them. They stand first afterwards.
std::string PacketEngine::DescribeCircle(std::vector<StalledLane>* stalled) const {
  const std::vector<StalledLane>& lanes = *stalled;
  std::unordered_map<std::uint64_t, std::uint32_t> number;  // Never walked.
  const auto key = [](std::uint32_t link, std::uint8_t lane) {
    return std::uint64_t{link} << 4 | lane;
  };
  for (std::uint32_t n = 0; n < lanes.size(); ++n) number[key(lanes[n].link, lanes[n].number)] = n;
  std::vector<std::vector<std::uint32_t>> next(lanes.size());
  for (std::uint32_t n = 0; n < lanes.size(); ++n) {
    lanes[n].lane->arbiter.ForEach(members_, [&](std::uint32_t id) {
      const Queue& queue = queues_[id];
      if (queue.source || queue.in_link == kNone) return;
      const auto held = number.find(key(queue.in_link, queue.in_lane));
      if (held != number.end()) next[held->second].push_back(n);
    });
  }
  const std::vector<std::uint32_t> circle = FindCircle(next);
  if (circle.empty()) return "";
  const auto name = [&](std::size_t i) -> const std::string& {
    return links_[lanes[circle[i]].link].options.name;
  };
  const bool pauses = std::any_of(circle.begin(), circle.end(),
                                  [&](std::uint32_t n) { return !links_[lanes[n].link].credited; });
  std::string text = pauses ? "PFC cycle: the receiver of each of these "
                            : "credit cycle: the receiver of each of these ";
  text += std::to_string(circle.size()) + " links ";
  text +=
      pauses ? "pauses it until the next one sends" : "gives no credit until the next one sends";
  text += "\n  " + name(0);
  for (std::size_t i = 1; i < circle.size(); ++i) {
    if (i + 1 >= kDevicesShown && i + 1 < circle.size()) {
      text += " -> ... " + std::to_string(circle.size() - 1 - i) + " more ...";
      i = circle.size() - 2;
      continue;
    }
    text += name(i).substr(name(i).find(" -> "));
  }
  text += "\n";
  text +=
      pauses ? "what changes it: switch-buffer or pfc-xoff above what the senders have under way, "
               "window=SIZE below that, pfc=off (switches drop, senders repeat), a network without "
               "circles (fat-tree), or InfiniBand switches, whose virtual channels break circles\n"
             : "what changes it: more virtual-channels, or a larger link-buffer\n";
  std::vector<StalledLane> sorted;
  for (const std::uint32_t n : circle) sorted.push_back(lanes[n]);
  std::vector<bool> taken(lanes.size(), false);
  for (const std::uint32_t n : circle) taken[n] = true;
  for (std::uint32_t n = 0; n < lanes.size(); ++n) {
    if (!taken[n]) sorted.push_back(lanes[n]);
  }
  *stalled = std::move(sorted);
  return text;
}

std::string PacketEngine::DescribeStall() const {
  std::vector<StalledLane> lanes = StalledLanes();
  std::string text = DescribeCircle(&lanes);
  for (std::size_t n = 0; n < std::min(kExamples, lanes.size()); ++n) {
    const LinkState& link = links_[lanes[n].link];
    const Lane& lane = *lanes[n].lane;
    text += "link " + link.options.name;
    if (link.options.virtual_channels > 1) {
      text += ", virtual channel " + std::to_string(lanes[n].number);
    }
    text += ": ";
    std::size_t members = 0;
    lane.arbiter.ForEach(members_, [&](std::uint32_t id) {
      if (++members > kMembers) return;
      const Queue& queue = queues_[id];
      text += queue.source             ? "a source"
              : queue.in_link == kNone ? "a reduction"
                                       : links_[queue.in_link].options.name;
      text += " waits with " + FormatSize(NextPayload(queue)) + "; ";
    });
    if (members > kMembers) text += std::to_string(members - kMembers) + " more wait; ";
    if (link.credited) {
      text += "credits: " + FormatSize(lane.credits.available()) + " of " +
              FormatSize(lane.credits.capacity()) + " free, " + FormatSize(lane.credits.held()) +
              " held by the receiver, " + FormatSize(lane.credits.returning()) +
              " on the way back\n";
    } else {
      text += link.paused ? "paused by the receiver, where " + FormatSize(link.ingress.waiting()) +
                                " wait\n"
                          : "not paused\n";
    }
  }
  text += AndMore(lanes.size(), kExamples, "links on which somebody waits");

  std::size_t windows = 0;
  for (const Endpoint& endpoint : endpoints_) {
    const Queue& queue = queues_[endpoint.queue];
    if (!endpoint.parked || endpoint.timed || queue.first == kNone) continue;
    if (++windows > kExamples) continue;
    text += "link " + links_[queue.link].options.name + ": a source waits with " +
            FormatSize(NextPayload(queue)) + " for acknowledgements, " +
            FormatSize(endpoint.in_flight) + " of its window of " + FormatSize(endpoint.window) +
            " under way\n";
  }
  text += AndMore(windows, kExamples, "sources that wait for acknowledgements");

  std::size_t reductions = 0;
  for (const Message& message : messages_) {
    if (message.merge == kNone || message.delivered) continue;
    const Group& group = groups_[message.group];
    const std::vector<MergeSlot>& slots = merges_[message.merge];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::uint32_t want = group.nodes[i % group.nodes.size()].inputs;
      if (slots[i].arrived == 0 || slots[i].arrived == want) continue;
      if (++reductions <= kExamples) {
        text += "reduction of group " + std::to_string(message.group) + " has data of " +
                std::to_string(slots[i].arrived) + " of " + std::to_string(want) + " members\n";
      }
      break;
    }
  }
  return text + AndMore(reductions, kExamples, "reductions that wait for members");
}

}  // namespace windtunnel
