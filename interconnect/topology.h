#pragma once
// The physical cluster as plain data: devices and directed links. Loaded from files
// (topology_file.h), queried as a graph (cluster.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace windtunnel {

enum class DeviceKind : std::uint8_t {
  kGpu,
  kCpu,
  kPcieSwitch,
  kNvSwitch,
  kNic,
  kNetworkSwitch,
  kStorage,
  kTpu
};
enum class LinkKind : std::uint8_t { kNvlink, kC2c, kPcie, kNuma, kNetwork, kIci };

std::string_view Name(DeviceKind kind);  ///< "gpu", "cpu", "pcie_switch", "nv_switch", "nic",
                                         ///< "network_switch", "storage", "tpu"
std::string_view Name(LinkKind kind);    ///< "nvlink", "c2c", "pcie", "numa", "network", "ici"

std::optional<DeviceKind> DeviceKindFromName(std::string_view name);
std::optional<LinkKind> LinkKindFromName(std::string_view name);
const std::vector<std::string>& DeviceKindNames();  ///< In the order of the enum.
const std::vector<std::string>& LinkKindNames();

using DeviceId = std::uint32_t;
using LinkId = std::uint32_t;
constexpr std::uint32_t kNoNode = UINT32_MAX;

/// One device. A CPU device is one NUMA domain with its memory and root complex. A NIC is one port
/// towards the network.
struct Device {
  std::string name;  ///< Unique: "node0/gpu3", "leaf2".
  DeviceKind kind = DeviceKind::kGpu;
  std::string model;  ///< Entry of the device catalogue: "h200-sxm", "connectx-7", "quantum-2";
                      ///< empty = generic.
  std::uint32_t node = kNoNode;  ///< Host index; network switches have none.
  std::uint32_t index = 0;       ///< Among the devices of its kind on its node: the `dev` of NCCL.
  std::string bus_id;            ///< "0000:1b:00.0"; empty when the file has none.
  std::uint32_t sm = 0;          ///< GPUs: compute capability x 10. 0 for others.
  /// GPUs and storage: passes on traffic of others (a gateway). Other kinds always do.
  bool relay = false;
  /// Figures that only one reader or writer uses, by their own names: NCCL's attributes ("class",
  /// "vendor", "familyid", "guid", ...).
  std::map<std::string, std::string> attributes;
};

/// One **direction** of a connection.
struct Link {
  DeviceId from = 0;
  DeviceId to = 0;
  LinkKind kind = LinkKind::kPcie;
  std::uint32_t generation = 0;  ///< NVLink 1-5, PCIe 1-6; 0 = not said.
  std::uint32_t width = 1;       ///< NVLinks bonded, PCIe lanes, or 1.
  BitsPerSecond rate;            ///< Raw rate of all lanes in this direction, after line encoding.
  Picoseconds latency;           ///< First bit out to first bit in.
  bool p2p = true;  ///< PCIe: peer-to-peer traffic may pass (false with ACS or IOMMU redirection).
  bool forward = true;  ///< May carry traffic that neither starts nor ends at its ends.
  bool down = false;    ///< Out of service; `rate` is then not used.
};

struct Topology {
  std::string name;
  std::string source;  ///< File it was read from.
  std::vector<Device> devices;
  std::vector<Link> links;
  std::uint32_t node_count = 1;
  /// One line per default or completion that was filled in; each names the element.
  std::vector<std::string> warnings;
  /// Counts of what was skipped on import ("2 gpu without rank").
  std::vector<std::string> notes;
  /// FNV-1a of the input bytes: the digest that results carry.
  std::uint64_t digest = 0;

  std::vector<DeviceId> DevicesOf(DeviceKind kind) const;
  std::optional<DeviceId> Find(std::string_view device_name) const;
};

}  // namespace windtunnel
