#include "apps/topo_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "interconnect/catalogue.h"
#include "interconnect/path_view.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

double Gbs(BitsPerSecond rate) { return ToGigabytesPerSecond(rate); }

std::string Percent(double now, double wanted) {
  return fmt::format("{:.1f} GB/s instead of {:.1f} GB/s ({:+.1f} %)", now, wanted,
                     100 * (now / wanted - 1));
}

// What a GPU can send at once into its fabric: its NVLinks, or its slot where it has none.
double GpuRate(const Cluster& cluster, DeviceId gpu) {
  double nvlink = 0;
  double slot = 0;
  for (const LinkId id : cluster.links_out(gpu)) {
    const Link& link = cluster.topology().links[id];
    if (link.down) continue;
    const bool fabric = link.kind == LinkKind::kNvlink || link.kind == LinkKind::kIci ||
                        link.kind == LinkKind::kNetwork;
    (fabric ? nvlink : slot) += link.kind == LinkKind::kC2c ? 0 : Gbs(link.rate);
  }
  return nvlink > 0 ? nvlink : slot;
}

// By host, what its NICs put on the network at once; a NIC sends no faster than its slot.
std::vector<double> HostNetworkRates(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  std::vector<double> rates(topology.node_count, 0);
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    if (topology.devices[id].node >= rates.size()) continue;
    double wire = 0;
    double slot = 0;
    for (const LinkId link_id : cluster.links_out(id)) {
      const Link& link = topology.links[link_id];
      if (link.down) continue;
      (link.kind == LinkKind::kNetwork ? wire : slot) += Gbs(link.rate);
    }
    rates[topology.devices[id].node] +=
        topology.devices[id].kind == DeviceKind::kNic ? std::min(wire, slot) : wire;
  }
  return rates;
}

std::string DevicesText(const Topology& topology) {
  std::map<std::tuple<DeviceKind, std::string, std::uint32_t>, std::size_t> counts;
  for (const Device& device : topology.devices) ++counts[{device.kind, device.model, device.sm}];
  std::string out = "devices\n";
  for (const auto& [key, count] : counts) {
    const auto& [kind, model, sm] = key;
    std::string facts;
    if (const DeviceModel* found = Catalogue::Shipped().FindDevice(model)) facts = found->title;
    if (sm != 0) facts += fmt::format("{}sm {}", facts.empty() ? "" : ", ", sm);
    out += fmt::format("  {:>6} {:<15} {:<22} {}\n", count, Name(kind), model.empty() ? "-" : model,
                       facts);
  }
  return out;
}

std::string LinksText(const Topology& topology) {
  struct Key {
    LinkKind kind;
    std::uint32_t generation, width;
    std::uint64_t rate, latency;
    DeviceKind from, to;
    bool down, p2p;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::size_t> counts;
  for (const Link& link : topology.links) {
    ++counts[{link.kind, link.generation, link.width, link.rate.count(), link.latency.count(),
              topology.devices[link.from].kind, topology.devices[link.to].kind, link.down,
              link.p2p}];
  }
  std::string out = "links (each direction counts)\n";
  for (const auto& [key, count] : counts) {
    out += fmt::format(
        "  {:>6} {:<8} {:<6} {:<6} {:>12} {:>9}  {} -> {}{}{}\n", count, Name(key.kind),
        key.generation == 0 ? "" : fmt::format("gen {}", key.generation),
        key.width > 1 ? fmt::format("x{}", key.width) : "", FormatRate(BitsPerSecond(key.rate)),
        FormatTime(Picoseconds(key.latency)), Name(key.from), Name(key.to),
        key.down ? ", down" : "", key.p2p ? "" : ", no peer-to-peer");
  }
  return out;
}

// GPUs and NICs of a host.
std::vector<DeviceId> HostEndpoints(const Topology& topology, std::uint32_t node) {
  std::vector<DeviceId> ids;
  for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kTpu, DeviceKind::kNic}) {
    for (DeviceId id = 0; id < topology.devices.size(); ++id) {
      if (topology.devices[id].node == node && topology.devices[id].kind == kind) ids.push_back(id);
    }
  }
  return ids;
}

std::string ShortName(const Device& device) {
  const auto slash = device.name.rfind('/');
  return slash == std::string::npos ? device.name : device.name.substr(slash + 1);
}

struct Matrix {
  std::string text;
  std::vector<std::uint32_t> nodes;
};

