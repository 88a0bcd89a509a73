#include "collectives/nccl/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Use = UserChoice::Use;

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// One variable (NCCL_ALGO or NCCL_PROTO) applied to the table of all functions.
template <std::size_t N>
class ListReader {
 public:
  using Table = std::array<std::array<Use, N>, kTunedFunctionCount>;
  ListReader(const char* variable, std::vector<std::string> names, NcclVersion version)
      : variable_(variable), names_(std::move(names)), version_(version) {}

  void Read(const Environment& environment, Table& table) const {
    const auto text = environment.Get(variable_);
    if (!text) return;
    if (version_ < NcclVersion{2, 24, 3}) {
      for (auto& row : table) Apply(*text, *text, row);
      return;
    }
    bool first = true;
    for (const std::string& part : Split(*text, ';')) {
      const auto pieces = Split(part, ':');
      if (pieces.empty()) continue;
      if (pieces.size() == 1) {
        if (!first)
          Fail(*text, part, "needs a function in front",
               "all entries but the first as FUNCTION:LIST");
        for (auto& row : table) Apply(*text, pieces[0], row);
      } else {
        bool found = false;
        for (std::size_t f = 0; f < kTunedFunctionCount; ++f) {
          if (!SameName(pieces[0], kTunedFunctionNames[f])) continue;
          found = true;
          Apply(*text, pieces[1], table[f]);
        }
        if (!found) {
          const std::vector<std::string> known(std::begin(kTunedFunctionNames),
                                               std::end(kTunedFunctionNames));
          Fail(*text, pieces[0], "names no function", JoinNames(known));
        }
      }
      first = false;
    }
  }

 private:
  void Apply(const std::string& whole, std::string_view list, std::array<Use, N>& row) const {
    const bool exclude = list.starts_with('^');
    if (exclude) list.remove_prefix(1);
    row.fill(exclude ? Use::kYes : Use::kNo);
    for (const std::string& name : Split(list, ',')) {
      bool found = false;
      for (std::size_t i = 0; i < N && i < names_.size(); ++i) {
        if (!SameName(name, names_[i])) continue;
        row[i] = exclude ? Use::kNo : Use::kYes;
        found = true;
      }
      if (!found && version_ >= NcclVersion{2, 24, 3})
        Fail(whole, name, "is not known", JoinNames(names_));
    }
  }
  [[noreturn]] void Fail(const std::string& whole, const std::string& part,
                         const std::string& problem, const std::string& expected) const {
    throw ConfigError({.field = variable_,
                       .value = whole,
                       .problem = "'" + part + "' " + problem + ":",
                       .expected = expected,
                       .nearest = NearestName(part, names_)});
  }

  const char* variable_;
  std::vector<std::string> names_;
  NcclVersion version_;
};

// Threads of a block as NCCL reads them from a variable.
int ThreadsFrom(const Environment& environment, const char* variable, int lowest, int highest,
                int otherwise) {
  const int set = static_cast<int>(environment.GetInt(variable, -2));
  if (set <= 0) return otherwise;
  if (set % 32 != 0) return highest;
  return std::clamp(set, lowest, highest);
}

// The arithmetic of the model for one communicator. Types and order of operations are NCCL's, since
// single-precision results are compared.
class Tuner {
 public:
  Tuner(const Job& job, const Connections& connections, const Environment& environment,
        const Constants& constants)
      : job_(job),
        comm_(connections),
        env_(environment),
        constants_(constants.tuning),
        planning_(constants.planning),
        version_(constants.version),
        ranks_(connections.rank_count()),
        nodes_(connections.node_count()),
        ranks_per_node_(static_cast<float>(ranks_) / static_cast<float>(nodes_)) {
    PickRows();
  }

  TuningTable Run() {
    Threads();
    if (ranks_ <= 1) return std::move(out_);
    for (const Function f : {Function::kAllReduce, Function::kAllGather, Function::kReduceScatter,
                             Function::kBroadcast, Function::kReduce})
      for (std::size_t a = 0; a < kAlgorithmCount; ++a)
        for (std::size_t p = 0; p < kProtocolCount; ++p)
          Estimate(f, static_cast<AlgorithmId>(a), static_cast<Protocol>(p));
    for (std::size_t f = 0; f < kTunedFunctionCount && Since(19, 1) && !Since(24, 3); ++f)
      for (std::size_t p = 0; p < kProtocolCount; ++p)
        out_.ring_reserve[f][p] = out_.entries[f][Index(AlgorithmId::kRing)][p].bandwidth;
    SwitchOff();
    return std::move(out_);
  }

