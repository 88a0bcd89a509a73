#include "validate/nccl_plans/verify_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include "collectives/nccl/graph_xml.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Recorded values are single precision, printed with 7 to 9 digits.
constexpr double kRateTolerance = 1e-5;

std::string Text(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 160) text = text.substr(0, 157) + "...";
  return text;
}

bool Equal(const Json& expected, const Json& got) {
  if (expected.is_number() && got.is_number()) {
    const double a = expected.get<double>();
    const double b = got.get<double>();
    return a == b || std::abs(a - b) <= kRateTolerance * std::max(std::abs(a), std::abs(b));
  }
  if (expected.is_array() && got.is_array()) {
    return expected.size() == got.size() &&
           std::equal(expected.begin(), expected.end(), got.begin(), Equal);
  }
  return expected == got;
}

Json DeviceJson(const HostDevice& device) {
  if (device.host == 0) return device.dev;
  return Json::array({device.host, device.dev});
}

Json PathJson(const Path& path) {
  return Json::array({std::string(Name(path.type)), path.rate, path.hop_count()});
}

std::string TransportText(const Transport& transport) {
  switch (transport.kind) {
    case Transport::Kind::kSelf:
      return "";
    case Transport::Kind::kP2p:
      return "P2P" + std::string(transport.read ? "/read" : "") +
             (transport.via ? "/via" + std::to_string(*transport.via) : "");
    case Transport::Kind::kShm:
      return "SHM";
    case Transport::Kind::kNet:
      return "NET";
  }
  return "";
}

/// Counts field after field of one case.
class Verifier {
 public:
  Verifier(const Json& case_json, const fs::path& plans_dir, const NcclVersion& version)
      : case_(case_json), plans_dir_(plans_dir), version_(version) {
    for (const char* kind : {"system", "paths", "transports", "graphs", "graph files"}) {
      counts_.push_back({.kind = kind, .agree = 0, .differ = 0, .first_differences = {}});
    }
  }

  std::vector<FieldCount> Run() {
    const XmlDocument topology =
        ReadXmlFile(ResolveTopology(case_.at("topology").get<std::string>(), plans_dir_));
    std::optional<NodeSearchResult> result;
    try {
      result = SearchNode(topology, RequestOfCase(case_, version_));
    } catch (const std::exception& error) {
      for (FieldCount& count : counts_) {
        if (count.kind != "graph files") count.Differ(Where("search"), "a result", error.what());
      }
      return std::move(counts_);
    }
    if (case_.contains("system")) {
      CompareSystem(*result);
      ComparePaths(*result);
    }
    if (case_.contains("transports")) CompareTransports(*result);
    if (case_.contains("search")) CompareGraphs(*result);
    CompareFile(*result);
    return std::move(counts_);
  }