std::string MatrixText(const Cluster& cluster, const std::vector<DeviceId>& ids) {
  const Topology& topology = cluster.topology();
  std::size_t width = 6;
  for (const DeviceId id : ids) width = std::max(width, ShortName(topology.devices[id]).size() + 2);
  std::string out = std::string(width + 2, ' ');
  for (const DeviceId id : ids)
    out += fmt::format("{:<{}}", ShortName(topology.devices[id]), width);
  out += "CPU\n";
  for (const DeviceId from : ids) {
    out += fmt::format("  {:<{}}", ShortName(topology.devices[from]), width);
    for (const DeviceId to : ids) {
      out +=
          fmt::format("{:<{}}", from == to ? "X" : Name(PathTypeBetween(cluster, from, to)), width);
    }
    const auto cpu = cluster.HomeCpu(from);
    out += (cpu ? ShortName(topology.devices[*cpu]) : std::string("-")) + "\n";
  }
  return out;
}

std::string MatricesText(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  constexpr std::size_t kWidest = 80;
  constexpr std::uint32_t kMostHosts = 64;
  std::vector<Matrix> matrices;
  const std::uint32_t shown = std::min(topology.node_count, kMostHosts);
  // Hosts of a network of bare GPUs have one GPU each: the matrix over all is the one to show.
  if (topology.node_count > 1 && cluster.gpus().size() == topology.node_count &&
      cluster.gpus().size() <= kWidest) {
    std::vector<DeviceId> all(cluster.gpus().begin(), cluster.gpus().end());
    return "paths between GPUs\n" + MatrixText(cluster, all);
  }
  for (std::uint32_t node = 0; node < shown; ++node) {
    const std::vector<DeviceId> ids = HostEndpoints(topology, node);
    if (ids.empty() || ids.size() > kWidest) continue;
    const std::string text = MatrixText(cluster, ids);
    const auto same = std::find_if(matrices.begin(), matrices.end(),
                                   [&](const Matrix& m) { return m.text == text; });
    if (same == matrices.end()) {
      matrices.push_back({text, {node}});
    } else {
      same->nodes.push_back(node);
    }
  }
  std::string out;
  for (const Matrix& matrix : matrices) {
    out += matrix.nodes.size() == 1
               ? fmt::format("paths on host {}\n", matrix.nodes[0])
               : fmt::format("paths on each of {} hosts alike, the first is {}\n",
                             matrix.nodes.size(), matrix.nodes[0]);
    out += matrix.text;
  }
  if (topology.node_count > shown)
    out += fmt::format("  (hosts {} and up are not compared)\n", shown);
  return out;
}

}  // namespace

std::vector<BusbwBound> CollectiveBounds(const Cluster& cluster) {
  const auto gpus = cluster.gpus();
  const auto n = static_cast<double>(gpus.size());
  if (gpus.size() < 2) return {};
  const Topology& topology = cluster.topology();
  double gpu_rate = HUGE_VAL;
  for (const DeviceId gpu : gpus) gpu_rate = std::min(gpu_rate, GpuRate(cluster, gpu));
  double host_rate = HUGE_VAL;
  std::set<std::uint32_t> hosts;
  for (const DeviceId gpu : gpus) hosts.insert(topology.devices[gpu].node);
  // Only where hosts are joined by a network alone; NVLink between hosts makes them one.
  const bool joined_by_nvlink =
      std::any_of(topology.links.begin(), topology.links.end(), [&](const Link& link) {
        return link.kind == LinkKind::kNvlink &&
               topology.devices[link.from].node != topology.devices[link.to].node;
      });
  if (hosts.size() > 1 && !joined_by_nvlink) {
    const std::vector<double> rates = HostNetworkRates(cluster);
    for (const std::uint32_t node : hosts)
      host_rate = std::min(host_rate, node < rates.size() ? rates[node] : 0);
  }
  const double bisection = Gbs(cluster.Bisection(gpus));
  // Any cut is crossed at least once in each direction by a ring, and by the whole message once.
  const double cut = std::min(host_rate, bisection);
  const char* cut_name = host_rate < bisection ? "network of a host" : "bisection";
  const auto bound = [&](const char* name, double ring, double any_cut) {
    return BusbwBound{name, ring, std::min(gpu_rate, any_cut),
                      gpu_rate <= any_cut ? "GPU links" : cut_name};
  };
  const double ring = std::min(gpu_rate, cut);
  return {bound("all_reduce", ring, 2 * (n - 1) / n * cut),
          bound("all_gather", ring, 2 * (n - 1) / n * bisection),
          bound("reduce_scatter", ring, 2 * (n - 1) / n * bisection), bound("broadcast", ring, cut),
          bound("reduce", ring, cut),
          // Half of the ranks send a share of S/n to each of the other half.
          bound("alltoall", 0, 4 * (n - 1) / (n * n) * bisection)};
}

