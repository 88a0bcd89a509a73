#include "interconnect/fabric_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <numeric>
#include <set>

#include "sim/parse_units.h"

namespace windtunnel {
namespace {

constexpr std::uint64_t kMostSwitches = 1'000'000;
constexpr std::uint64_t kMostFabricLinks = 20'000'000;
// Ports of a switch when neither model nor option says: the radix of a 64-port switch.
constexpr std::uint64_t kStandardRadix = 64;

// What every shape needs: the options by name, the switch model, cables and switches as they come.
class Weaver {
 public:
  Weaver(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology,
         std::vector<std::string> known)
      : spec_(spec), catalogue_(catalogue), topology_(topology) {
    std::sort(known.begin(), known.end());
    for (const auto& [name, value] : spec.options) {
      if (std::binary_search(known.begin(), known.end(), name)) continue;
      InputFault fault = At(name);
      fault.problem = "unknown option of " + spec.kind;
      fault.expected = JoinNames(known);
      fault.nearest = NearestName(name, known);
      throw ConfigError(std::move(fault));
    }
    model_ = &SwitchModelOf(spec, catalogue);
    forwarding_ = model_->forwarding_latency;
    radix_ = model_->ports != 0 ? model_->ports : kStandardRadix;
    first_switch_ = static_cast<DeviceId>(topology->devices.size());
    const LinkModel* cable = catalogue.FindLink(LinkKind::kNetwork, 0);
    cable_latency_ = spec.latency ? *spec.latency : cable->latency;
    ports_ = FreeNetworkPorts(*topology);
    if (ports_.empty()) {
      InputFault fault = spec.where;
      fault.problem = "joins nothing: the hosts have no NIC that is on no network yet";
      throw ConfigError(std::move(fault));
    }
  }

  InputFault At(const std::string& option) const {
    InputFault fault = spec_.where;
    fault.field += ".options." + option;
    if (const auto it = spec_.options.find(option); it != spec_.options.end()) {
      fault.value = it->second;
    }
    return fault;
  }
  [[noreturn]] void Refuse(const std::string& option, std::string problem,
                           std::string expected = {}) const {
    InputFault fault = At(option);
    fault.problem = std::move(problem);
    fault.expected = std::move(expected);
    throw ConfigError(std::move(fault));
  }
  const std::string* Find(const std::string& option) const {
    const auto it = spec_.options.find(option);
    return it == spec_.options.end() ? nullptr : &it->second;
  }
  std::uint64_t Count(const std::string& option, std::uint64_t standard, std::uint64_t lowest = 1,
                      std::uint64_t highest = kMostSwitches) const {
    const std::string* text = Find(option);
    return text == nullptr ? standard : ParseCount(*text, At(option), lowest, highest);
  }
  BitsPerSecond Rate(const std::string& option, BitsPerSecond standard) const {
    const std::string* text = Find(option);
    return text == nullptr ? standard : ParseRate(*text, At(option));
  }
  Picoseconds Latency(const std::string& option) const {
    const std::string* text = Find(option);
    return text == nullptr ? cable_latency_ : ParseTime(*text, At(option));
  }
  // "4:1" or "4": how much more may come from below than goes up.
  double Ratio(const std::string& option) const {
    const std::string* text = Find(option);
    if (text == nullptr) return 1;
    const std::size_t colon = text->find(':');
    const double above = ParseNumber(text->substr(0, colon), At(option));
    const double below =
        colon == std::string::npos ? 1 : ParseNumber(text->substr(colon + 1), At(option));
    if (!(above > 0) || !(below > 0) || above / below < 1e-3 || above / below > 1e6) {
      Refuse(option, "is no ratio", "4:1, or a number above 0");
    }
    return above / below;
  }
  bool YesNo(const std::string& option, bool standard) const {
    const std::string* text = Find(option);
    if (text == nullptr) return standard;
    if (*text == "yes" || *text == "true") return true;
    if (*text == "no" || *text == "false") return false;
    Refuse(option, "is neither yes nor no", "yes, no");
  }
  // "4x4x8"
  std::vector<std::uint64_t> Sides(const std::string& option) const {
    const std::string* text = Find(option);
    if (text == nullptr) Refuse(option, "is missing", "sizes such as 4x4x8");
    std::vector<std::uint64_t> sides;
    std::string_view rest = *text;
    while (true) {
      const std::size_t end = rest.find('x');
      sides.push_back(ParseCount(rest.substr(0, end), At(option), 1, kMostSwitches));
      if (end == std::string_view::npos) return sides;
      rest.remove_prefix(end + 1);
    }
  }

