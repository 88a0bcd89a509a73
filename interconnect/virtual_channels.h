#pragma once
// Which virtual channel a route takes on each link, so that waiting for credits never closes a
// circle. Source: Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor Interconnection
// Networks", IEEE Trans. Computers 36(5), 1987: no deadlock while the graph of channels that wait
// for one another has no cycle. On a ring this puts a date line where the circle would close.

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace windtunnel {

/// Channels in an order that every dependency between them follows. Grows with the routes.
/// Method: order kept up to date per dependency (Pearce and Kelly, "A Dynamic Topological Sort
/// Algorithm for Directed Acyclic Graphs", JEA 11, 2006).
class ChannelOrder {
 public:
  /// @param most Virtual channels of a link, at least 1.
  explicit ChannelOrder(std::uint32_t most) : most_(most) {}

  /// Virtual channel of `route` on each of its links: stays where it is while that closes no
  /// circle, else goes up, else down. Where no channel helps it stays, and the circle is counted.
  /// Contract: link numbers below 2^28, at most 16 channels.
  std::vector<std::uint8_t> Assign(std::span<const std::uint32_t> route);
  /// Dependencies that close a circle in spite of all channels: the network can stand still.
  std::uint64_t circles() const { return circles_.size(); }

 private:
  struct Channel {
    std::uint64_t place = 0;  ///< In the order.
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> previous;
    bool seen = false;
  };
  std::uint32_t Index(std::uint32_t link, std::uint8_t channel);
  /// Adds that `first` waits for `second`; false, and nothing added, when that closes a circle.
  bool Add(std::uint32_t first, std::uint32_t second);

  std::uint32_t most_;
  std::unordered_map<std::uint64_t, std::uint32_t> indices_;  ///< Never walked.
  std::unordered_set<std::uint64_t> known_;                   ///< Dependencies added so far.
  std::vector<Channel> channels_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> circles_;
};

}  // namespace windtunnel
