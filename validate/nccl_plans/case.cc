#include "validate/nccl_plans/case.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

[[noreturn]] void Fail(const fs::path& file, const std::string& field, const std::string& problem) {
  throw ConfigError({.file = file.string(), .field = field, .problem = problem});
}

Json Load(const fs::path& file) {
  std::ifstream in(file);
  try {
    return Json::parse(in);
  } catch (const Json::exception& error) {
    Fail(file, "", std::string("does not read as JSON: ") + error.what());
  }
}

PathType TypeOf(const Json& name) {
  return PathTypeFromName(name.get<std::string>()).value_or(PathType::kDis);
}

HostDevice DeviceOf(const Json& entry) {
  if (entry.is_array()) return {entry[0].get<std::uint32_t>(), entry[1].get<std::uint32_t>()};
  return {0, entry.get<std::uint32_t>()};
}

// 2.22 gives both in-network searches one id; their shapes tell them apart.
std::optional<GraphId> IdOf(const std::string& name, int pattern) {
  if (pattern == static_cast<int>(Pattern::kCollNetDirect)) return GraphId::kCollNetDirect;
  if (name == "ring") return GraphId::kRing;
  if (name == "tree") return GraphId::kTree;
  if (name == "collnet_chain" || name == "collnet") return GraphId::kCollNetChain;
  if (name == "collnet_direct") return GraphId::kCollNetDirect;
  if (name == "nvls") return GraphId::kNvls;
  return std::nullopt;
}

SearchGraph GraphOf(const Json& json, GraphId id) {
  SearchGraph graph;
  graph.id = id;
  graph.pattern = static_cast<Pattern>(json.at("pattern").get<int>());
  graph.cross_nic = json.at("crossNic").get<int>();
  graph.channel_count = json.at("nChannels").get<int>();
  graph.bw_intra = json.at("bwIntra").get<float>();
  graph.bw_inter = json.at("bwInter").get<float>();
  graph.latency_inter = json.at("latencyInter").get<float>();
  graph.type_intra = TypeOf(json.at("typeIntra"));
  graph.type_inter = TypeOf(json.at("typeInter"));
  graph.same_channels = json.at("sameChannels").get<int>() != 0;
  for (const Json& entry : json.at("channels")) {
    SearchGraph::Channel channel;
    for (const Json& gpu : entry.at("gpus")) channel.gpus.push_back(DeviceOf(gpu));
    if (entry.contains("nets"))
      for (const Json& net : entry.at("nets")) channel.nets.push_back(DeviceOf(net));
    graph.channels.push_back(std::move(channel));
  }
  return graph;
}

LocalTransport TransportOf(const Json& entry, const std::vector<int>& index_of_rank) {
  LocalTransport out;
  if (entry.is_null()) return out;
  const auto text = entry.get<std::string>();
  if (text.starts_with("P2P")) out.kind = LocalTransport::Kind::kPeerToPeer;
  if (text.starts_with("SHM")) out.kind = LocalTransport::Kind::kSharedMemory;
  if (text.starts_with("NET")) out.kind = LocalTransport::Kind::kNetwork;
  out.receiver_reads = text.find("/read") != text.npos;
  if (const auto via = text.find("/via "); via != text.npos) {
    const auto rank = static_cast<std::size_t>(std::stoi(text.substr(via + 5)));
    if (rank < index_of_rank.size()) out.via = index_of_rank[rank];
  }
  return out;
}

}  // namespace

fs::path PlanCase::TopologyFile(const fs::path& data) const {
  const auto recorded = fs::path(document.at("topology").get<std::string>());
  if (const auto own = data / "topo" / recorded.filename(); fs::exists(own)) return own;
  for (fs::path up = fs::absolute(data); up != up.root_path(); up = up.parent_path())
    if (const auto other = up / "facts" / "topofiles" / recorded.filename(); fs::exists(other))
      return other;
  Fail(file, "topology", "file " + recorded.string() + " is not beside the data");
}

