// One attempt of the search: channels one after another, each a depth-first walk over GPU orders.

#include "collectives/nccl/graph_search.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel::nccl {
namespace {

constexpr int kIndexOrderSteps = 1 << 10;

bool IsTree(Pattern pattern) {
  return pattern == Pattern::kBalancedTree || pattern == Pattern::kSplitTree ||
         pattern == Pattern::kTree;
}
bool HasHeads(Pattern pattern) {
  return pattern == Pattern::kNvls || pattern == Pattern::kCollNetDirect;
}

}  // namespace

bool GraphSearch::Follow(const PathBudget::Track& track, PathType back_type, bool intra,
                         float share) {
  if (track.steps.empty() && rules_.no_hops_is_free) return true;
  if (track.type >= PathType::kDis) return false;
  const PathType limit = intra ? draft_.type_intra : draft_.type_inter;
  if (share == 1) {
    if (track.type > limit) return false;
    if (IsTree(draft_.pattern) && back_type > limit) return false;
  }
  const float rate = (intra ? draft_.intra : draft_.inter) * share;
  if (!budget_.Take(track, rate)) return false;
  draft_.hops = static_cast<int>(static_cast<float>(draft_.hops) +
                                 share * static_cast<float>(track.steps.size()));
  return true;
}

void GraphSearch::Unfollow(const PathBudget::Track& track, bool intra, float share) {
  if (track.steps.empty() && rules_.no_hops_is_free) return;
  const float rate = (intra ? draft_.intra : draft_.inter) * share;
  const bool returned = budget_.Take(track, -rate);
  WT_CHECK(returned);
  // Whole numbers: with shares below one the count drifts, as NCCL's does.
  draft_.hops = static_cast<int>(static_cast<float>(draft_.hops) -
                                 share * static_cast<float>(track.steps.size()));
}

std::uint32_t GraphSearch::LastChannelGpu(int position) const {
  WT_CHECK(draft_.channels > 0);
  return draft_.gpus[static_cast<std::size_t>(draft_.channels - 1) * gpus_ +
                     static_cast<std::size_t>(position)];
}

void GraphSearch::NextChannel(int& steps) {
  const int last = static_cast<int>(gpus_) - 1;
  Place place;
  if (view_.system().inter) {
    place.to_net = draft_.pattern == Pattern::kRing        ? last
                   : draft_.pattern == Pattern::kSplitTree ? 1
                                                           : 0;
    StartAtNets(place, steps);
  } else {
    if (draft_.pattern == Pattern::kRing) place.to_first = last;
    StartInside(place, steps);
  }
}

void GraphSearch::StartInside(Place place, int& steps) {
  if (draft_.pattern == Pattern::kNvls) {
    Begin(static_cast<std::uint32_t>(draft_.channels), place, steps);
    return;
  }
  Place forced = place;
  if (draft_.channels == 0) {
    forced.order = Place::Order::kByIndex;
    Begin(0, forced, steps);
  } else {
    forced.order = Place::Order::kReplay;
    Begin(LastChannelGpu(0), forced, steps);
  }
  if (draft_.same_channels && draft_.channels > 0) return;
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) Begin(gpu, place, steps);
}

void GraphSearch::StartAtNets(Place place, int& steps) {
  const std::vector<std::uint32_t>& nets = nets_.ToStart(draft_.type_inter);
  bool head_found = false;
  for (std::size_t i = 0; i < nets.size(); ++i) {
    if (HasHeads(draft_.pattern)) {
      const bool first_only = rules_.nvls_heads == SearchRules::NvlsHeads::kFirstNet;
      if (head_found || (first_only && i > 0)) break;
    }
    const std::size_t shift = rules_.nets_rotate ? static_cast<std::size_t>(draft_.channels) : 0;
    StartAtNet(nets[(shift + i) % nets.size()], nets.size(), place, steps, head_found);
  }
}

bool GraphSearch::MayStartAt(std::uint32_t net) const {
  const auto& node = view_.system().nodes(NodeKind::kNet)[net].net;
  if (draft_.collnet && !node.collnet) return false;
  if (net_rates_[net] < static_cast<float>(static_cast<int>(draft_.inter))) return false;
  if (rules_.net_counts_channels && net_channels_[net] == 0) return false;
  if (draft_.channels % 2 == 0) return true;
  const bool alternates =
      rules_.cross == SearchRules::Cross::kRingAlternating
          ? draft_.pattern == Pattern::kRing && draft_.cross_nic == 2
          : rules_.cross == SearchRules::Cross::kAlternating && draft_.cross_nic != 0;
  // An odd channel starts where the channel before it ended.
  return !alternates || net == NetSlot(draft_.channels - 1, 1);
}

