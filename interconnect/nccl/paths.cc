// Paths between the nodes of a system: breadth-first from every CPU, GPU, NIC and NVSwitch, then
// the rules that replace a path. Source: NVIDIA/nccl src/graph/paths.cc, v2.28.9.

#include "interconnect/nccl/paths.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

PathType TypeOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kLoc:
    case LinkKind::kNet:  // Only the part between NIC and GPU matters.
      return PathType::kLoc;
    case LinkKind::kNvl:
      return PathType::kNvl;
    case LinkKind::kC2c:
      return PathType::kC2c;
    case LinkKind::kPci:
      return PathType::kPix;
    case LinkKind::kSys:
      return PathType::kSys;
  }
  WT_CHECK(false) << "link kind";
}

/// Type of `path` when it goes on from `node` over `link`.
/// @param relays `node` is one that forwards for another GPU.
PathType TypeWith(const Path& path, NodeRef node, const SystemLink& link, bool relays) {
  PathType type = TypeOf(link.kind);
  if (node.kind == NodeKind::kPci && link.to.kind == NodeKind::kPci) type = PathType::kPxb;
  const bool at_cpu = node.kind == NodeKind::kCpu || link.to.kind == NodeKind::kCpu;
  if (link.kind == LinkKind::kPci && at_cpu) type = PathType::kPhb;
  if (relays && path.type == PathType::kNvl && type == PathType::kNvl) {
    type = PathType::kNvb;
  }
  return std::max(path.type, type);
}

/// C2C to the CPU and PCI from there on is a type of its own.
PathType JoinTypes(PathType a, PathType b, const PathRules& rules) {
  const auto [near, far] = std::minmax(a, b);
  if (rules.knows_p2c && far == PathType::kPhb && near == PathType::kC2c) return PathType::kP2c;
  return far;
}

int MirrorBits(int value, int power_of_two) {
  int mirrored = 0;
  for (int bit = 1, far = power_of_two >> 1; bit < power_of_two; bit <<= 1, far >>= 1) {
    if ((value & bit) != 0) mirrored |= far;
  }
  return mirrored;
}

}  // namespace

const Path& PathTable::At(NodeRef from, NodeRef to) const {
  static const Path kNone;
  const auto& row = Row(from, to.kind);
  return row.empty() ? kNone : row[to.index];
}

void PathTable::Reset(const System& system) {
  for (std::size_t kind = 0; kind < kNodeKinds; ++kind) {
    rows_[kind].clear();
    rows_[kind].resize(system.count(static_cast<NodeKind>(kind)));
  }
}

void PathTable::Make(NodeRef from, NodeKind to, std::uint32_t count, PathType type) {
  auto& row = rows_[static_cast<std::size_t>(from.kind)][from.index][static_cast<std::size_t>(to)];
  if (row.empty()) row.resize(count, Path{.type = type, .rate = 0, .hops = {}});
}

SystemView::SystemView(System system, int own_rank, int total_ranks, const PathSettings& settings,
                       const PathRules& rules)
    : system_(std::move(system)), own_rank_(own_rank), settings_(settings), rules_(rules) {
  FindPaths();
  Trim(total_ranks);
  FindPaths();
  FindStartRates();
}

const Path& SystemView::GpuToGpu(std::uint32_t from, std::uint32_t to) const {
  return paths_.At(Gpu(from), Gpu(to));
}
const Path& SystemView::GpuToNet(std::uint32_t gpu, std::uint32_t net) const {
  return paths_.At(Gpu(gpu), Net(net));
}
const Path& SystemView::NetToGpu(std::uint32_t net, std::uint32_t gpu) const {
  return paths_.At(Net(net), Gpu(gpu));
}

void SystemView::FindPaths() {
  paths_.Reset(system_);
  for (const NodeKind kind :
       {NodeKind::kCpu, NodeKind::kDev, NodeKind::kGpu, NodeKind::kNet, NodeKind::kNvs}) {
    for (std::uint32_t i = 0; i < system_.count(kind); ++i) FindPathsTo({kind, i});
  }
  DivertDisallowedPeers();
  if (rules_.knows_p2c) MarkC2cNets();
  UseRelaysAndGdr();
  local_gpus_.clear();
  for (std::uint32_t n = 0; n < system_.count(NodeKind::kNet); ++n) {
    local_gpus_.push_back(LocalGpu(n));
  }
}