 private:
  bool Since(int minor, int patch) const { return version_ >= NcclVersion{2, minor, patch}; }
  const GraphSummary& GraphOf(AlgorithmId a) const {
    switch (a) {
      case AlgorithmId::kRing:
        return comm_.graph(GraphId::kRing);
      case AlgorithmId::kCollNetDirect:
        // Until 2.21 one search served direct and chain.
        return comm_.graph(Since(22, 3) ? GraphId::kCollNetDirect : GraphId::kCollNetChain);
      case AlgorithmId::kCollNetChain:
        return comm_.graph(GraphId::kCollNetChain);
      case AlgorithmId::kNvls:
      case AlgorithmId::kNvlsTree:
        return comm_.graph(GraphId::kNvls);
      case AlgorithmId::kTree:
      case AlgorithmId::kPat:
        break;
    }
    return comm_.graph(GraphId::kTree);
  }

  void PickRows() {
    const int lowest = comm_.min_compute_capability;
    if (Since(17, 1)) {
      row_ = lowest >= 100  ? GpuRow::kBlackwell
             : lowest >= 90 ? GpuRow::kHopper
             : lowest >= 80 ? GpuRow::kAmpere
                            : GpuRow::kVolta;
    } else {
      row_ = lowest == 80 && comm_.max_compute_capability == 80 ? GpuRow::kAmpere : GpuRow::kVolta;
    }
    const std::size_t row = static_cast<std::size_t>(row_);
    const std::size_t column = static_cast<std::size_t>(nodes_ <= 2 ? nodes_ - 1 : 2);
    // LL: inside a node by GPU, over nodes by CPU.
    const bool amd = comm_.cpu_vendor == CpuVendor::kAmd || (Since(24, 3) && !comm_.cpu_vendor);
    const std::size_t ll_row = nodes_ == 1 ? row : amd ? 1 : 0;
    ll_limit_ = constants_.ll_bandwidth[ll_row][column];
    tree_limit_ = constants_.tree_bandwidth[row][column];
    ring_ll128_limit_ = constants_.ring_ll128_bandwidth[row][column];
    tree_ll128_limit_ = constants_.tree_ll128_bandwidth[row][column];
    nvls_tree_limit_ = static_cast<float>(constants_.nvls_tree_bandwidth[row][column]);
    if (comm_.cpu_arch == CpuArch::kPower) {
      // On Power the penalty of tree Simple over PCI is taken away.
      auto& pci = constants_.hop_latency[static_cast<std::size_t>(HopKind::kPci)];
      pci[Index(AlgorithmId::kTree)][Index(Protocol::kSimple)] =
          pci[Index(AlgorithmId::kRing)][Index(Protocol::kSimple)];
    }
  }

  void Threads() {
    const GraphSummary& ring = comm_.graph(GraphId::kRing);
    const auto& most = planning_.max_threads;
    const int simple = most[Index(Protocol::kSimple)];
    const int narrow = ring.bw_intra * static_cast<float>(ring.channel_count) <=
                               static_cast<float>(planning_.narrow_ring_gbps)
                           ? planning_.narrow_ring_threads
                           : simple;
    auto& threads = out_.max_threads;
    const auto set = [&](AlgorithmId a, int ll, int ll128, int simple_threads) {
      threads[Index(a)] = {ll, ll128, simple_threads};
    };
    const int ll = ThreadsFrom(env_, "NCCL_NTHREADS", 64, most[0], most[0]);
    const int ll128 = ThreadsFrom(env_, "NCCL_LL128_NTHREADS", most[1] / 4, most[1], most[1]);
    set(AlgorithmId::kTree, ll, ll128, ThreadsFrom(env_, "NCCL_NTHREADS", 64, simple, simple));
    set(AlgorithmId::kRing, ll, ll128, ThreadsFrom(env_, "NCCL_NTHREADS", 64, simple, narrow));
    if (Since(14, 3)) {
      for (const AlgorithmId a : {AlgorithmId::kCollNetDirect, AlgorithmId::kCollNetChain})
        set(a, 0, 0, planning_.max_block_threads);
      if (Since(17, 1)) {
        set(AlgorithmId::kNvls, 0, 0, planning_.max_block_threads);
        set(AlgorithmId::kNvlsTree, 0, 0, planning_.max_block_threads);
      }
    } else {
      set(AlgorithmId::kCollNetDirect, ll, ll128, simple);
    }
    for (std::size_t a = 0; a < kAlgorithmCount; ++a)
      for (std::size_t p = 0; p < kProtocolCount; ++p)
        out_.thread_thresholds[a][p] = planning_.thread_threshold[p];
    if (ranks_ > 1) out_.thread_thresholds[Index(AlgorithmId::kRing)][0] *= ranks_;
    for (const AlgorithmId a : {AlgorithmId::kCollNetDirect, AlgorithmId::kCollNetChain})
      out_.thread_thresholds[Index(a)][Index(Protocol::kSimple)] =
          planning_.collnet_thread_threshold;
  }

