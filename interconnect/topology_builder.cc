#include "interconnect/topology_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "interconnect/cluster.h"
#include "interconnect/fabric.h"
#include "interconnect/packet_options.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

[[noreturn]] void Refuse(InputFault fault, std::string value, std::string problem,
                         std::string expected = {}, std::string nearest = {}) {
  fault.value = std::move(value);
  fault.problem = std::move(problem);
  fault.expected = std::move(expected);
  fault.nearest = std::move(nearest);
  throw ConfigError(std::move(fault));
}

// One "[...]" of a pattern: the numbers it stands for.
std::vector<std::uint64_t> RangeNumbers(std::string_view body, std::string_view pattern,
                                        const InputFault& where) {
  std::vector<std::uint64_t> numbers;
  while (true) {
    const auto comma = body.find(',');
    const std::string_view part = body.substr(0, comma);
    const auto dash = part.find('-');
    const std::uint64_t first = ParseCount(part.substr(0, dash), where, 0, UINT32_MAX);
    const std::uint64_t last = dash == std::string_view::npos
                                   ? first
                                   : ParseCount(part.substr(dash + 1), where, 0, UINT32_MAX);
    if (last < first) Refuse(where, std::string(pattern), "has a range that runs backwards:");
    if (last - first >= kMaxDevices || numbers.size() + (last - first) >= kMaxDevices) {
      Refuse(where, std::string(pattern),
             "stands for too many names:", fmt::format("at most {}", kMaxDevices));
    }
    for (std::uint64_t n = first; n <= last; ++n) numbers.push_back(n);
    if (comma == std::string_view::npos) return numbers;
    body.remove_prefix(comma + 1);
  }
}

// Reads one list of devices and links into a topology.
class HostReader {
 public:
  HostReader(const proto::FieldLines& lines, std::string file, const Catalogue& catalogue,
             Topology* out)
      : lines_(lines), file_(std::move(file)), catalogue_(catalogue), out_(out) {
    for (DeviceId id = 0; id < out_->devices.size(); ++id)
      by_name_.emplace(out_->devices[id].name, id);
  }

  InputFault Where(const std::string& path) const {
    return {.file = file_, .line = lines_.Line(path), .field = path};
  }

  /// `outside`: devices without `node` belong to no host.
  void ReadDevices(const google::protobuf::RepeatedPtrField<proto::DeviceEntry>& entries,
                   const std::string& path, bool outside) {
    for (int i = 0; i < entries.size(); ++i)
      ReadDevice(entries[i], fmt::format("{}[{}]", path, i), outside);
    NumberDevices();
  }
  void ReadLinks(const google::protobuf::RepeatedPtrField<proto::LinkEntry>& entries,
                 const std::string& path) {
    for (const Link& link : out_->links) pairs_.insert({link.from, link.to, link.kind});
    for (int i = 0; i < entries.size(); ++i) ReadLink(entries[i], fmt::format("{}[{}]", path, i));
  }