PlanCase ReadPlanCase(const fs::path& file) {
  PlanCase out;
  out.file = file;
  out.document = Load(file);
  Json& json = out.document;
  try {
    out.name = json.at("case").get<std::string>();
    out.version = ParseNcclVersion(json.at("nccl").get<std::string>(),
                                   {.file = file.string(), .field = "nccl"});
    for (const auto& [name, value] : json.at("env").items())
      out.environment.Set(name, value.is_string() ? value.get<std::string>() : value.dump());
    out.hosts = json.at("nodes").get<int>();
    const int per_host = json.at("ranksPerNode").get<int>();
    const bool cyclic = json.at("rankPlacement") == "cyclic";
    for (int r = 0; r < out.hosts * per_host; ++r) {
      const int place = cyclic ? r / out.hosts : r % per_host;
      const auto gpu = json.at("gpuOrder")[static_cast<std::size_t>(place)].get<std::size_t>();
      out.ranks.push_back(
          {cyclic ? r % out.hosts : r / per_host, json.at("gpusUsed")[gpu].get<int>()});
    }
    out.collnet_plugin = json.value("collnetPlugin", false);
    out.nvlink_fabric = json.value("mnnvlFabric", false);
    out.multicast = json.value("multicastSupported", false);
  } catch (const Json::exception& error) {
    Fail(file, "", error.what());
  }
  // The case without the variable: the longest name before a dash that is a case.
  for (std::string base = out.name; !json.contains("system") && base.rfind('-') != base.npos;) {
    base.resize(base.rfind('-'));
    const auto sibling = file.parent_path() / (base + ".json");
    if (!fs::exists(sibling)) continue;
    const Json other = Load(sibling);
    for (const char* field : {"system", "transports", "p2pSchedule"})
      if (!json.contains(field) && other.contains(field)) json[field] = other.at(field);
  }
  return out;
}

std::vector<fs::path> FindPlanCases(const fs::path& data) {
  std::vector<std::pair<NcclVersion, fs::path>> found;
  std::error_code none;
  for (const auto& folder : fs::directory_iterator(data, none)) {
    const auto name = folder.path().filename().string();
    if (!folder.is_directory() || !name.starts_with("nccl-")) continue;
    const NcclVersion version =
        ParseNcclVersion(name.substr(5), {.file = folder.path().string(), .field = "folder"});
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".json") found.emplace_back(version, entry.path());
  }
  if (found.empty()) {
    throw ConfigError({.file = data.string(),
                       .problem = "holds no recorded plans",
                       .expected = "folders nccl-VERSION with CASE.json"});
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> out;
  for (auto& [version, path] : found) out.push_back(std::move(path));
  return out;
}

