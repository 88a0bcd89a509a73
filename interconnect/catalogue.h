#pragma once
// Data-sheet facts of devices and links as plain structs, read from catalogue/devices.yaml and
// catalogue/links.yaml. No figure of a product stands in code.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/topology.h"
#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel {

/// One product. Zero or empty = the catalogue does not say.
struct DeviceModel {
  std::string name;  ///< "h200-sxm"
  DeviceKind kind = DeviceKind::kGpu;
  std::string title;                       ///< "NVIDIA H200 SXM 141 GB"
  std::uint32_t sm = 0;                    ///< Compute capability x 10.
  std::uint32_t compute_units = 0;         ///< Streaming multiprocessors, TPU cores.
  std::uint64_t clock_hz = 0;              ///< Boost clock.
  Bytes memory;                            ///< Device memory, decimal.
  BitsPerSecond memory_rate;               ///< Data-sheet rate of the device memory.
  Bytes l2;                                ///< Last-level cache.
  std::map<std::string, double> tera_ops;  ///< Dense 10^12 operations/s by format: "fp16", ...
  std::uint32_t nvlink_generation = 0;
  std::uint32_t nvlink_count = 0;
  std::uint32_t pcie_generation = 0;
  std::uint32_t pcie_width = 0;
  double power_w = 0;              ///< Thermal design power.
  std::string pci_class;           ///< "0x030200"
  std::string pci_vendor;          ///< "0x10de"
  std::string pci_device;          ///< "0x2335"
  std::string arch;                ///< CPUs: "x86_64", "arm64", "ppc64".
  std::string vendor;              ///< CPUs: "GenuineIntel", ...
  std::uint32_t family = 0;        ///< CPUs: as NCCL counts it (base + extended << 4).
  std::uint32_t cpu_model = 0;     ///< CPUs: likewise.
  BitsPerSecond port_rate;         ///< NICs and network switches: one port, one direction.
  std::uint32_t ports = 0;         ///< Network switches.
  Picoseconds forwarding_latency;  ///< First bit in to first bit out on another port.
  Bytes buffer;                    ///< Network switches: packet memory, shared by all ports.
  BitsPerSecond numa_rate;         ///< CPUs: what device traffic reaches between two sockets.
  std::map<std::string, std::string> sources;  ///< Field -> source; "all" = the rest.
  std::vector<std::string> assumed;            ///< Fields without a source that was read.
};

/// One kind and generation of link.
struct LinkModel {
  LinkKind kind = LinkKind::kPcie;
  std::uint32_t generation = 0;
  BitsPerSecond lane_rate;          ///< One lane or bonded link, one direction, after encoding.
  std::uint32_t default_width = 1;  ///< Where a file does not say.
  Picoseconds latency;              ///< First bit out to first bit in.
  std::vector<std::string> assumed;
};

/// Immutable; safe to share.
class Catalogue {
 public:
  /// The files that the project ships, read once. @throws ConfigError when they are damaged.
  static const Catalogue& Shipped();
  /// @throws ConfigError on unknown keys, repeated names, figures that do not parse.
  static Catalogue FromText(std::string_view devices_yaml, std::string_view devices_name,
                            std::string_view links_yaml, std::string_view links_name);

  /// By name or alias; nothing when unknown.
  const DeviceModel* FindDevice(std::string_view model) const;
  /// @throws ConfigError built on `where`, with the nearest known model.
  const DeviceModel& Device(std::string_view model, const InputFault& where) const;
  /// Nothing when the kind has no such generation. Generation 0 finds the entry without one.
  const LinkModel* FindLink(LinkKind kind, std::uint32_t generation) const;
  const std::vector<DeviceModel>& devices() const { return devices_; }
  const std::vector<LinkModel>& links() const { return links_; }

 private:
  std::vector<DeviceModel> devices_;
  std::vector<LinkModel> links_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace windtunnel
