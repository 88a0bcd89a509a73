// The attempts of a search: which setting is tried next, when to stop, and how the result is
// improved.

#include <algorithm>

#include "collectives/nccl/graph_search.h"
#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

constexpr int kMaxNvlsHeads = 32;
constexpr int kMaxDirectHeads = 8;
/// A lower rate is tried while it is above this part of the best rate between nodes.
constexpr double kLowestUsefulPart = .49;
constexpr float kDuplicateFrom = 25.0F;
constexpr float kFallbackRate = 0.1F;

}  // namespace

GraphSearch::GraphSearch(const SystemView& view, const NcclVersion& version,
                         const SearchSettings& settings)
    : view_(view),
      version_(version),
      rules_(SearchRulesOf(version)),
      settings_(settings),
      budget_(view, rules_),
      nets_(view, rules_, settings.scatter_nets),
      gpus_(view.system().count(NodeKind::kGpu)),
      used_(gpus_, 0) {
  WT_CHECK(gpus_ > 0);
  for (const SystemNode& net : view.system().nodes(NodeKind::kNet)) {
    net_rates_.push_back(net.net.rate);
    net_channels_.push_back(net.net.max_channels);
  }
}

SearchGraph GraphSearch::Run(const GraphRequest& request) {
  PrepareDrafts(request);
  const int sm = view_.system().MinSm();
  const bool nvls = request.pattern == Pattern::kNvls;
  if (nvls && (view_.system().count(NodeKind::kNvs) == 0 || sm < 90)) return Result();

  const auto gpus = static_cast<int>(gpus_);
  if (nvls && rules_.nvls_up_to_gpus) {
    best_.max_channels = rules_.heads_are_capped ? std::min(kMaxNvlsHeads, gpus) : gpus;
  }
  if (request.pattern == Pattern::kCollNetDirect) {
    best_.max_channels = rules_.heads_are_capped ? std::min(kMaxDirectHeads, gpus) : gpus;
  }
  if (gpus == 1 && best_.pattern != Pattern::kRing) best_.pattern = Pattern::kTree;
  if (!view_.system().inter && best_.pattern == Pattern::kNvls) {
    // Within a node NVLS pulls evenly from all GPUs.
    if (!rules_.heads_are_capped) best_.max_channels = gpus;
    best_.min_channels = best_.max_channels;
  }
  if (rules_.split_nvlink_needs_two && best_.pattern == Pattern::kRing && view_.SplitNvlink() &&
      best_.max_channels >= 2 && best_.min_channels == 1) {
    best_.min_channels = 2;  // A tree works better there and needs two.
  }
  draft_ = best_;
  rates_ = RateSteps(version_, sm, view_.system().inter);
  ChooseFirstRate();

  steps_in_all_ = rules_.steps_in_all;
  int steps_left = Attempt();
  while (!IsPerfect(steps_left) && Relax(steps_left)) steps_left = Attempt();

  if (rules_.duplicates_before_raising) Duplicate();
  RaiseRates();
  FallBack();
  if (!rules_.duplicates_before_raising) Duplicate();
  return Result();
}

