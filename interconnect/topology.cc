#include "interconnect/topology.h"

#include <algorithm>
#include <array>

namespace windtunnel {
namespace {

constexpr std::array<std::string_view, 8> kDeviceKindNames = {
    "gpu", "cpu", "pcie_switch", "nv_switch", "nic", "network_switch", "storage", "tpu"};
constexpr std::array<std::string_view, 6> kLinkKindNames = {"nvlink", "c2c",     "pcie",
                                                            "numa",   "network", "ici"};

template <class Kind, std::size_t n>
std::optional<Kind> KindFromName(const std::array<std::string_view, n>& names,
                                 std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Kind>(found - names.begin());
}

}  // namespace

std::string_view Name(DeviceKind kind) { return kDeviceKindNames[static_cast<std::size_t>(kind)]; }
std::string_view Name(LinkKind kind) { return kLinkKindNames[static_cast<std::size_t>(kind)]; }

std::optional<DeviceKind> DeviceKindFromName(std::string_view name) {
  return KindFromName<DeviceKind>(kDeviceKindNames, name);
}
std::optional<LinkKind> LinkKindFromName(std::string_view name) {
  return KindFromName<LinkKind>(kLinkKindNames, name);
}
const std::vector<std::string>& DeviceKindNames() {
  static const std::vector<std::string> names(kDeviceKindNames.begin(), kDeviceKindNames.end());
  return names;
}
const std::vector<std::string>& LinkKindNames() {
  static const std::vector<std::string> names(kLinkKindNames.begin(), kLinkKindNames.end());
  return names;
}

std::vector<DeviceId> Topology::DevicesOf(DeviceKind kind) const {
  std::vector<DeviceId> found;
  for (DeviceId id = 0; id < devices.size(); ++id) {
    if (devices[id].kind == kind) found.push_back(id);
  }
  return found;
}

std::optional<DeviceId> Topology::Find(std::string_view device_name) const {
  for (DeviceId id = 0; id < devices.size(); ++id) {
    if (devices[id].name == device_name) return id;
  }
  return std::nullopt;
}

}  // namespace windtunnel
