// Which of the transports a pair of ranks uses, and whether a NIC reads GPU memory directly.
// Source: NVIDIA/nccl src/graph/paths.cc, src/transport/p2p.cc and shm.cc, v2.28.9.

#include <algorithm>
#include <cstdlib>

#include "interconnect/nccl/paths.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

/// A level as NCCL takes it: a name up to SYS, or the old numbers 0 to 5. Other text is not a
/// level, and NCCL goes on with its default; here it is refused.
std::optional<PathType> ReadLevel(const Environment& environment, const std::string& variable) {
  const auto text = environment.Get(variable);
  if (!text) return std::nullopt;
  const auto named = PathTypeFromName(*text);
  if (named && *named <= PathType::kSys) return named;
  if ((*text)[0] >= '0' && (*text)[0] <= '9') {
    static constexpr PathType kOld[] = {PathType::kLoc, PathType::kPix, PathType::kPxb,
                                        PathType::kPhb, PathType::kSys, PathType::kSys};
    const long level = std::strtol(text->c_str(), nullptr, 0);
    return kOld[std::min<long>(level, static_cast<long>(std::size(kOld)) - 1)];
  }
  throw ConfigError({.field = variable,
                     .value = *text,
                     .problem = "is no distance:",
                     .expected = "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS or 0 to 5"});
}

void ReadNetPolicy(const Environment& environment, PathSettings& settings) {
  auto text = environment.Get("NCCL_NETDEVS_POLICY");
  if (!text) return;
  std::string upper = *text;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper == "AUTO") return;
  if (upper == "ALL") {
    settings.net_policy = PathSettings::NetPolicy::kAll;
    return;
  }
  if (upper.starts_with("MAX:")) {
    settings.net_policy_count = std::atoi(upper.c_str() + 4);
    if (settings.net_policy_count > 0) {
      settings.net_policy = PathSettings::NetPolicy::kMax;
      return;
    }
  }
  throw ConfigError({.field = "NCCL_NETDEVS_POLICY",
                     .value = *text,
                     .problem = "is no policy:",
                     .expected = "AUTO, ALL or MAX:n with n above 0"});
}

}  // namespace

PathSettings ReadPathSettings(const Environment& environment, const PathRules& rules) {
  PathSettings out;
  if (environment.GetInt("NCCL_P2P_DISABLE", 0) == 1) {
    out.p2p_level = PathType::kLoc;
  } else {
    out.p2p_level = ReadLevel(environment, "NCCL_P2P_LEVEL");
  }
  out.gdr_level = ReadLevel(environment, "NCCL_NET_GDR_LEVEL");
  out.gdr_read = environment.GetInt("NCCL_NET_GDR_READ");
  out.nvb_disable = environment.GetInt("NCCL_NVB_DISABLE", 0) != 0;
  out.pxn_disable = environment.GetInt("NCCL_PXN_DISABLE", 0) == 1;
  out.pxn_c2c =
      rules.knows_p2c && environment.GetInt("NCCL_PXN_C2C", rules.pxn_over_c2c ? 1 : 0) != 0;
  out.gdr_c2c = environment.GetInt("NCCL_NET_GDR_C2C", rules.gdr_over_c2c ? 1 : 0) != 0;
  out.shm_disable = environment.GetInt("NCCL_SHM_DISABLE", 0) == 1;
  out.net_disable_intra = environment.GetInt("NCCL_NET_DISABLE_INTRA", 0) == 1;
  if (const auto read = environment.GetInt("NCCL_P2P_READ_ENABLE"); read && *read != -2) {
    out.p2p_read = *read != 0;
  }
  if (rules.net_policy) ReadNetPolicy(environment, out);
  return out;
}

bool SystemView::IsBlocked(std::uint32_t a, std::uint32_t b) const {
  const auto& gpus = system_.nodes(NodeKind::kGpu);
  if (gpus[a].host() != gpus[b].host()) return false;
  const int dev_a = gpus[a].gpu.dev;
  const int dev_b = gpus[b].gpu.dev;
  return std::any_of(settings_.blocked_pairs.begin(), settings_.blocked_pairs.end(),
                     [&](const auto& pair) {
                       return pair == std::pair(dev_a, dev_b) || pair == std::pair(dev_b, dev_a);
                     });
}

SystemView::Peer SystemView::CheckPeer(std::uint32_t from, std::uint32_t to) const {
  Peer peer;
  const Path& path = GpuToGpu(from, to);
  const auto& gpus = system_.nodes(NodeKind::kGpu);
  // A relay is the second node of a path GPU, GPU, GPU; from 2.30 on the third of GPU, DEV, DEV,
  // DEV, GPU.
  const std::size_t before_relay = rules_.through_devices ? 1 : 0;
  if (path.hop_count() == 2 * (before_relay + 1)) {
    const LinkRef& hop = path.hops[before_relay];
    const NodeRef middle = system_.at(hop.from).links[hop.link].to;
    for (std::uint32_t g = 0; g < gpus.size(); ++g) {
      const bool relays = rules_.through_devices ? middle.kind == NodeKind::kDev : true;
      if (relays && system_.PackageOf(g) == middle && !peer.via) peer.via = g;
    }
  }
  const auto& cpu = system_.nodes(NodeKind::kCpu)[0].cpu;
  PathType limit = PathType::kSys;
  if (rules_.p2p_short_by_default) {
    const bool amd_pair =
        cpu.arch == CpuArch::kX86 && cpu.vendor == CpuVendor::kAmd &&
        system_.count(rules_.through_devices ? NodeKind::kDev : NodeKind::kGpu) <= 2;
    if (!amd_pair) limit = PathType::kPxb;
  } else if (cpu.arch == CpuArch::kArm ||
             (cpu.arch == CpuArch::kX86 &&
              (cpu.vendor == CpuVendor::kIntel || cpu.vendor == CpuVendor::kZhaoxin))) {
    limit = PathType::kPxb;
  }
  if (settings_.p2p_level) limit = *settings_.p2p_level;
  peer.allowed = path.type <= limit;
  if (peer.allowed && from != to) {
    peer.allowed =
        peer.via ? !IsBlocked(from, *peer.via) && !IsBlocked(*peer.via, to) : !IsBlocked(from, to);
  }
  peer.read = path.type == PathType::kNvl && gpus[from].gpu.sm == 80 && gpus[to].gpu.sm == 80;
  return peer;
}