  bool Applies(Function f, AlgorithmId a, Protocol p) const {
    const bool gathers = f == Function::kAllGather || f == Function::kReduceScatter;
    const bool nvls = a == AlgorithmId::kNvls || a == AlgorithmId::kNvlsTree;
    if (!Since(14, 3) && a == AlgorithmId::kCollNetChain) return false;
    if (!Since(17, 1) && nvls) return false;
    if (a == AlgorithmId::kPat && (!gathers || p != Protocol::kSimple || !PatOn())) return false;
    if (nvls && p != Protocol::kSimple) return false;
    if (f == Function::kAllReduce || a == AlgorithmId::kRing || a == AlgorithmId::kPat) return true;
    if (!gathers) return false;
    return (a == AlgorithmId::kNvls && Since(19, 1)) ||
           (a == AlgorithmId::kCollNetDirect && Since(20, 3));
  }
  bool PatOn() const {
    if (!Since(23, 4)) return false;
    if (Since(26, 2) && comm_.min_compute_capability < 60) return false;
    const std::int64_t set = env_.GetInt("NCCL_PAT_ENABLE", 2);
    return set == 2 ? nodes_ == ranks_ : set != 0;
  }

  float NetOverhead(Protocol p) const {
    if (nodes_ == 1) return 0;
    float overhead = 0;
    const std::int64_t set = Since(18, 1) ? env_.GetInt("NCCL_NET_OVERHEAD", -2) : -2;
    if (set != -2) {
      overhead = static_cast<float>(static_cast<double>(set) * .001);
    } else {
      const bool amd = comm_.cpu_arch == CpuArch::kX86 && comm_.cpu_vendor == CpuVendor::kAmd;
      overhead = static_cast<float>(amd ? constants_.factors.net_overhead_amd_us
                                        : constants_.factors.net_overhead_us);
    }
    if (p == Protocol::kSimple)
      overhead *= static_cast<float>(constants_.factors.net_overhead_simple);
    return overhead;
  }

  // Rate of one NVLS channel (2.28 and later).
  float NvlsChannelRate(Function f, AlgorithmId a, const GraphSummary& graph) const {
    const auto channels = static_cast<float>(graph.channel_count);
    const auto efficiency =
        static_cast<float>(constants_.nvls_efficiency[static_cast<std::size_t>(row_)]);
    float inside = graph.bw_intra * efficiency * (channels - 1) / channels;
    if (f == Function::kAllReduce) {
      inside *= 2.0F;  // Reduction and broadcast run at the same time.
    } else {
      inside *= (ranks_per_node_ - 1) / ranks_per_node_;
    }
    const bool tree = a == AlgorithmId::kNvlsTree;
    const float outside = graph.bw_inter * (nodes_ <= 2 && tree ? 2.0F : 1.0F);
    return std::min({inside, outside, tree ? nvls_tree_limit_ : std::numeric_limits<float>::max()});
  }

