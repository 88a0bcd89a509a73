#include "validate/board_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collectives/nccl/communicator.h"
#include "collectives/timing/plan_facts.h"
#include "validate/early_decisions.h"

namespace windtunnel::validate {
namespace {

using nccl::NcclVersion;
using timing::CallFacts;

enum Generation : std::size_t { kVolta, kAmpere, kHopper, kBlackwell };
/// What the search finds on an undisturbed machine.
struct Graph {
  double channels = 1;  // Of ring and tree, before doubling.
  double ring_intra = 10, ring_inter = 10;
  double tree_intra = 0;    // 0: no tree.
  bool split_tree = false;  // Pattern 3: up and down on one GPU.
  double heads = 0, nvls_intra = 0, nvls_inter = 0;
  nccl::PathType net_path = nccl::PathType::kPix;  // From GPU to NIC.
  bool amd = false;
  bool arm = false;
  double net_latency = 0;   // What the network plugin reports.
  bool in_network = false;  // SHARP is on: in-switch sums over nodes.
};

std::string Variable(const MeasuredRun& run, const std::string& name) {
  const auto it = run.environment.find(name);
  std::string value = it == run.environment.end() ? "" : it->second;
  for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return value;
}

Generation GenerationOf(const CallFacts& facts) {
  if (facts.gpu_class == "a100") return kAmpere;
  if (facts.gpu_class == "h100") return kHopper;
  if (facts.gpu_class == "b200")
    return facts.version < NcclVersion{2, 25, 0} ? kHopper : kBlackwell;
  return kVolta;
}

/// NCCL's rate classes of a NIC: what the search can put on one.
double NicClass(double gbps) {
  for (const double rate : {48.0, 24.0, 12.0, 6.0, 1.2})
    if (gbps >= rate) return rate;
  return gbps;
}

Graph OneNodeGraph(const Platform& platform, Generation generation) {
  const CallFacts& facts = platform.facts;
  Graph graph;
  if (facts.path != timing::InNodePath::kNvlink || facts.gpu_class == "pcie") {
    graph.ring_intra = graph.ring_inter = 10;
    graph.tree_intra = 10;
    if (facts.path == timing::InNodePath::kNvlink) {
      graph.channels = 2;
      graph.ring_intra = graph.ring_inter = 20;
    }
    return graph;
  }
  switch (generation) {
    case kVolta:
      graph.channels = facts.gpu_class == "p100" ? 2 : 6;
      graph.ring_intra = 20;
      break;
    case kAmpere:
      graph.channels = 12;
      graph.ring_intra = 20;
      break;
    case kHopper:
      graph.channels = 12;
      graph.ring_intra = 30;
      if (platform.switched) {
        graph.heads = std::min(8u, facts.ranks);
        graph.nvls_intra = facts.ranks >= 8 ? 40 : 60;
        graph.nvls_inter = 60;
      }
      break;
    case kBlackwell:
      graph.channels = 16;
      graph.ring_intra = 45;
      if (platform.switched) {
        graph.heads = facts.ranks;
        graph.nvls_intra = facts.ranks >= 8 ? 80 : 90;
        graph.nvls_inter = 90;
      }
      break;
  }
  graph.ring_inter = graph.tree_intra = graph.ring_intra;
  return graph;
}

Graph NetworkGraph(const Platform& platform, const MeasuredRun& run, Generation generation) {
  const CallFacts& facts = platform.facts;
  const double nic = ToGigabytesPerSecond(facts.nic_rate);
  const double nics = facts.nics_per_node;
  const double gpus = facts.gpus_per_node();
  Graph graph;
  double rate = NicClass(nic);
  constexpr double kMostSearched = 32;  // Half of MAXCHANNELS: the search doubles them later.
  graph.channels = std::min(nics, kMostSearched);
  if (gpus == 1 && nics == 1 && nic >= 50) {
    graph.channels = 2;  // One NIC of 400 Gb/s carries two channels of 24.
    rate = 24;
  } else if (nics > gpus) {
    const bool verbs = facts.fabric_class.starts_with("ib") || facts.fabric_class == "roce";
    if (verbs && nics == 2 * gpus) {
      graph.channels = gpus;  // NCCL's verbs transport fuses the two ports of a card.
      rate = NicClass(2 * nic);
    } else {
      graph.channels = std::min(kMostSearched, nics);  // A channel for each NIC.
    }
  }
  if (facts.fabric_class == "tcpx") rate = 22;
  graph.ring_intra = graph.ring_inter = rate;
  const bool wide = platform.switched && (generation == kHopper || generation == kBlackwell);
  switch (generation) {
    case kVolta:
      graph.tree_intra = gpus == 1 ? 2 * rate : rate;
      break;
    case kAmpere:
      graph.tree_intra = nics >= 8 ? 30 : nics >= 4 ? 24 : 40;
      break;
    case kHopper:
      graph.tree_intra = gpus == 1 ? 2 * rate : 48;
      break;
    case kBlackwell:
      graph.tree_intra = gpus == 1 ? 2 * rate : 96;
      break;
  }
  graph.split_tree = (wide && nics >= 8) || gpus == 1;
  if (wide && gpus >= 4 && facts.fabric_class != "tcpx") {
    constexpr double kMostHeads = 32;  // NCCL_MAX_NVLS_ARITY
    graph.heads = std::min(gpus, kMostHeads);
    const double per_gpu = rate;  // A head uses one NIC, or one fused pair of ports.
    graph.nvls_intra = generation == kBlackwell ? 48 : std::min(40.0, per_gpu);
    graph.nvls_inter = per_gpu;
  }
  graph.in_network = graph.heads > 0 && (run.nic.find("SHARP") != std::string::npos ||
                                         Variable(run, "NCCL_COLLNET_ENABLE") == "1");
  const std::string cpu = run.cpu + " " + run.gpu;
  graph.amd = cpu.find("AMD") != std::string::npos || cpu.find("EPYC") != std::string::npos;
  graph.arm = cpu.find("Grace") != std::string::npos || cpu.find("GH200") != std::string::npos;
  // Far NICs rule out LL128 and slow down the choice of trees.
  const std::string& fabric = facts.fabric_class;
  if (fabric == "slingshot-grace" || fabric == "slingshot-cpu" || fabric == "sockets" ||
      facts.gpu_class == "pcie" || generation == kVolta)
    graph.net_path = nccl::PathType::kPhb;
  if (facts.version >= NcclVersion{2, 12, 0}) {
    // The plugin's own attribute: 75 us, 35 with the stack of p5en.
    if (fabric == "efa-p4d" || fabric == "efa-host") graph.net_latency = 75;
    if (fabric == "efa-p5") graph.net_latency = facts.version >= NcclVersion{2, 25, 0} ? 35 : 75;
  }
  return graph;
}

/// Channels of a ring or tree search: GPUs in turn, starting one further on each channel, as the
/// search does on machines whose GPUs are all alike.
nccl::SearchGraph MakeGraph(nccl::GraphId id, nccl::Pattern pattern, std::uint32_t gpus,
                            const Graph& board, double intra, double inter, bool network,
                            std::uint32_t nics, nccl::PathType inside) {
  nccl::SearchGraph graph;
  graph.id = id;
  graph.pattern = pattern;
  graph.cross_nic = network ? 2 : 0;
  graph.bw_intra = static_cast<float>(intra);
  graph.bw_inter = static_cast<float>(inter);
  graph.latency_inter = static_cast<float>(board.net_latency);
  graph.type_intra = inside;
  graph.type_inter = network ? board.net_path : nccl::PathType::kPix;
  const bool heads = id == nccl::GraphId::kNvls;
  graph.channel_count = static_cast<int>(heads ? board.heads : board.channels);
  for (int c = 0; c < graph.channel_count; ++c) {
    nccl::SearchGraph::Channel channel;
    const auto shift = static_cast<std::uint32_t>(c);
    for (std::uint32_t i = 0; i < (heads ? 1 : gpus); ++i)
      channel.gpus.push_back({0, (i + shift) % gpus});
    if (network) {
      channel.nets.push_back({0, shift % nics});
      channel.nets.push_back({0, shift % nics});
    }
    graph.channels.push_back(std::move(channel));
  }
  return graph;
}

int ComputeCapability(const CallFacts& facts) {
  if (facts.gpu_class == "p100") return 60;
  switch (GenerationOf(facts)) {
    case kVolta:
      return 70;
    case kAmpere:
      return 80;
    case kHopper:
      return 90;
    case kBlackwell:
      return 100;
  }
  return 70;
}

nccl::Job MakeJob(const Platform& platform, const MeasuredRun& run) {
  const CallFacts& facts = platform.facts;
  const Generation generation = GenerationOf(facts);
  const bool network = facts.nodes > 1;
  const Graph board =
      network ? NetworkGraph(platform, run, generation) : OneNodeGraph(platform, generation);
  const std::uint32_t gpus = facts.gpus_per_node();
  const bool nvlink = facts.path == timing::InNodePath::kNvlink && facts.gpu_class != "pcie";
  const nccl::PathType inside = nvlink ? nccl::PathType::kNvl : nccl::PathType::kPhb;
  auto node = std::make_shared<nccl::NodeDescription>();
  node->graphs.push_back(MakeGraph(nccl::GraphId::kRing, nccl::Pattern::kRing, gpus, board,
                                   board.ring_intra, board.ring_inter, network, facts.nics_per_node,
                                   inside));
  const nccl::Pattern tree = board.split_tree ? nccl::Pattern::kTree : nccl::Pattern::kBalancedTree;
  node->graphs.push_back(MakeGraph(nccl::GraphId::kTree, tree, gpus, board,
                                   std::max(board.tree_intra, board.ring_intra), board.ring_inter,
                                   network, facts.nics_per_node, inside));
  if (board.heads > 1)
    node->graphs.push_back(MakeGraph(nccl::GraphId::kNvls, nccl::Pattern::kNvls, gpus, board,
                                     board.nvls_intra, board.nvls_inter, network,
                                     facts.nics_per_node, inside));
  const bool peer =
      facts.path == timing::InNodePath::kNvlink || facts.path == timing::InNodePath::kPciePeer;
  const double nic = ToGigabytesPerSecond(facts.nic_rate);
  for (std::uint32_t i = 0; i < gpus; ++i) {
    nccl::NodeDescription::Gpu gpu;
    gpu.device = {0, i};
    gpu.compute_capability = ComputeCapability(facts);
    gpu.local_nics = network ? static_cast<int>(std::max(1u, facts.nics_per_node / gpus)) : 0;
    gpu.local_nic_bandwidth = static_cast<float>(network ? nic * gpu.local_nics : 0);
    node->gpus.push_back(gpu);
    std::vector<nccl::NodeDescription::Path> paths(
        gpus, {inside, static_cast<float>(board.ring_intra * board.channels)});
    paths[i] = {nccl::PathType::kLoc, 5000};
    node->gpu_paths.push_back(std::move(paths));
    std::vector<nccl::LocalTransport> transports(
        gpus, {peer ? nccl::LocalTransport::Kind::kPeerToPeer
                    : nccl::LocalTransport::Kind::kSharedMemory});
    transports[i] = {nccl::LocalTransport::Kind::kSelf};
    node->transports.push_back(std::move(transports));
  }
  node->nvswitches = platform.switched ? 1 : 0;
  node->multicast = board.heads > 1;
  node->cpu_arch = board.arm ? nccl::CpuArch::kArm : nccl::CpuArch::kX86;
  node->cpu_vendor = board.amd ? nccl::CpuVendor::kAmd : nccl::CpuVendor::kIntel;
  node->min_net_bandwidth = static_cast<float>(nic);
  nccl::Job job;
  job.name = platform.name;
  job.collnet_plugin = board.in_network;
  job.ranks_of_a_host_share_a_process = facts.launch == timing::Launch::kOneThread;
  for (std::uint32_t n = 0; n < facts.nodes; ++n) {
    job.nodes.push_back(node);
    for (std::uint32_t g = 0; g < gpus; ++g) job.ranks.push_back({n, g, n});
  }
  return job;
}

}  // namespace

DataType DataTypeOf(const std::string& dtype) {
  std::string folded;
  for (const char c : dtype)
    folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::size_t i = 0; i < std::size(kDataTypeNames); ++i)
    if (folded == kDataTypeNames[i]) return static_cast<DataType>(i);
  if (folded == "f16" || folded == "float16" || folded == "fp16") return DataType::kHalf;
  if (folded == "bf16") return DataType::kBfloat16;
  if (folded == "f64" || folded == "float64") return DataType::kDouble;
  if (folded == "char") return DataType::kInt8;
  return DataType::kFloat;
}