void GraphSearch::PrepareDrafts(const GraphRequest& request) {
  const bool crosses = request.pattern == Pattern::kRing ||
                       request.pattern == Pattern::kBalancedTree ||
                       request.pattern == Pattern::kSplitTree;
  const bool may_cross =
      view_.system().count(NodeKind::kNet) > 1 && (crosses || !rules_.cross_only_some);
  allowed_cross_ = may_cross ? settings_.cross_nic : 0;
  best_ = {.id = request.id,
           .pattern = request.pattern,
           .collnet = request.collnet,
           .min_channels = request.min_channels,
           .max_channels = request.max_channels};
  best_.cross_nic = allowed_cross_ == 1 ? 1 : 0;
  if (rules_.cross_any_value) best_.cross_nic = settings_.cross_nic == 1 ? 1 : 0;

  nearest_intra_ = gpus_ > 1 ? PathType::kNvl : PathType::kLoc;
  nearest_inter_ = PathType::kPix;
  farthest_intra_ = farthest_inter_ = PathType::kSys;
  if (rules_.types_from_system) {
    if (gpus_ > 1) {
      nearest_intra_ = view_.MinType(NodeKind::kGpu);
      farthest_intra_ = view_.MaxType(NodeKind::kGpu);
    }
    if (view_.system().inter) {
      nearest_inter_ = view_.MinType(NodeKind::kNet);
      farthest_inter_ = view_.MaxType(NodeKind::kNet);
      farthest_intra_ = farthest_inter_;
    }
    // Trees of older GPUs may have to come back from far.
    if (rules_.old_gpus_go_to_sys && view_.system().MinSm() < 90) {
      farthest_inter_ = PathType::kSys;
    }
  }
  best_.type_intra = nearest_intra_;
  best_.type_inter = nearest_inter_;
  try_same_channels_ = request.pattern != Pattern::kNvls;
  best_.same_channels = try_same_channels_;
  const std::size_t room = static_cast<std::size_t>(std::max(request.max_channels, 64)) + 1;
  best_.gpus.assign(room * gpus_, 0);
  best_.nets.assign(room * 2, 0);
}

void GraphSearch::ChooseFirstRate() {
  float total = view_.total_rate();
  const bool one_gpu = gpus_ == 1;
  if (!rules_.one_gpu_is_local && one_gpu && !view_.system().inter) total = 0;
  const std::uint32_t packages = view_.system().count(NodeKind::kDev);
  const auto count = static_cast<double>(packages > 0 ? packages : gpus_);
  const bool shared = draft_.pattern != Pattern::kRing;  // Each GPU but one sends up a tree.
  if (count > 1 && shared) total = static_cast<float>(total * (count / (count - 1)));
  rate_ = 0;
  while (rate_ + 1 < rates_.size()) {
    const float rate = rates_[rate_];
    const bool too_much_in_all = rules_.start_by_total && (!one_gpu || rules_.one_gpu_is_local) &&
                                 rate * static_cast<float>(draft_.min_channels) > total;
    if (rate <= view_.max_rate() && !too_much_in_all) break;
    ++rate_;
  }
  draft_.intra = draft_.inter = rates_[rate_];
}

/// One depth-first search at the draft's setting. The steps left: -1 when nothing better is
/// possible, 0 when they ran out.
int GraphSearch::Attempt() {
  int steps = draft_.same_channels               ? rules_.steps_equal_channels
              : draft_.pattern == Pattern::kTree ? rules_.steps_per_tree_attempt
                                                 : rules_.steps_per_attempt;
  draft_.channels = 0;
  steps_in_all_ -= steps;
  NextChannel(steps);
  return steps;
}

bool GraphSearch::IsPerfect(int steps_left) const {
  if (steps_left == -1) return true;
  float total = view_.total_rate();
  if (!rules_.one_gpu_is_local && gpus_ == 1 && !view_.system().inter) total = 0;
  return static_cast<float>(best_.channels) * best_.inter >= total;
}

PathType GraphSearch::Farther(PathType type) const {
  do {
    type = static_cast<PathType>(static_cast<int>(type) + 1);
  } while ((type == PathType::kC2c && !rules_.has_c2c) ||
           (type == PathType::kP2c && !rules_.has_p2c) ||
           (type == PathType::kPxn && !rules_.has_pxn));
  return type;
}

bool GraphSearch::RelaxTypes() {
  const auto is_searched = [&](PathType type) {
    return type < PathType::kDis || !rules_.skips_disconnected;
  };
  const bool inter = view_.system().inter;
  const PathType limit = inter ? draft_.type_inter : farthest_intra_;
  if (draft_.type_intra < limit && (best_.channels == 0 || draft_.type_intra < best_.type_intra)) {
    draft_.type_intra = Farther(draft_.type_intra);
    if (is_searched(draft_.type_intra)) return true;
  }
  draft_.type_intra = nearest_intra_;
  if (inter && draft_.type_inter < farthest_inter_ &&
      (best_.channels == 0 || draft_.type_inter < best_.type_inter ||
       draft_.type_inter < rules_.net_type_floor)) {
    draft_.type_inter = Farther(draft_.type_inter);
    if (is_searched(draft_.type_inter)) return true;
  }
  draft_.type_inter = nearest_inter_;
  return false;
}

