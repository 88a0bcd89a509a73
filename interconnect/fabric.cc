#include "interconnect/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace windtunnel {
namespace {

// NIC ports that are not on any network yet, in file order.
std::vector<DeviceId> FreePorts(const Topology& topology) {
  std::vector<bool> joined(topology.devices.size(), false);
  for (const Link& link : topology.links) {
    if (link.kind == LinkKind::kNetwork) joined[link.from] = joined[link.to] = true;
  }
  std::vector<DeviceId> free;
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    if (topology.devices[id].kind == DeviceKind::kNic && !joined[id]) free.push_back(id);
  }
  return free;
}

void BuildSingleSwitch(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  if (!spec.options.empty()) {
    InputFault fault = spec.where;
    fault.field += ".options." + spec.options.begin()->first;
    fault.problem = "unknown option of single-switch";
    fault.expected = "none: it has no options";
    throw ConfigError(std::move(fault));
  }
  const std::vector<DeviceId> ports = FreePorts(*topology);
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

struct Kind {
  std::string_view name;
  void (*build)(const FabricSpec&, const Catalogue&, Topology*);
};
constexpr Kind kKinds[] = {
    {"single-switch", BuildSingleSwitch},
};

}  // namespace

std::vector<std::string> FabricNames() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  std::sort(names.begin(), names.end());
  return names;
}

void BuildFabric(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  for (const Kind& kind : kKinds) {
    if (kind.name == spec.kind) {
      kind.build(spec, catalogue, topology);
      return;
    }
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