  std::span<const DeviceId> ports() const { return ports_; }
  std::uint64_t radix() const { return radix_; }
  const Device& device(DeviceId id) const { return topology_->devices[id]; }

  BitsPerSecond PortRateOf(DeviceId port) const {
    if (spec_.rate) return *spec_.rate;
    if (const auto rate = PortRate(device(port), catalogue_)) return *rate;
    InputFault fault = spec_.where;
    fault.value = device(port).name;
    fault.problem = "has no rate for the port";
    fault.expected = "fabric.rate, or port_rate or a model at the NIC";
    throw ConfigError(std::move(fault));
  }
  BitsPerSecond FastestPort() const {
    BitsPerSecond fastest;
    for (const DeviceId port : ports_) fastest = std::max(fastest, PortRateOf(port));
    return fastest;
  }

  // Refuses a shape by its figures before it is built; `option` is what makes it so large. Counts
  // may be rounded: beyond 2^53 all are too many.
  void CheckSize(const std::string& option, double switches, double cables) const {
    if (switches > static_cast<double>(kMostSwitches)) {
      Refuse(option, "makes too many switches:", fmt::format("at most {}", kMostSwitches));
    }
    if (2 * cables > static_cast<double>(kMostFabricLinks)) {
      Refuse(option, "makes too many links:",
             fmt::format("at most {}, each direction counts", kMostFabricLinks));
    }
  }
  DeviceId AddSwitch(std::string name) {
    if (++switches_ > kMostSwitches) Refuse("", "makes more than 1,000,000 switches");
    topology_->devices.push_back(
        {.name = std::move(name), .kind = DeviceKind::kNetworkSwitch, .model = model_->name});
    return static_cast<DeviceId>(topology_->devices.size() - 1);
  }
  void Cable(DeviceId a, DeviceId b, BitsPerSecond rate, Picoseconds latency,
             std::uint32_t width = 1) {
    if (topology_->links.size() + 2 > kMostFabricLinks) Refuse("", "makes too many links");
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      const bool of_switch = device(from).kind == DeviceKind::kNetworkSwitch;
      topology_->links.push_back({.from = from,
                                  .to = to,
                                  .kind = LinkKind::kNetwork,
                                  .width = width,
                                  .rate = rate,
                                  .latency = of_switch ? latency + forwarding_ : latency});
    }
  }
  void Attach(DeviceId port, DeviceId to) { Cable(port, to, PortRateOf(port), cable_latency_); }