  float ChannelRate(Function f, AlgorithmId a, const GraphSummary& graph) const {
    const bool collnet = a == AlgorithmId::kCollNetDirect || a == AlgorithmId::kCollNetChain;
    const float plain = nodes_ <= 2 || collnet ? graph.bw_intra : graph.bw_inter;
    if (a != AlgorithmId::kNvls && a != AlgorithmId::kNvlsTree) return plain;
    if (Since(28, 3)) return NvlsChannelRate(f, a, graph);
    if (!Since(19, 1)) return plain;
    if (a == AlgorithmId::kNvlsTree)
      return std::min(graph.bw_intra, nodes_ <= 2 ? graph.bw_inter : graph.bw_inter / 2);
    if (f == Function::kAllReduce || !Since(27, 3)) return std::min(graph.bw_intra, graph.bw_inter);
    return std::min(graph.bw_intra * (ranks_per_node_ - 1.0F) / ranks_per_node_,
                    graph.bw_inter * 0.9F);
  }

  float BusBandwidth(Function f, AlgorithmId a, Protocol p) const {
    const GraphSummary& graph = GraphOf(a);
    const auto& factors = constants_.factors;
    const bool gathers = f == Function::kAllGather || f == Function::kReduceScatter;
    const auto channels = static_cast<double>(graph.channel_count);
    float bus = static_cast<float>(graph.channel_count) * ChannelRate(f, a, graph);
    const auto set = [&](double value) { bus = static_cast<float>(value); };
    if (factors.bandwidth_limit_sm80 > 0 && row_ == GpuRow::kAmpere)
      bus = std::min(bus, static_cast<float>(factors.bandwidth_limit_sm80));
    if (a == AlgorithmId::kRing && p == Protocol::kLl) {
      const bool shared = nodes_ > 1 || f == Function::kAllReduce || f == Function::kReduce;
      set(std::min(ll_limit_, bus * (shared ? factors.ring_ll : factors.ring_ll_one_node_others)));
    }
    if (a == AlgorithmId::kRing && p == Protocol::kLl128) {
      const double factor =
          ranks_per_node_ < 2 ? factors.ring_ll128_one_rank_per_node : factors.ring_ll128;
      set(std::min(bus * factor, channels * ring_ll128_limit_));
    }
    if (a == AlgorithmId::kTree) {
      set(std::min(bus * factors.tree, channels * tree_limit_));
      if (p == Protocol::kLl) set(std::min(bus * 1.0 / factors.tree_ll_divisor, ll_limit_));
      if (p == Protocol::kLl128)
        set(std::min(bus * (nodes_ == 1 ? factors.tree_ll128_one_node : factors.tree_ll128),
                     channels * tree_ll128_limit_));
      const Pattern pattern = Since(26, 2) ? comm_.flags.worst_tree_pattern : graph.pattern;
      if (pattern == Pattern::kTree) set(bus * factors.tree_plain_pattern);
    }
    if (a == AlgorithmId::kPat) set(bus * factors.pat);
    const bool collnet = a == AlgorithmId::kCollNetDirect || a == AlgorithmId::kCollNetChain;
    if (collnet && p != Protocol::kSimple) bus = 0;
    if (a == AlgorithmId::kCollNetDirect && p == Protocol::kSimple && Since(14, 3))
      bus = CollNetDirectBandwidth(f, graph, bus);
    if (Since(27, 3) && gathers && nodes_ > 1 && p == Protocol::kSimple &&
        (a == AlgorithmId::kNvls || a == AlgorithmId::kCollNetDirect) &&
        (!comm_.flags.collnet || comm_.max_local_ranks > comm_.collnet_own_heads))
      bus = 0;  // In-network gathering wants a NIC for every GPU.
    return bus;
  }

  float CollNetDirectBandwidth(Function f, const GraphSummary& graph, float bus) const {
    if (f == Function::kAllGather || f == Function::kReduceScatter) {
      if (Since(27, 3)) return ranks_per_node_ * std::min(graph.bw_intra, graph.bw_inter * 0.9F);
      bus = ranks_per_node_ * graph.bw_intra;
      if (nodes_ > 1 &&
          (!job_.collnet_plugin || ranks_per_node_ > static_cast<float>(comm_.collnet_own_heads)))
        bus = 0;
      // Between a correction for one rank per node and one for eight.
      const float w = (ranks_per_node_ - 1) / (8 - 1);
      return static_cast<float>(bus * (w * 0.85 + (1 - w) * 0.95));
    }
    // Full speed wants a NIC for every GPU.
    float factor = static_cast<float>(ranks_per_node_ / (1.0 * graph.channel_count));
    factor -= (factor - 1) / 2;
    bus /= factor;
    if (comm_.min_compute_capability >= 90)
      bus = static_cast<float>(bus * constants_.factors.collnet_direct_hopper);
    return bus;
  }

