#include "interconnect/network_ports.h"

namespace windtunnel {
namespace {

// The way in of `device`; `down` is not known yet.
NetworkPorts::Port PortOf(const Cluster& cluster, DeviceId device) {
  const Topology& topology = cluster.topology();
  NetworkPorts::Port port;
  const DeviceKind kind = topology.devices[device].kind;
  if (kind == DeviceKind::kNetworkSwitch || topology.devices[device].relay) return port;
  for (const LinkId id : cluster.links_out(device)) {
    const Link& link = topology.links[id];
    if (link.kind != LinkKind::kNetwork) {
      if (kind == DeviceKind::kNic) continue;
      return {};  // A GPU with its own ways inside the host: the cluster knows better.
    }
    if (link.down || port.single || topology.devices[link.to].kind != DeviceKind::kNetworkSwitch)
      return {};
    port = {.up = id, .hub = link.to, .single = true};
  }
  return port;
}

}  // namespace

NetworkPorts::NetworkPorts(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  ports_.reserve(topology.devices.size());
  for (DeviceId id = 0; id < topology.devices.size(); ++id) ports_.push_back(PortOf(cluster, id));
  std::vector<std::uint32_t> ways_back(ports_.size(), 0);
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    Port& port = ports_[link.to];
    if (!port.single || link.from != port.hub || link.down) continue;
    port.down = id;
    ++ways_back[link.to];
  }
  for (DeviceId id = 0; id < ports_.size(); ++id) {
    if (ways_back[id] != 1) ports_[id].single = false;
  }
  NumberPorts(cluster);
}

void NetworkPorts::NumberPorts(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  numbers_.assign(ports_.size(), 0);
  std::uint32_t next = 0;
  for (DeviceId hub = 0; hub < ports_.size(); ++hub) {
    if (topology.devices[hub].kind != DeviceKind::kNetworkSwitch) continue;
    for (const LinkId id : cluster.links_out(hub)) {
      const DeviceId device = topology.links[id].to;
      if (ports_[device].single && ports_[device].down == id) numbers_[device] = next++;
    }
  }
  for (DeviceId id = 0; id < ports_.size(); ++id) {
    if (!ports_[id].single) numbers_[id] = next++;
  }
}

}  // namespace windtunnel