 private:
  void ReadDevice(const proto::DeviceEntry& entry, const std::string& path, bool outside) {
    Device device;
    device.model = entry.model();
    const DeviceModel* model = nullptr;
    if (!entry.model().empty()) model = &catalogue_.Device(entry.model(), Where(path + ".model"));
    if (!entry.kind().empty()) {
      const auto kind = DeviceKindFromName(entry.kind());
      if (!kind) {
        Refuse(Where(path + ".kind"), entry.kind(), "unknown device kind",
               "one of " + JoinNames(DeviceKindNames()),
               NearestName(entry.kind(), DeviceKindNames()));
      }
      if (model != nullptr && model->kind != *kind) {
        Refuse(Where(path + ".kind"), entry.kind(),
               fmt::format("contradicts the model {}:", entry.model()),
               std::string(Name(model->kind)));
      }
      device.kind = *kind;
    } else if (model != nullptr) {
      device.kind = model->kind;
    } else {
      Refuse(Where(path), entry.name(),
             "says neither kind nor model:", "kind, one of " + JoinNames(DeviceKindNames()));
    }
    if (entry.has_node() && entry.node() >= kMaxHosts)
      Refuse(Where(path + ".node"), fmt::format("{}", entry.node()),
             "is too large a host number:", fmt::format("below {}", kMaxHosts));
    device.node = entry.has_node()                                       ? entry.node()
                  : outside || device.kind == DeviceKind::kNetworkSwitch ? kNoNode
                                                                         : 0;
    device.index = entry.has_index() ? entry.index() : kUnnumbered;
    device.bus_id = entry.bus_id();
    device.sm = entry.has_sm() ? entry.sm() : model != nullptr ? model->sm : 0;
    device.relay = entry.has_forward() && entry.forward() &&
                   (device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kStorage);
    for (const auto& [key, value] : entry.attributes()) device.attributes[key] = value;
    if (!entry.port_rate().empty()) {
      const BitsPerSecond rate = ParseRate(entry.port_rate(), Where(path + ".port_rate"));
      device.attributes["speed"] = fmt::format("{}", rate.count() / 1'000'000);
    }
    const std::vector<std::string> names = ExpandRange(entry.name(), Where(path + ".name"));
    if (out_->devices.size() + names.size() > kMaxDevices) {
      Refuse(Where(path), entry.name(),
             "makes too many devices:", fmt::format("at most {}", kMaxDevices));
    }
    if (names.size() > 1 && (!device.bus_id.empty() || entry.has_index())) {
      Refuse(Where(path), entry.name(),
             "gives one bus_id or index to several devices:", "one entry per device");
    }
    if (device.kind == DeviceKind::kGpu && device.sm == 0) {
      out_->warnings.push_back(
          fmt::format("{}: {}: neither sm nor model says the compute capability; NCCL's defaults "
                      "for an unknown "
                      "GPU apply",
                      file_, entry.name()));
    }
    for (const std::string& name : names) {
      device.name = name;
      if (!by_name_.emplace(name, static_cast<DeviceId>(out_->devices.size())).second)
        Refuse(Where(path + ".name"), name, "two devices have the name");
      out_->devices.push_back(device);
    }
  }

  static constexpr std::uint32_t kUnnumbered = UINT32_MAX;
  void NumberDevices() {
    std::map<std::pair<std::uint32_t, DeviceKind>, std::uint32_t> next;
    for (Device& device : out_->devices) {
      std::uint32_t& count = next[{device.node, device.kind}];
      if (device.index == kUnnumbered) device.index = count;
      count = device.index + 1;
    }
  }

  DeviceId FindDevice(const std::string& name, const InputFault& where) const {
    if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [other, id] : by_name_) {
      if (known.size() < 10'000) known.push_back(other);
    }
    std::sort(known.begin(), known.end());
    Refuse(where, name, "names no device",
           known.size() <= 40 ? "one of " + JoinNames(known) : "the name of a device",
           NearestName(name, known));
  }

  std::vector<DeviceId> FindDevices(const std::string& pattern, const std::string& path) const {
    const InputFault where = Where(path);
    if (pattern.empty()) Refuse(where, "", "is empty", "the name of a device");
    std::vector<DeviceId> ids;
    for (const std::string& name : ExpandRange(pattern, where))
      ids.push_back(FindDevice(name, where));
    return ids;
  }

  const DeviceModel* ModelOf(DeviceId id) const {
    return catalogue_.FindDevice(out_->devices[id].model);
  }

  // What the end's data sheet says, 0 when it says nothing.
  std::uint32_t EndFigure(DeviceId id, LinkKind kind, bool width) const {
    const DeviceModel* model = ModelOf(id);
    if (model == nullptr) return 0;
    if (kind == LinkKind::kNvlink) return width ? model->nvlink_count : model->nvlink_generation;
    if (kind == LinkKind::kPcie) return width ? model->pcie_width : model->pcie_generation;
    return 0;
  }
  // The lower of the figures that the two ends' data sheets give: a slot runs at the slower side.
  std::uint32_t CommonFigure(DeviceId a, DeviceId b, LinkKind kind, bool width) const {
    const std::uint32_t x = EndFigure(a, kind, width);
    const std::uint32_t y = EndFigure(b, kind, width);
    return x == 0 || y == 0 ? std::max(x, y) : std::min(x, y);
  }