  // Ports cut into groups: whole hosts when `hosts_per_leaf` is given, else so many ports.
  std::vector<std::vector<DeviceId>> Leaves(std::span<const DeviceId> ports) const {
    std::vector<std::vector<DeviceId>> leaves;
    if (Find("hosts_per_leaf") != nullptr) {
      const std::uint64_t hosts = Count("hosts_per_leaf", 1);
      std::map<std::uint32_t, std::uint64_t> host_order;
      for (const DeviceId port : ports) {
        const std::uint64_t order =
            host_order.try_emplace(device(port).node, host_order.size()).first->second;
        if (order / hosts >= leaves.size()) leaves.emplace_back();
        leaves[order / hosts].push_back(port);
      }
      return leaves;
    }
    const std::uint64_t size = Count("ports_per_leaf", std::max<std::uint64_t>(radix_ / 2, 1));
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (i % size == 0) leaves.emplace_back();
      leaves.back().push_back(ports[i]);
    }
    return leaves;
  }
  // What a leaf with the fullest load below it has upwards.
  std::uint64_t UpCapacity(const std::vector<std::vector<DeviceId>>& leaves) const {
    if (Find("uplinks") != nullptr) {
      if (Find("oversubscription") != nullptr) {
        Refuse("uplinks", "contradicts oversubscription: give one of them");
      }
      return Count("uplinks", 1) * Rate("uplink_rate", FastestPort()).count();
    }
    std::uint64_t fullest = 0;
    for (const auto& leaf : leaves) {
      std::uint64_t sum = 0;
      for (const DeviceId port : leaf) sum += PortRateOf(port).count();
      fullest = std::max(fullest, sum);
    }
    return static_cast<std::uint64_t>(static_cast<double>(fullest) / Ratio("oversubscription"));
  }
  std::uint64_t CablesFor(std::uint64_t capacity) const {
    const std::uint64_t rate = Rate("uplink_rate", FastestPort()).count();
    return std::max<std::uint64_t>((capacity + rate - 1) / rate, 1);
  }

  // No switch may need more ports than its model has. `options`: those that decide how many it
  // needs, the likeliest first; `larger`: a shape for more hosts.
  void CheckPorts(std::initializer_list<const char*> options, const char* larger) const {
    if (model_->ports == 0) return;
    const std::vector<std::uint64_t> used = PortsInUse(*topology_, catalogue_);
    for (DeviceId id = first_switch_; id < used.size(); ++id) {
      if (used[id] <= model_->ports) continue;
      const auto* given = std::find_if(options.begin(), options.end(),
                                       [this](const char* o) { return Find(o) != nullptr; });
      InputFault fault = given != options.end() ? At(*given) : spec_.where;
      if (given == options.end()) fault.value = spec_.kind;
      fault.problem = fmt::format("gives {} {} ports, and {} has {}:", device(id).name, used[id],
                                  model_->name, model_->ports);
      fault.expected = fmt::format(
          "fewer by {}; a model with more ports; {}; or no model: a generic switch has no limit",
          fmt::join(options, ", "), larger);
      throw ConfigError(std::move(fault));
    }
  }

 private:
  const FabricSpec& spec_;
  const Catalogue& catalogue_;
  Topology* topology_;
  const DeviceModel* model_ = nullptr;
  DeviceId first_switch_ = 0;
  Picoseconds forwarding_;
  Picoseconds cable_latency_;
  std::uint64_t radix_ = 0;
  std::uint64_t switches_ = 0;
  std::vector<DeviceId> ports_;
};

// Joins every leaf to every spine; together the cables of a leaf carry `capacity`.
void JoinToSpines(Weaver* weaver, std::span<const DeviceId> leaves, std::uint64_t capacity,
                  std::uint64_t spines) {
  const std::uint64_t cables = weaver->CablesFor(capacity);
  const auto width = static_cast<std::uint32_t>(std::max<std::uint64_t>(cables / spines, 1));
  weaver->CheckSize("spines", static_cast<double>(spines),
                    static_cast<double>(spines) * static_cast<double>(leaves.size()));
  for (std::uint64_t s = 0; s < spines; ++s) {
    const DeviceId spine = weaver->AddSwitch("spine" + std::to_string(s));
    for (const DeviceId leaf : leaves) {
      weaver->Cable(leaf, spine, BitsPerSecond(capacity / spines),
                    weaver->Latency("uplink_latency"), width);
    }
  }
}

