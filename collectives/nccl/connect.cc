#include "collectives/nccl/connect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collectives/nccl/rings.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Ranks = std::vector<std::int32_t>;

[[noreturn]] void Fail(const Job& job, std::string field, std::string problem) {
  throw ConfigError({.file = job.name, .field = std::move(field), .problem = std::move(problem)});
}

// The search channels of a description as indices into its `gpus`, one list per graph and channel.
class GpuOrders {
 public:
  GpuOrders(const Job& job, const NodeDescription& node) {
    std::map<HostDevice, std::int32_t> index;
    for (std::size_t g = 0; g < node.gpus.size(); ++g)
      index[node.gpus[g].device] = static_cast<std::int32_t>(g);
    for (const SearchGraph& graph : node.graphs) {
      auto& channels = orders_[static_cast<std::size_t>(graph.id)];
      for (const SearchGraph::Channel& channel : graph.channels) {
        Ranks& order = channels.emplace_back();
        for (const HostDevice& gpu : channel.gpus) {
          const auto found = index.find(gpu);
          if (found == index.end())
            Fail(job, fmt::format("graph {}", static_cast<int>(graph.id)),
                 fmt::format("names GPU {}.{}, which is not in the node", gpu.host, gpu.dev));
          order.push_back(found->second);
        }
      }
    }
  }
  const std::vector<Ranks>& Of(GraphId id) const { return orders_[static_cast<std::size_t>(id)]; }

 private:
  std::array<std::vector<Ranks>, 5> orders_;
};

// Everything Connect works on, filled step by step in the order of NCCL's initialisation.
class Builder {
 public:
  Builder(const Job& job, const Environment& environment, const Constants& constants)
      : job_(job), env_(environment), constants_(constants), version_(constants.version) {}

  Connections Run() {
    PlaceRanks();
    ExchangeGraphs();
    SwitchNvlsAndCollNet();
    NumberNodes();
    FinishCollNet();
    Channels();
    RingsAndTrees();
    NvlsTrees();
    Buffers();
    out_.p2p = PlanP2pChannels(Own(), out_.channel_count, out_.rank_count(), out_.node_count(),
                               env_, constants_);
    Flags();
    return std::move(out_);
  }

 private:
  const NodeDescription& Node(std::uint32_t node) const { return *job_.nodes[node]; }
  const NodeDescription& Own() const { return Node(job_.ranks[0].node); }
  // Ranks of a node's search channel.
  Ranks Chain(std::uint32_t node, GraphId id, std::size_t channel) const {
    Ranks ranks = orders_.at(job_.nodes[node].get()).Of(id)[channel];
    for (auto& entry : ranks) entry = gpu_rank_[node][static_cast<std::size_t>(entry)];
    return ranks;
  }
  GraphSummary& Graph(GraphId id) { return out_.graphs[static_cast<std::size_t>(id)]; }