 private:
  std::string Where(const std::string& field) const {
    return case_.value("nccl", ToString(version_)) + "/" + case_.value("case", "?") + " " + field;
  }
  FieldCount& Kind(std::string_view kind) {
    return *std::find_if(counts_.begin(), counts_.end(),
                         [&](const FieldCount& count) { return count.kind == kind; });
  }
  void Compare(std::string_view kind, const std::string& field, const Json& expected,
               const Json& got) {
    if (expected.is_null()) return;
    if (Equal(expected, got)) {
      Kind(kind).Agree();
    } else {
      Kind(kind).Differ(Where(field), Text(expected), Text(got));
    }
  }
  /// Element by element; lengths that differ are one more field.
  void CompareList(std::string_view kind, const std::string& field, const Json& expected,
                   const Json& got) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Json mine = i < got.size() ? got[i] : Json("nothing");
      Compare(kind, field + "[" + std::to_string(i) + "]", expected[i], mine);
    }
    if (got.size() != expected.size()) {
      Compare(kind, field + " length", expected.size(), got.size());
    }
  }

  void CompareSystem(const NodeSearchResult& result) {
    const Json& recorded = case_.at("system");
    const System& system = result.view.system();
    const auto field = [&](const char* name, const Json& got) {
      if (recorded.contains(name))
        Compare("system", std::string("system.") + name, recorded[name], got);
    };
    field("maxBw", result.view.max_rate());
    field("totalBw", result.view.total_rate());
    field("inter", system.inter ? 1 : 0);
    field("nHosts", system.host_hashes.size());
    const Json counts = recorded.value("counts", Json::object());
    for (const auto& [name, count] : counts.items()) {
      for (std::size_t kind = 0; kind < kNodeKinds; ++kind) {
        if (kNodeKindNames[kind] != name) continue;
        Compare("system", "system.counts." + name, count,
                system.count(static_cast<NodeKind>(kind)));
      }
    }
    Json gpus = Json::array();
    for (const SystemNode& gpu : system.nodes(NodeKind::kGpu)) {
      gpus.push_back(Json::array({gpu.gpu.rank, gpu.gpu.dev}));
    }
    Json nets = Json::array();
    for (const SystemNode& net : system.nodes(NodeKind::kNet)) {
      nets.push_back(
          Json::array({net.net.dev, net.net.rate, net.net.latency, net.net.gdr ? 1 : 0}));
    }
    CompareList("system", "system.gpus", recorded.value("gpus", Json::array()), gpus);
    CompareList("system", "system.nets", recorded.value("nets", Json::array()), nets);
  }

  void ComparePaths(const NodeSearchResult& result) {
    const Json& recorded = case_.at("system");
    const System& system = result.view.system();
    const auto table = [&](const char* name, NodeKind from, NodeKind to) {
      if (!recorded.contains(name)) return;
      for (std::uint32_t i = 0; i < recorded[name].size(); ++i) {
        Json got = Json::array();
        for (std::uint32_t j = 0; i < system.count(from) && j < system.count(to); ++j) {
          got.push_back(PathJson(result.view.paths().At({from, i}, {to, j})));
        }
        CompareList("paths", fmt::format("system.{}[{}]", name, i), recorded[name][i], got);
      }
    };
    table("gpu_gpu", NodeKind::kGpu, NodeKind::kGpu);
    table("gpu_net", NodeKind::kGpu, NodeKind::kNet);
    table("net_gpu", NodeKind::kNet, NodeKind::kGpu);
  }

  /// Recorded are the ranks that rank 0's system holds after trimming, in rising order.
  void CompareTransports(const NodeSearchResult& result) {
    const Json& recorded = case_.at("transports");
    const auto transports = result.Transports();
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < result.seats.size(); ++i) {
      if (result.view.system().GpuOfRank(result.seats[i].rank)) kept.push_back(i);
    }
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      Json got = Json::array();
      for (std::size_t j = 0; j < kept.size() && i < kept.size(); ++j) {
        got.push_back(TransportText(transports[kept[i]][kept[j]]));
      }
      CompareList("transports", fmt::format("transports[{}]", i), recorded[i], got);
    }
  }

  void CompareGraphs(const NodeSearchResult& result) {
    const Json& recorded = case_.at("search");
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      const Json& expected = recorded[i];
      const std::string name = "search." + expected.value("graph", std::to_string(i));
      if (i >= result.graphs.size()) {
        Kind("graphs").Differ(Where(name), "a graph", "none");
        continue;
      }
      CompareGraph(name, expected, result.graphs[i]);
    }
    CompareHops(result);
  }

  void CompareGraph(const std::string& name, const Json& expected, const SearchGraph& graph) {
    const std::pair<const char*, Json> scalars[] = {
        {"pattern", static_cast<int>(graph.pattern)},
        {"crossNic", graph.cross_nic},
        {"nChannels", graph.channel_count},
        {"bwIntra", graph.bw_intra},
        {"bwInter", graph.bw_inter},
        {"latencyInter", graph.latency_inter},
        {"typeIntra", std::string(Name(graph.type_intra))},
        {"typeInter", std::string(Name(graph.type_inter))},
        {"sameChannels", graph.same_channels ? 1 : 0},
    };
    for (const auto& [field, got] : scalars) {
      if (expected.contains(field)) Compare("graphs", name + "." + field, expected[field], got);
    }
    const Json& channels = expected.at("channels");
    for (std::size_t c = 0; c < channels.size(); ++c) {
      Json gpus = Json::array();
      Json nets = Json::array();
      if (c < graph.channels.size()) {
        for (const HostDevice& gpu : graph.channels[c].gpus) gpus.push_back(DeviceJson(gpu));
        for (const HostDevice& net : graph.channels[c].nets) nets.push_back(DeviceJson(net));
      }
      const std::string where = fmt::format("{}.channels[{}]", name, c);
      Compare("graphs", where + ".gpus", channels[c].at("gpus"), gpus);
      if (channels[c].contains("nets")) {
        Compare("graphs", where + ".nets", channels[c].at("nets"), nets);
      }
    }
  }

  /// The exchange between ranks leaves the number of hops alone.
  void CompareHops(const NodeSearchResult& result) {
    static const std::map<std::string, GraphId> kNames = {
        {"Ring", GraphId::kRing}, {"Tree", GraphId::kTree}, {"NVLS", GraphId::kNvls}};
    const Json after = case_.value("graphs_after_exchange", Json::object());
    for (const auto& [name, id] : kNames) {
      if (!after.contains(name) || !after[name].contains("nHops")) continue;
      const bool present = std::any_of(result.graphs.begin(), result.graphs.end(),
                                       [id = id](const SearchGraph& g) { return g.id == id; });
      if (!present) continue;
      Compare("graphs", "graphs_after_exchange." + name + ".nHops", after[name]["nHops"],
              GraphOf(result.graphs, id).hops);
    }
  }

  void CompareFile(const NodeSearchResult& result) {
    const fs::path path = plans_dir_ / ("nccl-" + ToString(version_)) / "graphs" /
                          (case_.value("case", "?") + ".graph.xml");
    std::ifstream in(path, std::ios::binary);
    if (!in) return;
    const std::string expected{std::istreambuf_iterator<char>(in),
                               std::istreambuf_iterator<char>()};
    const std::string got = WriteGraphXml(result.graphs, version_, result.view.system());
    if (expected == got) {
      Kind("graph files").Agree();
      return;
    }
    const auto at = static_cast<std::size_t>(
        std::mismatch(expected.begin(), expected.end(), got.begin(), got.end()).first -
        expected.begin());
    Kind("graph files")
        .Differ(Where(fmt::format("graph file at byte {}", at)), Text(expected.substr(at, 40)),
                Text(at < got.size() ? got.substr(at, 40) : ""));
  }

  const Json& case_;
  const fs::path& plans_dir_;
  NcclVersion version_;
  std::vector<FieldCount> counts_;
};

