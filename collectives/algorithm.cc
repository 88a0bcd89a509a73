#include "collectives/algorithm.h"

#include <algorithm>
#include <cctype>

#include "sim/error.h"

namespace windtunnel {
namespace {

std::string Folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

ChannelLayout PlainLayout(const CollectiveRequest& request, std::uint32_t channel_count,
                          std::uint64_t chunk_bytes, std::uint32_t slices) {
  const std::uint32_t n = request.rank_count;
  const std::uint64_t chunk = std::max<std::uint64_t>(1, chunk_bytes / SizeOf(request.type));
  ChannelLayout layout;
  layout.channels.resize(channel_count);
  for (std::uint32_t c = 0; c < channel_count; ++c) {
    ChannelLayout::Channel& channel = layout.channels[c];
    channel.ring.resize(n);
    for (Rank r = 0; r < n; ++r) channel.ring[r] = r;
    channel.first = request.count / channel_count * c +
                    std::min<std::uint64_t>(c, request.count % channel_count);
    channel.count = request.count / channel_count + (c < request.count % channel_count ? 1 : 0);
    channel.chunk = chunk;
    channel.slices = slices;
    // Odd channels number the tree from the other end, so that inner nodes of one are leaves of the
    // other.
    const auto rank_of = [&](std::uint32_t node) { return c % 2 == 0 ? node : n - 1 - node; };
    channel.tree_up.assign(n, -1);
    channel.tree_down.assign(n, {});
    for (std::uint32_t node = 1; node < n; ++node) {
      channel.tree_up[rank_of(node)] = static_cast<std::int32_t>(rank_of((node - 1) / 2));
      channel.tree_down[rank_of((node - 1) / 2)].push_back(rank_of(node));
    }
  }
  layout.nodes.emplace_back();
  for (Rank r = 0; r < n; ++r) {
    layout.nvls_heads.push_back(r);
    layout.nodes.front().push_back(r);
  }
  return layout;
}

const Algorithm& FindAlgorithm(std::string_view name) {
  std::vector<std::string> known;
  const std::string wanted = Folded(name);
  for (const Algorithm* algorithm : Algorithms()) {
    if (Folded(algorithm->name()) == wanted) return *algorithm;
    known.emplace_back(algorithm->name());
  }
  throw ConfigError({.field = "algorithm",
                     .value = std::string(name),
                     .problem = "unknown algorithm",
                     .expected = "one of " + JoinNames(known),
                     .nearest = NearestName(name, known)});
}

}  // namespace windtunnel