bool GraphSearch::RelaxPattern(SearchRules::SimplerTree when) {
  if (rules_.simpler_tree != when) return false;
  const bool balanced = when == SearchRules::SimplerTree::kBalancedFirst;
  const Pattern from = balanced ? Pattern::kBalancedTree : Pattern::kSplitTree;
  const bool applies = !balanced || view_.system().MinSm() >= 90;
  if (applies && draft_.pattern == from) {
    draft_.pattern = Pattern::kTree;
    return true;
  }
  draft_.pattern = best_.pattern;
  return false;
}

/// Sets the draft to the next setting worth trying. Each thing that was relaxed without success
/// goes back to its start before the next one is relaxed, so the levels nest.
bool GraphSearch::Relax(int steps_left) {
  const auto& cpu = view_.system().nodes(NodeKind::kCpu)[0].cpu;
  const bool amd = cpu.arch == CpuArch::kX86 && cpu.vendor == CpuVendor::kAmd;
  const bool keeps_equal =
      rules_.amd_keeps_equal_channels && amd && draft_.type_intra == PathType::kSys;
  if (draft_.same_channels && !keeps_equal) {
    draft_.same_channels = false;
    return true;
  }
  draft_.same_channels = try_same_channels_;

  steps_in_all_ += steps_left;
  if (steps_in_all_ < 0 && best_.channels > 0) return false;

  if (RelaxPattern(SearchRules::SimplerTree::kBalancedFirst)) return true;
  if (RelaxTypes()) return true;
  if (RelaxPattern(SearchRules::SimplerTree::kSplitBeforeCross)) return true;

  const bool retry_cross = rules_.cross_any_value ? allowed_cross_ != 0 : allowed_cross_ == 2;
  const bool retry_pattern = !rules_.cross_retry_limited || best_.pattern == Pattern::kRing ||
                             best_.pattern == Pattern::kBalancedTree;
  if (retry_cross && retry_pattern && draft_.cross_nic == 0) {
    draft_.cross_nic = rules_.cross_is_two ? 2 : 1;
    return true;
  }
  draft_.cross_nic = allowed_cross_ == 1 && !rules_.cross_any_value ? 1 : 0;
  if (RelaxPattern(SearchRules::SimplerTree::kSplitAfterCross)) return true;

  if (rate_ + 1 < rates_.size() &&
      (best_.channels == 0 || rates_[rate_ + 1] / best_.inter > kLowestUsefulPart)) {
    draft_.intra = draft_.inter = rates_[++rate_];
    return true;
  }
  return false;
}

/// Twice the channels at half the rate keeps more warps busy.
void GraphSearch::Duplicate() {
  if (best_.channels == 0 || (best_.pattern == Pattern::kNvls && !rules_.fallback_for_nvls)) return;
  if (best_.intra < kDuplicateFrom) return;
  if (rules_.duplication_knows_sm && view_.system().MinSm() > 80 && best_.intra < 50 &&
      best_.channels > 4) {
    return;
  }
  const int channels = std::min(best_.channels * 2, best_.max_channels);
  for (int c = best_.channels; c < channels; ++c) {
    const auto from = static_cast<std::size_t>(c - best_.channels);
    const auto to = static_cast<std::size_t>(c);
    std::copy_n(best_.gpus.begin() + static_cast<std::ptrdiff_t>(from * gpus_), gpus_,
                best_.gpus.begin() + static_cast<std::ptrdiff_t>(to * gpus_));
    std::copy_n(best_.nets.begin() + static_cast<std::ptrdiff_t>(from * 2), 2,
                best_.nets.begin() + static_cast<std::ptrdiff_t>(to * 2));
  }
  const auto factor = static_cast<float>((channels + best_.channels - 1) / best_.channels);
  best_.intra /= factor;
  best_.inter /= factor;
  best_.channels = channels;
}

