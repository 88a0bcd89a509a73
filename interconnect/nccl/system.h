#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/nccl/nccl_version.h"
#include "interconnect/nccl/topology_rules.h"
#include "interconnect/nccl/xml.h"

namespace windtunnel::nccl {

/// Kinds of nodes of NCCL's system graph (src/graph/topo.h, v2.28.9). DEV, a GPU's package, exists
/// from 2.30 on.
enum class NodeKind : std::uint8_t { kGpu, kPci, kNvs, kCpu, kNic, kNet, kDev };
constexpr std::size_t kNodeKinds = 7;
constexpr std::string_view kNodeKindNames[] = {"GPU", "PCI", "NVS", "CPU", "NIC", "NET", "DEV"};
constexpr std::string_view Name(NodeKind kind) {
  return kNodeKindNames[static_cast<std::size_t>(kind)];
}

/// Kinds of links, from near to far.
enum class LinkKind : std::uint8_t { kLoc, kNvl, kC2c, kPci, kSys, kNet };
constexpr std::string_view kLinkKindNames[] = {"LOC", "NVL", "C2C", "PCI", "SYS", "NET"};
constexpr std::string_view Name(LinkKind kind) {
  return kLinkKindNames[static_cast<std::size_t>(kind)];
}

/// Rate of a link inside one device, GB/s.
constexpr float kLocalRate = 5000.0F;

enum class CpuArch : std::uint8_t { kUnknown, kX86, kPower, kArm };
enum class CpuVendor : std::uint8_t { kUnknown, kIntel, kAmd, kZhaoxin };
enum class CpuModel : std::uint8_t {
  kUnknown,
  kIntelBroadwell,
  kIntelSkylake,
  kIntelSapphireRapids,
  kIntelEmeraldRapids,
  kYongfeng
};

/// A node of a system: its kind and its place among the nodes of that kind.
struct NodeRef {
  NodeKind kind = NodeKind::kGpu;
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(const NodeRef&, const NodeRef&) = default;
};
constexpr NodeRef Gpu(std::uint32_t index) { return {NodeKind::kGpu, index}; }
constexpr NodeRef Net(std::uint32_t index) { return {NodeKind::kNet, index}; }
constexpr NodeRef Cpu(std::uint32_t index) { return {NodeKind::kCpu, index}; }
constexpr NodeRef Dev(std::uint32_t index) { return {NodeKind::kDev, index}; }
constexpr NodeRef Nvs(std::uint32_t index) { return {NodeKind::kNvs, index}; }

struct SystemLink {
  LinkKind kind = LinkKind::kLoc;
  float rate = 0;  ///< GB/s, one direction.
  NodeRef to;
};

struct SystemNode {
  /// Host in the top 8 bits; below the bus id (GPU, PCI, NIC), the NUMA id (CPU) or the device
  /// number (NET).
  std::int64_t id = 0;
  std::vector<SystemLink> links;  ///< In the order in which paths look at them.

  /// Of a GPU; a DEV node has `dev` and `sm` of its GPUs.
  struct {
    int dev = -1;
    int rank = -1;
    int sm = 0;  ///< Compute capability times ten.
    bool gdr = false;
  } gpu;
  struct {
    int dev = -1;
    std::uint64_t asic = 0;       ///< Equal asic and port share the rate.
    std::uint64_t pci_group = 0;  ///< Equal for NICs at the same bus id, whatever the host.
    int port = 0;
    float rate = 0;     ///< GB/s.
    float latency = 0;  ///< us.
    bool gdr = false;
    bool collnet = false;
    int max_channels = 64;
    int rail = -1;  ///< Numbers of rail and plane, from 2.30 on; -1 unknown.
    int plane = -1;
  } net;
  struct {
    CpuArch arch = CpuArch::kUnknown;
    CpuVendor vendor = CpuVendor::kUnknown;
    CpuModel model = CpuModel::kUnknown;
  } cpu;
  struct {
    std::uint64_t device = 0;  ///< Vendor, device, subsystem vendor and device, 16 bits each.
  } pci;

  std::uint32_t host() const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) >> 56);
  }
  std::uint64_t local_id() const { return static_cast<std::uint64_t>(id) & 0x00ff'ffff'ffff'ffffU; }
};