  int Steps(Function f) const {
    if (f == Function::kAllReduce) return 2 * (ranks_ - 1);
    return f == Function::kBroadcast || f == Function::kReduce ? ranks_ : ranks_ - 1;
  }

  float AlgorithmBandwidth(Function f, AlgorithmId a, float bus) const {
    const bool gathers = f == Function::kAllGather || f == Function::kReduceScatter;
    if (gathers && a != AlgorithmId::kRing && (Since(23, 4) || a == AlgorithmId::kCollNetDirect))
      return bus;
    const float ring = static_cast<float>(1.0 * ranks_ / Steps(f));
    float ratio = .5F;
    if (a == AlgorithmId::kRing) ratio = ring;
    if (a == AlgorithmId::kNvls || a == AlgorithmId::kNvlsTree)
      ratio = Since(28, 3) ? ring : static_cast<float>(5.0 / 6.0);
    if (a == AlgorithmId::kNvlsTree && !Since(19, 1))
      ratio = static_cast<float>(.70 * nodes_ / (2 * (nodes_ - 1)));
    return bus * ratio;
  }

  void Estimate(Function f, AlgorithmId a, Protocol p) {
    if (!Applies(f, a, p)) return;
    const bool nvls = a == AlgorithmId::kNvls || a == AlgorithmId::kNvlsTree;
    if (nvls && Since(28, 3) && GraphOf(a).channel_count < 2) return;
    TuningTable::Entry& entry = out_.entries[Index(f)][Index(a)][Index(p)];
    entry.bandwidth = AlgorithmBandwidth(f, a, BusBandwidth(f, a, p));
    entry.latency = Latency(f, a, p);
  }

  float Hop(HopKind kind, AlgorithmId a, Protocol p) const {
    return static_cast<float>(
        constants_.hop_latency[static_cast<std::size_t>(kind)][Index(a)][Index(p)]);
  }
  float NetworkHop(AlgorithmId a, Protocol p) const {
    const GraphSummary& graph = GraphOf(a);
    if (!Since(18, 1)) {
      // A latency the NIC reports takes the place of the table's; 2.10 knew none.
      if (Since(12, 7) && graph.latency_inter != 0) return graph.latency_inter;
      return Hop(HopKind::kNet, a, p);
    }
    // With one rank per node nothing hides the latency.
    const bool exposed = Since(23, 4) && ranks_per_node_ == 1;
    float hop = Hop(HopKind::kNet, exposed ? AlgorithmId::kTree : a, p);
    hop += graph.latency_inter;
    if (p == Protocol::kSimple) hop += graph.latency_inter;  // For the flush.
    return hop;
  }

  float Latency(Function f, AlgorithmId a, Protocol p) const {
    const GraphSummary& graph = GraphOf(a);
    const HopKind local = graph.type_intra == PathType::kNvl ? HopKind::kNvLink : HopKind::kPci;
    const auto base = static_cast<float>(constants_.base_latency[Index(a)][Index(p)]);
    float inside = Hop(local, a, p);
    const float outside = NetworkHop(a, p);
    if (nodes_ > 1 && p == Protocol::kLl)
      inside = static_cast<float>(inside * constants_.factors.ll_over_nodes);
    const int locals = ranks_ / nodes_ - 1;
    const int levels = Log2Floor(static_cast<std::uint64_t>(nodes_));
    float latency = base;
    const auto add = [&](double us) { latency = static_cast<float>(latency + us); };
    switch (a) {
      case AlgorithmId::kRing:
        return RingLatency(f, p, base, inside, outside, nodes_ == 1 ? local : HopKind::kNet);
      case AlgorithmId::kTree:
        if (f == Function::kAllReduce)
          latency += static_cast<float>(2) *
                     (static_cast<float>(locals) * inside + static_cast<float>(levels) * outside);
        return latency;
      case AlgorithmId::kCollNetDirect:
        add(2 * (static_cast<float>(std::min(1, locals)) * inside +
                 locals * constants_.factors.collnet_direct_serialisation) +
            outside);
        return latency;
      case AlgorithmId::kCollNetChain:
        latency += static_cast<float>(2 * locals) * inside + outside;
        return latency;
      case AlgorithmId::kNvls:
        if (!Since(19, 1)) return nodes_ > 1 ? base + Hop(HopKind::kNet, a, p) : base;
        return nodes_ > 1 ? inside + outside : inside;
      case AlgorithmId::kNvlsTree:
        if (!Since(19, 1))
          return latency + static_cast<float>(2 * (nodes_ - 1)) * Hop(HopKind::kNet, a, p);
        return latency + (inside + static_cast<float>(2 * levels) * outside);
      case AlgorithmId::kPat:
        add(levels * (outside / 3.5) + ranks_ * 2.8);
        return latency;
    }
    return latency;
  }

