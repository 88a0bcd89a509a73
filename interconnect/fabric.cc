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
  const std::string model = SwitchModelOf(spec, catalogue).name;
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
  WarnOfCrowdedSwitches(catalogue, hub, topology);
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

const DeviceModel& SwitchModelOf(const FabricSpec& spec, const Catalogue& catalogue) {
  const std::string name = spec.model.empty() ? "network-switch" : spec.model;
  const DeviceModel* model = catalogue.FindDevice(name);
  if (model != nullptr && model->kind == DeviceKind::kNetworkSwitch) return *model;
  std::vector<std::string> known;
  for (const DeviceModel& other : catalogue.devices()) {
    if (other.kind == DeviceKind::kNetworkSwitch) known.push_back(other.name);
  }
  InputFault fault = spec.where;
  if (!fault.field.starts_with("-t")) fault.field += ".model";
  fault.value = name;
  fault.problem = model == nullptr
                      ? "unknown switch model"
                      : fmt::format("is a {}, not a network switch:", Name(model->kind));
  fault.expected = "one of " + JoinNames(known);
  fault.nearest = NearestName(name, known);
  // A NIC or a link speed in place of a switch: one whose ports are as fast.
  for (const DeviceModel& other : catalogue.devices()) {
    if (model == nullptr || !fault.nearest.empty() || model->port_rate.count() == 0) break;
    if (other.kind == DeviceKind::kNetworkSwitch && other.port_rate == model->port_rate) {
      fault.nearest = other.name;
    }
  }
  throw ConfigError(std::move(fault));
}

std::vector<std::uint64_t> PortsInUse(const Topology& topology, const Catalogue& catalogue) {
  constexpr std::uint64_t kMostParts = 4;
  constexpr std::uint64_t kPort = 12;  // A port in parts: halves, thirds and quarters are whole.
  std::vector<const DeviceModel*> models(topology.devices.size(), nullptr);
  for (DeviceId id = 0; id < models.size(); ++id) {
    const Device& device = topology.devices[id];
    if (device.kind != DeviceKind::kNetworkSwitch) continue;
    const DeviceModel* model = catalogue.FindDevice(device.model);
    if (model != nullptr && model->ports != 0) models[id] = model;
  }
  std::vector<std::uint64_t> used(models.size(), 0);
  for (const Link& link : topology.links) {
    if (models[link.from] == nullptr || link.kind != LinkKind::kNetwork) continue;
    const std::uint64_t port = models[link.from]->port_rate.count();
    const std::uint64_t rate = std::max<std::uint64_t>(link.rate.count(), 1);
    if (port == 0) {
      used[link.from] += kPort;
    } else if (rate >= port) {
      used[link.from] += kPort * ((rate + port - 1) / port);
    } else {
      used[link.from] += kPort / std::min(kMostParts, port / rate);
    }
  }
  for (std::uint64_t& ports : used) ports = (ports + kPort - 1) / kPort;
  return used;
}

void WarnOfCrowdedSwitches(const Catalogue& catalogue, DeviceId first, Topology* topology) {
  const std::vector<std::uint64_t> used = PortsInUse(*topology, catalogue);
  for (DeviceId id = first; id < used.size(); ++id) {
    if (used[id] == 0) continue;
    const Device& device = topology->devices[id];
    const DeviceModel& model = *catalogue.FindDevice(device.model);
    if (used[id] <= model.ports) continue;
    topology->warnings.push_back(
        fmt::format("{}: its links take {} ports, and {} has {}: it stands for an ideal switch of "
                    "that kind with as many as it needs",
                    device.name, used[id], model.name, model.ports));
  }
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