/// Takes (or with a negative number gives back) whole GB/s of every NIC of the same card and port.
void GraphSearch::ShareNetRate(std::uint32_t net, int rate) {
  const auto& nodes = view_.system().nodes(NodeKind::kNet);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].net.asic == nodes[net].net.asic && nodes[i].net.port == nodes[net].net.port) {
      net_rates_[i] -= static_cast<float>(rate);
    }
  }
}

void GraphSearch::StartAtNet(std::uint32_t net, std::size_t net_count, Place place, int& steps,
                             bool& head_found) {
  if (!MayStartAt(net)) return;
  NetSlot(draft_.channels, 0) = net;
  draft_.latency = view_.system().nodes(NodeKind::kNet)[net].net.latency;
  const int rate = static_cast<int>(draft_.inter);  // The part below 1 GB/s is not counted.
  ShareNetRate(net, rate);
  --net_channels_[net];
  if (HasHeads(draft_.pattern)) {
    const Head head = StartHead(net, net_count, place, steps);
    if (head == Head::kFound) head_found = true;
    if (head == Head::kDuplicate &&
        rules_.nvls_heads == SearchRules::NvlsHeads::kNoDuplicateKeepsRate) {
      return;
    }
  } else {
    const bool again = draft_.channels > 0 && (draft_.same_channels || !rules_.replay_or_search);
    if (again) {
      Place replay = place;
      replay.order = Place::Order::kReplay;
      StepFromNet(net, LastChannelGpu(0), replay, steps);
    }
    if (draft_.channels == 0 || !draft_.same_channels) StartAtGpus(net, place, steps);
  }
  ++net_channels_[net];
  ShareNetRate(net, -rate);
}

void GraphSearch::StartAtGpus(std::uint32_t net, Place place, int& steps) {
  const bool has_switch = view_.system().count(NodeKind::kNvs) > 0;
  if (draft_.channels == 0 && (!has_switch || rules_.index_order_on_nvswitch)) {
    // The plain order as a reference, outside the budget and not for long.
    Place by_index = place;
    by_index.order = Place::Order::kByIndex;
    int few = kIndexOrderSteps;
    StepFromNet(net, 0, by_index, few);
    if (few == -1) steps = -1;
  }
  if (rules_.first_gpu == SearchRules::FirstGpu::kLocal) {
    const auto local = view_.StoredLocalGpu(net);
    if (local) StepFromNet(net, *local, place, steps);
    for (const std::uint32_t gpu : view_.Nearest(Net(net), NodeKind::kGpu)) {
      if (gpu != local) StepFromNet(net, gpu, place, steps);
    }
    return;
  }

  float rate = 0;
  std::uint32_t hops = 0xfffffff;
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    const Path& path = view_.NetToGpu(net, g);
    if (path.rate > rate) {
      rate = path.rate;
      hops = path.hop_count();
    } else if (path.rate == rate && path.hop_count() < hops &&
               (path.hop_count() > 0 || !rules_.fewest_hops_above_zero)) {
      hops = path.hop_count();
    }
  }
  if (rate < static_cast<float>(static_cast<int>(draft_.inter))) return;
  const auto is_best = [&](std::uint32_t g) {
    const Path& path = view_.NetToGpu(net, g);
    return path.rate == rate && path.hop_count() == hops;
  };
  if (rules_.first_gpu == SearchRules::FirstGpu::kRotated) {
    for (std::uint32_t i = 0; i < gpus_; ++i) {
      const auto g =
          static_cast<std::uint32_t>((static_cast<std::size_t>(draft_.channels) + i) % gpus_);
      if (is_best(g)) StepFromNet(net, g, place, steps);
    }
    return;
  }
  // GPUs whose PCI link is still free come first: one that both sends and receives is slower.
  for (const bool busy : {false, true}) {
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      if (is_best(g) && (budget_.FreePci(g) <= 0) == busy) StepFromNet(net, g, place, steps);
    }
  }
}