  BitsPerSecond DefaultRate(const Link& link, const LinkModel& model, const InputFault& where) {
    if (link.kind == LinkKind::kNetwork) {
      std::optional<BitsPerSecond> rate;
      for (const DeviceId end : {link.from, link.to}) {
        const Device& device = out_->devices[end];
        std::optional<BitsPerSecond> port = PortRate(device, catalogue_);
        if (port && (!rate || *port < *rate)) rate = port;
      }
      if (rate) return *rate;
      out_->warnings.push_back(fmt::format(
          "{}: {} - {}: no port rate is known; {} assumed", where.field,
          out_->devices[link.from].name, out_->devices[link.to].name, FormatRate(model.lane_rate)));
    }
    if (link.kind == LinkKind::kNuma) {
      BitsPerSecond rate;
      for (const DeviceId end : {link.from, link.to}) {
        const DeviceModel* cpu = ModelOf(end);
        if (cpu == nullptr || cpu->numa_rate.count() == 0) continue;
        if (rate.count() == 0 || cpu->numa_rate < rate) rate = cpu->numa_rate;
      }
      if (rate.count() != 0) return rate;
      out_->warnings.push_back(fmt::format(
          "{}: {} - {}: neither rate nor CPU model is given; {} assumed", where.field,
          out_->devices[link.from].name, out_->devices[link.to].name, FormatRate(model.lane_rate)));
    }
    return model.lane_rate * link.width;
  }

  void ReadLink(const proto::LinkEntry& entry, const std::string& path) {
    const auto kind = LinkKindFromName(entry.kind());
    if (!kind) {
      Refuse(Where(path + ".kind"), entry.kind(), "unknown link kind",
             "one of " + JoinNames(LinkKindNames()), NearestName(entry.kind(), LinkKindNames()));
    }
    const std::vector<DeviceId> from = FindDevices(entry.from(), path + ".from");
    const std::vector<DeviceId> to = FindDevices(entry.to(), path + ".to");
    std::vector<std::pair<DeviceId, DeviceId>> ends;
    if (entry.pairing() == "all") {
      if (from.size() * to.size() > kMaxLinks)
        Refuse(Where(path), entry.from(),
               "makes too many links:", fmt::format("at most {}", kMaxLinks));
      std::set<std::pair<DeviceId, DeviceId>> done;
      for (const DeviceId a : from) {
        for (const DeviceId b : to) {
          if (a == b || (!entry.one_way() && done.contains({b, a}))) continue;
          if (done.insert({a, b}).second) ends.emplace_back(a, b);
        }
      }
    } else if (entry.pairing().empty() || entry.pairing() == "each") {
      if (from.size() != to.size() && from.size() != 1 && to.size() != 1) {
        Refuse(Where(path), fmt::format("{} and {}", from.size(), to.size()),
               "has unequal counts at its ends:",
               "equal counts, a single device at one end, or pairing: all");
      }
      for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i)
        ends.emplace_back(from[from.size() == 1 ? 0 : i], to[to.size() == 1 ? 0 : i]);
    } else {
      Refuse(Where(path + ".pairing"), entry.pairing(), "unknown pairing", "each or all");
    }
    if (out_->links.size() + 2 * ends.size() > kMaxLinks)
      Refuse(Where(path), entry.from(),
             "makes too many links:", fmt::format("at most {}", kMaxLinks));
    for (const auto& [a, b] : ends) AddLink(entry, path, *kind, a, b);
  }

  void AddLink(const proto::LinkEntry& entry, const std::string& path, LinkKind kind, DeviceId a,
               DeviceId b) {
    const InputFault where = Where(path);
    if (a == b) Refuse(where, out_->devices[a].name, "joins a device to itself:");
    Link link{.from = a, .to = b, .kind = kind};
    // A slot with a rate of its own is not taken for the generation its ends could run at.
    const bool infer = entry.rate().empty() || kind != LinkKind::kPcie;
    link.generation = entry.generation();
    if (link.generation == 0 && infer) link.generation = CommonFigure(a, b, kind, false);
    if (kind == LinkKind::kC2c && link.generation == 0) link.generation = 1;
    // NUMA and network links have one catalogue entry whatever their generation.
    const bool by_generation = kind != LinkKind::kNuma && kind != LinkKind::kNetwork;
    const LinkModel* model = catalogue_.FindLink(kind, by_generation ? link.generation : 0);
    if (model == nullptr && (link.generation != 0 || entry.rate().empty())) {
      std::vector<std::string> known;
      for (const LinkModel& other : catalogue_.links()) {
        if (other.kind == kind) known.push_back(fmt::format("{}", other.generation));
      }
      Refuse(Where(path + ".generation"),
             link.generation == 0 ? "" : fmt::format("{}", link.generation),
             link.generation == 0 ? fmt::format("{} - {}: neither generation nor rate is known",
                                                out_->devices[a].name, out_->devices[b].name)
                                  : fmt::format("unknown generation of {}", Name(kind)),
             known.empty() ? "a rate" : "generation, one of " + JoinNames(known) + ", or a rate");
    }
    if (entry.width() > kMaxWidth)
      Refuse(Where(path + ".width"), fmt::format("{}", entry.width()),
             "is too wide:", fmt::format("1 to {}", kMaxWidth));
    link.width = entry.width() != 0 ? entry.width() : CommonFigure(a, b, kind, true);
    if (link.width == 0) link.width = model != nullptr ? model->default_width : 1;
    if (!entry.rate().empty()) {
      link.rate = ParseRate(entry.rate(), Where(path + ".rate"));
      if (link.rate < kSlowestLink && !entry.down()) {
        Refuse(Where(path + ".rate"), entry.rate(), "is too low to be simulated:",
               fmt::format("at least {} kb/s, or down: true", kSlowestLink.count() / 1000));
      }
    } else if (model != nullptr) {
      link.rate = DefaultRate(link, *model, where);
    }
    if (!entry.latency().empty()) {
      link.latency = ParseTime(entry.latency(), Where(path + ".latency"));
    } else if (model != nullptr) {
      link.latency = model->latency;
    } else {
      Refuse(Where(path), "", "says neither latency nor generation", "a latency such as '200 ns'");
    }
    link.p2p = !entry.has_p2p() || entry.p2p();
    link.forward = !entry.has_forward() || entry.forward();
    link.down = entry.down();
    Push(entry, link, where);
    if (entry.one_way()) return;
    std::swap(link.from, link.to);
    Push(entry, link, where);
  }

  void Push(const proto::LinkEntry& entry, const Link& link, const InputFault& where) {
    if (!pairs_.insert({link.from, link.to, link.kind}).second && !entry.parallel()) {
      Refuse(
          where,
          fmt::format("{} -> {}", out_->devices[link.from].name, out_->devices[link.to].name),
          "repeats a link that is there already:", "parallel: true where a second link is meant");
    }
    out_->links.push_back(link);
  }

  static constexpr std::uint32_t kMaxWidth = 4096;
  const proto::FieldLines& lines_;
  std::string file_;
  const Catalogue& catalogue_;
  Topology* out_;
  std::unordered_map<std::string, DeviceId> by_name_;
  std::set<std::tuple<DeviceId, DeviceId, LinkKind>> pairs_;
};