  float RingLatency(Function f, Protocol p, float base, float inside, float outside,
                    HopKind hop) const {
    const int steps = Steps(f);
    if (f == Function::kBroadcast || f == Function::kReduce) {
      if (GraphOf(AlgorithmId::kRing).same_channels) return base + Hop(hop, AlgorithmId::kRing, p);
      // Channels that differ are not in step: the whole pipeline has to fill.
      const AlgorithmId a = p == Protocol::kSimple ? AlgorithmId::kTree : AlgorithmId::kRing;
      return base + static_cast<float>(steps) * Hop(hop, a, p);
    }
    inside = std::max(inside, NetOverhead(p));
    int outer = 0;
    if (Since(23, 4)) {
      if (nodes_ > 1) outer = f == Function::kAllReduce ? 2 * (nodes_ - 1) : nodes_ - 1;
    } else if (f != Function::kAllReduce) {
      outer = nodes_ - 1;
    } else if (nodes_ > 1) {
      outer = Since(12, 7) ? 2 * nodes_ : 2 * (nodes_ - 1);
    }
    return base +
           (static_cast<float>(steps - outer) * inside + static_cast<float>(outer) * outside);
  }

  bool Ll128Safe(AlgorithmId a) const {
    const GraphSummary& graph = GraphOf(a);
    const int lowest = comm_.min_compute_capability;
    const int highest = comm_.max_compute_capability;
    if (!Since(18, 1)) {
      return graph.type_inter <= PathType::kPxb && graph.type_intra <= PathType::kNvl &&
             lowest == highest && (lowest == 70 || lowest == 80);
    }
    const PathType farthest_inside = Since(18, 3) ? PathType::kNvb : PathType::kNvl;
    if (graph.type_intra > farthest_inside) return false;
    const bool over_pxn = lowest >= 90 && (!Since(27, 3) || env_.GetInt("NCCL_LL128_C2C", 1) != 0);
    if (graph.type_inter > (over_pxn ? PathType::kPxn : PathType::kPxb)) return false;
    if (lowest != highest && !(Since(30, 3) && lowest >= 90)) return false;
    if (Since(27, 3)) return lowest >= 70;
    const bool known = lowest == 70 || lowest == 80 || lowest == 90;
    return known || (Since(25, 1) && (lowest == 100 || lowest == 120));
  }

