#pragma once
// Routes by number, their links end to end: a route of a large job costs its links and two words.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "interconnect/cluster.h"
#include "sim/number_table.h"

namespace windtunnel {

/// Keys of a NumberTable.
class RouteStore {
 public:
  std::size_t size() const { return ends_.size(); }
  /// Valid until the next push_back.
  std::span<const LinkId> operator[](std::size_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span(links_).subspan(begin, ends_[number] - begin);
  }
  void push_back(std::span<const LinkId> route) {
    links_.insert(links_.end(), route.begin(), route.end());
    ends_.push_back(links_.size());
  }

 private:
  std::vector<LinkId> links_;
  std::vector<std::size_t> ends_;
};

struct RouteHash {
  std::uint64_t operator()(std::span<const LinkId> route) const {
    std::uint64_t hash = route.size();
    if (route.empty()) return hash;
    for (const LinkId link : route.first(route.size() - 1)) hash = MixHash(hash, link);
    return NearHash(hash, route.back());
  }
};

struct SameRoute {
  bool operator()(std::span<const LinkId> a, std::span<const LinkId> b) const {
    return std::ranges::equal(a, b);
  }
};

/// Equal routes have one number.
using RoutePool = NumberTable<std::span<const LinkId>, RouteHash, SameRoute, RouteStore>;

}  // namespace windtunnel
