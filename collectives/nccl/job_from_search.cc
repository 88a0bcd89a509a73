#include "collectives/nccl/job_from_search.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

LocalTransport::Kind KindOf(Transport::Kind kind) {
  switch (kind) {
    case Transport::Kind::kSelf:
      return LocalTransport::Kind::kSelf;
    case Transport::Kind::kP2p:
      return LocalTransport::Kind::kPeerToPeer;
    case Transport::Kind::kShm:
      return LocalTransport::Kind::kSharedMemory;
    case Transport::Kind::kNet:
      return LocalTransport::Kind::kNetwork;
  }
  return LocalTransport::Kind::kNetwork;
}

/// NICs that a GPU needs to match its rate to the CPU, and their rate. Up to 2.28 that rate is the
/// GPU's own link to the CPU, so a GPU behind a PCI switch counts none; from 2.29 on it is the
/// whole path's, and the NICs are those that the channels use in turn. Source: NVIDIA/nccl,
/// src/graph/paths.cc (v2.28.9), src/graph/topo.cc (v2.29.2).
void CountLocalNics(const SystemView& view, std::uint32_t gpu, const NcclVersion& version,
                    NodeDescription::Gpu& out) {
  if (view.system().count(NodeKind::kNet) == 0) return;
  if (version >= NcclVersion{2, 29, 2}) {
    constexpr int kMostChannels = 64;
    const float to_cpu = view.paths().At(Gpu(gpu), Cpu(view.LocalCpu(gpu))).rate;
    const auto first = view.LocalNet(gpu, 0);
    for (int channel = 0; channel < kMostChannels; ++channel) {
      const auto net = view.LocalNet(gpu, channel);
      if (!net || (channel > 0 && net == first)) break;
      out.local_nic_bandwidth += view.GpuToNet(gpu, *net).rate;
      ++out.local_nics;
      if (out.local_nic_bandwidth >= to_cpu) break;
    }
    return;
  }
  float to_cpu = 0;
  for (const SystemLink& link : view.system().at(Gpu(gpu)).links) {
    if (link.to.kind == NodeKind::kCpu) to_cpu = link.rate;
  }
  for (const std::uint32_t net : view.Nearest(Gpu(gpu), NodeKind::kNet)) {
    if (out.local_nic_bandwidth >= to_cpu) break;
    out.local_nic_bandwidth += view.GpuToNet(gpu, net).rate;
    ++out.local_nics;
  }
}

std::shared_ptr<const NodeDescription> Describe(const SystemView& view,
                                                std::vector<SearchGraph> graphs,
                                                const std::vector<RankSeat>& seats, bool multicast,
                                                const NcclVersion& version) {
  auto node = std::make_shared<NodeDescription>();
  const System& system = view.system();
  const std::uint32_t gpus = system.count(NodeKind::kGpu);
  for (const SearchGraph& graph : graphs) node->graph_hops.push_back(graph.hops);
  node->graphs = std::move(graphs);
  for (std::uint32_t g = 0; g < gpus; ++g) {
    const SystemNode& gpu = system.at(Gpu(g));
    NodeDescription::Gpu entry{.device = {gpu.host(), static_cast<std::uint32_t>(gpu.gpu.dev)},
                               .compute_capability = gpu.gpu.sm};
    CountLocalNics(view, g, version, entry);
    node->gpus.push_back(entry);
  }
  const auto seat_of = [&](std::uint32_t g) -> const RankSeat& {
    const int rank = system.at(Gpu(g)).gpu.rank;
    return *std::find_if(seats.begin(), seats.end(),
                         [&](const RankSeat& seat) { return seat.rank == rank; });
  };
  for (std::uint32_t from = 0; from < gpus; ++from) {
    auto& paths = node->gpu_paths.emplace_back();
    auto& transports = node->transports.emplace_back();
    for (std::uint32_t to = 0; to < gpus; ++to) {
      const Path& path = view.GpuToGpu(from, to);
      paths.push_back({path.type, path.rate});
      const Transport transport = view.TransportBetween(seat_of(from), seat_of(to));
      LocalTransport local{.kind = KindOf(transport.kind), .receiver_reads = transport.read};
      if (transport.via) {
        if (const auto index = system.GpuOfRank(*transport.via))
          local.via = static_cast<int>(*index);
      }
      transports.push_back(local);
    }
  }
  node->nvswitches = static_cast<int>(system.count(NodeKind::kNvs));
  node->multicast = multicast;
  if (system.count(NodeKind::kCpu) != 0) {
    node->cpu_arch = system.at(Cpu(0)).cpu.arch;
    node->cpu_vendor = system.at(Cpu(0)).cpu.vendor;
  }
  for (std::uint32_t net = 0; net < system.count(NodeKind::kNet); ++net) {
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const float rate = view.GpuToNet(g, net).rate;
      if (rate > 0 && (node->min_net_bandwidth == 0 || rate < node->min_net_bandwidth))
        node->min_net_bandwidth = rate;
    }
  }
  return node;
}

}  // namespace