std::string ShowTopology(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  std::string out = fmt::format("{}: {} host{}, {} GPU{}, {} devices, {} links\n", topology.name,
                                topology.node_count, topology.node_count == 1 ? "" : "s",
                                cluster.gpus().size(), cluster.gpus().size() == 1 ? "" : "s",
                                topology.devices.size(), topology.links.size());
  out += fmt::format("read from {}, digest {:016x}\n\n", topology.source, topology.digest);
  out += DevicesText(topology) + "\n" + LinksText(topology) + "\n" + MatricesText(cluster);
  const auto components = cluster.Components();
  std::set<std::uint32_t> parts;
  for (const DeviceId gpu : cluster.gpus()) parts.insert(components[gpu]);
  if (parts.size() > 1)
    out += fmt::format("\nthe GPUs lie in {} parts without a link between them\n", parts.size());
  if (cluster.gpus().size() > 1) {
    out +=
        fmt::format("\nbisection of the GPUs: {}\n", FormatRate(cluster.Bisection(cluster.gpus())));
    out += "bounds of busbw from the wires, without headers and without reduction in switches\n";
    out += fmt::format("  {:<16} {:>12} {:>16}  bound by\n", "collective", "ring GB/s",
                       "any way GB/s");
    for (const BusbwBound& b : CollectiveBounds(cluster)) {
      out += fmt::format("  {:<16} {:>12} {:>16.1f}  {}\n", b.collective,
                         b.ring_gbs > 0 ? fmt::format("{:.1f}", b.ring_gbs) : "-", b.any_gbs,
                         b.bound_by);
    }
  }
  for (const std::string& note : topology.notes) out += "note: " + note + "\n";
  return out;
}

namespace {

void CheckParts(const Cluster& cluster, std::vector<TopologyFinding>* findings) {
  const auto components = cluster.Components();
  std::map<std::uint32_t, std::vector<std::string>> parts;
  for (const DeviceId gpu : cluster.gpus())
    parts[components[gpu]].push_back(cluster.topology().devices[gpu].name);
  if (parts.size() < 2) return;
  std::string text =
      fmt::format("the GPUs lie in {} parts without a link between them:", parts.size());
  std::size_t shown = 0;
  for (const auto& [part, names] : parts) {
    if (++shown > 8) break;
    text += fmt::format(" [{}{}]",
                        JoinNames(std::span(names).first(std::min<std::size_t>(8, names.size()))),
                        names.size() > 8 ? ", ..." : "");
  }
  findings->push_back({text, "no collective over all of them can run"});
}

void CheckNvlinks(const Cluster& cluster, std::vector<TopologyFinding>* findings) {
  const Topology& topology = cluster.topology();
  std::map<std::pair<DeviceId, DeviceId>, double> rates;
  std::map<DeviceId, double> per_gpu;
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::kNvlink || link.down) continue;
    rates[{link.from, link.to}] += Gbs(link.rate);
    if (topology.devices[link.from].kind == DeviceKind::kGpu) per_gpu[link.from] += Gbs(link.rate);
  }
  for (const auto& [ends, rate] : rates) {
    const auto back = rates.find({ends.second, ends.first});
    const double other = back == rates.end() ? 0 : back->second;
    if (rate <= other) continue;
    findings->push_back({fmt::format("NVLink {} -> {} carries {:.1f} GB/s and back {:.1f} GB/s",
                                     topology.devices[ends.first].name,
                                     topology.devices[ends.second].name, rate, other),
                         Percent(other, rate)});
  }
  double most = 0;
  for (const auto& [gpu, rate] : per_gpu) most = std::max(most, rate);
  if (most == 0) return;
  for (const DeviceId gpu : cluster.gpus()) {
    const auto own = per_gpu.find(gpu);
    const double rate = own == per_gpu.end() ? 0 : own->second;
    if (rate >= most) continue;
    findings->push_back(
        {fmt::format("{}: fewer NVLinks than the best GPU", topology.devices[gpu].name),
         Percent(rate, most)});
  }
}