nccl::Environment EnvironmentOf(const Platform& platform, const MeasuredRun& run) {
  nccl::Environment environment;
  for (const auto& [name, value] : run.environment)
    if (name.starts_with("NCCL_")) environment.Set(name, value);
  // Until 2.4 the size from which trees are left: 0 turns them off.
  if (environment.Get("NCCL_TREE_THRESHOLD") == "0" && !environment.Get("NCCL_ALGO"))
    environment.Set("NCCL_ALGO", "Ring");
  // GPUDirect-TCPX is documented and shipped with Simple only.
  if (platform.facts.fabric_class == "tcpx" && !environment.Get("NCCL_PROTO"))
    environment.Set("NCCL_PROTO", "Simple");
  return environment;
}

/// Communicators by everything that shapes them: a size series asks for one again and again.
struct BoardDecisions::Cache {
  std::mutex mutex;
  std::map<std::string, nccl::Communicator> communicators;
};

BoardDecisions::BoardDecisions() : cache_(std::make_unique<Cache>()) {}
BoardDecisions::~BoardDecisions() = default;

nccl::Job BoardDecisions::JobOf(const Platform& platform, const MeasuredRun& run,
                                const nccl::NcclVersion&, const nccl::Environment&) const {
  return MakeJob(platform, run);
}