/// One rank of the job as the topology sees it.
struct RankSeat {
  int rank = 0;
  std::uint32_t host = 0;  ///< Host within this system; above 0 only when hosts share NVLink.
  int dev = 0;             ///< `dev` of the GPU on that host.
};

/// How a file is taken.
enum class XmlMode : std::uint8_t {
  kNccl,   ///< As NCCL takes it; every silent default becomes a warning.
  kStrict  ///< A default that NCCL takes in silence is an error; a speed is read as the number.
};

/// The graph of one system: one host, or the hosts of one NVLink domain.
class System {
 public:
  const std::vector<SystemNode>& nodes(NodeKind kind) const {
    return nodes_[static_cast<std::size_t>(kind)];
  }
  std::vector<SystemNode>& nodes(NodeKind kind) { return nodes_[static_cast<std::size_t>(kind)]; }
  std::uint32_t count(NodeKind kind) const {
    return static_cast<std::uint32_t>(nodes(kind).size());
  }
  const SystemNode& at(NodeRef ref) const { return nodes(ref.kind)[ref.index]; }
  SystemNode& at(NodeRef ref) { return nodes(ref.kind)[ref.index]; }

  std::optional<std::uint32_t> FindById(NodeKind kind, std::int64_t id) const;
  /// Index of the GPU with that rank, if it is part of the system.
  std::optional<std::uint32_t> GpuOfRank(int rank) const;
  /// The DEV node above a GPU, from 2.30 on; before the GPU itself.
  NodeRef PackageOf(std::uint32_t gpu) const;
  /// Adds `rate` to the link of that kind, made when there is none; links stay sorted by rate.
  void Connect(NodeRef from, NodeRef to, LinkKind kind, float rate);
  /// Removes a node and all links to it; the nodes of its kind behind it move up.
  void Remove(NodeRef node);
  /// Smallest and largest compute capability (of all packages where there are DEV nodes). Contract:
  /// at least one GPU.
  int MinSm() const;
  int MaxSm() const;

  std::vector<std::uint64_t> host_hashes;  ///< Hosts in order of appearance.
  std::uint32_t own_host = 0;              ///< Host of the rank whose view this is.
  bool inter = false;                      ///< The job has ranks outside this system.

 private:
  std::array<std::vector<SystemNode>, kNodeKinds> nodes_;
};

/// What the ranks of one system know together: the file cut down to the GPUs of `seats` and the
/// NICs that have a `dev`, with the ranks' numbers, ranks in rising order. From 2.22 on every rank
/// adds its own branch, so the order of the children follows the ranks.
/// A file with one `host_hash` (or none) describes each of the hosts; one with several describes
/// them all, in order of appearance.
/// @throws ConfigError when a seat names a GPU that the file lacks.
XmlElement KeepUsedParts(const XmlDocument& topology, const std::vector<RankSeat>& seats,
                         const TopologyRules& rules);

/// Builds the graph from the result of `KeepUsedParts`.
/// @param collnet every NIC counts as able to reduce in the network.
/// @param warnings receives one sentence per default taken, with file and line.
/// @throws ConfigError for what NCCL refuses and, in strict mode, for each default.
System BuildSystem(const XmlElement& used, const std::string& file, const TopologyRules& rules,
                   XmlMode mode, bool collnet, std::vector<std::string>& warnings);

/// Rate of one NVLink of a GPU, GB/s and direction.
float NvlinkRate(int sm, const TopologyRules& rules);

/// GB/s of a PCIe link: lanes x rate per lane, by NCCL's table of texts ("16.0 GT/s PCIe", ...).
/// Nothing when the text is not in the table.
std::optional<int> PcieLaneRate(std::string_view link_speed, const TopologyRules& rules);

/// GPUs of a file in order of appearance, those without `rank` too: their (host, dev) and rank.
struct FileGpu {
  std::uint32_t host = 0;
  int dev = -1;
  std::optional<int> rank;
  int sm = 0;
};
std::vector<FileGpu> ListGpus(const XmlDocument& topology);

}  // namespace windtunnel::nccl