/// NVLS and CollNet direct only pair NICs with GPUs.
GraphSearch::Head GraphSearch::StartHead(std::uint32_t net, std::size_t net_count, Place place,
                                         int& steps) {
  if (static_cast<std::size_t>(draft_.channels) >= net_count) return Head::kNone;
  if (rules_.nvls_heads == SearchRules::NvlsHeads::kWithoutNet) {
    const auto& nets = nets_.ToStart(draft_.type_inter);
    const auto gpu = view_.StoredLocalGpu(nets[static_cast<std::size_t>(draft_.channels)]);
    if (gpu) Begin(*gpu, place, steps);
    return Head::kNone;  // The next NIC is tried too.
  }
  const auto gpu = view_.StoredLocalGpu(net);
  if (!gpu) return Head::kNone;
  if (rules_.nvls_heads != SearchRules::NvlsHeads::kFirstNet) {
    for (int c = 0; c < draft_.channels; ++c) {
      if (draft_.gpus[static_cast<std::size_t>(c) * gpus_] == *gpu) return Head::kDuplicate;
    }
  }
  StepFromNet(net, *gpu, place, steps);
  return Head::kFound;
}

void GraphSearch::Begin(std::uint32_t gpu, Place place, int& steps) {
  const std::uint64_t bit = std::uint64_t{1} << draft_.channels;
  used_[gpu] ^= bit;
  Visit(gpu, place, steps);
  used_[gpu] ^= bit;
}

void GraphSearch::StepFromNet(std::uint32_t net, std::uint32_t gpu, Place place, int& steps) {
  const PathBudget::Track& track = budget_.NetToGpu(net, gpu);
  if (!Follow(track, budget_.GpuToNet(gpu, net).type, false, 1)) return;
  Begin(gpu, place, steps);
  Unfollow(track, false, 1);
}

void GraphSearch::StepFromGpu(std::uint32_t from, std::uint32_t gpu, Place place, int& steps) {
  const PathBudget::Track& track = budget_.GpuToGpu(from, gpu);
  if (!Follow(track, budget_.GpuToGpu(gpu, from).type, true, 1)) return;
  Begin(gpu, place, steps);
  Unfollow(track, true, 1);
}

void GraphSearch::Visit(std::uint32_t gpu, Place place, int& steps) {
  if (steps <= 0) return;
  --steps;
  GpuSlot(place.position) = gpu;
  if (place.position == place.to_net) {
    LeaveByNet(gpu, place, steps);
  } else if (draft_.pattern == Pattern::kNvls) {
    SpreadOverSwitch(gpu, steps);
  } else if (draft_.pattern == Pattern::kCollNetDirect) {
    SpreadToAll(gpu, steps);
  } else if (place.position < static_cast<int>(gpus_) - 1) {
    GoOn(gpu, place, steps);
  } else if (place.position == place.to_first) {
    ReturnToFirst(gpu, steps);
  } else {
    FinishChannel(steps);
  }
}

bool GraphSearch::MayLeaveBy(std::uint32_t net, int position) const {
  const auto& nodes = view_.system().nodes(NodeKind::kNet);
  const std::uint32_t start = NetSlot(draft_.channels, 0);
  const bool odd = draft_.channels % 2 != 0;
  const int plane = nodes[net].net.plane;
  const int start_plane = nodes[start].net.plane;
  if (plane != -1 && start_plane != -1 && plane != start_plane) return false;
  if (draft_.pattern == Pattern::kTree && net != start) return false;
  const bool rails_known = nodes[net].net.rail != -1 && nodes[start].net.rail != -1;
  const bool same_card =
      nodes[net].net.asic == nodes[start].net.asic && nodes[net].net.port == nodes[start].net.port;
  const bool same_rail = rails_known ? nodes[net].net.rail == nodes[start].net.rail : same_card;
  switch (rules_.cross) {
    case SearchRules::Cross::kFree:
      if (draft_.cross_nic != 1 && !same_rail) return false;
      break;
    case SearchRules::Cross::kAlternating:
      if (draft_.cross_nic != 1 && !same_rail) return false;
      if (draft_.cross_nic != 0 && odd && net != NetSlot(draft_.channels - 1, 0)) return false;
      break;
    case SearchRules::Cross::kRingAlternating:
      if (draft_.pattern == Pattern::kRing && draft_.cross_nic == 2) {
        if (odd && net != NetSlot(draft_.channels - 1, 0)) return false;
      } else if (draft_.cross_nic == 0) {
        // On several hosts a rail may be the place of the card in its host.
        const bool by_place =
            !rails_known && settings_.rail_per_host && nodes[net].host() != nodes[start].host();
        const bool same_place = nodes[net].net.pci_group == nodes[start].net.pci_group &&
                                nodes[net].net.port == nodes[start].net.port;
        if (!(by_place ? same_place : same_rail)) return false;
      }
      break;
  }
  // Both halves of a balanced tree use one NIC.
  return draft_.pattern != Pattern::kBalancedTree || position == 0 ||
         net == NetSlot(draft_.channels, 1);
}

