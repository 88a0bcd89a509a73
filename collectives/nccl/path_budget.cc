#include "collectives/nccl/path_budget.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

/// Intel CPUs split traffic between GPUs into packets of 64 bytes.
constexpr float IntelOverhead(float rate) { return rate * 6 / 5; }
/// Traffic from a NIC into a GPU before sm80 costs this part of the rate the other way.
constexpr float kReverseShare = 1.0F / 8;

void Subtract(float& free, float rate) { free = std::roundf((free - rate) * 1000) / 1000; }

}  // namespace

PathBudget::PathBudget(const SystemView& view, const SearchRules& rules)
    : gpus_(view.system().count(NodeKind::kGpu)), nets_(view.system().count(NodeKind::kNet)) {
  const System& system = view.system();
  for (std::size_t kind = 0; kind < kNodeKinds; ++kind) {
    for (const SystemNode& node : system.nodes(static_cast<NodeKind>(kind))) {
      offsets_[kind].push_back(static_cast<std::uint32_t>(free_.size()));
      for (const SystemLink& link : node.links) free_.push_back(link.rate);
    }
  }
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    for (std::uint32_t p = 0; p < gpus_; ++p) {
      gpu_gpu_.push_back(MakeTrack(Gpu(g), Gpu(p), view, rules));
    }
    for (std::uint32_t n = 0; n < nets_; ++n) {
      gpu_net_.push_back(MakeTrack(Gpu(g), Net(n), view, rules));
    }
    if (system.count(NodeKind::kNvs) > 0) {
      gpu_nvs_.push_back(MakeTrack(Gpu(g), Nvs(0), view, rules));
      nvs_gpu_.push_back(MakeTrack(Nvs(0), Gpu(g), view, rules));
    }
  }
  for (std::uint32_t n = 0; n < nets_; ++n) {
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      net_gpu_.push_back(MakeTrack(Net(n), Gpu(g), view, rules));
    }
  }
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    PciLinks pci;
    const NodeRef package = system.PackageOf(g);
    const auto& links = system.at(package).links;
    for (std::uint32_t l = 0; l < links.size() && !pci.present; ++l) {
      if (links[l].kind != LinkKind::kPci) continue;
      const auto& down = system.at(links[l].to).links;
      for (std::uint32_t d = 0; d < down.size(); ++d) {
        if (down[d].to != package) continue;
        pci = {true, LinkIndex({package, l}), LinkIndex({links[l].to, d})};
        break;
      }
    }
    pci_.push_back(pci);
  }
}

PathBudget::Track PathBudget::MakeTrack(NodeRef from, NodeRef to, const SystemView& view,
                                        const SearchRules& rules) const {
  const System& system = view.system();
  const Path& path = view.paths().At(from, to);
  Track track{.type = path.type, .rate = path.rate, .intel_overhead = false, .steps = {}};
  NodeRef node = from;
  for (const LinkRef& hop : path.hops) {
    const SystemLink& link = system.at(hop.from).links[hop.link];
    const SystemNode& next = system.at(link.to);
    Track::Step step{.link = LinkIndex(hop), .pci = link.kind == LinkKind::kPci};
    const NodeKind package = view.rules().through_devices ? NodeKind::kDev : NodeKind::kGpu;
    if (link.to.kind == package && next.gpu.sm < 80 && from.kind != NodeKind::kGpu) {
      step.back_share += kReverseShare;
    }
    if (link.to.kind == NodeKind::kCpu && link.kind == LinkKind::kNvl &&
        (next.cpu.arch == CpuArch::kPower || !rules.power_only_nvlink_to_cpu)) {
      step.back_share += 1;
    }
    if (step.back_share > 0) {
      const auto found = std::find_if(next.links.begin(), next.links.end(), [&](const auto& back) {
        return back.to == node && (back.kind == link.kind || !view.rules().back_link_of_same_kind);
      });
      WT_CHECK(found != next.links.end());
      step.back = LinkIndex({link.to, static_cast<std::uint32_t>(found - next.links.begin())});
    }
    if (link.to.kind == NodeKind::kCpu && path.type == PathType::kPhb &&
        from.kind == NodeKind::kGpu && next.cpu.arch == CpuArch::kX86 &&
        next.cpu.vendor == CpuVendor::kIntel) {
      track.intel_overhead = true;
    }
    track.steps.push_back(step);
    node = link.to;
  }
  return track;
}

/// Charges up to `steps` links; the number charged before one that cannot carry it.
std::size_t PathBudget::Charge(const Track& track, std::size_t steps, float rate) {
  const float pci_rate = track.intel_overhead ? IntelOverhead(rate) : rate;
  for (std::size_t i = 0; i < steps; ++i) {
    const Track::Step& step = track.steps[i];
    const float forward = step.pci ? pci_rate : rate;
    const float backward = forward * step.back_share;
    if (free_[step.link] < forward) return i;
    if (backward != 0 && free_[step.back] < backward) return i;
    Subtract(free_[step.link], forward);
    if (backward != 0) Subtract(free_[step.back], backward);
  }
  return steps;
}

bool PathBudget::Take(const Track& track, float rate) {
  const std::size_t charged = Charge(track, track.steps.size(), rate);
  if (charged == track.steps.size()) return true;
  Charge(track, charged, -rate);
  return false;
}

int PathBudget::FreePci(std::uint32_t gpu) const {
  const PciLinks& links = pci_[gpu];
  if (!links.present) return -1;
  return static_cast<int>(std::min(free_[links.up], free_[links.down]));
}

}  // namespace windtunnel::nccl
