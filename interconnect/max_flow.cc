#include "interconnect/max_flow.h"

// GCC 12 reports an iterator inside boost::adjacency_list as maybe uninitialised: a member of an
// empty boost::optional, which is not read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cstdint>

namespace windtunnel {
namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_index_t, std::size_t,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, long,
                                                    boost::property<boost::vertex_predecessor_t,
                                                                    FlowTraits::edge_descriptor>>>>,
    boost::property<
        boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
                        boost::property<boost::edge_reverse_t, FlowTraits::edge_descriptor>>>>;

class Flow {
 public:
  explicit Flow(std::size_t vertices) : graph_(vertices) {}
  void Add(std::size_t from, std::size_t to, std::int64_t capacity) {
    const auto forward = boost::add_edge(from, to, graph_).first;
    const auto backward = boost::add_edge(to, from, graph_).first;
    boost::put(boost::edge_capacity, graph_, forward, capacity);
    boost::put(boost::edge_capacity, graph_, backward, 0);
    boost::put(boost::edge_reverse, graph_, forward, backward);
    boost::put(boost::edge_reverse, graph_, backward, forward);
  }
  BitsPerSecond Max(std::size_t source, std::size_t sink) {
    return BitsPerSecond(
        static_cast<std::uint64_t>(boost::push_relabel_max_flow(graph_, source, sink)));
  }

 private:
  FlowGraph graph_;
};

// Above any sum of links that a topology can hold, below overflow when a few are added.
constexpr std::int64_t kUnbounded = std::int64_t{1} << 60;

}  // namespace

BitsPerSecond MaxFlow(const Topology& topology, std::span<const DeviceId> sources,
                      std::span<const DeviceId> sinks) {
  const std::size_t source = topology.devices.size();
  const std::size_t sink = source + 1;
  Flow flow(source + 2);
  for (const Link& link : topology.links) {
    if (link.down) continue;
    flow.Add(link.from, link.to,
             std::min(kUnbounded, static_cast<std::int64_t>(link.rate.count())));
  }
  for (const DeviceId id : sources) flow.Add(source, id, kUnbounded);
  for (const DeviceId id : sinks) flow.Add(id, sink, kUnbounded);
  return flow.Max(source, sink);
}

}  // namespace windtunnel