/// Fills the entries to `base` of every node that reaches it. Hops go from the node to `base`, so
/// each is the link back of the one the walk took.
void SystemView::FindPathsTo(NodeRef base) {
  const std::uint32_t count = system_.count(base.kind);
  const PathType unreached = rules_.unreached_is_disconnected ? PathType::kDis : PathType::kLoc;
  paths_.Make(base, base.kind, count, unreached);
  paths_.At(base, base) = {.type = PathType::kLoc, .rate = kLocalRate, .hops = {}};

  std::vector<NodeRef> now{base};
  std::vector<NodeRef> next;
  for (; !now.empty(); std::swap(now, next)) {
    next.clear();
    for (const NodeRef node : now) {
      for (const SystemLink& link : system_.at(node).links) {
        paths_.Make(link.to, base.kind, count, unreached);
        const Path& path = paths_.At(node, base);
        Path& other = paths_.At(link.to, base);
        if (!MayForward(base, node, link, path.hop_count())) continue;
        const float rate = std::min(path.rate, link.rate);
        const std::uint32_t hops = path.hop_count() + 1;
        bool relays = node.kind == NodeKind::kGpu && path.hop_count() > 0;
        if (rules_.through_devices) {
          const std::uint32_t longest = base.kind == NodeKind::kGpu ? 2 : 1;
          relays = node.kind == NodeKind::kDev && path.hop_count() == longest;
        }
        const PathType type = TypeWith(path, node, link, relays);
        bool better = (other.rate == 0 || other.hop_count() >= hops) && other.rate < rate;
        if (rules_.prefers_nearer_type) {
          better = type < other.type || (type == other.type && other.rate < rate) ||
                   (type == other.type && other.rate == rate && other.hop_count() > hops);
        }
        if (!better) continue;

        const auto& back = system_.at(link.to).links;
        const auto found = std::find_if(back.begin(), back.end(), [&](const SystemLink& candidate) {
          return candidate.to == node &&
                 (candidate.kind == link.kind || !rules_.back_link_of_same_kind);
        });
        if (found == back.end()) {
          throw ConfigError({.problem = "a link from " + std::string(Name(node.kind)) + " to " +
                                        std::string(Name(link.to.kind)) + " has no way back",
                             .expected = "links in both directions"});
        }
        Path made{.type = type, .rate = rate, .hops = {}};
        made.hops.reserve(path.hops.size() + 1);
        made.hops.push_back({link.to, static_cast<std::uint32_t>(found - back.begin())});
        made.hops.insert(made.hops.end(), path.hops.begin(), path.hops.end());
        other = std::move(made);
        if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
      }
    }
  }
}

/// A GPU forwards only over NVLink to another GPU, and only as the second hop. From 2.30 on its
/// DEV node does.
bool SystemView::MayForward(NodeRef base, NodeRef node, const SystemLink& link,
                            std::uint32_t hops) const {
  if (!rules_.through_devices) {
    if (node == base || node.kind != NodeKind::kGpu) return true;
    const bool to_gpu = link.kind == LinkKind::kNvl && link.to.kind == NodeKind::kGpu;
    return !settings_.nvb_disable && to_gpu && hops <= 1;
  }
  const bool base_is_gpu = base.kind == NodeKind::kGpu;
  const NodeRef start = base_is_gpu ? system_.PackageOf(base.index) : base;
  if (node == start || node.kind != NodeKind::kDev) return true;
  if (link.kind == LinkKind::kLoc && link.to.kind == NodeKind::kGpu) return true;
  const bool to_device = link.kind == LinkKind::kNvl && link.to.kind == NodeKind::kDev;
  return !settings_.nvb_disable && to_device && hops <= (base_is_gpu ? 2U : 1U);
}

/// The path of `from` to `to` becomes the one to `middle` followed by the one from there.
void SystemView::JoinAt(NodeRef middle, NodeRef from, NodeRef to) {
  const Path& first = paths_.At(from, middle);
  const Path& second = paths_.At(middle, to);
  Path joined{.type = middle.kind == NodeKind::kGpu ? PathType::kPxn
                                                    : JoinTypes(first.type, second.type, rules_),
              .rate = std::min(first.rate, second.rate),
              .hops = first.hops};
  joined.hops.insert(joined.hops.end(), second.hops.begin(), second.hops.end());
  paths_.At(from, to) = std::move(joined);
}

