#pragma once
// The cluster as a graph: routing, cuts, components, bounds. Boost.Graph lives in cluster.cc alone.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "interconnect/route_set.h"
#include "interconnect/topology.h"

namespace windtunnel {

/// How data of one GPU reaches another.
enum class Transport : std::uint8_t {
  kLocal,         ///< Same device.
  kPeerToPeer,    ///< NVLink or PCIe, GPU memory to GPU memory.
  kSharedMemory,  ///< Bounce through host memory: GPU to CPU, CPU to GPU.
  kNetwork,       ///< GPU to NIC to network to NIC to GPU.
};

/// Slower links are refused: shares of theirs in whole bits per second would come to nothing, and a
/// transfer would leave the range of time.
constexpr BitsPerSecond kSlowestLink(100'000);

/// Immutable after construction. Thread-safe for reading.
class Cluster {
 public:
  /// @throws ConfigError when the topology contradicts itself (dangling ends, duplicate names) or a
  /// link that is up is slower than `kSlowestLink`.
  explicit Cluster(Topology topology);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  const Topology& topology() const;
  std::span<const DeviceId> gpus()
      const;  ///< All GPUs in file order: rank r of a default job is gpus()[r].
  std::span<const LinkId> links_out(DeviceId device) const;  ///< In file order.

  /// Fastest-bottleneck, then fewest-hops, then lowest-latency, then lowest-id route over links
  /// that are up and may forward. Devices other than the ends that do not forward (GPUs, NICs
  /// towards a GPU) are not passed. Empty optional when unreachable.
  std::optional<Route> FindRoute(DeviceId from, DeviceId to) const;
  /// All routes of equal hop count and bottleneck: the choices of ECMP. Empty when unreachable. For
  /// many pairs of switches, SwitchRoutes.
  RouteSet EqualCostRoutes(DeviceId from, DeviceId to) const;

  /// Route a rank's data takes when peer-to-peer between the two is not possible: from -> its CPU
  /// -> (other CPU) -> to.
  std::optional<Route> FindHostBounceRoute(DeviceId from, DeviceId to) const;
  /// Can `from` write the memory of `to` without the host: NVLink only, or PCIe with p2p allowed on
  /// every link.
  bool PeerToPeerPossible(DeviceId from, DeviceId to) const;
  /// The CPU (NUMA domain) a device hangs below; itself for a CPU.
  std::optional<DeviceId> HomeCpu(DeviceId device) const;
  /// NICs of the GPU's node, nearest first (path type, then rate, then index).
  std::vector<DeviceId> NearestNics(DeviceId gpu) const;

  BitsPerSecond Bottleneck(std::span<const LinkId> route) const;
  Picoseconds Latency(std::span<const LinkId> route) const;
  /// Component number per device, counted from 0 in order of the lowest device id.
  std::vector<std::uint32_t> Components() const;
  /// Max-flow between two GPUs over all links: the bound of any pair transfer.
  BitsPerSecond PairBound(DeviceId from, DeviceId to) const;
  /// Smallest one-direction capacity between the first and the second half of `devices`.
  BitsPerSecond Bisection(std::span<const DeviceId> devices) const;

 private:
  friend class SwitchRoutes;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Equal routes between many pairs of switches; what routes to one switch have in common is kept
/// once, by copies too. Answers do not depend on what was asked before.
class SwitchRoutes {
 public:
  /// `cluster` must outlive it.
  explicit SwitchRoutes(const Cluster& cluster);
  /// As Cluster::EqualCostRoutes, for any two devices.
  RouteSet Between(DeviceId from, DeviceId to);

 private:
  bool IsSwitch(DeviceId id) const;

  const Cluster& cluster_;
  bool plain_ = true;  // Routes between switches pass nothing but switches.
  struct Targets;
  std::shared_ptr<Targets> targets_;
};

}  // namespace windtunnel
