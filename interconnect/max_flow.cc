#include "interconnect/max_flow.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace windtunnel {
namespace {

/// Dinic's algorithm (1970): shortest ways first, all ways of one length in one pass over the arcs.
/// A hub with many neighbours costs one look at each, whatever the number of ways through it.
class Flow {
 public:
  explicit Flow(std::size_t vertices)
      : first_(vertices + 1, 0), level_(vertices), next_(vertices) {}
  /// Contract: before `Max`.
  void Add(std::uint32_t from, std::uint32_t to, std::uint64_t capacity) {
    arcs_.push_back({from, to, capacity});
  }
  std::uint64_t Max(std::uint32_t source, std::uint32_t sink) {
    Sort();
    std::uint64_t total = 0;
    while (FindLevels(source, sink)) {
      std::copy(first_.begin(), first_.end() - 1, next_.begin());
      while (const std::uint64_t amount = SendOne(source, sink)) {
        total = amount > UINT64_MAX - total ? UINT64_MAX : total + amount;
      }
    }
    return total;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Arc {
    std::uint32_t from;
    std::uint32_t to;
    std::uint64_t capacity;
  };
  /// Of an arc or of the way back: half arc 2i and 2i + 1 belong to arc i.
  struct Half {
    std::uint32_t to;
    std::uint64_t left;
  };

  /// Halves in the order of the arcs; `order_` lists those that leave a vertex, from `first_` on.
  void Sort() {
    for (const Arc& arc : arcs_) {
      halves_.push_back({arc.to, arc.capacity});
      halves_.push_back({arc.from, 0});
      ++first_[arc.from + 1];
      ++first_[arc.to + 1];
    }
    for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    order_.resize(halves_.size());
    for (std::uint32_t h = 0; h < halves_.size(); ++h) order_[at[halves_[h ^ 1].to]++] = h;
  }

  bool FindLevels(std::uint32_t source, std::uint32_t sink) {
    std::fill(level_.begin(), level_.end(), kNone);
    level_[source] = 0;
    open_.assign(1, source);
    for (std::size_t i = 0; i < open_.size() && level_[sink] == kNone; ++i) {
      const std::uint32_t v = open_[i];
      for (std::uint32_t k = first_[v]; k < first_[v + 1]; ++k) {
        const Half& half = halves_[order_[k]];
        if (half.left == 0 || level_[half.to] != kNone) continue;
        level_[half.to] = level_[v] + 1;
        open_.push_back(half.to);
      }
    }
    return level_[sink] != kNone;
  }

  /// Along one shortest way; 0 when there is none left. No recursion: ways may be long.
  std::uint64_t SendOne(std::uint32_t source, std::uint32_t sink) {
    way_.clear();
    for (std::uint32_t at = source; at != sink;) {
      if (next_[at] == first_[at + 1]) {  // Leads nowhere.
        if (way_.empty()) return 0;
        at = halves_[way_.back() ^ 1].to;
        way_.pop_back();
        ++next_[at];
        continue;
      }
      const std::uint32_t h = order_[next_[at]];
      if (halves_[h].left == 0 || level_[halves_[h].to] != level_[at] + 1) {
        ++next_[at];
        continue;
      }
      way_.push_back(h);
      at = halves_[h].to;
    }
    std::uint64_t amount = UINT64_MAX;
    for (const std::uint32_t h : way_) amount = std::min(amount, halves_[h].left);
    for (const std::uint32_t h : way_) {
      halves_[h].left -= amount;
      halves_[h ^ 1].left += amount;
    }
    return amount;
  }

  std::vector<Arc> arcs_;
  std::vector<Half> halves_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> next_;  ///< Of `order_`: arcs before it are of no more use.
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> way_;
};

// Above any sum of links that a topology can hold.
constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 62;

}  // namespace

BitsPerSecond MaxFlow(const Topology& topology, std::span<const DeviceId> sources,
                      std::span<const DeviceId> sinks) {
  const auto source = static_cast<std::uint32_t>(topology.devices.size());
  const std::uint32_t sink = source + 1;
  Flow flow(source + std::size_t{2});
  for (const Link& link : topology.links) {
    if (!link.down) flow.Add(link.from, link.to, std::min(kUnbounded, link.rate.count()));
  }
  for (const DeviceId id : sources) flow.Add(source, id, kUnbounded);
  for (const DeviceId id : sinks) flow.Add(id, sink, kUnbounded);
  return BitsPerSecond(flow.Max(source, sink));
}

}  // namespace windtunnel