  void PlaceRanks() {
    if (job_.ranks.empty()) Fail(job_, "ranks", "no ranks");
    gpu_rank_.resize(job_.nodes.size());
    for (std::size_t n = 0; n < job_.nodes.size(); ++n) {
      gpu_rank_[n].assign(job_.nodes[n]->gpus.size(), -1);
      if (!orders_.contains(job_.nodes[n].get()))
        orders_.emplace(job_.nodes[n].get(), GpuOrders(job_, *job_.nodes[n]));
    }
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      const RankPlace& place = job_.ranks[r];
      if (place.node >= job_.nodes.size() || place.gpu >= gpu_rank_[place.node].size())
        Fail(job_, fmt::format("ranks[{}]", r), "is on a node or GPU that does not exist");
      std::int32_t& rank = gpu_rank_[place.node][place.gpu];
      if (rank >= 0)
        Fail(job_, fmt::format("ranks[{}]", r), fmt::format("shares its GPU with rank {}", rank));
      rank = static_cast<std::int32_t>(r);
    }
    for (std::size_t n = 0; n < gpu_rank_.size(); ++n)
      if (std::find(gpu_rank_[n].begin(), gpu_rank_[n].end(), -1) != gpu_rank_[n].end())
        Fail(job_, fmt::format("nodes[{}]", n), "has a GPU without a rank");
  }

  void ExchangeGraphs() {
    const std::set<std::uint32_t> distinct = DistinctNodes();
    out_.min_compute_capability = 9999;
    for (std::size_t g = 0; g < out_.graphs.size(); ++g) {
      const auto id = static_cast<GraphId>(g);
      GraphSummary& sum = out_.graphs[g];
      if (const SearchGraph* own = Own().Graph(id)) {
        sum = {own->pattern,    own->channel_count, own->bw_intra,
               own->bw_inter,   own->latency_inter, own->type_intra,
               own->type_inter, own->same_channels, own->cross_nic};
        const auto place = static_cast<std::size_t>(own - Own().graphs.data());
        if (place < Own().graph_hops.size()) sum.hops = Own().graph_hops[place];
      }
      for (const std::uint32_t n : distinct) {
        static const SearchGraph kNone{.same_channels = false};
        const SearchGraph* found = Node(n).Graph(id);
        const SearchGraph& graph = found != nullptr ? *found : kNone;
        sum.channel_count = std::min(sum.channel_count, graph.channel_count);
        sum.bw_intra = std::min(sum.bw_intra, graph.bw_intra);
        sum.bw_inter = std::min(sum.bw_inter, graph.bw_inter);
        sum.type_intra = std::max(sum.type_intra, graph.type_intra);
        sum.type_inter = std::max(sum.type_inter, graph.type_inter);
        sum.same_channels = sum.same_channels && graph.same_channels;
        sum.cross_nic = std::max(sum.cross_nic, graph.cross_nic);
      }
    }
    out_.cpu_arch = Own().cpu_arch;
    out_.cpu_vendor = Own().cpu_vendor;
    int worst = 0;
    for (const std::uint32_t n : distinct) {
      const NodeDescription& node = Node(n);
      const SearchGraph* ring = node.Graph(GraphId::kRing);
      const SearchGraph* tree = node.Graph(GraphId::kTree);
      if (ring == nullptr || tree == nullptr || ring->channels.empty() || tree->channels.empty())
        Fail(job_, fmt::format("nodes[{}]", n), "has no ring or no tree");
      worst = std::max(worst, static_cast<int>(tree->pattern));
      for (const auto& gpu : node.gpus) {
        out_.min_compute_capability = std::min(out_.min_compute_capability, gpu.compute_capability);
        out_.max_compute_capability = std::max(out_.max_compute_capability, gpu.compute_capability);
      }
      if (version_ >= NcclVersion{2, 22, 3}) {  // Before, each rank went by its own CPU.
        if (node.cpu_arch != out_.cpu_arch) out_.cpu_arch.reset();
        if (node.cpu_vendor != out_.cpu_vendor) out_.cpu_vendor.reset();
      }
    }
    out_.flags.worst_tree_pattern = static_cast<Pattern>(worst);
    GraphSummary& ring = Graph(GraphId::kRing);
    GraphSummary& tree = Graph(GraphId::kTree);
    ring.channel_count = tree.channel_count = std::min(ring.channel_count, tree.channel_count);
  }

  // One node of each description: equal nodes say nothing new.
  std::set<std::uint32_t> DistinctNodes() const {
    std::set<std::uint32_t> out;
    std::set<const NodeDescription*> seen;
    for (std::uint32_t n = 0; n < job_.nodes.size(); ++n)
      if (seen.insert(job_.nodes[n].get()).second) out.insert(n);
    return out;
  }

  void SwitchNvlsAndCollNet() {
    const std::int64_t enable = env_.GetInt("NCCL_NVLS_ENABLE", 2);
    const bool enough = static_cast<int>(Own().gpus.size()) >= constants_.planning.nvls_min_gpus;
    const bool possible = version_ >= NcclVersion{2, 17, 1} && enable != 0 && enough &&
                          (enable != 2 || Own().multicast);
    limits_ = LimitsFrom(env_, constants_.planning);
    if (possible) {
      std::set<std::uint32_t> hosts;
      for (const RankPlace& place : job_.ranks) hosts.insert(place.host);
      const bool one_domain = Own().gpus.size() == job_.ranks.size();
      out_.nvls_channels = NvlsChannels(Own().gpus[job_.ranks[0].gpu].compute_capability,
                                        hosts.size() > 1 && !(IsNvlinkDomain() && one_domain),
                                        limits_, env_, constants_.planning);
    }
    out_.flags.nvls = possible && Graph(GraphId::kNvls).channel_count > 0;
    if (!out_.flags.nvls) out_.nvls_channels = 0;
    out_.flags.collnet = job_.collnet_plugin && env_.GetInt("NCCL_COLLNET_ENABLE", 0) == 1 &&
                         Graph(ChainGraph()).channel_count > 0;
  }
  bool IsNvlinkDomain() const {
    return std::any_of(Own().gpus.begin(), Own().gpus.end(), [&](const auto& gpu) {
      return gpu.device.host != Own().gpus[0].device.host;
    });
  }
  // Before CollNet was split into direct and chain there was one search.
  GraphId ChainGraph() const { return GraphId::kCollNetChain; }

  void NumberNodes() {
    std::map<std::uint32_t, std::int32_t> number;
    for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
      const std::uint32_t node = job_.ranks[r].node;
      const auto [place, fresh] = number.try_emplace(node, out_.node_count());
      if (fresh) {
        out_.node_ranks.emplace_back();
        out_.node_of_job.push_back(node);
      }
      Ranks& locals = out_.node_ranks[static_cast<std::size_t>(place->second)];
      out_.rank_to_node.push_back(place->second);
      out_.rank_to_local.push_back(static_cast<std::int32_t>(locals.size()));
      locals.push_back(static_cast<std::int32_t>(r));
      out_.max_local_ranks = std::max(out_.max_local_ranks, static_cast<int>(locals.size()));
    }
    out_.tree_depth = out_.rank_count() / out_.node_count() - 1 +
                      Log2Floor(static_cast<std::uint64_t>(out_.node_count()));
  }

  void FinishCollNet() {
    if (!out_.flags.collnet) return;
    if (out_.node_count() <
        env_.GetInt("NCCL_COLLNET_NODE_THRESHOLD", constants_.planning.collnet_node_threshold))
      out_.flags.collnet = false;
    if (version_ < NcclVersion{2, 28, 3} &&
        out_.max_local_ranks > constants_.planning.max_collnet_local_ranks)
      out_.flags.collnet = false;
    if (!out_.flags.collnet) return;
    // Heads of CollNet direct: the distinct first GPUs of its channels.
    const GraphId direct =
        version_ >= NcclVersion{2, 22, 3} ? GraphId::kCollNetDirect : GraphId::kCollNetChain;
    out_.collnet_head_of_rank.assign(job_.ranks.size(), -1);
    for (const std::uint32_t node : out_.node_of_job) {
      const Ranks heads = Heads(node, direct, Graph(direct).channel_count);
      for (std::size_t h = 0; h < heads.size(); ++h)
        out_.collnet_head_of_rank[static_cast<std::size_t>(heads[h])] =
            static_cast<std::int32_t>(h);
      if (node == job_.ranks[0].node) out_.collnet_heads = static_cast<int>(heads.size());
    }
    out_.collnet_direct_depth = out_.max_local_ranks == 1 ? 1 : 2;
    out_.collnet_chain_depth = out_.rank_count() / out_.node_count();
  }
  // First ranks of the search channels.
  Ranks Heads(std::uint32_t node, GraphId id, int channel_count) const {
    Ranks heads;
    const auto& channels = orders_.at(job_.nodes[node].get()).Of(id);
    for (std::size_t c = 0; c < std::min(channels.size(), static_cast<std::size_t>(channel_count));
         ++c) {
      const std::int32_t head = gpu_rank_[node][static_cast<std::size_t>(channels[c].front())];
      // Up to 2.19 the switch's heads count again when a GPU leads several channels.
      const bool repeats = id == GraphId::kNvls && version_ < NcclVersion{2, 20, 3};
      if (repeats || std::find(heads.begin(), heads.end(), head) == heads.end())
        heads.push_back(head);
    }
    return heads;
  }

  void Channels() {
    const GraphSummary& chain = Graph(ChainGraph());
    sources_ = PlanChannels({.search_channels = Graph(GraphId::kRing).channel_count,
                             .collnet = out_.flags.collnet,
                             .collnet_faster_inside = chain.bw_intra > chain.bw_inter,
                             .min_compute_capability = out_.min_compute_capability,
                             .node_count = out_.node_count(),
                             .rank_count = out_.rank_count(),
                             .ring_bw_intra = Graph(GraphId::kRing).bw_intra,
                             .nvls_channels = out_.nvls_channels},
                            limits_, constants_);
    out_.channel_count = static_cast<int>(sources_.source.size());
    out_.channel_count_before_nvls = sources_.count_before_nvls;
  }

  // On nodes of odd number, rings that use other NICs for entry and exit change places in pairs, so
  // that the traffic between nodes stays on one rail.
  bool SwapsPairs(std::size_t node) const {
    if (version_ < NcclVersion{2, 20, 3} || node % 2 == 0) return false;
    const int search_channels = out_.graph(GraphId::kRing).channel_count;
    if (search_channels % 2 != 0) return false;
    if (version_ < NcclVersion{2, 21, 5} && out_.node_count() % 2 != 0) return false;
    if (version_ < NcclVersion{2, 26, 2}) return out_.graph(GraphId::kRing).cross_nic != 0;
    if (version_ < NcclVersion{2, 28, 3}) return out_.graph(GraphId::kRing).cross_nic == 2;
    return Node(out_.node_of_job[node]).Graph(GraphId::kRing)->cross_nic == 2;
  }

  void RingsAndTrees() {
    const auto search_channels = static_cast<std::size_t>(Graph(GraphId::kRing).channel_count);
    const auto nodes = static_cast<std::size_t>(out_.node_count());
    const auto ranks = static_cast<std::size_t>(out_.rank_count());
    std::vector<Ranks> rings;
    std::vector<TreeChannel> duplicates;
    for (std::size_t c = 0; c < search_channels; ++c) {
      std::vector<Ranks> ring_chains;
      std::vector<Ranks> tree_chains;
      for (std::size_t n = 0; n < nodes; ++n) {
        const std::uint32_t node = out_.node_of_job[n];
        ring_chains.push_back(Chain(node, GraphId::kRing, SwapsPairs(n) ? c ^ 1 : c));
        tree_chains.push_back(Chain(node, GraphId::kTree, c));
      }
      std::vector<std::span<const std::int32_t>> spans(ring_chains.begin(), ring_chains.end());
      rings.push_back(BuildRing(spans, ranks));
      std::vector<NodeChain> chains;
      for (std::size_t n = 0; n < nodes; ++n)
        chains.push_back(
            {tree_chains[n], Node(out_.node_of_job[n]).Graph(GraphId::kTree)->pattern});
      auto trees = BuildTrees(chains, ranks);
      out_.source_trees.push_back(std::move(trees[0]));
      duplicates.push_back(std::move(trees[1]));
    }
    for (TreeChannel& tree : duplicates) out_.source_trees.push_back(std::move(tree));
    for (const int source : sources_.source) {
      const auto s = static_cast<std::size_t>(source);
      if (out_.flags.collnet) {
        auto& firsts = out_.collnet_chain_first.emplace_back();
        for (const std::uint32_t node : out_.node_of_job)
          firsts.push_back(Chain(node, ChainGraph(), s % search_channels).front());
      }
      out_.rings.push_back(rings[s % search_channels]);
      out_.channel_source.push_back(static_cast<std::uint32_t>(s));
    }
  }

  void NvlsTrees() {
    if (version_ < NcclVersion{2, 17, 1}) return;
    std::vector<Ranks> heads;
    for (const std::uint32_t node : out_.node_of_job) {
      const SearchGraph* nvls = Node(node).Graph(GraphId::kNvls);
      heads.push_back(nvls == nullptr ? Ranks{} : Heads(node, GraphId::kNvls, nvls->channel_count));
    }
    if (out_.flags.nvls) out_.nvls = BuildNvls(heads, static_cast<std::size_t>(out_.rank_count()));
    if (out_.nvls.head_count == 0) out_.nvls_channels = 0;
    if (out_.flags.collnet)
      out_.collnet_own_heads = out_.flags.nvls ? out_.nvls.head_count : out_.collnet_heads;
  }

  void Buffers() {
    const PlanningConstants& planning = constants_.planning;
    constexpr const char* kNames[] = {"NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE", "NCCL_BUFFSIZE"};
    for (std::size_t p = 0; p < kProtocolCount; ++p) {
      std::int64_t otherwise = planning.buffer[p];
      if (p == Index(Protocol::kSimple) && Own().cpu_arch == CpuArch::kArm)
        otherwise = planning.buffer_simple_arm;
      out_.buffer[p] = env_.GetInt(kNames[p], otherwise);
    }
    const bool nvlink = AllNvlink();
    out_.p2p_chunk = out_.node_count() > 1
                         ? env_.GetInt("NCCL_P2P_NET_CHUNKSIZE", planning.p2p_chunk_net)
                     : nvlink ? env_.GetInt("NCCL_P2P_NVL_CHUNKSIZE", planning.p2p_chunk_nvlink)
                              : env_.GetInt("NCCL_P2P_PCI_CHUNKSIZE", planning.p2p_chunk_pci);
    const std::int64_t most = out_.buffer[Index(Protocol::kSimple)] / planning.buffer_steps;
    if (version_ >= NcclVersion{2, 19, 1}) out_.p2p_chunk = std::min(out_.p2p_chunk, most);
    NvlsChunks();
  }

  void NvlsChunks() {
    const PlanningConstants& planning = constants_.planning;
    std::int64_t chunk = planning.nvls_chunk;
    std::int64_t tree_chunk = 0;
    if (version_ >= NcclVersion{2, 30, 3} && out_.flags.nvls)
      TuneBlackwellNvls(&chunk, &tree_chunk);
    out_.nvls_chunk = env_.GetInt("NCCL_NVLS_CHUNKSIZE", chunk);
    if (tree_chunk == 0) {
      const std::int64_t start =
          version_ >= NcclVersion{2, 21, 5} ? out_.nvls_chunk : planning.nvls_tree_chunk;
      tree_chunk =
          version_ >= NcclVersion{2, 19, 1} && out_.node_count() >= 4 ? std::int64_t{65536} : start;
    }
    out_.nvls_tree_chunk = env_.GetInt("NCCL_NVLSTREE_MAX_CHUNKSIZE", tree_chunk);
    if (!out_.flags.nvls) out_.nvls_chunk = out_.nvls_tree_chunk = 0;
  }

  // Blackwell over nodes, by NIC rate and ranks per node. Source: NVIDIA/nccl v2.30.7,
  // src/transport/nvls.cc.
  void TuneBlackwellNvls(std::int64_t* chunk, std::int64_t* tree_chunk) {
    if (out_.min_compute_capability < 100 || out_.node_count() == 1) return;
    constexpr std::int64_t kKiB = 1024;
    std::size_t locals = out_.node_ranks[0].size();
    for (const Ranks& node : out_.node_ranks) locals = std::min(locals, node.size());
    const float nic = Own().min_net_bandwidth;
    const bool near = Graph(GraphId::kNvls).type_inter <= PathType::kPxb;
    int channels = 0;
    if (out_.node_count() == 2 && nic >= 48.0F) {
      channels = 32;
      *tree_chunk = 128 * kKiB;
      if (locals <= 4) {
        *chunk = *tree_chunk = 256 * kKiB;
      } else if (locals >= 16 || (locals <= 8 && near && nic < 96.0F)) {
        *tree_chunk = 64 * kKiB;
      }
    } else if (nic >= 96.0F) {
      if (locals <= 8) {
        channels = 24;
        *chunk = *tree_chunk = 256 * kKiB;
      } else {
        channels = 32;
        *tree_chunk = (locals < 32 ? 128 : 64) * kKiB;
      }
    } else if (nic >= 48.0F) {
      channels = 24;
      *tree_chunk = (near ? 64 : 128) * kKiB;
    }
    if (channels > 0 && !env_.Get("NCCL_NVLS_NCHANNELS"))
      out_.nvls_channels = std::max(limits_.min_ctas, std::min(limits_.max_ctas, channels));
  }

  // Until 2.24 one pair joined by NVLink was enough.
  bool AllNvlink() const {
    const bool any = version_ < NcclVersion{2, 25, 1};
    bool all = !any;
    for (std::size_t i = 0; i < Own().gpus.size(); ++i)
      for (std::size_t j = 0; j < Own().gpus.size(); ++j) {
        if (i == j) continue;
        const bool nvlink = Own().gpu_paths[i][j].type < PathType::kPix;
        all = any ? all || nvlink : all && nvlink;
      }
    return all;
  }

  void Flags() {
    ConnectionFlags& flags = out_.flags;
    flags.all_nvlink = AllNvlink();
    flags.one_rank_per_node = out_.max_local_ranks == 1;
    flags.pxn_disabled = env_.GetInt("NCCL_PXN_DISABLE", 0) != 0;
    std::set<std::uint32_t> hosts;
    for (const std::int32_t rank : out_.node_ranks[0])
      if (!hosts.insert(job_.ranks[static_cast<std::size_t>(rank)].host).second)
        flags.direct_mode = flags.direct_mode || job_.ranks_of_a_host_share_a_process;
    // A path over a third GPU is not direct. With one rank per node versions before 2.28.7 say no.
    flags.all_direct_p2p = Own().gpus.size() > 1 || version_ >= NcclVersion{2, 28, 7};
    const PathType farthest = FarthestPeerToPeer();
    for (std::size_t i = 0; i < Own().gpus.size(); ++i)
      for (std::size_t j = 0; j < Own().gpus.size(); ++j) {
        const PathType type = i == j ? PathType::kLoc : Own().gpu_paths[i][j].type;
        if (type > farthest || type == PathType::kNvb) flags.all_direct_p2p = false;
      }
  }

  // Paths up to this type are peer to peer; farther ones go through the host.
  PathType FarthestPeerToPeer() const {
    if (env_.GetInt("NCCL_P2P_DISABLE", 0) == 1) return PathType::kLoc;
    if (const auto level = env_.Get("NCCL_P2P_LEVEL")) {
      if (const auto type = PathTypeFromName(*level)) return *type;
      constexpr PathType kNumbers[] = {PathType::kLoc, PathType::kPix, PathType::kPxb,
                                       PathType::kPhb, PathType::kSys, PathType::kSys};
      return kNumbers[std::clamp<std::int64_t>(env_.GetInt("NCCL_P2P_LEVEL", 0), 0, 5)];
    }
    const bool amd_pair = Own().cpu_arch == CpuArch::kX86 && Own().cpu_vendor == CpuVendor::kAmd &&
                          Own().gpus.size() <= 2;
    return amd_pair ? PathType::kSys : PathType::kPxb;
  }

  const Job& job_;
  const Environment& env_;
  const Constants& constants_;
  const NcclVersion version_;
  std::map<const NodeDescription*, GpuOrders> orders_;
  std::vector<Ranks> gpu_rank_;  // [node of the job][GPU] -> rank
  ChannelLimits limits_;
  ChannelSources sources_;
  Connections out_;
};

}  // namespace

Connections Connect(const Job& job, const Environment& environment, const Constants& constants) {
  return Builder(job, environment, constants).Run();
}

}  // namespace windtunnel::nccl