void CheckSlots(const Cluster& cluster, std::vector<TopologyFinding>* findings) {
  const Topology& topology = cluster.topology();
  std::map<DeviceKind, double> best;
  std::map<DeviceId, const Link*> slots;
  for (const Link& link : topology.links) {
    const DeviceKind kind = topology.devices[link.from].kind;
    if (link.kind != LinkKind::kPcie || (kind != DeviceKind::kGpu && kind != DeviceKind::kNic))
      continue;
    if (link.rate > GigabytesPerSecond(1000)) continue;  // A virtual NIC has no slot.
    slots[link.from] = &link;
    if (kind == DeviceKind::kGpu) best[kind] = std::max(best[kind], Gbs(link.rate));
  }
  for (const auto& [id, link] : slots) {
    const Device& device = topology.devices[id];
    if (device.kind == DeviceKind::kGpu && Gbs(link->rate) < 0.99 * best[device.kind]) {
      findings->push_back(
          {fmt::format("{}: slot of {} lane{}{} is slower than the best GPU's", device.name,
                       link->width, link->width == 1 ? "" : "s",
                       link->generation == 0 ? "" : fmt::format(" Gen{}", link->generation)),
           Percent(Gbs(link->rate), best[device.kind])});
    }
    const DeviceModel* model = Catalogue::Shipped().FindDevice(device.model);
    if (model != nullptr && model->pcie_width != 0 && link->width < model->pcie_width &&
        device.kind == DeviceKind::kGpu && link->generation != 0 &&
        Gbs(link->rate) >= 0.99 * best[device.kind]) {
      findings->push_back(
          {fmt::format("{}: {} lanes of the {} it can use", device.name, link->width,
                       model->pcie_width),
           Percent(Gbs(link->rate), Gbs(link->rate) * model->pcie_width / link->width)});
    }
    if (device.kind != DeviceKind::kNic) continue;
    for (const LinkId out : cluster.links_out(id)) {
      const Link& wire = topology.links[out];
      if (wire.kind == LinkKind::kNetwork && wire.rate > link->rate) {
        findings->push_back({fmt::format("{}: its slot is slower than its port", device.name),
                             Percent(Gbs(link->rate), Gbs(wire.rate))});
      }
    }
  }
}

void CheckNics(const Cluster& cluster, std::vector<TopologyFinding>* findings) {
  const Topology& topology = cluster.topology();
  std::map<DeviceId, std::vector<DeviceId>> users;
  for (const DeviceId gpu : cluster.gpus()) {
    const auto nics = cluster.NearestNics(gpu);
    if (nics.empty()) continue;
    const auto type = PathTypeBetween(cluster, gpu, nics[0]);
    // Equally near NICs share the GPUs, as NCCL spreads its channels over them.
    DeviceId chosen = nics[0];
    for (const DeviceId nic : nics) {
      if (PathTypeBetween(cluster, gpu, nic) == type && users[nic].size() < users[chosen].size())
        chosen = nic;
    }
    users[chosen].push_back(gpu);
    if (type != nccl::PathType::kSys && type != nccl::PathType::kPxn) continue;
    const auto route = cluster.FindRoute(gpu, nics[0]);
    if (!route) continue;
    double wanted = HUGE_VAL;
    for (const LinkId id : *route) {
      if (topology.links[id].kind == LinkKind::kPcie)
        wanted = std::min(wanted, Gbs(topology.links[id].rate));
    }
    const double now = Gbs(cluster.Bottleneck(*route));
    if (now < wanted) {
      findings->push_back(
          {fmt::format(
               "{}: its nearest NIC, {}, is on another socket{}", topology.devices[gpu].name,
               topology.devices[nics[0]].name,
               type == nccl::PathType::kPxn ? " (NVLink and another GPU lead there, PXN)" : ""),
           Percent(now, wanted)});
    }
  }
  const auto loads = users;
  for (const auto& [nic, gpus] : loads) {
    if (gpus.empty()) continue;
    const std::size_t on_host = cluster.NearestNics(gpus[0]).size();
    if (gpus.size() < 2 || on_host < 2) continue;
    // NICs at the same distance that nobody is nearest to could share the load.
    std::size_t idle = 0;
    for (const DeviceId other : cluster.NearestNics(gpus[0])) idle += users[other].empty();
    if (idle == 0) continue;
    findings->push_back(
        {fmt::format("{} is the nearest NIC of {} GPUs while {} NIC{} of the host {} "
                     "nearest to none",
                     topology.devices[nic].name, gpus.size(), idle, idle == 1 ? "" : "s",
                     idle == 1 ? "is" : "are"),
         fmt::format("each GPU gets 1/{} of its rate", gpus.size())});
  }
}

}  // namespace