[[noreturn]] void CaseFault(const Json& case_json, const std::string& field,
                            const std::string& problem) {
  throw ConfigError({.file = case_json.value("case", "?") + ".json",
                     .field = field,
                     .problem = problem,
                     .expected = "a case in the form of the plans folder"});
}

}  // namespace

fs::path ResolveTopology(const std::string& topology, const fs::path& plans_dir) {
  const fs::path given(topology);
  const fs::path name = given.filename();
  const fs::path candidates[] = {
      plans_dir / given,
      plans_dir / "topo" / name,
      plans_dir / ".." / "topo" / name,
      plans_dir / ".." / ".." / "facts" / "topofiles" / name,
      plans_dir / ".." / "facts" / "topofiles" / name,
      plans_dir / "topofiles" / name,
      plans_dir / ".." / "topofiles" / name,
      plans_dir / ".." / ".." / "topofiles" / name,
  };
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (fs::is_regular_file(candidate, error)) return candidate;
  }
  throw ConfigError({.file = plans_dir.string(),
                     .field = "topology",
                     .value = topology,
                     .problem = "the topology file of a case is not there:",
                     .expected = "topo/" + name.string() + " or topofiles/" + name.string() +
                                 " in or beside the folder"});
}

NodeSearchRequest RequestOfCase(const Json& case_json, const NcclVersion& version) {
  NodeSearchRequest request;
  request.version = version;
  try {
    request.nodes = case_json.at("nodes").get<int>();
    const auto used = case_json.at("gpusUsed").get<std::vector<int>>();
    std::vector<int> order(used.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    if (case_json.contains("gpuOrder")) order = case_json["gpuOrder"].get<std::vector<int>>();
    for (const int place : order) request.gpus.push_back(used.at(static_cast<std::size_t>(place)));
    request.cyclic = case_json.value("rankPlacement", "block") == "cyclic";
    const Json variables = case_json.value("env", Json::object());
    for (const auto& [name, value] : variables.items()) {
      request.environment.Set(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
    request.collnet_plugin = case_json.value("collnetPlugin", false);
    request.nvlink_fabric = case_json.value("mnnvlFabric", false);
    if (case_json.contains("multicastSupported") && case_json["multicastSupported"].is_boolean()) {
      request.multicast = case_json["multicastSupported"].get<bool>();
    }
  } catch (const Json::exception& error) {
    CaseFault(case_json, "case", error.what());
  } catch (const std::out_of_range&) {
    CaseFault(case_json, "gpuOrder", "names a place that gpusUsed does not have");
  }
  return request;
}

std::vector<FieldCount> VerifySearch(const Json& case_json, const fs::path& plans_dir,
                                     const NcclVersion& version) {
  return Verifier(case_json, plans_dir, version).Run();
}

}  // namespace windtunnel::nccl