/// GPUs that may not reach each other directly go through the receiver's CPU. Pairs that have
/// neither peer access nor shared memory are marked, to be trimmed.
void SystemView::DivertDisallowedPeers() {
  const std::uint32_t count = system_.count(NodeKind::kGpu);
  for (std::uint32_t to = 0; to < count; ++to) {
    for (std::uint32_t from = 0; from < count; ++from) {
      if (!CheckPeer(from, to).allowed) JoinAt(Cpu(LocalCpu(to)), Gpu(from), Gpu(to));
    }
    for (std::uint32_t from = 0; from < count; ++from) {
      if (from == to || P2pPossible(from, to) || ShmPossible(from, to)) continue;
      if (rules_.domain_by_type) {
        paths_.At(Gpu(from), Gpu(to)).type = PathType::kNet;
      } else {
        paths_.At(Gpu(from), Gpu(to)).hops.clear();
      }
    }
  }
}

void SystemView::MarkC2cNets() {
  for (std::uint32_t gpu = 0; gpu < system_.count(NodeKind::kGpu); ++gpu) {
    const NodeRef cpu = Cpu(LocalCpu(gpu));
    std::vector<std::uint32_t> nets;
    if (rules_.p2c_for_nearest_only) {
      nets = Nearest(Gpu(gpu), NodeKind::kNet);
    } else {
      for (std::uint32_t n = 0; n < system_.count(NodeKind::kNet); ++n) nets.push_back(n);
    }
    for (const std::uint32_t net : nets) {
      const PathType through =
          JoinTypes(paths_.At(Gpu(gpu), cpu).type, paths_.At(Net(net), cpu).type, rules_);
      if (through != PathType::kP2c) continue;
      Path& there = paths_.At(Gpu(gpu), Net(net));
      Path& back = paths_.At(Net(net), Gpu(gpu));
      there.type = std::min(PathType::kP2c, there.type);
      back.type = std::min(PathType::kP2c, back.type);
    }
  }
}

/// The GPU through which `gpu` had better reach `net` (PXN: PCI and NVLink).
std::optional<std::uint32_t> SystemView::RelayCandidate(std::uint32_t gpu,
                                                        std::uint32_t net) const {
  const PathType own_limit = settings_.pxn_c2c ? PathType::kP2c : PathType::kPxb;
  const Path& own = GpuToNet(gpu, net);
  const auto fits = [&](std::uint32_t relay) {
    const Path& relayed = GpuToNet(relay, net);
    if (relayed.type > own_limit || GpuToGpu(relay, gpu).type > PathType::kNvl) return false;
    if (rules_.pxn_needs_gdr && Gdr(relay, net, true) == GdrMode::kOff) return false;
    const auto& gpus = system_.nodes(NodeKind::kGpu);
    if (rules_.pxn_same_host && gpus[relay].host() != gpus[gpu].host()) return false;
    const PathType limit = rules_.pxn_saves_from_above_pxn ? PathType::kPxn : own_limit;
    return (rules_.pxn_for_rate && relayed.rate > own.rate) || own.type > limit;
  };
  if (rules_.pxn == PathRules::Pxn::kLocalGpu) {
    const auto local = LocalGpu(net);
    return local && *local != gpu && fits(*local) ? local : std::nullopt;
  }
  std::optional<std::uint32_t> best;
  for (std::uint32_t relay = 0; relay < system_.count(NodeKind::kGpu); ++relay) {
    if (relay == gpu || !fits(relay)) continue;
    best = relay;
    if (LocalNet(relay, 0) == net) break;  // The relay's own NIC: balances the load best.
  }
  return best;
}

void SystemView::UseRelaysAndGdr() {
  for (std::uint32_t net = 0; net < system_.count(NodeKind::kNet); ++net) {
    for (std::uint32_t gpu = 0; gpu < system_.count(NodeKind::kGpu); ++gpu) {
      if (!settings_.pxn_disable && rules_.pxn != PathRules::Pxn::kNone) {
        // Only from GPU to NIC: receives stay local, sends are relayed.
        if (const auto relay = RelayCandidate(gpu, net)) JoinAt(Gpu(*relay), Gpu(gpu), Net(net));
      }
      if (GpuToNet(gpu, net).type >= PathType::kPhb && !rules_.no_gdr_diverts_all) continue;
      if (Gdr(gpu, net, false) != GdrMode::kOff) continue;
      const NodeRef cpu = Cpu(LocalCpu(gpu));
      JoinAt(cpu, Net(net), Gpu(gpu));
      JoinAt(cpu, Gpu(gpu), Net(net));
    }
  }
}