void BuildLeafSpine(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  Weaver weaver(spec, catalogue, topology,
                {"ports_per_leaf", "hosts_per_leaf", "oversubscription", "spines", "uplinks",
                 "uplink_rate", "uplink_latency"});
  const auto groups = weaver.Leaves(weaver.ports());
  std::vector<DeviceId> leaves;
  for (std::size_t l = 0; l < groups.size(); ++l) {
    leaves.push_back(weaver.AddSwitch("leaf" + std::to_string(l)));
    for (const DeviceId port : groups[l]) weaver.Attach(port, leaves.back());
  }
  const std::uint64_t capacity = weaver.UpCapacity(groups);
  if (leaves.size() > 1) {
    JoinToSpines(&weaver, leaves, capacity, weaver.Count("spines", weaver.CablesFor(capacity)));
  }
  weaver.CheckPorts({"ports_per_leaf", "hosts_per_leaf", "uplinks", "spines", "oversubscription"},
                    "kind: fat-tree for a third tier");
}

void BuildFatTree(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  Weaver weaver(spec, catalogue, topology,
                {"ports_per_leaf", "hosts_per_leaf", "leaves_per_pod", "oversubscription",
                 "core_oversubscription", "uplinks", "uplink_rate", "uplink_latency"});
  const auto groups = weaver.Leaves(weaver.ports());
  const std::uint64_t per_pod =
      weaver.Count("leaves_per_pod", std::max<std::uint64_t>(weaver.radix() / 2, 1));
  const std::uint64_t pods = (groups.size() + per_pod - 1) / per_pod;
  const std::uint64_t leaf_up = weaver.UpCapacity(groups);
  const std::uint64_t aggregations = weaver.CablesFor(leaf_up);
  const Picoseconds latency = weaver.Latency("uplink_latency");
  weaver.CheckSize("uplinks", static_cast<double>(aggregations) * static_cast<double>(pods),
                   static_cast<double>(aggregations) * static_cast<double>(groups.size()));
  std::vector<std::vector<DeviceId>> planes(aggregations);  // Aggregation a of every pod.
  for (std::uint64_t p = 0; p < pods; ++p) {
    const std::string pod = "pod" + std::to_string(p) + "/";
    std::vector<DeviceId> leaves;
    for (std::uint64_t l = p * per_pod; l < std::min((p + 1) * per_pod, groups.size()); ++l) {
      leaves.push_back(weaver.AddSwitch(pod + "leaf" + std::to_string(l % per_pod)));
      for (const DeviceId port : groups[l]) weaver.Attach(port, leaves.back());
    }
    for (std::uint64_t a = 0; a < aggregations; ++a) {
      planes[a].push_back(weaver.AddSwitch(pod + "aggregation" + std::to_string(a)));
      for (const DeviceId leaf : leaves) {
        weaver.Cable(leaf, planes[a].back(), BitsPerSecond(leaf_up / aggregations), latency);
      }
    }
  }
  const auto check = [&] {
    weaver.CheckPorts({"ports_per_leaf", "hosts_per_leaf", "leaves_per_pod", "uplinks",
                       "oversubscription", "core_oversubscription"},
                      "kind: dragonfly");
  };
  if (pods == 1) return check();
  const auto up = static_cast<std::uint64_t>(static_cast<double>(leaf_up / aggregations * per_pod) /
                                             weaver.Ratio("core_oversubscription"));
  const std::uint64_t cores = weaver.CablesFor(up);
  weaver.CheckSize(
      "leaves_per_pod", static_cast<double>(aggregations) * static_cast<double>(cores),
      static_cast<double>(aggregations) * static_cast<double>(cores) * static_cast<double>(pods));
  for (std::uint64_t a = 0; a < aggregations; ++a) {
    for (std::uint64_t c = 0; c < cores; ++c) {
      const DeviceId core = weaver.AddSwitch("core" + std::to_string(a * cores + c));
      for (const DeviceId aggregation : planes[a]) {
        weaver.Cable(aggregation, core, BitsPerSecond(up / cores), latency);
      }
    }
  }
  check();
}

