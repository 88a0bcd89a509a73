#include "interconnect/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "interconnect/fabric_shapes.h"

namespace windtunnel {
namespace {

void BuildSingleSwitch(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  if (!spec.options.empty()) {
    InputFault fault = spec.where;
    fault.field += ".options." + spec.options.begin()->first;
    fault.problem = "unknown option of single-switch";
    fault.expected = "none: it has no options";
    throw ConfigError(std::move(fault));
  }
  const std::vector<DeviceId> ports = FreeNetworkPorts(*topology);
  if (ports.empty()) {
    InputFault fault = spec.where;
    fault.problem = "joins no NIC: the hosts have none, or all are on a network already";
    throw ConfigError(std::move(fault));
  }
  const std::string model = spec.model.empty() ? "network-switch" : spec.model;
  catalogue.Device(model, spec.where);
  const LinkModel* cable = catalogue.FindLink(LinkKind::kNetwork, 0);
  const auto hub = static_cast<DeviceId>(topology->devices.size());
  topology->devices.push_back(
      {.name = "switch0", .kind = DeviceKind::kNetworkSwitch, .model = model});
  for (const DeviceId port : ports) {
    Link link{.from = port, .to = hub, .kind = LinkKind::kNetwork};
    if (spec.rate) {
      link.rate = *spec.rate;
    } else if (const auto rate = PortRate(topology->devices[port], catalogue)) {
      link.rate = *rate;
    } else {
      InputFault fault = spec.where;
      fault.value = topology->devices[port].name;
      fault.problem = "has no rate for the NIC";
      fault.expected = "fabric.rate, or port_rate or a model at the NIC";
      throw ConfigError(std::move(fault));
    }
    link.latency = spec.latency ? *spec.latency : cable->latency;
    topology->links.push_back(link);
    std::swap(link.from, link.to);
    topology->links.push_back(link);
  }
}

// Short forms that name a shape and the switches it is made of.
struct Preset {
  std::string_view name;
  std::string_view shape;
  std::string_view model;
};
constexpr Preset kPresets[] = {
    {"ib-hdr", "fat-tree", "quantum-hdr"},
    {"ib-hdr-rail", "rail-optimised", "quantum-hdr"},
    {"ib-ndr", "fat-tree", "quantum-2"},
    {"ib-ndr-rail", "rail-optimised", "quantum-2"},
    {"ib-xdr", "fat-tree", "quantum-3"},
    {"ib-xdr-rail", "rail-optimised", "quantum-3"},
    {"roce-400g", "fat-tree", "tomahawk-4"},
    {"roce-400g-rail", "rail-optimised", "tomahawk-4"},
    {"roce-800g", "fat-tree", "tomahawk-5"},
    {"roce-800g-rail", "rail-optimised", "tomahawk-5"},
    {"slingshot-dragonfly", "dragonfly", "rosetta"},
};

}  // namespace

std::vector<std::string> FabricNames() {
  std::vector<std::string> names{"single-switch"};
  for (const FabricShape& shape : FabricShapes()) names.emplace_back(shape.name);
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  std::sort(names.begin(), names.end());
  return names;
}

void BuildFabric(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  if (spec.kind == "single-switch") return BuildSingleSwitch(spec, catalogue, topology);
  for (const FabricShape& shape : FabricShapes()) {
    if (shape.name == spec.kind) return shape.build(spec, catalogue, topology);
  }
  for (const Preset& preset : kPresets) {
    if (preset.name != spec.kind) continue;
    FabricSpec resolved = spec;
    resolved.kind = preset.shape;
    if (resolved.model.empty()) resolved.model = preset.model;
    return BuildFabric(resolved, catalogue, topology);
  }
  const std::vector<std::string> known = FabricNames();
  InputFault fault = spec.where;
  fault.value = spec.kind;
  fault.problem = "unknown fabric";
  fault.expected = "one of " + JoinNames(known);
  fault.nearest = NearestName(spec.kind, known);
  throw ConfigError(std::move(fault));
}

std::optional<BitsPerSecond> PortRate(const Device& nic, const Catalogue& catalogue) {
  if (const auto speed = nic.attributes.find("speed"); speed != nic.attributes.end()) {
    std::int64_t megabits = 0;
    std::from_chars(speed->second.data(), speed->second.data() + speed->second.size(), megabits);
    if (megabits <= 0) megabits = 10'000;  // NVIDIA/nccl src/graph/topo.cc: speed <= 0 is 10 Gb/s.
    return BitsPerSecond(static_cast<std::uint64_t>(megabits) * 1'000'000);
  }
  const DeviceModel* model = catalogue.FindDevice(nic.model);
  if (model == nullptr || model->port_rate.count() == 0) return std::nullopt;
  return model->port_rate;
}

}  // namespace windtunnel