Job JobFromRecordedSearch(const PlanCase& plan_case) {
  const Json& json = plan_case.document;
  const auto& rank_to_node = json.at("rankToNode");
  const auto rank_count = plan_case.ranks.size();
  const auto node_of = [&](std::size_t rank) { return rank_to_node[rank].get<std::uint32_t>(); };
  // A domain of several hosts is one system: its devices are told apart by host.
  const bool domain = plan_case.hosts > json.at("nNodesSeen").get<int>();
  const auto device_of = [&](std::size_t rank) {
    const RecordedRank& place = plan_case.ranks[rank];
    return HostDevice{domain ? static_cast<std::uint32_t>(place.host) : 0U,
                      static_cast<std::uint32_t>(place.dev)};
  };

  auto first = std::make_shared<NodeDescription>();
  std::vector<std::size_t> own_ranks;
  std::vector<int> index_of_rank(rank_count, -1);
  for (const Json& gpu : json.at("system").at("gpus")) {
    const auto rank = gpu[0].get<std::size_t>();
    index_of_rank[rank] = static_cast<int>(own_ranks.size());
    own_ranks.push_back(rank);
    first->gpus.push_back(
        {.device = device_of(rank), .compute_capability = json.at("minCompCap").get<int>()});
  }
  for (const Json& row : json.at("system").at("gpu_gpu")) {
    auto& out = first->gpu_paths.emplace_back();
    for (const Json& path : row) out.push_back({TypeOf(path[0]), path[1].get<float>()});
  }
  std::vector<std::size_t> transport_ranks;
  for (std::size_t r = 0; r < rank_count; ++r)
    if (node_of(r) == node_of(0)) transport_ranks.push_back(r);
  const auto place_of = [&](std::size_t rank) {
    return static_cast<std::size_t>(
        std::find(transport_ranks.begin(), transport_ranks.end(), rank) - transport_ranks.begin());
  };
  for (const std::size_t from : own_ranks) {
    auto& out = first->transports.emplace_back();
    for (const std::size_t to : own_ranks)
      out.push_back(
          TransportOf(json.at("transports")[place_of(from)][place_of(to)], index_of_rank));
  }
  for (const Json& graph : json.at("search"))
    if (const auto id = IdOf(graph.at("graph").get<std::string>(), graph.at("pattern").get<int>()))
      first->graphs.push_back(GraphOf(graph, *id));
  first->nvswitches = json.at("system").at("counts").value("NVS", 0);
  first->multicast = plan_case.multicast;
  const auto arch = json.at("cpuArch").get<std::string>();
  const auto vendor = json.at("cpuVendor").get<std::string>();
  first->cpu_arch = arch == "x86_64"                       ? CpuArch::kX86
                    : arch == "arm64" || arch == "aarch64" ? CpuArch::kArm
                    : arch == "ppc64"                      ? CpuArch::kPower
                                                           : CpuArch::kUnknown;
  first->cpu_vendor = vendor == "Intel" ? CpuVendor::kIntel
                      : vendor == "AMD" ? CpuVendor::kAmd
                                        : CpuVendor::kUnknown;

  Job job;
  job.name = plan_case.name;
  job.collnet_plugin = plan_case.collnet_plugin;
  job.ranks_of_a_host_share_a_process = true;
  std::map<std::vector<HostDevice>, std::shared_ptr<const NodeDescription>> images;
  std::map<std::uint32_t, std::vector<std::size_t>> members;
  for (std::size_t r = 0; r < rank_count; ++r) members[node_of(r)].push_back(r);
  job.ranks.resize(rank_count);
  for (const auto& [number, ranks] : members) {
    // Ranks in the order of their image in the first system: by device.
    std::vector<HostDevice> devices;
    for (const std::size_t r : ranks) devices.push_back(device_of(r));
    auto& node = images[devices];
    if (node == nullptr) {
      auto image = std::make_shared<NodeDescription>(*first);
      std::vector<HostDevice> mine = devices;
      std::vector<HostDevice> originals;
      for (const auto& gpu : first->gpus) originals.push_back(gpu.device);
      std::sort(mine.begin(), mine.end());
      std::vector<HostDevice> sorted = originals;
      std::sort(sorted.begin(), sorted.end());
      const auto renamed = [&](HostDevice device) {
        const auto at = static_cast<std::size_t>(std::find(sorted.begin(), sorted.end(), device) -
                                                 sorted.begin());
        return mine.at(at);
      };
      for (auto& gpu : image->gpus) gpu.device = renamed(gpu.device);
      for (SearchGraph& graph : image->graphs)
        for (auto& channel : graph.channels)
          for (HostDevice& gpu : channel.gpus) gpu = renamed(gpu);
      node = image;
    }
    for (const std::size_t r : ranks) {
      const auto& gpus = node->gpus;
      const auto found = std::find_if(gpus.begin(), gpus.end(),
                                      [&](const auto& gpu) { return gpu.device == device_of(r); });
      job.ranks[r] = {number, static_cast<std::uint32_t>(found - gpus.begin()),
                      static_cast<std::uint32_t>(plan_case.ranks[r].host)};
    }
    job.nodes.push_back(node);
  }
  return job;
}

}  // namespace windtunnel::nccl