// NICs of equal index across hosts share leaves; the spine, when there is one, joins all of them.
void BuildRailOptimised(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  Weaver weaver(spec, catalogue, topology,
                {"ports_per_leaf", "hosts_per_leaf", "oversubscription", "spine", "spines",
                 "uplinks", "uplink_rate", "uplink_latency"});
  std::map<std::uint32_t, std::vector<DeviceId>> rails;
  for (const DeviceId port : weaver.ports()) rails[weaver.device(port).index].push_back(port);
  std::vector<DeviceId> leaves;
  std::vector<std::vector<DeviceId>> groups;
  std::size_t most_leaves = 0;
  for (const auto& [rail, ports] : rails) {
    const auto cut = weaver.Leaves(ports);
    most_leaves = std::max(most_leaves, cut.size());
    for (std::size_t l = 0; l < cut.size(); ++l) {
      leaves.push_back(weaver.AddSwitch(fmt::format("rail{}/leaf{}", rail, l)));
      for (const DeviceId port : cut[l]) weaver.Attach(port, leaves.back());
      groups.push_back(cut[l]);
    }
  }
  const bool spine = weaver.YesNo("spine", true);
  if (!spine && most_leaves > 1) {
    weaver.Refuse("spine", fmt::format("cannot be left out: a rail fills {} leaves", most_leaves),
                  "larger ports_per_leaf, or spine: yes");
  }
  const std::uint64_t capacity = weaver.UpCapacity(groups);
  if (spine && leaves.size() > 1) {
    JoinToSpines(&weaver, leaves, capacity, weaver.Count("spines", weaver.CablesFor(capacity)));
  }
  weaver.CheckPorts({"ports_per_leaf", "hosts_per_leaf", "uplinks", "spines", "oversubscription"},
                    "kind: fat-tree for a third tier");
}

// Cables between groups: every pair gets the same number, each end goes round its members.
void JoinGroups(Weaver* weaver, const std::vector<std::vector<DeviceId>>& members,
                std::uint64_t per_member) {
  const std::uint64_t groups = members.size();
  if (groups < 2) return;
  const std::uint64_t ends = members[0].size() * per_member;
  const std::uint64_t per_pair = ends / (groups - 1);
  if (per_pair == 0) {
    weaver->Refuse(
        "global_links",
        fmt::format("gives a group {} ways out, for {} other groups", ends, groups - 1),
        fmt::format("at least {}", (groups - 2 + members[0].size()) / members[0].size()));
  }
  weaver->CheckSize("global_links", 0,
                    static_cast<double>(groups) * static_cast<double>(groups - 1) / 2 *
                        static_cast<double>(per_pair));
  const BitsPerSecond rate = weaver->Rate("global_rate", weaver->FastestPort());
  const Picoseconds latency = weaver->Latency("global_latency");
  std::vector<std::uint64_t> next(groups, 0);
  for (std::uint64_t a = 0; a < groups; ++a) {
    for (std::uint64_t b = a + 1; b < groups; ++b) {
      for (std::uint64_t k = 0; k < per_pair; ++k) {
        weaver->Cable(members[a][next[a]++ % members[a].size()],
                      members[b][next[b]++ % members[b].size()], rate, latency);
      }
    }
  }
}

void BuildDragonfly(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  Weaver weaver(spec, catalogue, topology,
                {"routers_per_group", "ports_per_router", "global_links", "local_rate",
                 "local_latency", "global_rate", "global_latency"});
  // Balanced: a = 2p = 2h. Source: Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable
  // Dragonfly Topology", ISCA 2008, section 3.1.
  const std::uint64_t per_router = weaver.Count("ports_per_router", 4);
  const std::uint64_t routers = weaver.Count("routers_per_group", 2 * per_router);
  const std::uint64_t global = weaver.Count("global_links", per_router);
  const BitsPerSecond rate = weaver.Rate("local_rate", weaver.FastestPort());
  const Picoseconds latency = weaver.Latency("local_latency");
  const auto ports = weaver.ports();
  const std::uint64_t per_group = routers * per_router;
  std::vector<std::vector<DeviceId>> groups((ports.size() + per_group - 1) / per_group);
  const double all_routers = static_cast<double>(groups.size()) * static_cast<double>(routers);
  weaver.CheckSize("routers_per_group", all_routers,
                   all_routers * static_cast<double>(routers - 1) / 2);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::uint64_t r = 0; r < routers; ++r) {
      groups[g].push_back(weaver.AddSwitch(fmt::format("group{}/router{}", g, r)));
      for (std::uint64_t k = 0; k < per_router; ++k) {
        const std::uint64_t port = g * per_group + r * per_router + k;
        if (port < ports.size()) weaver.Attach(ports[port], groups[g].back());
      }
      for (std::uint64_t other = 0; other < r; ++other) {
        weaver.Cable(groups[g][other], groups[g][r], rate, latency);
      }
    }
  }
  JoinGroups(&weaver, groups, global);
  weaver.CheckPorts({"ports_per_router", "routers_per_group", "global_links"},
                    "kind: dragonfly-plus");
}

