#include "interconnect/path_view.h"

#include <algorithm>

namespace windtunnel {
namespace {

using nccl::PathType;

PathType TypeOfRoute(const Cluster& cluster, const Route& route) {
  const Topology& topology = cluster.topology();
  bool all_nvlink = true;
  bool numa = false;
  bool first_c2c = false;
  bool cpu_between = false;
  std::size_t switches = 0;
  for (std::size_t i = 0; i < route.size(); ++i) {
    const Link& link = topology.links[route[i]];
    if (link.kind == LinkKind::kNetwork || link.kind == LinkKind::kIci) return PathType::kNet;
    all_nvlink &= link.kind == LinkKind::kNvlink;
    numa |= link.kind == LinkKind::kNuma;
    if (i == 0) {
      first_c2c = link.kind == LinkKind::kC2c;
      continue;
    }
    const DeviceKind between = topology.devices[link.from].kind;
    cpu_between |= between == DeviceKind::kCpu;
    switches += between == DeviceKind::kPcieSwitch;
  }
  if (all_nvlink) return PathType::kNvl;
  if (numa) return PathType::kSys;
  if (first_c2c && route.size() == 1) return PathType::kC2c;
  if (cpu_between) return first_c2c ? PathType::kP2c : PathType::kPhb;
  return switches <= 1 ? PathType::kPix : PathType::kPxb;
}

bool DirectNvlink(const Cluster& cluster, DeviceId from, DeviceId to) {
  const auto links = cluster.links_out(from);
  return std::any_of(links.begin(), links.end(), [&](LinkId id) {
    const Link& link = cluster.topology().links[id];
    return link.to == to && link.kind == LinkKind::kNvlink && !link.down;
  });
}

}  // namespace

PathType PathTypeBetween(const Cluster& cluster, DeviceId from, DeviceId to) {
  if (from == to) return PathType::kLoc;
  const Topology& topology = cluster.topology();
  const auto route = cluster.FindRoute(from, to);
  if (!route) return PathType::kDis;
  const PathType type = TypeOfRoute(cluster, *route);
  if (type == PathType::kNvl || topology.devices[from].kind != DeviceKind::kGpu) return type;
  const DeviceKind target = topology.devices[to].kind;
  const std::uint32_t node = topology.devices[from].node;
  if (topology.devices[to].node != node) return type;
  for (const DeviceId between : cluster.gpus()) {
    if (between == from || between == to || topology.devices[between].node != node) continue;
    if (target == DeviceKind::kGpu && DirectNvlink(cluster, from, between) &&
        DirectNvlink(cluster, between, to))
      return PathType::kNvb;
    if (target != DeviceKind::kNic || type <= PathType::kPxn) continue;
    const auto to_nic = cluster.FindRoute(between, to);
    const auto to_gpu = cluster.FindRoute(from, between);
    if (to_nic && to_gpu && TypeOfRoute(cluster, *to_nic) <= PathType::kPxb &&
        TypeOfRoute(cluster, *to_gpu) == PathType::kNvl)
      return PathType::kPxn;
  }
  return type;
}

}  // namespace windtunnel