/// Both GPUs reach a NIC below their host bridge faster than each other.
bool SystemView::NetIsFaster(std::uint32_t from, std::uint32_t to) const {
  if (!rules_.net_may_replace_p2p || settings_.net_disable_intra) return false;
  const auto net_rate = [&](std::uint32_t gpu) {
    float best = 0;
    for (std::uint32_t n = 0; n < system_.count(NodeKind::kNet); ++n) {
      const Path& path = GpuToNet(gpu, n);
      if (path.type <= PathType::kPxb) best = std::max(best, path.rate);
    }
    return best;
  };
  const float direct = GpuToGpu(from, to).rate;
  return net_rate(from) > direct && net_rate(to) > direct;
}

bool SystemView::P2pPossible(std::uint32_t from, std::uint32_t to) const {
  const Peer peer = CheckPeer(from, to);
  if (!peer.allowed) return false;
  return peer.via.has_value() || !NetIsFaster(from, to);
}

bool SystemView::ShmPossible(std::uint32_t from, std::uint32_t to) const {
  const auto& gpus = system_.nodes(NodeKind::kGpu);
  return !settings_.shm_disable && gpus[from].host() == gpus[to].host() && !NetIsFaster(from, to);
}

GdrMode SystemView::Gdr(std::uint32_t gpu, std::uint32_t net, bool send) const {
  const auto& gpus = system_.nodes(NodeKind::kGpu);
  if (!system_.nodes(NodeKind::kNet)[net].net.gdr || !gpus[gpu].gpu.gdr) return GdrMode::kOff;
  if (send) {
    const std::int64_t read = settings_.gdr_read.value_or(-2);
    if (read == 0) return GdrMode::kOff;
    // Reads share the PCI link with other traffic unless GPUs talk over NVLink.
    if (read < 0 && (rules_.gdr_read_needs_nvlink_always || gpus[gpu].gpu.sm < 80)) {
      bool nvlink = gpus.size() == 1;
      for (std::uint32_t other = 0; other < gpus.size(); ++other) {
        if (other != gpu && GpuToGpu(gpu, other).type == PathType::kNvl) nvlink = true;
      }
      if (!nvlink) return GdrMode::kOff;
    }
  }
  const std::uint32_t relay = Relay(gpu, net);
  PathType distance = GpuToNet(relay, net).type;
  const bool c2c = paths_.At(Gpu(relay), Cpu(LocalCpu(relay))).type == PathType::kC2c;
  PathType limit = PathType::kPxb;
  const bool p2c =
      rules_.knows_p2c ? distance == PathType::kP2c : distance == PathType::kPhb && c2c;
  if (rules_.gdr_c2c_as_level) {
    if (settings_.gdr_c2c) limit = PathType::kP2c;
  } else if (settings_.gdr_c2c && p2c) {
    distance = PathType::kC2c;
  }
  if (settings_.gdr_level) limit = *settings_.gdr_level;
  if (distance > limit) return GdrMode::kOff;
  const PathType own_way = rules_.gdr_c2c_as_level ? PathType::kP2c : PathType::kC2c;
  return c2c && distance != own_way ? GdrMode::kOnOverPci : GdrMode::kOn;
}

bool SystemView::NeedsFlush(std::uint32_t gpu, std::uint32_t net) const {
  if (system_.nodes(NodeKind::kGpu)[gpu].gpu.sm < 90) return true;
  // Data over PCI and flags over C2C could overtake each other.
  const bool c2c = paths_.At(Gpu(gpu), Cpu(LocalCpu(gpu))).type == PathType::kC2c;
  return c2c && GpuToNet(gpu, net).type <= PathType::kPxb;
}

Transport SystemView::TransportBetween(const RankSeat& from, const RankSeat& to) const {
  if (from.rank == to.rank)
    return {.kind = Transport::Kind::kSelf, .read = false, .via = std::nullopt};
  const auto a = system_.GpuOfRank(from.rank);
  const auto b = system_.GpuOfRank(to.rank);
  if (!a || !b) {
    const bool shared =
        rules_.trimmed_peers_use_shm && from.host == to.host && !settings_.shm_disable;
    const bool net =
        settings_.net_disable_intra ? from.host != to.host || settings_.shm_disable : !shared;
    return {.kind = net ? Transport::Kind::kNet : Transport::Kind::kShm,
            .read = false,
            .via = std::nullopt};
  }
  if (P2pPossible(*a, *b)) {
    const Peer peer = CheckPeer(*a, *b);
    Transport out{.kind = Transport::Kind::kP2p,
                  .read = settings_.p2p_read.value_or(peer.read),
                  .via = std::nullopt};
    if (peer.via) out.via = system_.nodes(NodeKind::kGpu)[*peer.via].gpu.rank;
    return out;
  }
  return {.kind = ShmPossible(*a, *b) ? Transport::Kind::kShm : Transport::Kind::kNet,
          .read = false,
          .via = std::nullopt};
}

}  // namespace windtunnel::nccl