// A group is a leaf-spine; its spines hold the ways to other groups. Source: Shpiner et al.,
// "Dragonfly+: Low Cost Topology for Scaling Datacenters", HiPINEB 2017.
void BuildDragonflyPlus(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  Weaver weaver(spec, catalogue, topology,
                {"leaves_per_group", "spines_per_group", "ports_per_leaf", "global_links",
                 "local_rate", "local_latency", "global_rate", "global_latency"});
  const std::uint64_t leaf_count = weaver.Count("leaves_per_group", 4);
  const std::uint64_t spine_count = weaver.Count("spines_per_group", leaf_count);
  const std::uint64_t per_leaf = weaver.Count("ports_per_leaf", leaf_count);
  const std::uint64_t global = weaver.Count("global_links", per_leaf);
  const BitsPerSecond rate = weaver.Rate("local_rate", weaver.FastestPort());
  const Picoseconds latency = weaver.Latency("local_latency");
  const auto ports = weaver.ports();
  const std::uint64_t per_group = leaf_count * per_leaf;
  std::vector<std::vector<DeviceId>> spines((ports.size() + per_group - 1) / per_group);
  const auto all_leaves = static_cast<double>(spines.size()) * static_cast<double>(leaf_count);
  weaver.CheckSize(
      "spines_per_group",
      all_leaves + static_cast<double>(spines.size()) * static_cast<double>(spine_count),
      all_leaves * static_cast<double>(spine_count));
  for (std::size_t g = 0; g < spines.size(); ++g) {
    for (std::uint64_t s = 0; s < spine_count; ++s) {
      spines[g].push_back(weaver.AddSwitch(fmt::format("group{}/spine{}", g, s)));
    }
    for (std::uint64_t l = 0; l < leaf_count; ++l) {
      const DeviceId leaf = weaver.AddSwitch(fmt::format("group{}/leaf{}", g, l));
      for (std::uint64_t k = 0; k < per_leaf; ++k) {
        const std::uint64_t port = g * per_group + l * per_leaf + k;
        if (port < ports.size()) weaver.Attach(ports[port], leaf);
      }
      for (const DeviceId spine : spines[g]) weaver.Cable(leaf, spine, rate, latency);
    }
  }
  JoinGroups(&weaver, spines, global);
  weaver.CheckPorts({"ports_per_leaf", "leaves_per_group", "spines_per_group", "global_links"},
                    "kind: fat-tree");
}

