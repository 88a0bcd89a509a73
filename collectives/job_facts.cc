#include "collectives/job_facts.h"

#include <algorithm>
#include <set>

#include "collectives/timing/constants.h"

namespace windtunnel {
namespace {

BitsPerSecond NicRate(const Cluster& cluster, DeviceId nic) {
  BitsPerSecond rate;
  for (const LinkId link : cluster.links_out(nic)) {
    const Link& out = cluster.topology().links[link];
    if (out.kind == LinkKind::kNetwork && !out.down) rate += out.rate;
  }
  return rate;
}

BitsPerSecond RateOut(const Cluster& cluster, DeviceId gpu, LinkKind kind) {
  BitsPerSecond rate;
  for (const LinkId link : cluster.links_out(gpu)) {
    const Link& out = cluster.topology().links[link];
    if (out.kind == kind && !out.down) rate += out.rate;
  }
  return rate;
}

}  // namespace

std::string FabricClassOf(const Topology& topology, DeviceId nic, const std::string& gpu_class) {
  const Device& device = topology.devices[nic];
  const std::string& model = device.model;
  const auto attribute = device.attributes.find("protocol");
  const std::string protocol = attribute == device.attributes.end() ? "" : attribute->second;
  const auto is = [&](std::string_view prefix) { return model.starts_with(prefix); };
  const bool ampere_or_newer = gpu_class == "a100" || gpu_class == "h100" || gpu_class == "b200";
  if (is("efa")) return gpu_class == "a100" ? "efa-p4d" : ampere_or_newer ? "efa-p5" : "efa-host";
  if (is("slingshot") || is("cassini"))
    return gpu_class == "h100" ? "slingshot-grace" : "slingshot-cpu";
  if (is("gvnic-200g") || is("fastrak") || is("tcpxo")) return "tcpxo";
  if (is("tcpx")) return "tcpx";
  if (is("ethernet") || is("gve")) return "sockets";
  if (protocol == "roce" || is("bluefield") || is("thor"))
    return ampere_or_newer || gpu_class == "v100" ? "roce" : "roce-host";
  if (protocol == "ethernet") return "sockets";
  if (gpu_class == "v100" || gpu_class == "p100") return "ib-pcie3";
  if (is("connectx-7") || is("connectx-8")) return "ib-ndr";
  if (is("connectx")) return "ib-hdr";
  return "";
}

timing::CallFacts FactsOfJob(const Cluster& cluster, JobPaths& paths, std::uint32_t gpus_per_thread,
                             const nccl::NcclVersion& version) {
  const Topology& topology = cluster.topology();
  timing::CallFacts facts;
  facts.ranks = paths.rank_count();
  facts.nodes = paths.node_count();
  facts.version = version;
  facts.gpus_per_thread = gpus_per_thread;
  facts.launch = gpus_per_thread > 1 ? timing::Launch::kOneThread : timing::Launch::kThreadPerGpu;
  const DeviceId first = paths.gpu(0);
  // Boards without a model, as in files of other simulators, need no constants.
  if (const std::string& model = topology.devices[first].model; !model.empty()) {
    facts.gpu_class = timing::TimingConstants::Shipped().ClassOfBoard(model);
  }
  // One NVLink domain over several hosts counts as one node.
  if (facts.ranks > 1) {
    const JobPaths::Path way = paths.Between(0, facts.ranks - 1, {});
    if (facts.nodes > 1 && way.transport == Transport::kPeerToPeer) facts.nodes = 1;
    if (way.transport == Transport::kNetwork)
      facts.path_latency = cluster.Latency(paths.RouteOf(way));
  }
  const BitsPerSecond nvlink = RateOut(cluster, first, LinkKind::kNvlink);
  Rank neighbour = 0;
  for (Rank r = 1; r < facts.ranks && neighbour == 0; ++r) {
    if (paths.node(r) == paths.node(0)) neighbour = r;
  }
  if (nvlink.count() != 0) {
    facts.path = timing::InNodePath::kNvlink;
    facts.link_rate = nvlink;
  } else if (neighbour != 0) {
    const JobPaths::Path way = paths.Between(0, neighbour, {});
    facts.path = way.transport == Transport::kPeerToPeer ? timing::InNodePath::kPciePeer
                                                         : timing::InNodePath::kPcieHost;
    facts.link_rate = cluster.Bottleneck(paths.RouteOf(way));
  }
  if (facts.nodes > 1) {
    std::set<DeviceId> used;
    for (Rank r = 0; r < facts.ranks; ++r) {
      if (paths.node(r) != paths.node(0)) continue;
      for (const DeviceId nic : paths.NicsOf(r)) used.insert(nic);
    }
    if (!used.empty()) {
      facts.nics_per_node = static_cast<std::uint32_t>(used.size());
      facts.nic_rate = NicRate(cluster, *used.begin());
      facts.fabric_class = FabricClassOf(topology, *used.begin(), facts.gpu_class);
    }
  }
  return facts;
}

}  // namespace windtunnel