std::vector<TopologyFinding> CheckTopology(const Cluster& cluster) {
  const Topology& topology = cluster.topology();
  std::vector<TopologyFinding> findings;
  CheckParts(cluster, &findings);
  CheckNvlinks(cluster, &findings);
  CheckSlots(cluster, &findings);
  CheckNics(cluster, &findings);
  std::size_t blocked = 0;
  std::size_t down = 0;
  std::string first_blocked, first_down;
  for (const Link& link : topology.links) {
    const std::string name =
        topology.devices[link.from].name + " -> " + topology.devices[link.to].name;
    if (link.kind == LinkKind::kPcie && !link.p2p && blocked++ == 0) first_blocked = name;
    if (link.down && down++ == 0) first_down = name;
  }
  if (blocked > 0) {
    findings.push_back(
        {fmt::format("peer-to-peer is off on {} links, the first is {}", blocked, first_blocked),
         "GPU to GPU bounces through host memory: every transfer crosses the host's "
         "side twice, -50 % where that is the bottleneck"});
  }
  if (down > 0) {
    findings.push_back(
        {fmt::format("{} links are down, the first is {}", down, first_down), "their whole rate"});
  }
  std::set<std::string> models;
  for (const DeviceId gpu : cluster.gpus()) models.insert(topology.devices[gpu].model);
  if (models.size() > 1) {
    findings.push_back(
        {fmt::format("GPUs of {} models: {}", models.size(),
                     JoinNames(std::vector<std::string>(models.begin(), models.end()))),
         "every step waits for the slowest"});
  }
  for (const std::string& warning : topology.warnings)
    findings.push_back({"default: " + warning, ""});
  for (const std::string& note : topology.notes) findings.push_back({note, ""});
  return findings;
}

std::vector<std::string> DiffTopologies(const Topology& a, const Topology& b) {
  std::vector<std::string> lines;
  const auto device_text = [](const Device& d) {
    std::string text =
        fmt::format("{} {} model {} sm {} bus id {}", Name(d.kind), d.name,
                    d.model.empty() ? "-" : d.model, d.sm, d.bus_id.empty() ? "-" : d.bus_id);
    if (d.node != kNoNode) text += fmt::format(" host {}", d.node);
    for (const auto& [key, value] : d.attributes) text += fmt::format(" {}={}", key, value);
    return text;
  };
  const auto devices_of = [&](const Topology& t) {
    std::map<std::string, std::string> out;
    for (const Device& d : t.devices) out[d.name] = device_text(d);
    return out;
  };
  const auto links_of = [](const Topology& t) {
    std::map<std::string, std::string> out;
    std::map<std::string, int> seen;
    for (const Link& l : t.links) {
      std::string key = fmt::format("link {} -> {} {}", t.devices[l.from].name,
                                    t.devices[l.to].name, Name(l.kind));
      if (const int count = seen[key]++; count > 0) key += fmt::format(" #{}", count + 1);
      out[key] =
          fmt::format("{} gen {} x{} {} {}{}{}{}", key, l.generation, l.width,
                      l.down ? "down" : FormatRate(l.rate), FormatTime(l.latency),
                      l.p2p ? "" : ", no peer-to-peer", l.forward ? "" : ", not forwarding", "");
    }
    return out;
  };
  const auto compare = [&](const std::map<std::string, std::string>& x,
                           const std::map<std::string, std::string>& y) {
    for (const auto& [key, text] : x) {
      const auto other = y.find(key);
      if (other == y.end()) {
        lines.push_back("- " + text);
      } else if (other->second != text) {
        lines.push_back("~ " + text + "  =>  " + other->second);
      }
    }
    for (const auto& [key, text] : y) {
      if (!x.contains(key)) lines.push_back("+ " + text);
    }
  };
  if (a.node_count != b.node_count)
    lines.push_back(fmt::format("~ {} hosts  =>  {} hosts", a.node_count, b.node_count));
  compare(devices_of(a), devices_of(b));
  compare(links_of(a), links_of(b));
  return lines;
}

}  // namespace windtunnel
