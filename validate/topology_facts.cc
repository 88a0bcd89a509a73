#include "validate/topology_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "interconnect/topology_file.h"
#include "sim/error.h"

namespace windtunnel::validate {
namespace {

bool Has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

/// NVLink switches that reach GPUs of several hosts make one domain of them.
bool DomainSpansHosts(const Topology& topology) {
  std::map<DeviceId, std::set<std::uint32_t>> hosts;
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::kNvlink) continue;
    if (topology.devices[link.from].kind == DeviceKind::kGpu)
      hosts[link.to].insert(topology.devices[link.from].node);
  }
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const auto& entry) { return entry.second.size() > 1; });
}

/// Words that say what carries the messages of a NIC, as run files use them.
std::string Carrier(const Topology& topology, const std::string& nic_model) {
  if (Has(nic_model, "efa")) return "EFA";
  if (Has(nic_model, "slingshot")) return "Slingshot-11";
  if (Has(nic_model, "gvnic")) return "GPUDirect-TCPXO";
  if (Has(nic_model, "ethernet")) return "virtual Ethernet NIC, TCP sockets";
  for (const Device& device : topology.devices) {
    if (device.kind == DeviceKind::kNetworkSwitch && Has(device.model, "ethernet"))
      return "RoCE " + nic_model;
  }
  return "InfiniBand " + nic_model;
}

}  // namespace

BitsPerSecond NvlinkRate(const Topology& topology) {
  const auto gpus = topology.DevicesOf(DeviceKind::kGpu);
  BitsPerSecond rate;
  if (gpus.empty()) return rate;
  for (const Link& link : topology.links) {
    if (link.from == gpus.front() && link.kind == LinkKind::kNvlink && !link.down)
      rate = rate + link.rate;
  }
  return rate;
}

void DescribeTopology(const Topology& topology, MeasuredRun& run) {
  const auto gpus = topology.DevicesOf(DeviceKind::kGpu);
  if (gpus.empty())
    throw ConfigError({.file = topology.source, .field = "devices", .problem = "no GPU"});
  std::map<std::uint32_t, std::uint32_t> per_node;
  for (const DeviceId gpu : gpus) ++per_node[topology.devices[gpu].node];
  for (const auto& [node, count] : per_node) {
    if (count != per_node.begin()->second)
      throw ConfigError(
          {.file = topology.source,
           .field = fmt::format("node {}", node),
           .problem = fmt::format("has {} GPUs, node 0 has {}", count, per_node.begin()->second),
           .expected = "nodes that are alike"});
  }
  if (const std::string& model = topology.devices[gpus.front()].model; !model.empty())
    run.gpu = model;
  run.nodes = static_cast<std::uint32_t>(per_node.size());
  run.gpus_per_node = per_node.begin()->second;
  if (run.ranks == 0) run.ranks = run.nodes * run.gpus_per_node;
  // A job may leave GPUs of each node idle.
  if (run.ranks % run.nodes == 0) run.gpus_per_node = run.ranks / run.nodes;

  const bool nvlink = NvlinkRate(topology).count() > 0;
  const bool switched = !topology.DevicesOf(DeviceKind::kNvSwitch).empty();
  run.interconnect = DomainSpansHosts(topology) ? "one NVL72 domain, NVSwitch"
                     : switched                 ? "NVSwitch"
                     : nvlink                   ? "NVLink between the GPUs"
                                                : "PCIe";
  const auto nics = topology.DevicesOf(DeviceKind::kNic);
  if (nics.empty()) return;
  const auto on_first = std::count_if(nics.begin(), nics.end(), [&](DeviceId nic) {
    return topology.devices[nic].node == topology.devices[nics.front()].node;
  });
  for (const Link& link : topology.links) {
    if (link.from != nics.front() || link.kind != LinkKind::kNetwork || link.down) continue;
    run.nic = fmt::format("{} x {} {:g} Gb/s", on_first,
                          Carrier(topology, topology.devices[nics.front()].model),
                          ToGigabytesPerSecond(link.rate) * 8);
  }
}

Mapping MapRunWithTopology(const MeasuredRun& run, const timing::TimingConstants& constants) {
  if (run.topology.empty()) return MapRun(run, constants);
  const auto shipped = ShippedTopologyNames();
  const std::string base = run.topology.substr(0, run.topology.find('*'));
  const bool known = std::find(shipped.begin(), shipped.end(), base) != shipped.end() ||
                     std::filesystem::exists(run.topology);
  if (!known) return MapRun(run, constants);
  const bool counted = base != run.topology;
  const Topology topology =
      LoadTopology(run.topology, {.nodes = counted || run.nodes == 1 ? 0 : run.nodes});
  MeasuredRun described = run;
  DescribeTopology(topology, described);
  Mapping mapping = MapRun(described, constants);
  if (mapping.mapped && mapping.platform.facts.path == timing::InNodePath::kNvlink &&
      NvlinkRate(topology).count() > 0)
    mapping.platform.facts.link_rate = NvlinkRate(topology);
  return mapping;
}

}  // namespace windtunnel::validate
