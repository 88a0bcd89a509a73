#include "collectives/nccl/node_search.h"

#include <algorithm>
#include <set>

#include "interconnect/nccl/topology_rules.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

/// GPUs of one node by place.
std::vector<int> PlacesOf(const std::vector<FileGpu>& file_gpus, const XmlDocument& topology,
                          const NodeSearchRequest& request) {
  if (!request.gpus.empty()) {
    const std::set<int> distinct(request.gpus.begin(), request.gpus.end());
    if (distinct.size() != request.gpus.size()) {
      throw ConfigError({.file = topology.file,
                         .field = "GPUs of a node",
                         .problem = "two ranks use one GPU",
                         .expected = "each dev once"});
    }
    return request.gpus;
  }
  std::vector<FileGpu> used;
  std::copy_if(file_gpus.begin(), file_gpus.end(), std::back_inserter(used),
               [](const FileGpu& gpu) { return gpu.rank.has_value() && gpu.host == 0; });
  if (used.empty()) {
    std::copy_if(file_gpus.begin(), file_gpus.end(), std::back_inserter(used),
                 [](const FileGpu& gpu) { return gpu.host == 0; });
    std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) { return a.dev < b.dev; });
  } else {
    std::sort(used.begin(), used.end(),
              [](const auto& a, const auto& b) { return *a.rank < *b.rank; });
  }
  if (used.empty()) {
    throw ConfigError({.file = topology.file,
                       .problem = "the file has no GPU",
                       .expected = "gpu elements; skeleton files have to be completed first"});
  }
  std::vector<int> places;
  for (const FileGpu& gpu : used) places.push_back(gpu.dev);
  return places;
}

void CheckRequest(const XmlDocument& topology, const NodeSearchRequest& request) {
  constexpr int kMostNodes = 1 << 20;
  if (request.nodes < 1 || request.nodes > kMostNodes) {
    throw ConfigError({.file = topology.file,
                       .field = "nodes",
                       .value = std::to_string(request.nodes),
                       .problem = "is out of range:",
                       .expected = "1 to " + std::to_string(kMostNodes)});
  }
}

}  // namespace

bool JoinsFabric(const NodeSearchRequest& request) {
  if (!request.nvlink_fabric || request.version < NcclVersion{2, 21, 0}) return false;
  const std::int64_t enable = request.environment.GetInt("NCCL_MNNVL_ENABLE", 2);
  if (enable == 1) return true;
  const PathSettings settings = ReadPathSettings(request.environment, PathRulesOf(request.version));
  return request.nodes > 1 && enable != 0 && settings.p2p_level != PathType::kLoc;
}

NodeSearchResult SearchNode(const XmlDocument& topology, const NodeSearchRequest& request) {
  CheckRequest(topology, request);
  const TopologyRules topology_rules = TopologyRulesOf(request.version);
  const PathRules path_rules = PathRulesOf(request.version);
  const std::vector<FileGpu> file_gpus = ListGpus(topology);
  const std::vector<int> places = PlacesOf(file_gpus, topology, request);
  const int per_node = static_cast<int>(places.size());
  const bool fabric = JoinsFabric(request);

  std::vector<RankSeat> seats;
  for (int node = 0; node < (fabric ? request.nodes : 1); ++node) {
    for (int place = 0; place < per_node; ++place) {
      const int rank = request.cyclic ? place * request.nodes + node : node * per_node + place;
      seats.push_back(
          {rank, static_cast<std::uint32_t>(node), places[static_cast<std::size_t>(place)]});
    }
  }
  std::sort(seats.begin(), seats.end(),
            [](const RankSeat& a, const RankSeat& b) { return a.rank < b.rank; });

  std::vector<std::string> warnings = topology.warnings;
  System system = BuildSystem(KeepUsedParts(topology, seats, topology_rules), topology.file,
                              topology_rules, request.mode, request.collnet_plugin, warnings);
  System whole = system;
  PathSettings settings = ReadPathSettings(request.environment, path_rules);
  settings.blocked_pairs = request.blocked_pairs;
  const int total_ranks = request.nodes * per_node;
  SystemView view(std::move(system), 0, total_ranks, settings, path_rules);

  const SearchRequest search{.version = request.version,
                             .environment = request.environment,
                             .collnet = request.collnet_plugin,
                             .multicast = request.multicast.value_or(view.system().MinSm() >= 90),
                             .fabric = fabric};
  std::vector<SearchGraph> graphs = SearchGraphs(view, search);
  return {.view = std::move(view),
          .graphs = std::move(graphs),
          .seats = std::move(seats),
          .total_ranks = total_ranks,
          .fabric = fabric,
          .warnings = std::move(warnings),
          .whole = std::move(whole)};
}

std::vector<std::vector<Transport>> NodeSearchResult::Transports() const {
  std::vector<std::vector<Transport>> out;
  std::vector<SystemView> views;  // One per group of GPUs that reach each other.
  for (const RankSeat& from : seats) {
    const SystemView* own = view.system().GpuOfRank(from.rank) ? &view : nullptr;
    for (const SystemView& other : views) {
      if (own == nullptr && other.system().GpuOfRank(from.rank)) own = &other;
    }
    if (own == nullptr) {
      views.emplace_back(whole, from.rank, total_ranks, view.settings(), view.rules());
      own = &views.back();
    }
    out.emplace_back();
    for (const RankSeat& to : seats) out.back().push_back(own->TransportBetween(from, to));
  }
  return out;
}

}  // namespace windtunnel::nccl