  void SwitchOff() {
    UserChoice choice = ReadUserChoice(env_, version_);
    for (auto& algorithm : choice.algorithm) {
      const auto off = [&](AlgorithmId a) { algorithm[Index(a)] = Use::kNo; };
      if (nodes_ == 1) off(AlgorithmId::kNvlsTree);
      if (!comm_.flags.collnet) {
        off(AlgorithmId::kCollNetDirect);
        off(AlgorithmId::kCollNetChain);
        if (nodes_ > 1) off(AlgorithmId::kNvls);
        const bool nothing =
            std::all_of(algorithm.begin(), algorithm.end(), [](Use u) { return u == Use::kNo; });
        // Older versions ignore a wish for CollNet where there is none.
        if (!Since(24, 3) && nothing)
          algorithm[Index(AlgorithmId::kRing)] = algorithm[Index(AlgorithmId::kTree)] = Use::kYes;
      }
      const bool asks_switch = Since(24, 3) || comm_.flags.collnet;
      if (Since(14, 3) && asks_switch && OwnNode().nvswitches == 0)
        off(AlgorithmId::kCollNetDirect);
    }
    for (std::size_t f = 0; f < kTunedFunctionCount; ++f) {
      const bool all_reduce = f == Index(Function::kAllReduce);
      for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
        // Before 2.19 the ring of the other functions could not be switched off.
        const bool fixed =
            !all_reduce && !Since(19, 1) && (!Since(14, 3) || a == Index(AlgorithmId::kRing));
        for (std::size_t p = 0; p < kProtocolCount; ++p) {
          float& bandwidth = out_.entries[f][a][p].bandwidth;
          const Use use = choice.protocol[f][p];
          if (use == Use::kNo ||
              (use == Use::kWhereSafe && !Ll128Safe(static_cast<AlgorithmId>(a)))) {
            bandwidth = 0;
            if (Since(22, 3) && a == Index(AlgorithmId::kRing)) out_.ring_reserve[f][p] = 0;
          }
          if (!fixed && choice.algorithm[f][a] == Use::kNo) bandwidth = 0;
        }
      }
      // From 2.19 to 2.23 the ring comes back when nothing is left.
      if (Since(19, 1) && !Since(24, 3) && NothingLeft(f))
        for (std::size_t p = 0; p < kProtocolCount; ++p)
          out_.entries[f][Index(AlgorithmId::kRing)][p].bandwidth = out_.ring_reserve[f][p];
    }
  }
  bool NothingLeft(std::size_t f) const {
    for (const auto& row : out_.entries[f])
      for (const auto& entry : row)
        if (entry.bandwidth != 0) return false;
    return true;
  }
  const NodeDescription& OwnNode() const { return *job_.nodes[job_.ranks[0].node]; }

  const Job& job_;
  const Connections& comm_;
  const Environment& env_;
  TuningConstants constants_;
  const PlanningConstants& planning_;
  const NcclVersion version_;
  const int ranks_;
  const int nodes_;
  const float ranks_per_node_;
  GpuRow row_ = GpuRow::kVolta;
  double ll_limit_ = 0;
  double tree_limit_ = 0;
  double ring_ll128_limit_ = 0;
  double tree_ll128_limit_ = 0;
  float nvls_tree_limit_ = 0;
  TuningTable out_;
};

}  // namespace

UserChoice ReadUserChoice(const Environment& environment, const NcclVersion& version) {
  UserChoice out;
  for (auto& row : out.algorithm) row.fill(Use::kYes);
  for (auto& row : out.protocol) row = {Use::kYes, Use::kWhereSafe, Use::kYes};
  std::vector<std::string> algorithms(std::begin(kAlgorithmNames), std::end(kAlgorithmNames));
  if (version < NcclVersion{2, 14, 3}) algorithms = {"Tree", "Ring", "CollNet"};
  ListReader<kAlgorithmCount>("NCCL_ALGO", algorithms, version).Read(environment, out.algorithm);
  ListReader<kProtocolCount>(
      "NCCL_PROTO", std::vector<std::string>(std::begin(kProtocolNames), std::end(kProtocolNames)),
      version)
      .Read(environment, out.protocol);
  return out;
}

TuningTable Tune(const Job& job, const Connections& connections, const Environment& environment,
                 const Constants& constants) {
  return Tuner(job, connections, environment, constants).Run();
}