void SystemView::Trim(int total_ranks) {
  const std::uint32_t count = system_.count(NodeKind::kGpu);
  std::vector<std::uint32_t> domains(count);
  std::uint32_t own = 0;
  for (std::uint32_t g = 0; g < count; ++g) {
    domains[g] = g;
    for (std::uint32_t p = 0; p < g; ++p) {
      const Path& path = GpuToGpu(g, p);
      const bool together =
          rules_.domain_by_type ? path.type < PathType::kNet : path.hop_count() > 0;
      if (together) domains[g] = std::min(domains[g], domains[p]);
    }
    if (system_.nodes(NodeKind::kGpu)[g].gpu.rank == own_rank_) own = domains[g];
  }
  for (std::uint32_t g = count; g > 0; --g) {
    if (domains[g - 1] != own) system_.Remove(Gpu(g - 1));
  }
  const bool all_here = static_cast<int>(system_.count(NodeKind::kGpu)) == total_ranks;
  system_.inter = !all_here;
  if (!rules_.keeps_nets) {
    const bool fabric = system_.host_hashes.size() > 1 && rules_.fabric_drops_nets;
    while ((all_here || fabric) && system_.count(NodeKind::kNet) > 0) {
      system_.Remove(Net(system_.count(NodeKind::kNet) - 1));
    }
    system_.inter = system_.count(NodeKind::kNet) > 0;
  }
}

void SystemView::FindStartRates() {
  if (!system_.inter && system_.count(NodeKind::kGpu) == 1) {
    max_rate_ = total_rate_ = kLocalRate;
    return;
  }
  const NodeKind near = rules_.through_devices ? NodeKind::kDev : NodeKind::kGpu;
  const NodeKind far = system_.inter ? NodeKind::kNet : near;
  for (std::uint32_t g = 0; g < system_.count(near); ++g) {
    for (std::uint32_t i = 0; i < system_.count(far); ++i) {
      const Path& path = paths_.At({near, g}, {far, i});
      if (path.hop_count() > 0) max_rate_ = std::max(max_rate_, path.rate);
    }
    float nvlink = 0;
    float pci = 0;
    for (const SystemLink& link : system_.nodes(near)[g].links) {
      if (link.kind == LinkKind::kNvl) nvlink += link.rate;
      if (link.kind == LinkKind::kPci) pci = link.rate;
    }
    total_rate_ = std::max({total_rate_, pci, nvlink});
  }
}

PathType SystemView::MinType(NodeKind to) const {
  PathType type = PathType::kSys;
  for (std::uint32_t g = 0; g < system_.count(NodeKind::kGpu); ++g) {
    if (!paths_.Has(Gpu(g), to)) continue;
    for (std::uint32_t i = 0; i < system_.count(to); ++i) {
      if (to != NodeKind::kGpu || i != g) type = std::min(type, paths_.At(Gpu(g), {to, i}).type);
    }
  }
  return type;
}

PathType SystemView::MaxType(NodeKind to) const {
  PathType type = PathType::kLoc;
  for (std::uint32_t g = 0; g < system_.count(NodeKind::kGpu); ++g) {
    if (!paths_.Has(Gpu(g), to)) continue;
    for (std::uint32_t i = 0; i < system_.count(to); ++i) {
      if (to != NodeKind::kGpu || i != g) type = std::max(type, paths_.At(Gpu(g), {to, i}).type);
    }
  }
  return type;
}

bool SystemView::AllNvlink() const { return MaxType(NodeKind::kGpu) < PathType::kPix; }

bool SystemView::SplitNvlink() const {
  const std::uint32_t count = system_.count(NodeKind::kGpu);
  std::vector<std::uint32_t> island(count);
  for (std::uint32_t g = 0; g < count; ++g) island[g] = g;
  for (std::uint32_t g = 0; g < count; ++g) {
    for (std::uint32_t p = g + 1; p < count; ++p) {
      if (GpuToGpu(g, p).type == PathType::kNvl) island[p] = island[g];
    }
  }
  std::uint32_t islands = 0;
  for (std::uint32_t g = 0; g < count; ++g) {
    if (std::count(island.begin(), island.end(), g) > 1) ++islands;
  }
  return islands == 2;
}

std::vector<std::uint32_t> SystemView::Nearest(NodeRef from, NodeKind to) const {
  std::vector<std::uint32_t> nearest;
  if (!paths_.Has(from, to)) return nearest;
  float rate = 0;
  PathType type = PathType::kDis;
  for (std::uint32_t i = 0; i < system_.count(to); ++i) {
    const Path& path = paths_.At(from, {to, i});
    if (path.rate > rate || (path.rate == rate && path.type < type)) {
      rate = path.rate;
      type = path.type;
      nearest.clear();
    }
    if (path.rate == rate && path.type == type) nearest.push_back(i);
  }
  return nearest;
}

