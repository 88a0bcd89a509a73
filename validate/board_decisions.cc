#include "validate/board_decisions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel::validate {
namespace {

using nccl::NcclVersion;
using timing::Algorithm;
using timing::CallFacts;
using timing::Function;
using timing::Protocol;

enum Generation : std::size_t { kVolta, kAmpere, kHopper, kBlackwell };
constexpr std::array<Protocol, 3> kProtocols{Protocol::kLl, Protocol::kLl128, Protocol::kSimple};
using PerProtocol = std::array<double, 3>;
using PerNodes = std::array<double, 3>;  // One node, two, more.

// NCCL, src/graph/tuning.cc: limits in GB/s by generation and nodes.
constexpr std::array<PerNodes, 4> kLlLimit{
    {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr std::array<PerNodes, 4> kRingLl128{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr std::array<PerNodes, 4> kTreeLl128{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr std::array<PerNodes, 4> kTree{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr std::array<PerNodes, 4> kNvlsTree{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
constexpr std::array<double, 4> kNvlsShare{0, 0, 0.85, 0.74};
// Tree correction by log2(bytes / 64).
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = 1024 * 1024;

/// What the search finds on an undisturbed machine.
struct Graph {
  double channels = 1;  // Of ring and tree, before doubling.
  double ring_intra = 10, ring_inter = 10;
  double tree_intra = 0;    // 0: no tree.
  bool split_tree = false;  // Pattern 3: up and down on one GPU.
  double heads = 0, nvls_intra = 0, nvls_inter = 0;
  std::uint32_t nvls_channels = 16;
  bool ll128 = true;
  bool amd = false;
  double net_latency = 0;  // What the network plugin reports.
  double most_channels = 64;
  bool in_network = false;  // SHARP is on: in-switch sums over nodes.
  std::uint32_t total() const {
    return static_cast<std::uint32_t>(std::min(2 * channels, most_channels));
  }
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
    graph.ll128 = false;
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
      graph.nvls_channels = facts.version >= NcclVersion{2, 27, 0} ? 24 : 32;
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
  graph.channels = nics;
  if (gpus == 1 && nics == 1 && nic >= 50) {
    graph.channels = 2;  // One NIC of 400 Gb/s carries two channels of 24.
    rate = 24;
  } else if (nics > gpus) {
    const bool verbs = facts.fabric_class.starts_with("ib") || facts.fabric_class == "roce";
    if (verbs && nics == 2 * gpus) {
      graph.channels = gpus;  // NCCL's verbs transport fuses the two ports of a card.
      rate = NicClass(2 * nic);
    } else {
      graph.channels = std::min(32.0, nics);  // A channel for each NIC, up to the search's limit.
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
  graph.most_channels = facts.version >= NcclVersion{2, 19, 0} ? 64 : 32;
  if (wide && gpus >= 4 && facts.fabric_class != "tcpx") {
    graph.heads = std::min(gpus, 8.0);
    const double per_gpu = rate;  // A head uses one NIC, or one fused pair of ports.
    graph.nvls_intra = generation == kBlackwell ? 48 : std::min(40.0, per_gpu);
    graph.nvls_inter = per_gpu;
    graph.nvls_channels = generation == kBlackwell ? 32 : 16;
  }
  graph.in_network = graph.heads > 0 && (run.nic.find("SHARP") != std::string::npos ||
                                         Variable(run, "NCCL_COLLNET_ENABLE") == "1");
  const std::string cpu = run.cpu + " " + run.gpu;
  graph.amd = cpu.find("AMD") != std::string::npos || cpu.find("EPYC") != std::string::npos;
  // LL128 needs writes of 128 bytes to stay whole: not through CPUs, not on every network.
  const std::string& fabric = facts.fabric_class;
  graph.ll128 = generation != kVolta && fabric != "slingshot-grace" && fabric != "slingshot-cpu" &&
                fabric != "sockets" && facts.gpu_class != "pcie";
  if (facts.version >= NcclVersion{2, 12, 0}) {
    // The plugin's own attribute: 75 us, 35 with the stack of p5en.
    if (fabric == "efa-p4d" || fabric == "efa-host") graph.net_latency = 75;
    if (fabric == "efa-p5") graph.net_latency = facts.version >= NcclVersion{2, 25, 0} ? 35 : 75;
  }
  return graph;
}

struct Choice {
  double us = 0;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
};

struct Tuning {
  const CallFacts& facts;
  const MeasuredRun& run;
  const Graph& graph;
  Generation generation;
  double steps;

  bool Allowed(Algorithm algorithm, Protocol protocol) const {
    const std::string algo = Variable(run, "NCCL_ALGO");
    const std::string proto = Variable(run, "NCCL_PROTO");
    std::string name(timing::ToString(algorithm));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!algo.empty() && ("," + algo + ",").find("," + name + ",") == std::string::npos)
      return false;
    std::string wire(timing::ToString(protocol));
    for (char& c : wire) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!proto.empty() && ("," + proto + ",").find("," + wire + ",") == std::string::npos)
      return false;
    if (algorithm == Algorithm::kTree && Variable(run, "NCCL_TREE_THRESHOLD") == "0") return false;
    // GPUDirect-TCPX is documented and shipped with Simple only.
    if (facts.fabric_class == "tcpx" && protocol != Protocol::kSimple) return false;
    return true;
  }

  std::size_t Column() const { return std::min<std::uint32_t>(facts.nodes, 3) - 1; }

  double Bytes() const { return static_cast<double>(facts.size.count()); }

  void Ring(std::vector<Choice>& out) const {
    const bool old = facts.version < NcclVersion{2, 18, 0};
    const bool pcie = facts.gpu_class == "pcie" || facts.path != timing::InNodePath::kNvlink;
    const double n = facts.ranks;
    const double nodes = facts.nodes;
    const PerProtocol base = old ? PerProtocol{3.6, 10, 8.4} : PerProtocol{6.6, 14, 8.4};
    const PerProtocol hop = pcie ? PerProtocol{1, 2.5, 5.7} : PerProtocol{0.6, 1.9, 3.4};
    const bool one_each = facts.nodes == facts.ranks && facts.version >= NcclVersion{2, 23, 0};
    const PerProtocol net =
        one_each ? PerProtocol{5, 8.5, 14} : PerProtocol{2.7, 4, old ? 9.6 : 14};
    const bool rooted =
        facts.function == Function::kBroadcast || facts.function == Function::kReduce;
    for (std::size_t p = 0; p < 3; ++p) {
      const Protocol protocol = kProtocols[p];
      if (protocol == Protocol::kLl128 && !graph.ll128) continue;
      if (!Allowed(Algorithm::kRing, protocol)) continue;
      double rate = graph.channels * (facts.nodes <= 2 ? graph.ring_intra : graph.ring_inter);
      if (protocol == Protocol::kLl) {
        const std::size_t row =
            facts.nodes == 1
                ? static_cast<std::size_t>(
                      generation == kHopper && facts.version < NcclVersion{2, 21, 0} ? kAmpere
                                                                                     : generation)
            : graph.amd ? kAmpere
                        : kVolta;
        const double share = facts.nodes == 1 || facts.version >= NcclVersion{2, 21, 0} ? 2 : 4;
        rate = std::min(kLlLimit[row][Column()], rate / share);
      } else if (protocol == Protocol::kLl128) {
        double limit = kRingLl128[generation][Column()];
        if (facts.nodes == 1 && generation == kBlackwell && facts.version >= NcclVersion{2, 29, 0})
          limit = facts.version < NcclVersion{2, 29, 7} ? 34.5 : 40.0;
        rate = std::min(0.92 * rate, graph.channels * limit);
      }
      double latency = base[p];
      if (rooted) {
        latency += facts.nodes == 1 ? hop[p] : net[p];
      } else if (facts.nodes == 1) {
        latency += steps * hop[p];
      } else {
        const double plugin = graph.net_latency * (protocol == Protocol::kSimple ? 2 : 1);
        const double post =
            old ? 0 : (graph.amd ? 2.0 : 1.0) * (protocol == Protocol::kSimple ? 3 : 1);
        const double crossings =
            facts.version >= NcclVersion{2, 23, 0}
                ? (facts.function == Function::kAllReduce ? 2 * (nodes - 1) : nodes - 1)
                : (facts.function == Function::kAllReduce ? 2 * nodes : nodes);
        latency += std::max(0.0, steps - crossings) * std::max(hop[p], post) +
                   crossings * (net[p] + plugin);
        if (protocol == Protocol::kSimple && facts.function == Function::kAllReduce &&
            Bytes() / (graph.total() * n) >= 64)
          latency *= generation == kVolta || old ? 1.9 : 1.4;
      }
      const double algorithm_rate = rate * n / steps;
      out.push_back({latency + Bytes() / (1000 * algorithm_rate), Algorithm::kRing, protocol});
    }
  }

  void Tree(std::vector<Choice>& out) const {
    if (facts.function != Function::kAllReduce || graph.tree_intra <= 0) return;
    if (facts.version < NcclVersion{2, 4, 0}) return;
    const bool old = facts.version < NcclVersion{2, 18, 0};
    const bool middle =
        facts.version >= NcclVersion{2, 19, 0} && facts.version < NcclVersion{2, 23, 0};
    const bool pcie = facts.gpu_class == "pcie" || facts.path != timing::InNodePath::kNvlink;
    const PerProtocol base =
        old ? PerProtocol{4.4, 4.4, 0}
            : PerProtocol{6.8, 14, facts.version < NcclVersion{2, 23, 0} ? 0.0 : 8.4};
    const double simple_hop = old || middle ? 28 : 4;
    const PerProtocol hop =
        pcie ? PerProtocol{1, 1.9, simple_hop} : PerProtocol{0.6, 1.25, simple_hop};
    const PerProtocol net{5, 8.5, old || middle ? 28.0 : 14.0};
    const double depth = std::floor(std::log2(static_cast<double>(facts.nodes)));
    for (std::size_t p = 0; p < 3; ++p) {
      const Protocol protocol = kProtocols[p];
      if (protocol == Protocol::kLl128 && !graph.ll128) continue;
      if (!Allowed(Algorithm::kTree, protocol)) continue;
      double rate =
          std::min(0.92 * graph.channels * (facts.nodes <= 2 ? graph.tree_intra : graph.ring_inter),
                   graph.channels * kTree[generation][Column()]);
      if (protocol == Protocol::kLl) {
        const std::size_t row = facts.nodes == 1 ? static_cast<std::size_t>(generation)
                                : graph.amd      ? kAmpere
                                                 : kVolta;
        rate = std::min(rate / 3.8, kLlLimit[row][Column()]);
      } else if (protocol == Protocol::kLl128) {
        rate = std::min(rate * (facts.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                        graph.channels * kTreeLl128[generation][Column()]);
      }
      if (graph.split_tree && facts.version >= NcclVersion{2, 18, 5}) rate *= 0.85;
      const double plugin = graph.net_latency * (protocol == Protocol::kSimple ? 2 : 1);
      const double latency =
          base[p] + 2 * ((facts.gpus_per_node() - 1) * hop[p] + depth * (net[p] + plugin));
      double algorithm_rate = rate / 2;
      if (facts.size.count() >= 64 && facts.size.count() < 512 * kMi) {
        const auto index = static_cast<std::size_t>(std::bit_width(facts.size.count() / 64) - 1);
        algorithm_rate *= kTreeCorrection[p][std::min<std::size_t>(22, index)];
      }
      out.push_back({latency + Bytes() / (1000 * algorithm_rate), Algorithm::kTree, protocol});
    }
  }

  void Nvls(std::vector<Choice>& out) const {
    if (graph.heads < 2 || Variable(run, "NCCL_NVLS_ENABLE") == "0") return;
    if (facts.version < NcclVersion{2, 18, 0}) return;
    const double heads = graph.heads;
    const double n = facts.ranks;
    const double share = kNvlsShare[generation];
    const bool all_reduce = facts.function == Function::kAllReduce;
    if (facts.nodes > 1) {
      if (!all_reduce || !Allowed(Algorithm::kNvlsTree, Protocol::kSimple)) return;
      double rate = 0;
      const double inter = facts.nodes <= 2 ? graph.nvls_inter : graph.nvls_inter / 2;
      if (facts.version >= NcclVersion{2, 28, 0}) {
        rate = heads *
               std::min({graph.nvls_intra * share * (heads - 1) / heads * 2, 2 * inter,
                         kNvlsTree[generation][Column()]}) *
               n / steps;
      } else {
        const double nodes = facts.nodes;
        rate = heads * std::min(graph.nvls_intra, inter) *
               (facts.version >= NcclVersion{2, 19, 0} ? 5.0 / 6 : 0.7 * nodes / (2 * (nodes - 1)));
      }
      const double depth = std::floor(std::log2(static_cast<double>(facts.nodes)));
      const double hop = facts.version >= NcclVersion{2, 28, 0} ? 20.9 : 14;
      out.push_back({25 + 2 * depth * (hop + 2 * graph.net_latency) + Bytes() / (1000 * rate),
                     Algorithm::kNvlsTree, Protocol::kSimple});
      return;
    }
    const bool adds = facts.function != Function::kAllGather;
    if (facts.function == Function::kBroadcast || facts.function == Function::kReduce) return;
    if (adds && facts.eight_bit_integer) return;  // The switch adds no eight-bit integers.
    if (facts.ranks <= 2 && facts.version < NcclVersion{2, 28, 7}) return;
    if (!Allowed(Algorithm::kNvls, Protocol::kSimple)) return;
    double rate = 0;
    if (facts.version >= NcclVersion{2, 28, 0}) {
      double intra = graph.nvls_intra * share * (heads - 1) / heads;
      intra *= all_reduce ? 2 : (n - 1) / n;
      rate = heads * std::min(intra, graph.nvls_inter) * n / steps;
    } else if (all_reduce) {
      rate = heads * std::min(graph.nvls_intra, graph.nvls_inter) * 5 / 6;
    } else if (facts.version >= NcclVersion{2, 27, 0}) {
      rate = heads * std::min(graph.nvls_intra * (n - 1) / n, 0.9 * graph.nvls_inter);
    } else {
      rate = heads * std::min(graph.nvls_intra, graph.nvls_inter);
    }
    out.push_back({25 + Bytes() / (1000 * rate), Algorithm::kNvls, Protocol::kSimple});
  }
};

double Steps(const CallFacts& facts) {
  const double n = facts.ranks;
  switch (facts.function) {
    case Function::kAllReduce:
      return 2 * (n - 1);
    case Function::kAllGather:
    case Function::kReduceScatter:
      return n - 1;
    default:
      return n;
  }
}

/// Channels and threads fall while the call is small; then cells of equal traffic over channels.
void SplitOneNode(const Graph& graph, CallFacts& facts) {
  const auto n = facts.ranks;
  const bool parts =
      facts.function == Function::kAllGather || facts.function == Function::kReduceScatter;
  const std::uint64_t per_rank =
      std::max<std::uint64_t>(1, parts ? facts.size.count() / n : facts.size.count());
  const std::uint64_t size = facts.size.count();
  if (facts.algorithm == Algorithm::kNvls) {
    facts.channels = graph.nvls_channels;
    facts.threads = 640;
  } else {
    facts.channels = graph.total();
    std::uint64_t threshold = 64;
    facts.threads = 512;
    if (facts.protocol == Protocol::kLl) threshold = 8 * n;
    if (facts.protocol == Protocol::kLl128) {
      threshold = 8;
      facts.threads = 640;
    }
    while (size < std::uint64_t{facts.channels} * facts.threads * threshold && facts.channels > 1)
      --facts.channels;
    while (size < std::uint64_t{facts.channels} * facts.threads * threshold &&
           facts.threads % 128 == 0)
      facts.threads /= 2;
    if (facts.protocol == Protocol::kSimple) facts.threads += 32;
    facts.threads = std::max(96u, facts.threads);
  }
  double traffic = facts.function == Function::kAllReduce ? 2 : parts ? n : 1;
  if (facts.protocol == Protocol::kLl && facts.version >= NcclVersion{2, 26, 0}) traffic *= 4;
  const double least = facts.version >= NcclVersion{2, 29, 0} ? 32768 : 16384;
  const auto cell = static_cast<std::uint64_t>(std::ceil(least / traffic / 16) * 16);
  const std::uint64_t cells = (per_rank + cell - 1) / cell;
  const std::uint64_t each = (cells + facts.channels - 1) / facts.channels;
  facts.channels = static_cast<std::uint32_t>((cells + each - 1) / each);
  std::uint64_t fullest = std::min(each * cell, per_rank);
  if (facts.algorithm == Algorithm::kNvls) {
    const auto heads = static_cast<std::uint64_t>(graph.heads);
    facts.nvls_heads = static_cast<std::uint32_t>(heads);
    if (facts.function != Function::kAllReduce) fullest *= n;
    std::uint64_t chunk = 128 * kKi;
    if (fullest < 64 * heads * chunk) chunk = 64 * kKi;
    if (fullest < 8 * heads * chunk) chunk = 32 * kKi;
    if (fullest < 2 * heads * chunk) chunk = 16 * kKi;
    facts.chunk = Bytes(chunk);
  } else {
    const bool rooted =
        facts.function == Function::kBroadcast || facts.function == Function::kReduce;
    facts.chunk = facts.protocol == Protocol::kLl      ? KiB(32)
                  : facts.protocol == Protocol::kLl128 ? Bytes(576000)
                  : rooted                             ? KiB(512)
                                                       : MiB(2);
  }
  facts.channel_bytes = Bytes(fullest);
}

void SplitNetwork(const Graph& graph, CallFacts& facts) {
  const double size = static_cast<double>(facts.size.count());
  const double n = facts.ranks;
  const double gpus = facts.gpus_per_node();
  if (facts.algorithm == Algorithm::kNvlsTree) {
    facts.channels = graph.nvls_channels;
    facts.nvls_heads = static_cast<std::uint32_t>(graph.heads);
    const double per_channel = size / facts.channels;
    double chunk = facts.nodes < 4 ? 128 * kKi : 64 * kKi;
    if (facts.version >= NcclVersion{2, 30, 0} && facts.gpu_class == "b200")
      chunk = std::min(chunk, 64.0 * kKi);
    if (per_channel / chunk < 4 * graph.heads) chunk = std::min(chunk, 64.0 * kKi);
    if (per_channel / chunk < graph.heads) chunk = std::min(chunk, 32.0 * kKi);
    facts.chunk = Bytes(static_cast<std::uint64_t>(chunk));
    return;
  }
  const bool ring = facts.algorithm == Algorithm::kRing;
  double threshold = facts.protocol == Protocol::kLl      ? (ring ? 8 * n : 8) * 512
                     : facts.protocol == Protocol::kLl128 ? 8 * 640
                                                          : 64 * 512;
  if (facts.protocol == Protocol::kLl && !ring && facts.version < NcclVersion{2, 26, 0})
    threshold *= 2;  // 16 KiB of traffic a channel, without LL's weight.
  double channels =
      std::clamp(std::floor(size / threshold), 1.0, static_cast<double>(graph.total()));
  if (facts.protocol != Protocol::kLl) {
    const double traffic = size * (facts.function == Function::kAllReduce ? 2 : n);
    channels = std::clamp(std::floor(traffic / (16 * kKi)), 1.0, channels);
  }
  facts.channels = static_cast<std::uint32_t>(channels);
  double chunk = facts.protocol == Protocol::kLl      ? 32 * kKi
                 : facts.protocol == Protocol::kLl128 ? 576000
                 : ring                               ? 2 * kMi
                                                      : 512 * kKi;
  const double per_channel = size / channels;
  const double depth = std::floor(std::log2(static_cast<double>(facts.nodes)));
  if (!ring && facts.protocol == Protocol::kLl128) {
    const double factor = 1 + depth + 0.1 * gpus;
    while (per_channel / chunk < 64 * factor / gpus && chunk > 128 * kKi) chunk /= 2;
    while (per_channel / chunk < 16 * factor / gpus && chunk > 32 * kKi) chunk /= 2;
  }
  if (!ring && facts.protocol == Protocol::kSimple && facts.version < NcclVersion{2, 20, 0}) {
    const double hops = 2 * (gpus - 1) + 2 * depth;
    while (per_channel / chunk < 8 * hops && chunk > 128 * kKi) chunk /= 2;
    while (per_channel / chunk < 4 * hops && chunk > 64 * kKi) chunk /= 2;
    while (per_channel / chunk < hops && chunk > 32 * kKi) chunk /= 2;
  }
  facts.chunk = Bytes(static_cast<std::uint64_t>(chunk));
  facts.channel_bytes = Bytes(static_cast<std::uint64_t>(std::max(1.0, per_channel)));
}

void SplitPointToPoint(const Graph& graph, CallFacts& facts) {
  const double n = facts.ranks;
  const bool pair = facts.function == Function::kSendReceive;
  const double to_peer = std::max(1.0, static_cast<double>(facts.size.count()) / (pair ? 1 : n));
  facts.algorithm = Algorithm::kPointToPoint;
  const double most = std::bit_ceil(std::min(64u, std::max(1u, graph.total())));
  if (facts.nodes > 1) {
    double channels = 2;
    if (facts.version >= NcclVersion{2, 29, 0}) {
      channels = std::max({1.0, std::floor(double{1} * facts.nics_per_node / facts.gpus_per_node()),
                           std::ceil(ToGigabytesPerSecond(facts.nic_rate) / 14)});
      while (channels > 1 && channels * std::ceil(n / 8) > most)
        channels = std::floor(channels / 2);
    } else {
      while (channels > 1 && channels * n > 4 * most) channels /= 2;
    }
    facts.peer_parts = static_cast<std::uint32_t>(channels);
    facts.protocol = to_peer > 32 * kKi ? Protocol::kSimple : Protocol::kLl;
    facts.chunk = KiB(128);
    return;
  }
  constexpr double kChannels = 32;
  double least = kChannels;
  while (least * n > kChannels && least > 1) least /= 2;
  double parts = 1;
  if (facts.version >= NcclVersion{2, 29, 0}) {
    parts = std::min(least, std::max(1.0, std::ceil(to_peer / (64 * kKi))));
    facts.protocol = to_peer <= 16 * kKi ? Protocol::kLl : Protocol::kSimple;
  } else {
    facts.protocol = to_peer <= 16 * kKi * 32 ? Protocol::kLl : Protocol::kSimple;
    const double piece = facts.protocol == Protocol::kLl ? 8 * kKi : 64 * kKi;
    parts = std::min(least, std::max(1.0, std::ceil(to_peer / piece)));
  }
  if (facts.protocol == Protocol::kSimple) {
    while (to_peer / parts > 16 * kMi && parts < kChannels) parts *= 2;
  }
  facts.peer_parts = static_cast<std::uint32_t>(parts);
  facts.chunk = KiB(512);
}

}  // namespace

Decision BoardDecisions::Decide(const Platform& platform, const MeasuredRun& run,
                                Bytes size) const {
  Decision decision{.facts = platform.facts};
  CallFacts& facts = decision.facts;
  facts.size = size;
  const Generation generation = GenerationOf(facts);
  const Graph graph = facts.nodes > 1 ? NetworkGraph(platform, run, generation)
                                      : OneNodeGraph(platform, generation);
  if (facts.function == Function::kAllToAll || facts.function == Function::kSendReceive) {
    SplitPointToPoint(graph, facts);
    return decision;
  }
  const Tuning tuning{facts, run, graph, generation, Steps(facts)};
  std::vector<Choice> choices;
  // NCCL 1 had one protocol and rings only.
  if (facts.version < NcclVersion{2, 0, 0}) {
    facts.protocol = Protocol::kSimple;
  } else {
    tuning.Tree(choices);
    tuning.Ring(choices);
    tuning.Nvls(choices);
    // With in-switch sums NVLS spans nodes; its pipeline over the NICs is that of NVLSTree.
    if (graph.in_network && facts.function == Function::kAllReduce)
      std::erase_if(choices, [](const Choice& choice) {
        return choice.algorithm != Algorithm::kNvlsTree && choice.protocol == Protocol::kSimple;
      });
    const auto best =
        std::min_element(choices.begin(), choices.end(),
                         [](const Choice& a, const Choice& b) { return a.us < b.us; });
    if (best == choices.end()) {
      throw ConfigError({.file = run.id,
                         .field = "NCCL_ALGO, NCCL_PROTO",
                         .problem = "leave nothing to choose for " + run.collective});
    }
    facts.algorithm = best->algorithm;
    facts.protocol = best->protocol;
    decision.nccl_estimate_us = best->us;
  }
  if (facts.nodes > 1) {
    SplitNetwork(graph, facts);
  } else {
    SplitOneNode(graph, facts);
  }
  return decision;
}

}  // namespace windtunnel::validate
