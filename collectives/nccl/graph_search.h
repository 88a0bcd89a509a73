#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/nccl/net_choice.h"
#include "collectives/nccl/path_budget.h"
#include "collectives/nccl/search_graph.h"
#include "collectives/nccl/search_rules.h"
#include "interconnect/nccl/paths.h"

namespace windtunnel::nccl {

/// What to look for.
struct GraphRequest {
  GraphId id = GraphId::kRing;
  Pattern pattern = Pattern::kRing;
  bool collnet = false;  ///< Only NICs that reduce in the network.
  int min_channels = 1;
  int max_channels = 1;
};

/// What the user's variables say about the search.
struct SearchSettings {
  int cross_nic = 2;           ///< NCCL_CROSS_NIC: 0 no, 1 always, 2 allowed.
  bool scatter_nets = true;    ///< NCCL_MNNVL_SCATTER_NETS_ENABLE.
  bool rail_per_host = false;  ///< NCCL_MNNVL_RAIL_PER_HOST.
};

/// NCCL's search for one graph: at each setting of rate, distances and pattern a depth-first search
/// over GPU orders with a budget of steps; settings are relaxed one at a time until something is
/// found, then rates are raised. Deterministic: the budget counts steps, not time.
/// Source: NVIDIA/nccl src/graph/search.cc, v2.28.9.
class GraphSearch {
 public:
  GraphSearch(const SystemView& view, const NcclVersion& version, const SearchSettings& settings);

  SearchGraph Run(const GraphRequest& request);

 private:
  /// A graph being built, or the best one so far.
  struct Draft {
    GraphId id;
    Pattern pattern;
    bool collnet;
    int min_channels, max_channels;
    int cross_nic = 0;
    int channels = 0;
    float intra = 0, inter = 0, latency = 0;
    PathType type_intra = PathType::kLoc, type_inter = PathType::kLoc;
    bool same_channels = true;
    int hops = 0;
    std::vector<std::uint32_t> gpus;  ///< Per channel all GPUs in order.
    std::vector<std::uint32_t> nets;  ///< Per channel entry and exit.
    bool no_real_nets = false;        ///< Fallback of older releases: NICs of id 0.
  };
  /// Where the depth-first search stands in one channel.
  struct Place {
    enum class Order : std::uint8_t { kSearch, kByIndex, kReplay };
    int position = 0;
    int to_net = -1;    ///< Position at which the channel leaves by a NIC; -1 never.
    int to_first = -1;  ///< Position from which it returns to its first GPU.
    Order order = Order::kSearch;
  };

  // One attempt (graph_search.cc).
  void NextChannel(int& steps);
  void StartInside(Place place, int& steps);
  void StartAtNets(Place place, int& steps);
  void StartAtNet(std::uint32_t net, std::size_t net_count, Place place, int& steps,
                  bool& head_found);
  void StartAtGpus(std::uint32_t net, Place place, int& steps);
  enum class Head : std::uint8_t { kFound, kDuplicate, kNone };
  Head StartHead(std::uint32_t net, std::size_t net_count, Place place, int& steps);
  void StepFromNet(std::uint32_t net, std::uint32_t gpu, Place place, int& steps);
  void StepFromGpu(std::uint32_t from, std::uint32_t gpu, Place place, int& steps);
  void Begin(std::uint32_t gpu, Place place, int& steps);
  void Visit(std::uint32_t gpu, Place place, int& steps);
  void LeaveByNet(std::uint32_t gpu, Place place, int& steps);
  void GoOn(std::uint32_t gpu, Place place, int& steps);
  void ReturnToFirst(std::uint32_t gpu, int& steps);
  void SpreadOverSwitch(std::uint32_t head, int& steps);
  void SpreadToAll(std::uint32_t head, int& steps);
  void FinishChannel(int& steps);
  bool IsBetter() const;
  bool MayLeaveBy(std::uint32_t net, int position) const;
  bool MayStartAt(std::uint32_t net) const;
  void ShareNetRate(std::uint32_t net, int rate);
  void NextGpus(std::uint32_t gpu, int net_sort, std::vector<std::uint32_t>& out) const;
  void PreferNeighbours(std::uint32_t gpu, std::vector<std::uint32_t>& out) const;
  /// Charges a path of the draft's rate times `share`; false when its type or a link forbids it.
  bool Follow(const PathBudget::Track& track, PathType back_type, bool intra, float share);
  void Unfollow(const PathBudget::Track& track, bool intra, float share);
  std::uint32_t LastChannelGpu(int position) const;
  bool IsUsed(std::uint32_t gpu) const { return (used_[gpu] >> draft_.channels & 1) != 0; }
  std::uint32_t& GpuSlot(int position) {
    return draft_.gpus[static_cast<std::size_t>(draft_.channels) * gpus_ +
                       static_cast<std::size_t>(position)];
  }
  std::uint32_t& NetSlot(int channel, int side) {
    return draft_.nets[static_cast<std::size_t>(channel) * 2 + static_cast<std::size_t>(side)];
  }
  std::uint32_t NetSlot(int channel, int side) const {
    return draft_.nets[static_cast<std::size_t>(channel) * 2 + static_cast<std::size_t>(side)];
  }

  // All attempts (relaxation.cc).
  void PrepareDrafts(const GraphRequest& request);
  void ChooseFirstRate();
  int Attempt();
  bool IsPerfect(int steps_left) const;
  bool Relax(int steps_left);
  bool RelaxPattern(SearchRules::SimplerTree when);
  bool RelaxTypes();
  void Duplicate();
  void RaiseRates();
  void FallBack();
  PathType Farther(PathType type) const;
  SearchGraph Result() const;

  const SystemView& view_;
  NcclVersion version_;
  SearchRules rules_;
  SearchSettings settings_;
  PathBudget budget_;
  NetChoice nets_;
  std::size_t gpus_;
  std::vector<std::uint64_t> used_;  ///< Per GPU, a bit per channel.
  std::vector<float> net_rates_;     ///< Still free, GB/s.
  std::vector<int> net_channels_;    ///< Still allowed.
  Draft draft_{};                    ///< Being tried.
  Draft best_{};
  std::span<const float> rates_;
  std::size_t rate_ = 0;
  int allowed_cross_ = 0;  ///< NCCL_CROSS_NIC where it applies, else 0.
  bool try_same_channels_ = true;
  PathType nearest_intra_{}, nearest_inter_{}, farthest_intra_{}, farthest_inter_{};
  std::int64_t steps_in_all_ = 0;
};

}  // namespace windtunnel::nccl