std::optional<std::uint32_t> SystemView::LocalNet(std::uint32_t gpu, int channel) const {
  const int dev = system_.nodes(NodeKind::kGpu)[gpu].gpu.dev;
  if (!rules_.nets_by_distance) {
    // By the way from the NIC; SYS is the farthest that counts.
    std::vector<std::uint32_t> nets;
    float rate = 0;
    PathType type = PathType::kSys;
    for (std::uint32_t n = 0; n < system_.count(NodeKind::kNet); ++n) {
      const Path& path = NetToGpu(n, gpu);
      if (path.rate > rate || (path.rate == rate && path.type < type)) {
        rate = path.rate;
        type = path.type;
        nets.clear();
      }
      if (path.rate == rate && path.type == type) nets.push_back(n);
    }
    if (nets.empty()) return std::nullopt;
    return nets[static_cast<std::size_t>(dev) % nets.size()];
  }
  const std::vector<std::uint32_t> nets = Nearest(Gpu(gpu), NodeKind::kNet);
  if (nets.empty()) return std::nullopt;
  const int count = static_cast<int>(nets.size());
  const int sharers = static_cast<int>(Nearest(Net(nets[0]), NodeKind::kGpu).size());
  int per_gpu = count;
  if (settings_.net_policy == PathSettings::NetPolicy::kAuto) {
    per_gpu = sharers == 0 ? count : (count + sharers - 1) / sharers;
  } else if (settings_.net_policy == PathSettings::NetPolicy::kMax) {
    per_gpu = std::min(settings_.net_policy_count, count);
  }
  int net = rules_.net_start_within_sharers && sharers > 0 ? dev % sharers : dev;
  if ((count & (count - 1)) == 0) net = MirrorBits(net, count);
  net += channel % per_gpu;
  return nets[static_cast<std::size_t>(net % count)];
}

std::optional<std::uint32_t> SystemView::LocalGpu(std::uint32_t net) const {
  std::vector<std::uint32_t> gpus;
  if (rules_.local_gpu_is_near) {
    gpus = Nearest(Net(net), NodeKind::kGpu);
  } else {
    for (std::uint32_t g = 0; g < system_.count(NodeKind::kGpu); ++g) gpus.push_back(g);
  }
  for (int channel = 0; channel < rules_.max_channels; ++channel) {
    for (const std::uint32_t gpu : gpus) {
      if (LocalNet(gpu, channel) == net) return gpu;
    }
  }
  return std::nullopt;
}

std::uint32_t SystemView::Relay(std::uint32_t gpu, std::uint32_t net) const {
  const Path& path = GpuToNet(gpu, net);
  if (path.type != PathType::kPxn) return gpu;
  for (const LinkRef& hop : path.hops) {
    const NodeRef to = system_.at(hop.from).links[hop.link].to;
    if (to.kind == NodeKind::kGpu) return to.index;
    if (to.kind != NodeKind::kNvs && to.kind != NodeKind::kDev) break;
  }
  WT_CHECK(false) << "a PXN path without a relay";
}

std::uint32_t SystemView::LocalCpu(std::uint32_t gpu) const {
  std::optional<std::uint32_t> nearest;
  std::uint32_t fewest = 0;
  std::vector<std::uint32_t> candidates;
  if (rules_.local_cpu_by_rate) {
    candidates = Nearest(Gpu(gpu), NodeKind::kCpu);
  } else {
    for (std::uint32_t c = 0; c < system_.count(NodeKind::kCpu); ++c) candidates.push_back(c);
  }
  for (const std::uint32_t c : candidates) {
    const std::uint32_t hops = paths_.At(Gpu(gpu), Cpu(c)).hop_count();
    if (hops == 0 && rules_.local_cpu_has_to_be_reached) continue;
    if (fewest == 0 || hops < fewest) {
      nearest = c;
      fewest = hops;
    }
  }
  if (!nearest) {
    const auto& node = system_.nodes(NodeKind::kGpu)[gpu];
    throw ConfigError({.field = "<gpu dev=\"" + std::to_string(node.gpu.dev) + "\">",
                       .problem = "the GPU has no CPU",
                       .expected = "a GPU below a cpu element"});
  }
  return *nearest;
}

}  // namespace windtunnel::nccl
