#include "interconnect/virtual_channels.h"

#include <algorithm>

namespace windtunnel {

std::uint32_t ChannelOrder::Index(std::uint32_t link, std::uint8_t channel) {
  const auto [at, fresh] = indices_.try_emplace(std::uint64_t{link} << 4 | channel,
                                                static_cast<std::uint32_t>(channels_.size()));
  if (fresh) channels_.push_back({.place = channels_.size()});
  return at->second;
}

std::vector<std::uint8_t> ChannelOrder::Assign(std::span<const std::uint32_t> route) {
  std::vector<std::uint8_t> lanes;
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (i == 0) {
      lanes.push_back(0);
      continue;
    }
    const std::uint8_t present = lanes.back();
    const std::uint32_t from = Index(route[i - 1], present);
    std::vector<std::uint8_t> order{present};
    for (std::uint32_t lane = present + 1U; lane < most_; ++lane) {
      order.push_back(static_cast<std::uint8_t>(lane));
    }
    for (std::uint32_t lane = present; lane > 0; --lane) {
      order.push_back(static_cast<std::uint8_t>(lane - 1));
    }
    const auto fits = std::find_if(order.begin(), order.end(), [&](std::uint8_t lane) {
      return Add(from, Index(route[i], lane));
    });
    if (fits == order.end()) circles_.emplace(from, Index(route[i], present));
    lanes.push_back(fits == order.end() ? present : *fits);
  }
  return lanes;
}

bool ChannelOrder::Add(std::uint32_t first, std::uint32_t second) {
  if (first == second) return false;
  const std::uint64_t dependency = std::uint64_t{first} << 32 | second;
  if (known_.contains(dependency)) return true;
  const std::uint64_t low = channels_[second].place;
  const std::uint64_t high = channels_[first].place;
  if (low < high) {
    // What follows `second` and what precedes `first`, between their places, must change sides.
    std::vector<std::uint32_t> after{second};
    std::vector<std::uint32_t> before{first};
    const auto gather = [&](std::vector<std::uint32_t>& found, bool forward) {
      bool circle = false;
      channels_[found.front()].seen = true;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const Channel& channel = channels_[found[i]];
        for (const std::uint32_t other : forward ? channel.next : channel.previous) {
          circle = circle || (forward && other == first);
          const std::uint64_t place = channels_[other].place;
          if (channels_[other].seen || place < low || place > high) continue;
          channels_[other].seen = true;
          found.push_back(other);
        }
      }
      for (const std::uint32_t channel : found) channels_[channel].seen = false;
      return circle;
    };
    if (gather(after, true)) return false;
    gather(before, false);
    const auto by_place = [this](std::uint32_t a, std::uint32_t b) {
      return channels_[a].place < channels_[b].place;
    };
    std::sort(after.begin(), after.end(), by_place);
    std::sort(before.begin(), before.end(), by_place);
    std::vector<std::uint32_t> all = before;
    all.insert(all.end(), after.begin(), after.end());
    std::vector<std::uint64_t> places;
    for (const std::uint32_t channel : all) places.push_back(channels_[channel].place);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < all.size(); ++i) channels_[all[i]].place = places[i];
  }
  known_.insert(dependency);
  channels_[first].next.push_back(second);
  channels_[second].previous.push_back(first);
  return true;
}

}  // namespace windtunnel
