#include "interconnect/even_load.h"

#include <algorithm>
#include <utility>

#include "interconnect/wire_format.h"

namespace windtunnel {

EvenLoad::EvenLoad(const Cluster& cluster) : cluster_(cluster), ports_(cluster), routes_(cluster) {
  const Topology& topology = cluster.topology();
  loads_.resize(topology.links.size());
  seconds_per_byte_.reserve(topology.links.size());
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const double rate = static_cast<double>(topology.links[id].rate.count()) / 8 *
                        LinkWireFormat(topology, id).Efficiency();
    seconds_per_byte_.push_back(rate > 0 ? 1 / rate : 0);
  }
}

EvenLoad::Place EvenLoad::Enter(DeviceId device, double bytes) {
  const NetworkPorts::Port& port = ports_[device];
  if (!port.single) return {device, false};
  loads_[port.up] += bytes;
  return {port.hub, true};
}

EvenLoad::Place EvenLoad::Leave(DeviceId device, double bytes) {
  const NetworkPorts::Port& port = ports_[device];
  if (!port.single) return {device, false};
  loads_[port.down] += bytes;
  return {port.hub, true};
}

void EvenLoad::Between(DeviceId from, DeviceId to, double bytes) {
  if (from != to) pairs_[{from, to}] += bytes;
}

void EvenLoad::Add(DeviceId from, DeviceId to, double bytes) {
  if (from == to) return;
  if (ports_[from].single && ports_[to].single) {
    const Place start = Enter(from, bytes);
    const Place end = Leave(to, bytes);
    Between(start.device, end.device, bytes);
  } else {
    Between(from, to, bytes);
  }
}

void EvenLoad::AddBetweenNodes(std::span<const std::vector<DeviceId>> nodes, double bytes) {
  double devices = 0;
  for (const auto& node : nodes) devices += static_cast<double>(node.size());
  // Devices per switch, of all nodes and of each: pairs of one node do not use the network.
  std::map<DeviceId, double> all;
  std::vector<std::map<DeviceId, double>> own(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const double others = devices - static_cast<double>(nodes[n].size());
    for (const DeviceId device : nodes[n]) {
      const Place place = Enter(device, bytes * others);
      Leave(device, bytes * others);
      ++all[place.device];
      ++own[n][place.device];
    }
  }
  for (const auto& [from, sending] : all) {
    for (const auto& [to, receiving] : all) Between(from, to, bytes * sending * receiving);
  }
  for (const auto& node : own) {
    for (const auto& [from, sending] : node) {
      for (const auto& [to, receiving] : node) Between(from, to, -bytes * sending * receiving);
    }
  }
}

// Routes towards one device share their places, and a place is numbered after all that lie behind
// it: one pass from the last to the first carries all loads on.
void EvenLoad::SpreadAll() {
  std::map<DeviceId, std::vector<std::pair<RouteSet, double>>> by_target;
  for (const auto& [ends, bytes] : pairs_) {
    const RouteSet routes = routes_.Between(ends.first, ends.second);
    if (!routes.empty() && bytes > 0) by_target[ends.second].emplace_back(routes, bytes);
  }
  pairs_.clear();
  std::vector<double> waiting;
  for (const auto& [target, list] : by_target) {
    for (std::size_t done = 0; done < list.size();) {
      // Those of one graph follow each other, but for rates that differ.
      const RouteGraph& graph = list[done].first.graph();
      RouteGraph::Place last = 0;
      std::size_t end = done;
      for (; end < list.size() && &list[end].first.graph() == &graph; ++end)
        last = std::max(last, list[end].first.start());
      waiting.assign(last + std::size_t{1}, 0);
      for (; done < end; ++done) waiting[list[done].first.start()] += list[done].second;
      for (RouteGraph::Place at = last; at > RouteGraph::kTarget; --at) {
        if (waiting[at] <= 0) continue;
        const double each = waiting[at] / static_cast<double>(graph.CountFrom(at));
        for (const RouteGraph::Step& step : graph.StepsOf(at)) {
          const double part = each * static_cast<double>(graph.CountFrom(step.next));
          loads_[step.link] += part;
          waiting[step.next] += part;
        }
      }
    }
  }
}

EvenLoad::Busiest EvenLoad::TakeBusiest() {
  SpreadAll();
  Busiest busiest;
  for (LinkId id = 0; id < loads_.size(); ++id) {
    const double seconds = std::exchange(loads_[id], 0.0) * seconds_per_byte_[id];
    if (seconds > busiest.seconds) busiest = {id, seconds};
  }
  return busiest;
}

}  // namespace windtunnel
