#pragma once

#include <cstdint>
#include <vector>

#include "collectives/nccl/search_rules.h"
#include "interconnect/nccl/paths.h"

namespace windtunnel::nccl {

/// The rate still free on each link of a system while a search lays channels over it. Rates are
/// single precision and rounded to 1/1000 after each change, as in NCCL (src/graph/search.cc,
/// v2.28.9), since which order is found depends on it.
class PathBudget {
 public:
  PathBudget(const SystemView& view, const SearchRules& rules);

  /// A path prepared for many uses.
  struct Track {
    struct Step {
      std::uint32_t link;      ///< Index over all links.
      std::uint32_t back = 0;  ///< Link of the other direction.
      float back_share = 0;    ///< Part of the rate charged to `back`.
      bool pci = false;
    };
    PathType type = PathType::kDis;
    float rate = 0;
    bool intel_overhead = false;  ///< PCI links are charged 6/5.
    std::vector<Step> steps;
  };

  const Track& GpuToGpu(std::uint32_t from, std::uint32_t to) const {
    return gpu_gpu_[from * gpus_ + to];
  }
  const Track& GpuToNet(std::uint32_t gpu, std::uint32_t net) const {
    return gpu_net_[gpu * nets_ + net];
  }
  const Track& NetToGpu(std::uint32_t net, std::uint32_t gpu) const {
    return net_gpu_[net * gpus_ + gpu];
  }
  /// Contract: the system has an NVSwitch.
  const Track& GpuToSwitch(std::uint32_t gpu) const { return gpu_nvs_[gpu]; }
  const Track& SwitchToGpu(std::uint32_t gpu) const { return nvs_gpu_[gpu]; }

  /// Charges `rate` along the track; a negative rate gives it back. False when a link cannot carry
  /// it: then nothing is charged.
  [[nodiscard]] bool Take(const Track& track, float rate);
  /// Free rate of a GPU's PCI link in the slower direction, whole GB/s; -1 without one.
  int FreePci(std::uint32_t gpu) const;

 private:
  std::uint32_t LinkIndex(LinkRef link) const {
    return offsets_[static_cast<std::size_t>(link.from.kind)][link.from.index] + link.link;
  }
  Track MakeTrack(NodeRef from, NodeRef to, const SystemView& view, const SearchRules& rules) const;
  std::size_t Charge(const Track& track, std::size_t steps, float rate);

  std::size_t gpus_;
  std::size_t nets_;
  std::array<std::vector<std::uint32_t>, kNodeKinds> offsets_;
  std::vector<float> free_;
  std::vector<Track> gpu_gpu_, gpu_net_, net_gpu_, gpu_nvs_, nvs_gpu_;
  struct PciLinks {
    bool present = false;
    std::uint32_t up = 0;
    std::uint32_t down = 0;
  };
  std::vector<PciLinks> pci_;
};

}  // namespace windtunnel::nccl