void GraphSearch::LeaveByNet(std::uint32_t gpu, Place place, int& steps) {
  if (!view_.system().inter) return;
  // A balanced tree takes half of the rate at each of its first two GPUs.
  const bool balanced = draft_.pattern == Pattern::kBalancedTree;
  const float whole = draft_.inter;
  const float part = balanced ? whole / 2 : whole;
  Place after = place;
  after.to_net = balanced && place.position == 0 ? 1 : -1;
  for (const std::uint32_t net : nets_.ToLeave(draft_.type_inter, gpu)) {
    if (!MayLeaveBy(net, place.position)) continue;
    const PathBudget::Track& track = budget_.GpuToNet(gpu, net);
    draft_.inter = part;
    const bool followed = Follow(track, budget_.NetToGpu(net, gpu).type, false, 1);
    draft_.inter = whole;
    if (!followed) continue;
    NetSlot(draft_.channels, 1) = net;
    Visit(gpu, after, steps);
    draft_.inter = part;
    Unfollow(track, false, 1);
    draft_.inter = whole;
  }
}

void GraphSearch::GoOn(std::uint32_t gpu, Place place, int& steps) {
  Place next = place;
  ++next.position;
  switch (place.order) {
    case Place::Order::kByIndex:
      StepFromGpu(gpu, static_cast<std::uint32_t>(next.position), next, steps);
      return;
    case Place::Order::kReplay:
      StepFromGpu(gpu, LastChannelGpu(next.position), next, steps);
      return;
    case Place::Order::kSearch:
      break;
  }
  const int net_sort = place.to_net == -1 ? 0 : place.to_net == next.position ? 1 : -1;
  std::vector<std::uint32_t> order;
  NextGpus(gpu, net_sort, order);
  for (const std::uint32_t to : order) StepFromGpu(gpu, to, next, steps);
}

void GraphSearch::ReturnToFirst(std::uint32_t gpu, int& steps) {
  const std::uint32_t first = GpuSlot(0);
  const PathBudget::Track& track = budget_.GpuToGpu(gpu, first);
  if (!Follow(track, budget_.GpuToGpu(first, gpu).type, true, 1)) return;
  FinishChannel(steps);
  Unfollow(track, true, 1);
}

/// GPUs not yet in the channel, the most promising first.
/// @param net_sort 1: the next GPU leaves by the NIC; -1: a later one does; 0: none.
void GraphSearch::NextGpus(std::uint32_t gpu, int net_sort, std::vector<std::uint32_t>& out) const {
  struct Score {
    std::uint32_t gpu;
    int inter_rate, inter_pci, inter_hops;
    int intra_rate, intra_hops, distance;
  };
  std::vector<Score> scores;
  scores.reserve(gpus_);
  for (std::uint32_t i = 1; i < gpus_; ++i) {
    const auto g = static_cast<std::uint32_t>((gpu + i) % gpus_);
    const PathBudget::Track& track = budget_.GpuToGpu(gpu, g);
    if (track.steps.empty() || IsUsed(g)) continue;
    Score score{g,
                0,
                0,
                0,
                static_cast<int>(track.rate),
                static_cast<int>(track.steps.size()),
                static_cast<int>(i)};
    if (net_sort != 0) {
      const PathBudget::Track& from_net = budget_.NetToGpu(NetSlot(draft_.channels, 0), g);
      score.inter_rate = static_cast<int>(from_net.rate);
      score.inter_pci = budget_.FreePci(g);
      score.inter_hops = static_cast<int>(from_net.steps.size());
    }
    scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    if (a.inter_rate != b.inter_rate) return a.inter_rate > b.inter_rate;
    if (a.inter_pci != b.inter_pci) return a.inter_pci > b.inter_pci;
    if (a.inter_hops != b.inter_hops) return a.inter_hops < b.inter_hops;
    if (a.intra_rate != b.intra_rate) return a.intra_rate > b.intra_rate;
    if (a.intra_hops != b.intra_hops) return a.intra_hops < b.intra_hops;
    return a.distance < b.distance;
  });
  const bool all_alike = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
    return score.intra_rate == scores[0].intra_rate && score.intra_hops == scores[0].intra_hops;
  });
  if (net_sort == -1 && all_alike) std::reverse(scores.begin(), scores.end());
  for (const Score& score : scores) out.push_back(score.gpu);
  if (view_.system().count(NodeKind::kNvs) > 0) PreferNeighbours(gpu, out);
}

