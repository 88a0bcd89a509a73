#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/nccl/search_rules.h"
#include "interconnect/nccl/paths.h"

namespace windtunnel::nccl {

/// Which NICs a search tries, and in which order. Pure: depends on the system only, so lists are
/// kept. Source: NVIDIA/nccl src/graph/search.cc (selection of nets), v2.28.9.
class NetChoice {
 public:
  /// @param scatter several hosts share their NICs out by GPU first
  /// (NCCL_MNNVL_SCATTER_NETS_ENABLE).
  NetChoice(const SystemView& view, const SearchRules& rules, bool scatter);

  /// NICs to start a channel at. `farthest`: nothing adds no NIC by distance.
  const std::vector<std::uint32_t>& ToStart(std::optional<PathType> farthest) {
    return List(farthest, std::nullopt);
  }
  /// NICs by which `gpu` may leave.
  const std::vector<std::uint32_t>& ToLeave(std::optional<PathType> farthest, std::uint32_t gpu) {
    return List(farthest, gpu);
  }

 private:
  using Key = std::pair<int, int>;
  const std::vector<std::uint32_t>& List(std::optional<PathType> farthest,
                                         std::optional<std::uint32_t> gpu);
  std::vector<std::uint32_t> Make(std::optional<PathType> farthest,
                                  std::optional<std::uint32_t> gpu) const;
  std::vector<std::uint32_t> BestRate() const;
  void AddPreferred(std::optional<std::uint32_t> gpu, std::vector<std::uint32_t>& out) const;
  void AddPreferredByGpu(std::optional<std::uint32_t> gpu, std::vector<std::uint32_t>& out) const;
  /// False when no more may be added.
  bool AddByDistance(PathType farthest, std::optional<std::uint32_t> gpu, std::size_t most,
                     std::vector<std::uint32_t>& out) const;
  std::uint32_t Local(std::uint32_t gpu, int channel) const;

  const SystemView& view_;
  const SearchRules& rules_;
  bool scatter_;
  std::map<Key, std::vector<std::uint32_t>> lists_;
};

}  // namespace windtunnel::nccl