// One router per host (or per `ports_per_router` ports), first side fastest. A side of 1 has no
// cable, a side of 2 one: there is no second way around.
void BuildGrid(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology, bool wrap) {
  std::vector<std::string> known = {"sides", "ports_per_router", "link_rate", "link_latency"};
  if (wrap) known.push_back("twist");
  Weaver weaver(spec, catalogue, topology, known);
  const auto sides = weaver.Sides("sides");
  std::uint64_t routers = 1;
  for (const std::uint64_t side : sides) routers = std::min(routers * side, kMostSwitches + 1);
  const auto ports = weaver.ports();
  std::uint64_t per_router = weaver.Count("ports_per_router", 0);
  if (per_router == 0) {
    const std::uint32_t host = weaver.device(ports[0]).node;
    while (per_router < ports.size() && weaver.device(ports[per_router]).node == host) ++per_router;
  }
  if ((ports.size() + per_router - 1) / per_router != routers) {
    weaver.Refuse(
        "sides", fmt::format("make {} routers; {} ports at {} each need {}:", routers, ports.size(),
                             per_router, (ports.size() + per_router - 1) / per_router));
  }
  const std::uint64_t twist = wrap ? weaver.Count("twist", 0, 0) : 0;
  if (twist != 0 && (sides.size() < 2 || twist >= sides[1])) {
    weaver.Refuse("twist", "needs a second side that is longer");
  }
  const BitsPerSecond rate = weaver.Rate("link_rate", weaver.FastestPort());
  const Picoseconds latency = weaver.Latency("link_latency");
  std::vector<DeviceId> ids;
  for (std::uint64_t r = 0; r < routers; ++r) {
    ids.push_back(weaver.AddSwitch("router" + std::to_string(r)));
    for (std::uint64_t k = r * per_router; k < std::min((r + 1) * per_router, ports.size()); ++k) {
      weaver.Attach(ports[k], ids.back());
    }
  }
  std::uint64_t stride = 1;
  for (std::size_t d = 0; d < sides.size(); ++d) {
    const std::uint64_t side = sides[d];
    for (std::uint64_t r = 0; r < routers && side > 1; ++r) {
      const std::uint64_t x = r / stride % side;
      std::uint64_t next = r + stride;
      if (x + 1 == side) {
        const bool twisted = d == 0 && twist != 0;
        if (!wrap || (side == 2 && !twisted)) continue;
        next = r - x * stride;
        // Around the first side, the second one moves on.
        if (twisted) {
          const std::uint64_t y = next / side % sides[1];
          next = next - y * side + (y + twist) % sides[1] * side;
        }
      }
      weaver.Cable(ids[r], ids[next], rate, latency);
    }
    stride *= side;
  }
  weaver.CheckPorts({"ports_per_router", "sides"}, "fewer hosts at a router");
}
void BuildTorus(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  BuildGrid(spec, catalogue, topology, true);
}
void BuildMesh(const FabricSpec& spec, const Catalogue& catalogue, Topology* topology) {
  BuildGrid(spec, catalogue, topology, false);
}

constexpr FabricShape kShapes[] = {
    {"leaf-spine", "two tiers, every leaf joined to every spine", BuildLeafSpine},
    {"fat-tree", "three tiers: leaves and aggregations in pods, cores in planes", BuildFatTree},
    {"rail-optimised", "NICs of equal index share leaves, with or without a spine",
     BuildRailOptimised},
    {"dragonfly", "fully joined groups of routers", BuildDragonfly},
    {"dragonfly-plus", "groups are leaf-spines whose spines join the groups", BuildDragonflyPlus},
    {"torus", "a grid of routers that wraps around", BuildTorus},
    {"mesh", "a grid of routers", BuildMesh},
};

}  // namespace

std::vector<DeviceId> FreeNetworkPorts(const Topology& topology) {
  std::vector<bool> joined(topology.devices.size(), false);
  for (const Link& link : topology.links) {
    if (link.kind == LinkKind::kNetwork) joined[link.from] = joined[link.to] = true;
  }
  std::vector<DeviceId> nics;
  std::vector<DeviceId> endpoints;
  bool has_nics = false;
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    const DeviceKind kind = topology.devices[id].kind;
    if (kind == DeviceKind::kNic) has_nics = true;
    if (joined[id]) continue;
    if (kind == DeviceKind::kNic) nics.push_back(id);
    if (kind == DeviceKind::kGpu || kind == DeviceKind::kTpu) endpoints.push_back(id);
  }
  return has_nics ? nics : endpoints;
}

std::span<const FabricShape> FabricShapes() { return kShapes; }

}  // namespace windtunnel