/// An NVSwitch works best with few partners: neighbours in index order come first, or are the only
/// ones tried.
void GraphSearch::PreferNeighbours(std::uint32_t gpu, std::vector<std::uint32_t>& out) const {
  if (rules_.nvswitch_neighbours == SearchRules::Neighbours::kIgnored) return;
  const auto before = static_cast<std::uint32_t>((gpu + gpus_ - 1) % gpus_);
  const auto after = static_cast<std::uint32_t>((gpu + 1) % gpus_);
  std::vector<std::uint32_t> wanted{after};
  if (draft_.pattern == Pattern::kRing) {
    wanted = {after, before};
  } else if (draft_.pattern == Pattern::kSplitTree || draft_.pattern == Pattern::kBalancedTree) {
    wanted = {before, after};
  }
  const bool only = rules_.nvswitch_neighbours == SearchRules::Neighbours::kOnly;
  if (only && wanted.size() == 2 && before == after) wanted.pop_back();
  std::size_t present = 0;
  for (const std::uint32_t neighbour : wanted) {
    const auto found = std::find(out.begin(), out.end(), neighbour);
    if (found == out.end()) continue;
    std::rotate(out.begin(), found, found + 1);  // The last one named stands first.
    ++present;
  }
  if (only) out.resize(present);
}

/// NVLS: every GPU sends to and receives from the switch; the head does both twice.
void GraphSearch::SpreadOverSwitch(std::uint32_t head, int& steps) {
  const auto share = [&](std::uint32_t gpu) { return gpu == head ? 2.0F : 1.0F; };
  std::uint32_t down = 0;
  while (down < gpus_ &&
         Follow(budget_.SwitchToGpu(down), budget_.GpuToSwitch(down).type, true, share(down)))
    ++down;
  if (down == gpus_) {
    std::uint32_t up = 0;
    while (up < gpus_ &&
           Follow(budget_.GpuToSwitch(up), budget_.SwitchToGpu(up).type, true, share(up)))
      ++up;
    if (up == gpus_) FinishChannel(steps);
    while (up > 0) {
      --up;
      Unfollow(budget_.GpuToSwitch(up), true, share(up));
    }
  }
  while (down > 0) {
    --down;
    Unfollow(budget_.SwitchToGpu(down), true, share(down));
  }
}

/// CollNet direct: the head exchanges with every GPU, a part of the rate each.
void GraphSearch::SpreadToAll(std::uint32_t head, int& steps) {
  const float share = 1.0F / static_cast<float>(gpus_ - 1);
  std::uint32_t out = 0;
  while (out < gpus_ &&
         Follow(budget_.GpuToGpu(head, out), budget_.GpuToGpu(out, head).type, true, share))
    ++out;
  if (out == gpus_) {
    std::uint32_t in = 0;
    while (in < gpus_ &&
           Follow(budget_.GpuToGpu(in, head), budget_.GpuToGpu(head, in).type, true, share))
      ++in;
    if (in == gpus_) {
      int position = 1;
      for (std::uint32_t g = 0; g < gpus_; ++g) {
        if (g != head) GpuSlot(position++) = g;
      }
      FinishChannel(steps);
    }
    while (in > 0) {
      --in;
      Unfollow(budget_.GpuToGpu(in, head), true, share);
    }
  }
  while (out > 0) {
    --out;
    Unfollow(budget_.GpuToGpu(head, out), true, share);
  }
}

void GraphSearch::FinishChannel(int& steps) {
  if (steps <= 0) return;
  --steps;
  ++draft_.channels;
  if (IsBetter()) {
    best_ = draft_;
    if (draft_.channels == draft_.max_channels) steps = -1;
  }
  if (draft_.channels < draft_.max_channels) NextChannel(steps);
  --draft_.channels;
}

bool GraphSearch::IsBetter() const {
  if (draft_.channels < draft_.min_channels) return false;
  const auto new_channels = static_cast<float>(draft_.channels);
  const auto old_channels = static_cast<float>(best_.channels);
  if (draft_.pattern == Pattern::kNvls) {
    // Each channel is a GPU that pulls from the switch: the more the better.
    if (draft_.channels > best_.channels && static_cast<std::size_t>(draft_.channels) <= gpus_) {
      return true;
    }
    return rules_.nvls_by_inter_rate && new_channels * draft_.inter > old_channels * best_.inter;
  }
  float target = old_channels * best_.intra;
  if (rules_.cross_costs) {
    target *= static_cast<float>(1.0 - (best_.cross_nic - draft_.cross_nic) * .15);
  }
  const float found = new_channels * draft_.intra;
  if (found != target) return found > target;
  return draft_.pattern == best_.pattern && draft_.cross_nic == best_.cross_nic &&
         draft_.hops < best_.hops;
}

}  // namespace windtunnel::nccl