void AddHosts(const Topology& host, std::uint64_t nodes, const InputFault& where, Topology* out) {
  if (nodes == 0) Refuse(where, "0", "is no count of hosts:", "at least 1");
  if (nodes > kMaxHosts || out->node_count + nodes * host.node_count > kMaxHosts ||
      out->devices.size() + nodes * host.devices.size() > kMaxDevices ||
      out->links.size() + nodes * host.links.size() > kMaxLinks) {
    Refuse(
        where, fmt::format("{}", nodes), "makes too large a cluster:",
        fmt::format("at most {} hosts, {} devices, {} links", kMaxHosts, kMaxDevices, kMaxLinks));
  }
  out->devices.reserve(out->devices.size() + nodes * host.devices.size());
  out->links.reserve(out->links.size() + nodes * host.links.size());
  for (std::uint64_t i = 0; i < nodes; ++i) {
    AppendHost(host, out->node_count, out);
    out->node_count += host.node_count;
  }
  out->warnings.insert(out->warnings.end(), host.warnings.begin(), host.warnings.end());
  out->notes.insert(out->notes.end(), host.notes.begin(), host.notes.end());
}

}  // namespace

std::vector<std::string> ExpandRange(std::string_view pattern, const InputFault& where) {
  std::vector<std::string> names{""};
  if (pattern.empty()) Refuse(where, "", "is empty", "a name such as gpu0 or gpu[0-7]");
  while (!pattern.empty()) {
    const auto open = pattern.find('[');
    for (std::string& name : names) name += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = pattern.find(']', open);
    if (close == std::string_view::npos)
      Refuse(where, std::string(pattern), "has a '[' without ']':");
    const auto numbers = RangeNumbers(pattern.substr(open + 1, close - open - 1), pattern, where);
    if (names.size() * numbers.size() > kMaxDevices) {
      Refuse(where, std::string(pattern),
             "stands for too many names:", fmt::format("at most {}", kMaxDevices));
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& name : names) {
      for (const std::uint64_t n : numbers) longer.push_back(fmt::format("{}{}", name, n));
    }
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  return names;
}

Topology BuildTemplate(const proto::TemplateEntry& entry, const std::string& path,
                       const proto::FieldLines& lines, const std::string& file_name,
                       const Catalogue& catalogue) {
  Topology host;
  host.source = file_name;
  HostReader reader(lines, file_name, catalogue, &host);
  const std::string prefix = path.empty() ? "" : path + ".";
  reader.ReadDevices(entry.devices(), prefix + "devices", false);
  reader.ReadLinks(entry.links(), prefix + "links");
  return host;
}

void AppendHost(const Topology& host, std::uint32_t node, Topology* out) {
  const auto base = static_cast<DeviceId>(out->devices.size());
  // What stands outside the hosts of a domain is named by them: "nodes18-35/nvswitch".
  const bool one = host.node_count == 1;
  const std::string shared = one ? fmt::format("node{}/", node)
                                 : fmt::format("nodes{}-{}/", node, node + host.node_count - 1);
  for (const Device& device : host.devices) {
    out->devices.push_back(device);
    Device& copy = out->devices.back();
    if (one || device.node == kNoNode) {
      copy.name = shared + device.name;
    } else {
      const std::size_t slash = device.name.find('/');
      copy.name = fmt::format("node{}{}", node + device.node, device.name.substr(slash));
    }
    if (copy.node != kNoNode) copy.node = node + device.node;
  }
  for (Link link : host.links) {
    link.from += base;
    link.to += base;
    out->links.push_back(link);
  }
}

Topology MultiplyHosts(const Topology& host, std::uint32_t nodes, const InputFault& where) {
  for (const Link& link : host.links) {
    if (link.kind == LinkKind::kNetwork)
      Refuse(where, host.name, "is on a network already and cannot be multiplied:");
  }
  Topology out;
  out.name = host.name;
  out.source = host.source;
  out.digest = host.digest;
  out.node_count = 0;
  AddHosts(host, nodes, where, &out);
  return out;
}

Topology BuildTopology(const proto::TopologyFile& file, const proto::FieldLines& lines,
                       const std::string& file_name, const Catalogue& catalogue,
                       const HostSource& hosts) {
  Topology out;
  const auto where = [&](const std::string& path) {
    return InputFault{.file = file_name, .line = lines.Line(path), .field = path};
  };
  const auto host_named = [&](const std::string& name, const std::string& path) {
    if (const auto found = file.templates().find(name); found != file.templates().end())
      return BuildTemplate(found->second, "templates." + name, lines, file_name, catalogue);
    return hosts(name, where(path));
  };
  const bool grouped = !file.groups().empty() || !file.of().empty();
  if (!file.groups().empty() && !file.of().empty())
    Refuse(where("of"), file.of(), "stands beside groups:", "either of and nodes, or groups");
  out.source = file_name;
  if (grouped) {
    out.node_count = 0;
    if (!file.of().empty()) {
      AddHosts(host_named(file.of(), "of"), file.nodes() == 0 ? 1 : file.nodes(), where("nodes"),
               &out);
    } else if (file.nodes() != 0) {
      Refuse(where("nodes"), fmt::format("{}", file.nodes()),
             "stands beside groups:", "the counts of the groups");
    }
    for (int i = 0; i < file.groups_size(); ++i) {
      const std::string path = fmt::format("groups[{}]", i);
      AddHosts(host_named(file.groups(i).of(), path + ".of"), file.groups(i).nodes(),
               where(path + ".nodes"), &out);
    }
  } else if (file.nodes() > 1) {
    proto::TemplateEntry whole;
    *whole.mutable_devices() = file.devices();
    *whole.mutable_links() = file.links();
    Topology host = BuildTemplate(whole, "", lines, file_name, catalogue);
    out = MultiplyHosts(host, file.nodes(), where("nodes"));
  }
  if (grouped || file.nodes() <= 1) {
    const bool numbered = std::any_of(file.devices().begin(), file.devices().end(),
                                      [](const auto& device) { return device.has_node(); });
    HostReader reader(lines, file_name, catalogue, &out);
    reader.ReadDevices(file.devices(), "devices", grouped || numbered);
    reader.ReadLinks(file.links(), "links");
    for (const Device& device : out.devices) {
      if (device.node != kNoNode) out.node_count = std::max(out.node_count, device.node + 1);
    }
  }
  out.name = file.name();
  if (file.has_fabric()) {
    FabricSpec spec{
        .kind = file.fabric().kind(), .model = file.fabric().model(), .where = where("fabric")};
    if (!file.fabric().rate().empty())
      spec.rate = ParseRate(file.fabric().rate(), where("fabric.rate"));
    if (!file.fabric().latency().empty())
      spec.latency = ParseTime(file.fabric().latency(), where("fabric.latency"));
    for (const auto& [key, value] : file.fabric().options()) spec.options[key] = value;
    const std::size_t hosts_end = out.devices.size();
    BuildFabric(spec, catalogue, &out);
    if (!file.fabric().network().empty()) {
      PacketNetwork::Options checked;
      ApplyPacketOptions(file.fabric().network(), where("fabric.network"), out, &checked);
      for (std::size_t i = hosts_end; i < out.devices.size(); ++i) {
        out.devices[i].attributes["network"] = file.fabric().network();
      }
    }
  }
  if (!file.has_fabric()) WarnOfCrowdedSwitches(catalogue, 0, &out);
  for (const Device& device : out.devices) {
    const auto network = device.attributes.find("network");
    if (network == device.attributes.end() || file.has_fabric()) continue;
    PacketNetwork::Options checked;
    ApplyPacketOptions(network->second, where(device.name + ".network"), out, &checked);
  }
  if (out.devices.empty()) Refuse(where(""), "", "describes no device", "devices, or of and nodes");
  return out;
}

proto::TopologyFile ToProto(const Topology& topology) {
  proto::TopologyFile file;
  file.set_name(topology.name);
  const bool several = topology.node_count > 1;
  for (const Device& device : topology.devices) {
    proto::DeviceEntry* entry = file.add_devices();
    entry->set_name(device.name);
    entry->set_kind(std::string(Name(device.kind)));
    entry->set_model(device.model);
    if (several && device.node != kNoNode) entry->set_node(device.node);
    entry->set_index(device.index);
    entry->set_bus_id(device.bus_id);
    if (device.sm != 0) entry->set_sm(device.sm);
    if (device.relay) entry->set_forward(true);
    for (const auto& [key, value] : device.attributes) (*entry->mutable_attributes())[key] = value;
  }
  std::vector<bool> written(topology.links.size(), false);
  std::set<std::tuple<DeviceId, DeviceId, LinkKind>> used;
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    if (written[id]) continue;
    const Link& link = topology.links[id];
    proto::LinkEntry* entry = file.add_links();
    entry->set_from(topology.devices[link.from].name);
    entry->set_to(topology.devices[link.to].name);
    entry->set_kind(std::string(Name(link.kind)));
    entry->set_generation(link.generation);
    entry->set_width(link.width);
    if (link.rate.count() != 0) entry->set_rate(fmt::format("{} b/s", link.rate.count()));
    entry->set_latency(fmt::format("{} ps", link.latency.count()));
    if (!link.p2p) entry->set_p2p(false);
    if (!link.forward) entry->set_forward(false);
    entry->set_down(link.down);
    if (!used.insert({link.from, link.to, link.kind}).second) entry->set_parallel(true);
    // Only a direct successor is folded into the entry, so that the order of links is kept.
    const LinkId next = id + 1;
    const auto same = [&](const Link& other) {
      return other.from == link.to && other.to == link.from && other.kind == link.kind &&
             other.generation == link.generation && other.width == link.width &&
             other.rate == link.rate && other.latency == link.latency && other.p2p == link.p2p &&
             other.forward == link.forward && other.down == link.down;
    };
    if (next < topology.links.size() && !written[next] && same(topology.links[next])) {
      written[next] = true;
      if (!used.insert({link.to, link.from, link.kind}).second) entry->set_parallel(true);
    } else {
      entry->set_one_way(true);
    }
  }
  return file;
}

}  // namespace windtunnel