Decision BoardDecisions::Decide(const Platform& platform, const MeasuredRun& run,
                                Bytes size) const {
  Decision decision{.facts = platform.facts};
  CallFacts& facts = decision.facts;
  facts.size = size;
  const bool early = facts.version < kTuningTableSince && facts.nodes == 1 &&
                     facts.function != Function::kAllToAll && facts.function != Function::kSendRecv;
  if (early) {
    // Rings over NVLink were used twice.
    const Graph board = OneNodeGraph(platform, GenerationOf(facts));
    const std::uint32_t uses = facts.path == timing::InNodePath::kNvlink ? 2 : 1;
    DecideEarly(facts, uses * static_cast<std::uint32_t>(board.channels),
                facts.gpu_class == "p100");
    return decision;
  }
  // The tables begin with 2.10.3; older releases are taken as that one. Sends and receives are
  // planned by the rules of 2.22, the first release that lays them out message by message.
  const bool point_to_point =
      facts.function == Function::kAllToAll || facts.function == Function::kSendRecv;
  constexpr NcclVersion kMessagesSince{2, 22, 3};
  const NcclVersion version =
      std::max(facts.version, point_to_point ? kMessagesSince : nccl::kOldestNcclVersion);
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", platform.name, platform.topology,
                                nccl::ToString(version), run.cpu, facts.nics_per_node,
                                facts.nic_rate.count(), static_cast<int>(facts.launch));
  const nccl::Environment environment = EnvironmentOf(platform, run);
  for (const auto& [name, value] : environment.variables()) key += "|" + name + "=" + value;
  if (run.nic.find("SHARP") != std::string::npos) key += "|sharp";
  const nccl::Communicator* communicator = nullptr;
  {
    const std::lock_guard lock(cache_->mutex);
    auto it = cache_->communicators.find(key);
    if (it == cache_->communicators.end()) {
      it = cache_->communicators
               .emplace(key, nccl::Communicator(JobOf(platform, run, version, environment), version,
                                                environment))
               .first;
    }
    communicator = &it->second;
  }
  if (point_to_point) {
    timing::ApplyPointToPoint(*communicator, facts);
    return decision;
  }
  nccl::CollectiveCall call{.function = facts.function, .type = DataTypeOf(run.dtype)};
  const bool split =
      facts.function == Function::kAllGather || facts.function == Function::kReduceScatter;
  call.count =
      std::max<std::uint64_t>(1, size.count() / SizeOf(call.type) / (split ? facts.ranks : 1));
  const nccl::CallPlan plan = communicator->Plan(call);
  timing::ApplyPlan(*communicator, plan, facts);
  decision.nccl_estimate_us = static_cast<double>(plan.time_us);
  return decision;
}

}  // namespace windtunnel::validate