namespace {

std::optional<float> TimeOf(const TuningTable::Entry& entry, const Connections& connections,
                            const Constants& constants, Function function, AlgorithmId algorithm,
                            Protocol protocol, std::uint64_t bytes, int pipelined, int channels) {
  float bandwidth = entry.bandwidth;
  float latency = entry.latency;
  if (bandwidth == 0) return std::nullopt;
  const NcclVersion& version = constants.version;
  const int power = std::max(version < NcclVersion{2, 22, 3} ? 0 : -1, Log2Floor(bytes >> 6));
  const auto& correction = constants.tuning.tree_correction[Index(protocol)];
  constexpr int kTreeEntries = 23;
  const bool nvls_corrected =
      version >= NcclVersion{2, 29, 2} && algorithm == AlgorithmId::kNvlsTree &&
      connections.min_compute_capability >= 100 && connections.cpu_arch == CpuArch::kX86;
  const int entries = algorithm == AlgorithmId::kTree ? kTreeEntries
                      : nvls_corrected                ? static_cast<int>(correction.size())
                                                      : 0;
  if (function == Function::kAllReduce && power >= 0 && power < entries)
    bandwidth *= static_cast<float>(correction[static_cast<std::size_t>(power)]);

  if (channels != 0)
    bandwidth =
        bandwidth / static_cast<float>(connections.channel_count) * static_cast<float>(channels);
  const auto ranks = static_cast<std::uint64_t>(connections.rank_count());
  if (algorithm == AlgorithmId::kRing && protocol == Protocol::kSimple &&
      connections.node_count() > 1 && function == Function::kAllReduce) {
    const bool large =
        version < NcclVersion{2, 18, 1}
            ? static_cast<double>(bytes) >= static_cast<double>(ranks) / 16.0 * 65536
            : bytes / (static_cast<std::uint64_t>(connections.channel_count) * ranks) >= 64;
    if (large)
      latency = static_cast<float>(latency * (connections.min_compute_capability < 80
                                                  ? constants.tuning.factors.ring_plateau_old_gpu
                                                  : constants.tuning.factors.ring_plateau));
  }
  const int batch = constants.planning.collectives_per_batch;
  const int count = algorithm == AlgorithmId::kRing ? pipelined : (pipelined + batch - 1) / batch;
  return latency * static_cast<float>(count) + static_cast<float>(bytes) / (1000 * bandwidth);
}

}  // namespace

std::optional<float> ModelTime(const TuningTable& table, const Connections& connections,
                               const Constants& constants, Function function, AlgorithmId algorithm,
                               Protocol protocol, std::uint64_t bytes, int pipelined,
                               int channels) {
  return TimeOf(table.At(function, algorithm, protocol), connections, constants, function,
                algorithm, protocol, bytes, pipelined, channels);
}

std::optional<float> ReserveTime(const TuningTable& table, const Connections& connections,
                                 const Constants& constants, Function function, Protocol protocol,
                                 std::uint64_t bytes, int pipelined) {
  TuningTable::Entry entry = table.At(function, AlgorithmId::kRing, protocol);
  entry.bandwidth = table.ring_reserve[Index(function)][Index(protocol)];
  return TimeOf(entry, connections, constants, function, AlgorithmId::kRing, protocol, bytes,
                pipelined, 0);
}

std::vector<std::string> FormatTuningTable(const TuningTable& table, const NcclVersion& version) {
  std::vector<std::string> lines;
  // NCCL's order of functions.
  constexpr Function kOrder[] = {Function::kBroadcast, Function::kReduce, Function::kAllGather,
                                 Function::kReduceScatter, Function::kAllReduce};
  const std::size_t algorithms = version < NcclVersion{2, 14, 3}   ? 3
                                 : version < NcclVersion{2, 23, 4} ? 6
                                                                   : kAlgorithmCount;
  for (std::size_t first = 0; first < algorithms; first += 3) {
    const std::size_t last = std::min(first + 3, algorithms);
    std::string head = "  Algorithm   |";
    std::string protocols = "  Protocol    |";
    std::string threads = " Max NThreads |";
    for (std::size_t a = first; a < last; ++a) {
      head += fmt::format(" {:14}   {:>14}   {:14} |", "", kAlgorithmNames[a], "");
      for (std::size_t p = 0; p < kProtocolCount; ++p) {
        protocols += fmt::format(" {:>14} |", kProtocolNames[p]);
        threads += fmt::format(" {:14} |", table.max_threads[a][p]);
      }
    }
    lines.insert(lines.end(), {head, protocols, threads});
    for (const Function f : kOrder) {
      std::string line = fmt::format("{:>13} |", kTunedFunctionNames[Index(f)]);
      for (std::size_t a = first; a < last; ++a)
        for (std::size_t p = 0; p < kProtocolCount; ++p) {
          const TuningTable::Entry& entry = table.entries[Index(f)][a][p];
          line += fmt::format("{:8.1f}/{:6.1f} |", entry.latency, entry.bandwidth);
        }
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace windtunnel::nccl
