#include "collectives/nccl/net_choice.h"

#include <algorithm>
#include <string>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

void AddNew(std::uint32_t net, std::vector<std::uint32_t>& out) {
  if (std::find(out.begin(), out.end(), net) == out.end()) out.push_back(net);
}

}  // namespace

NetChoice::NetChoice(const SystemView& view, const SearchRules& rules, bool scatter)
    : view_(view), rules_(rules), scatter_(scatter) {}

const std::vector<std::uint32_t>& NetChoice::List(std::optional<PathType> farthest,
                                                  std::optional<std::uint32_t> gpu) {
  const Key key{farthest ? static_cast<int>(*farthest) : -1, gpu ? static_cast<int>(*gpu) : -1};
  const auto found = lists_.find(key);
  if (found != lists_.end()) return found->second;
  return lists_.emplace(key, Make(farthest, gpu)).first->second;
}

std::vector<std::uint32_t> NetChoice::Make(std::optional<PathType> farthest,
                                           std::optional<std::uint32_t> gpu) const {
  std::vector<std::uint32_t> out;
  if (rules_.nets == SearchRules::Nets::kBestRate) {
    if (!gpu) return BestRate();
    for (std::uint32_t n = 0; n < view_.system().count(NodeKind::kNet); ++n) out.push_back(n);
    return out;
  }
  if (rules_.nets == SearchRules::Nets::kPreferred) {
    if (view_.system().host_hashes.size() > 1 && scatter_ && rules_.hosts_share_nets) {
      AddPreferredByGpu(gpu, out);
    } else {
      AddPreferred(gpu, out);
    }
  }
  std::size_t most = view_.system().count(NodeKind::kNet);
  if (view_.settings().net_policy == PathSettings::NetPolicy::kMax) {
    most = static_cast<std::size_t>(view_.settings().net_policy_count) *
           (gpu ? 1 : view_.system().count(NodeKind::kGpu));
  }
  if (farthest && out.size() < most) AddByDistance(*farthest, gpu, most, out);
  return out;
}

std::uint32_t NetChoice::Local(std::uint32_t gpu, int channel) const {
  const auto net = view_.LocalNet(gpu, channel);
  if (net) return *net;
  const auto& node = view_.system().nodes(NodeKind::kGpu)[gpu];
  throw ConfigError({.field = "<gpu dev=\"" + std::to_string(node.gpu.dev) + "\">",
                     .problem = "the GPU reaches no NIC",
                     .expected = "a net below the GPU's host"});
}

/// GPU by GPU, all NICs of its channels.
void NetChoice::AddPreferred(std::optional<std::uint32_t> gpu,
                             std::vector<std::uint32_t>& out) const {
  for (std::uint32_t g = 0; g < view_.system().count(NodeKind::kGpu); ++g) {
    if (gpu && *gpu != g) continue;
    const std::uint32_t first = Local(g, 0);
    AddNew(first, out);
    for (int c = 1; c < view_.rules().max_channels; ++c) {
      const std::uint32_t net = Local(g, c);
      if (net == first) break;
      AddNew(net, out);
    }
  }
}

/// Channel by channel, the NICs of all GPUs.
void NetChoice::AddPreferredByGpu(std::optional<std::uint32_t> gpu,
                                  std::vector<std::uint32_t>& out) const {
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t g = 0; g < view_.system().count(NodeKind::kGpu); ++g) {
    if (!gpu || *gpu == g) gpus.push_back(g);
  }
  for (int c = 0; c < view_.rules().max_channels && !gpus.empty(); ++c) {
    std::erase_if(gpus, [&](std::uint32_t g) {
      const std::uint32_t net = Local(g, c);
      if (c > 0 && net == Local(g, 0)) return true;  // Round again: this GPU is done.
      AddNew(net, out);
      return false;
    });
  }
}

bool NetChoice::AddByDistance(PathType farthest, std::optional<std::uint32_t> gpu, std::size_t most,
                              std::vector<std::uint32_t>& out) const {
  const System& system = view_.system();
  std::uint32_t count = system.count(NodeKind::kNet);
  if (rules_.nets_of_index_below_max) {
    count = std::min(count, static_cast<std::uint32_t>(view_.rules().max_channels));
  }
  for (int t = 0; t <= static_cast<int>(farthest); ++t) {
    for (std::uint32_t g = 0; g < system.count(NodeKind::kGpu); ++g) {
      if (gpu && *gpu != g) continue;
      std::vector<std::uint32_t> nets;
      for (std::uint32_t n = 0; n < count; ++n) {
        if (view_.GpuToNet(g, n).type == static_cast<PathType>(t)) nets.push_back(n);
      }
      if (rules_.nets == SearchRules::Nets::kByDistance && !nets.empty()) {
        // GPUs of one switch with several NICs begin at different ones.
        const auto shift = static_cast<std::size_t>(system.nodes(NodeKind::kGpu)[g].gpu.dev);
        std::rotate(nets.begin(), nets.begin() + static_cast<std::ptrdiff_t>(shift % nets.size()),
                    nets.end());
      }
      for (const std::uint32_t net : nets) {
        AddNew(net, out);
        if (out.size() >= most && view_.settings().net_policy == PathSettings::NetPolicy::kMax) {
          return false;
        }
      }
    }
  }
  return true;
}

/// 2.10: only the NICs of the highest rate, nearest first; equally near ones begin at the number of
/// the first GPU's device.
std::vector<std::uint32_t> NetChoice::BestRate() const {
  const System& system = view_.system();
  struct Candidate {
    std::uint32_t net;
    float rate;
    std::uint32_t hops;
  };
  std::vector<Candidate> best;
  for (std::uint32_t n = 0; n < system.count(NodeKind::kNet); ++n) {
    Candidate made{n, 0, 255};
    for (std::uint32_t g = 0; g < system.count(NodeKind::kGpu); ++g) {
      const Path& path = view_.NetToGpu(n, g);
      if (path.rate > made.rate || (path.rate == made.rate && path.hop_count() < made.hops)) {
        made.rate = path.rate;
        made.hops = path.hop_count();
      }
    }
    if (!best.empty() && best[0].rate > made.rate) continue;
    if (!best.empty() && best[0].rate < made.rate) best.clear();
    const auto at = std::find_if(best.begin(), best.end(),
                                 [&](const Candidate& other) { return made.hops < other.hops; });
    best.insert(at, made);
  }
  const auto shift = static_cast<std::ptrdiff_t>(system.nodes(NodeKind::kGpu)[0].gpu.dev);
  for (auto begin = best.begin(); begin != best.end();) {
    const auto end = std::find_if(
        begin, best.end(), [&](const Candidate& other) { return other.hops != begin->hops; });
    std::rotate(begin, begin + shift % (end - begin), end);
    begin = end;
  }
  std::vector<std::uint32_t> out;
  for (const Candidate& candidate : best) out.push_back(candidate.net);
  return out;
}

}  // namespace windtunnel::nccl