/// Pass 2: the same shape at higher rates. Rings raise both rates, NVLS the rate between nodes,
/// trees the rate within the node.
void GraphSearch::RaiseRates() {
  draft_ = best_;
  rate_ = 0;
  while (rate_ + 1 < rates_.size() && rates_[rate_] > best_.inter) ++rate_;
  draft_.intra = draft_.inter = rates_[rate_];
  draft_.min_channels = best_.channels;
  int steps_left = -1;
  while (steps_left != 0 && rate_ > 0) {
    if (rules_.raises_rings && best_.pattern == Pattern::kRing) {
      draft_.intra = draft_.inter = rates_[--rate_];
    } else if (rules_.raises_rings && best_.pattern == Pattern::kNvls &&
               draft_.inter == best_.inter && draft_.inter < draft_.intra * 2) {
      draft_.min_channels = draft_.max_channels = best_.channels;
      draft_.inter = rates_[--rate_];
    } else if (best_.pattern != Pattern::kRing && draft_.intra == best_.intra &&
               draft_.intra < draft_.inter * 2) {
      draft_.intra = rates_[--rate_];
    } else {
      break;
    }
    steps_left = Attempt();
  }
}

/// Nothing found: one channel over all GPUs in index order, at a nominal rate.
void GraphSearch::FallBack() {
  if (best_.channels > 0 || best_.collnet) return;
  if (best_.pattern == Pattern::kNvls && !rules_.fallback_for_nvls) return;
  for (std::uint32_t g = 0; g < gpus_; ++g) best_.gpus[g] = g;
  best_.intra = best_.inter = kFallbackRate;
  best_.type_intra = best_.type_inter = PathType::kSys;
  best_.channels = 1;
  best_.no_real_nets = true;
  if (!rules_.fallback_has_nets) return;
  const auto last = static_cast<std::uint32_t>(gpus_ - 1);
  const bool any = view_.system().count(NodeKind::kNet) > 0;
  if (any && view_.LocalNet(0, 0) && view_.LocalNet(last, 0)) {
    best_.nets[0] = nets_.ToLeave(std::nullopt, 0)[0];
    best_.nets[1] = nets_.ToLeave(std::nullopt, last)[0];
    best_.no_real_nets = false;
  } else {
    best_.inter = 0;
    best_.type_inter = PathType::kDis;
  }
}

SearchGraph GraphSearch::Result() const {
  SearchGraph out{.id = best_.id,
                  .pattern = best_.pattern,
                  .cross_nic = best_.cross_nic,
                  .channel_count = best_.channels,
                  .bw_intra = best_.intra,
                  .bw_inter = best_.inter,
                  .latency_inter = best_.latency,
                  .type_intra = best_.type_intra,
                  .type_inter = best_.type_inter,
                  .same_channels = best_.same_channels,
                  .hops = best_.hops,
                  .channels = {}};
  const System& system = view_.system();
  const bool head_only = best_.id == GraphId::kNvls && rules_.writes_nvls_heads_only;
  for (int c = 0; c < best_.channels; ++c) {
    SearchGraph::Channel channel;
    for (std::size_t i = 0; i < (head_only ? 1 : gpus_); ++i) {
      const SystemNode& gpu =
          system.nodes(NodeKind::kGpu)[best_.gpus[static_cast<std::size_t>(c) * gpus_ + i]];
      channel.gpus.push_back({gpu.host(), static_cast<std::uint32_t>(gpu.gpu.dev)});
    }
    for (std::size_t i = 0; i < 2 && system.inter; ++i) {
      if (best_.no_real_nets) {
        channel.nets.push_back({0, 0});
        continue;
      }
      const SystemNode& net =
          system.nodes(NodeKind::kNet)[best_.nets[static_cast<std::size_t>(c) * 2 + i]];
      channel.nets.push_back({net.host(), static_cast<std::uint32_t>(net.net.dev)});
    }
    out.channels.push_back(std::move(channel));
  }
  return out;
}

}  // namespace windtunnel::nccl