SearchedHost DescribeHost(const NodeSearchResult& result, const NodeSearchRequest& request) {
  SearchedHost host;
  std::vector<RankSeat> open = result.seats;
  const SystemView* view = &result.view;
  std::optional<SystemView> other;
  while (!open.empty()) {
    SearchedHost::Part part;
    std::vector<RankSeat> rest;
    for (const RankSeat& seat : open)
      (view->system().GpuOfRank(seat.rank) ? part.seats : rest).push_back(seat);
    WT_CHECK(!part.seats.empty()) << "rank " << open.front().rank
                                  << " is not part of its own system";
    const bool multicast = request.multicast.value_or(view->system().MinSm() >= 90);
    std::vector<SearchGraph> graphs = view == &result.view
                                          ? result.graphs
                                          : SearchGraphs(*view, {.version = request.version,
                                                                 .environment = request.environment,
                                                                 .collnet = request.collnet_plugin,
                                                                 .multicast = multicast,
                                                                 .fabric = result.fabric});
    part.node = Describe(*view, std::move(graphs), result.seats, multicast, request.version);
    host.parts.push_back(std::move(part));
    open = std::move(rest);
    if (!open.empty()) {
      other.emplace(result.whole, open.front().rank, result.total_ranks, result.view.settings(),
                    result.view.rules());
      view = &*other;
    }
  }
  return host;
}

Job JobOfEqualHosts(const NodeSearchResult& result, const NodeSearchRequest& request) {
  const SearchedHost host = DescribeHost(result, request);
  Job job;
  job.collnet_plugin = request.collnet_plugin;
  job.ranks.resize(static_cast<std::size_t>(result.total_ranks));
  // One system over all hosts of an NVLink domain, else one image per host.
  const int hosts = result.fabric ? 1 : request.nodes;
  const int per_host = result.total_ranks / std::max(1, request.nodes);
  for (int h = 0; h < hosts; ++h) {
    for (const SearchedHost::Part& part : host.parts) {
      const auto number = static_cast<std::uint32_t>(job.nodes.size());
      job.nodes.push_back(part.node);
      for (const RankSeat& seat : part.seats) {
        // The seats are those of host 0; the same place on host h has this rank.
        const int rank = request.cyclic ? seat.rank + h : seat.rank + h * per_host;
        const HostDevice device{seat.host, static_cast<std::uint32_t>(seat.dev)};
        const auto found = std::find_if(part.node->gpus.begin(), part.node->gpus.end(),
                                        [&](const auto& gpu) { return gpu.device == device; });
        WT_CHECK(found != part.node->gpus.end()) << "GPU of rank " << seat.rank;
        job.ranks[static_cast<std::size_t>(rank)] = {
            number, static_cast<std::uint32_t>(found - part.node->gpus.begin()),
            result.fabric ? seat.host : static_cast<std::uint32_t>(h)};
      }
    }
  }
  return job;
}

Job JobOfHosts(std::span<const SearchedHost* const> hosts,
               std::span<const std::vector<Rank>> places) {
  WT_CHECK(hosts.size() == places.size()) << "hosts and places";
  Job job;
  std::size_t total = 0;
  for (const auto& ranks : places) total += ranks.size();
  job.ranks.resize(total);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const SearchedHost::Part& part : hosts[h]->parts) {
      const auto number = static_cast<std::uint32_t>(job.nodes.size());
      job.nodes.push_back(part.node);
      for (const RankSeat& seat : part.seats) {
        const auto found =
            std::find_if(part.node->gpus.begin(), part.node->gpus.end(), [&](const auto& gpu) {
              return gpu.device.dev == static_cast<std::uint32_t>(seat.dev);
            });
        WT_CHECK(found != part.node->gpus.end()) << "GPU of place " << seat.rank;
        const Rank rank = places[h].at(static_cast<std::size_t>(seat.rank));
        job.ranks[rank] = {number, static_cast<std::uint32_t>(found - part.node->gpus.begin()),
                           static_cast<std::uint32_t>(h)};
      }
    }
  }
  return job;
}

}  // namespace windtunnel::nccl
