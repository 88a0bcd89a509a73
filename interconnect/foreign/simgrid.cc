// SimGrid platform XML, version 4. SimGrid routes are lists of resources, ours are paths in a
// graph: a link that both directions share becomes one internal link between two points that all
// its traffic passes; a split-duplex link becomes two. Routes are then found anew by the graph.

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "interconnect/foreign/foreign_builder.h"
#include "sim/parse_units.h"

namespace windtunnel::foreign {
namespace {

// Between resources of one route nothing is lost: a joint is no cable.
constexpr BitsPerSecond kJointRate(1'000'000'000'000'000);
// A link without contention, in a model that knows none: room for a thousand flows at full rate.
constexpr std::uint64_t kFatPipeFlows = 1000;

enum class Sharing : std::uint8_t { kShared, kSplitDuplex, kFatPipe };

// What an element may hold. Source: simgrid/simgrid docs/source/XML_reference.rst and simgrid.dtd
// of version 4.1, with the names that version 4 had.
struct Form {
  std::vector<std::string> attributes;
  std::vector<std::string> children;  ///< Of elements that hold no platform of their own.
};
const std::map<std::string, Form, std::less<>>& Forms() {
  static const std::map<std::string, Form, std::less<>> forms = [] {
    const Form zone{{"id", "routing"}, {}};
    const Form zone_route{{"src", "dst", "gw_src", "gw_dst", "symmetrical"}, {"link_ctn", "prop"}};
    return std::map<std::string, Form, std::less<>>{
        {"platform", {{"version"}, {}}},
        {"zone", zone},
        {"AS", zone},
        {"host",
         {{"id", "speed", "core", "pstate", "availability_file", "speed_file", "state_file",
           "coordinates"},
          {"prop", "disk", "mount"}}},
        {"router", {{"id", "coordinates"}, {"prop"}}},
        {"link",
         {{"id", "bandwidth", "latency", "sharing_policy", "bandwidth_file", "latency_file",
           "state_file"},
          {"prop"}}},
        {"route", {{"src", "dst", "symmetrical"}, {"link_ctn", "prop"}}},
        {"zoneRoute", zone_route},
        {"ASroute", zone_route},
        {"link_ctn", {{"id", "direction"}, {}}},
        {"cluster",
         {{"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy",
           "bb_bw", "bb_lat", "bb_sharing_policy", "loopback_bw", "loopback_lat", "limiter_link",
           "router_id", "topology", "topo_parameters"},
          {"prop"}}},
        {"prop", {{"id", "value"}, {}}},
        {"config", {{"id"}, {"prop"}}},
        {"disk", {{"id", "read_bw", "write_bw"}, {"prop"}}},
        {"mount", {{"storageId", "name"}, {}}}};
  }();
  return forms;
}

// A resource: traffic enters at `in` and leaves at `out`; index 0 is UP or the only way, 1 is DOWN.
struct Resource {
  std::array<DeviceId, 2> in{};
  std::array<DeviceId, 2> out{};
  bool split = false;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view file_name)
      : text_(text), builder_(text, file_name, "SimGrid platform") {}

  Topology Read() {
    if (text_.find("<!ENTITY") != std::string_view::npos) {
      builder_.Fail(0, "DOCTYPE", "", "declares entities, which are refused");
    }
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size());
    if (!result)
      builder_.Fail(LineOf(result.offset), "", "",
                    std::string("is no XML: ") + result.description());
    const pugi::xml_node platform = document.child("platform");
    if (!platform) builder_.Fail(0, "platform", "", "the element is missing");
    const std::string version = platform.attribute("version").value();
    if (!version.starts_with("4")) {
      builder_.Fail(Line(platform), "platform.version", version, "is not known", "4 or 4.1");
    }
    CheckAttributes(platform);
    for (const pugi::xml_node node : platform.children()) ReadElement(node, false, 0);
    for (const auto& [node, relay] : routes_) ReadRoute(node, relay);
    if (loopbacks_ > 0) {
      builder_.Note(std::to_string(loopbacks_) + " routes of a host to itself left out");
    }
    if (profiles_ > 0) {
      builder_.Warn(std::to_string(profiles_) +
                    " profiles over time (..._file) left out: hosts and links stay as they begin");
    }
    if (bare_numbers_ > 0) {
      builder_.Warn(std::to_string(bare_numbers_) +
                    " figures without a unit, read as bytes/s and seconds");
    }
    if (fat_pipes_ > 0) {
      builder_.Warn(std::to_string(fat_pipes_) +
                    " FATPIPE links given room for 1,000 flows: the limit per flow is not kept");
    }
    builder_.Note("units as SimGrid's: B is bytes, b is bits, k M G are 1000, Ki Mi Gi are 1024");
    if (!routes_.empty()) {
      builder_.Note("routes are found anew over the links that the file's routes name");
    }
    return builder_.Finish();
  }

 private:
  std::uint64_t LineOf(std::ptrdiff_t offset) const {
    if (offset < 0) return 0;
    const auto end = text_.substr(0, static_cast<std::size_t>(offset));
    return 1 + static_cast<std::uint64_t>(std::count(end.begin(), end.end(), '\n'));
  }
  std::uint64_t Line(const pugi::xml_node& node) const { return LineOf(node.offset_debug()); }

  [[noreturn]] void RefuseName(const pugi::xml_node& node, const char* name, const char* problem,
                               const std::vector<std::string>& known) {
    InputFault fault = builder_.At(Line(node), node.name(), name);
    fault.problem = problem;
    fault.expected = known.empty() ? "none" : "one of " + JoinNames(known);
    fault.nearest = NearestName(name, known);
    throw ConfigError(std::move(fault));
  }
  void CheckAttributes(const pugi::xml_node& node) {
    const std::vector<std::string>& known = Forms().find(node.name())->second.attributes;
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string_view name = attribute.name();
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        RefuseName(node, attribute.name(), "unknown attribute", known);
      }
      if (name.ends_with("_file")) ++profiles_;
    }
  }
  // An element that holds none but small ones: properties, links of a route.
  void CheckLeaf(const pugi::xml_node& node) {
    CheckAttributes(node);
    const std::vector<std::string>& known = Forms().find(node.name())->second.children;
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::find(known.begin(), known.end(), child.name()) == known.end()) {
        RefuseName(child, child.name(), "the element is not known here", known);
      }
      CheckLeaf(child);
    }
  }
  // One of a few words; `standard` where the file does not say.
  std::string Word(const pugi::xml_node& node, const char* attribute, const char* standard,
                   const std::vector<std::string>& known) {
    std::string word = node.attribute(attribute).as_string(standard);
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      builder_.Fail(Line(node), std::string(node.name()) + "." + attribute, word, "is not known",
                    JoinNames(known));
    }
    return word;
  }

  std::string Need(const pugi::xml_node& node, const char* attribute) {
    const pugi::xml_attribute value = node.attribute(attribute);
    if (!value) {
      builder_.Fail(Line(node), std::string(node.name()) + "." + attribute, "", "is missing");
    }
    return value.value();
  }

  BitsPerSecond Rate(const pugi::xml_node& node, const char* attribute) {
    std::string text = Need(node, attribute);
    const InputFault where =
        builder_.At(Line(node), std::string(node.name()) + "." + attribute, text);
    if (!text.empty() &&
        (std::isdigit(static_cast<unsigned char>(text.back())) != 0 || text.back() == '.')) {
      ++bare_numbers_;
      text += " B/s";
    } else if (text.ends_with("Bps")) {
      text.replace(text.size() - 3, 3, "B/s");
    }
    return ParseRate(text, where);
  }
  Picoseconds Latency(const pugi::xml_node& node, const char* attribute) {
    std::string text = Need(node, attribute);
    const InputFault where =
        builder_.At(Line(node), std::string(node.name()) + "." + attribute, text);
    if (text != "0" && !text.empty() &&
        std::isdigit(static_cast<unsigned char>(text.back())) != 0) {
      ++bare_numbers_;
      text += " s";
    }
    return ParseTime(text, where);
  }
  Sharing SharingOf(const pugi::xml_node& node, const char* attribute, Sharing standard) {
    const std::string text = node.attribute(attribute).value();
    if (text.empty()) return standard;
    if (text == "SHARED") return Sharing::kShared;
    if (text == "SPLITDUPLEX" || text == "FULLDUPLEX") return Sharing::kSplitDuplex;
    if (text == "FATPIPE") return Sharing::kFatPipe;
    builder_.Fail(Line(node), std::string(node.name()) + "." + attribute, text, "is not known",
                  "SHARED, SPLITDUPLEX, FATPIPE");
  }

  void Name(const pugi::xml_node& node, const std::string& name, DeviceId id) {
    if (!points_.emplace(name, id).second) {
      builder_.Fail(Line(node), node.name(), name, "the name is taken:");
    }
  }
  DeviceId AddHost(const pugi::xml_node& node, const std::string& name, bool relay) {
    const DeviceId id = builder_.AddEndpoint(name, hosts_++, 0, relay);
    Name(node, name, id);
    return id;
  }

  Resource AddResource(const std::string& name, BitsPerSecond rate, Picoseconds latency,
                       Sharing sharing) {
    Resource resource;
    resource.split = sharing == Sharing::kSplitDuplex;
    if (sharing == Sharing::kFatPipe) {
      ++fat_pipes_;
      rate = BitsPerSecond(rate.count() * kFatPipeFlows);
    }
    for (std::size_t way = 0; way < (resource.split ? 2u : 1u); ++way) {
      const std::string suffix = !resource.split ? "" : way == 0 ? ".up" : ".down";
      resource.in[way] = builder_.AddSwitch("link " + name + suffix + " in");
      resource.out[way] = builder_.AddSwitch("link " + name + suffix + " out");
      builder_.AddLink(resource.in[way], resource.out[way], rate, latency);
    }
    if (!resource.split) {
      resource.in[1] = resource.in[0];
      resource.out[1] = resource.out[0];
    }
    return resource;
  }

  void Join(DeviceId from, DeviceId to) {
    if (joints_.emplace(from, to).second) builder_.AddLink(from, to, kJointRate, Picoseconds(0));
  }

  void ReadElement(const pugi::xml_node& node, bool relay, int depth) {
    if (node.type() != pugi::node_element) return;
    const std::string name = node.name();
    if (depth > 64) builder_.Fail(Line(node), name, "", "is nested more than 64 deep");
    static const std::vector<std::string> kElements = {
        "zone", "host", "router", "link", "route", "zoneRoute", "cluster", "prop", "config"};
    const bool zone = name == "zone" || name == "AS";
    if (!zone && name != "ASroute" &&
        std::find(kElements.begin(), kElements.end(), name) == kElements.end()) {
      RefuseName(node, node.name(), "the element is not supported", kElements);
    }
    if (zone) {
      CheckAttributes(node);
    } else {
      CheckLeaf(node);
    }
    if (zone) {
      const std::string routing = Need(node, "routing");
      static const std::vector<std::string> known = {"Full",          "Floyd", "Dijkstra",
                                                     "DijkstraCache", "None",  "Cluster"};
      if (std::find(known.begin(), known.end(), routing) == known.end()) {
        builder_.Fail(Line(node), "zone.routing", routing, "is not supported", JoinNames(known));
      }
      const bool hops = routing != "Full" && routing != "None" && routing != "Cluster";
      for (const pugi::xml_node child : node.children()) ReadElement(child, hops, depth + 1);
    } else if (name == "host") {
      AddHost(node, Need(node, "id"), relay);
    } else if (name == "router") {
      const std::string id = Need(node, "id");
      Name(node, id, builder_.AddSwitch(id));
    } else if (name == "link") {
      const std::string id = Need(node, "id");
      const Resource resource = AddResource(id, Rate(node, "bandwidth"), Latency(node, "latency"),
                                            SharingOf(node, "sharing_policy", Sharing::kShared));
      if (!resources_.emplace(id, resource).second) {
        builder_.Fail(Line(node), "link.id", id, "the name is taken:");
      }
    } else if (name == "route" || name == "zoneRoute" || name == "ASroute") {
      routes_.emplace_back(node, name != "route");
    } else if (name == "cluster") {
      ReadCluster(node);
    }
  }

  DeviceId Point(const pugi::xml_node& node, const char* attribute) {
    const std::string name = Need(node, attribute);
    const auto found = points_.find(name);
    if (found == points_.end()) {
      builder_.Fail(Line(node), std::string(node.name()) + "." + attribute, name,
                    "no host or router has the name");
    }
    return found->second;
  }

  void ReadRoute(const pugi::xml_node& node, bool between_zones) {
    const DeviceId from = Point(node, between_zones ? "gw_src" : "src");
    const DeviceId to = Point(node, between_zones ? "gw_dst" : "dst");
    if (from == to) {
      ++loopbacks_;
      return;
    }
    std::vector<std::pair<const Resource*, std::size_t>> hops;
    for (const pugi::xml_node part : node.children("link_ctn")) {
      const std::string id = Need(part, "id");
      const auto found = resources_.find(id);
      if (found == resources_.end()) {
        builder_.Fail(Line(part), "link_ctn.id", id, "no link has the name");
      }
      const bool down = Word(part, "direction", "UP", {"UP", "DOWN", "NONE"}) == "DOWN";
      hops.emplace_back(&found->second, down ? 1 : 0);
    }
    if (hops.empty()) builder_.Fail(Line(node), node.name(), "", "a route without links");
    Chain(from, hops, to);
    const std::string both = Word(node, "symmetrical", "YES", {"YES", "NO", "yes", "no"});
    if (both == "NO" || both == "no") return;
    std::vector<std::pair<const Resource*, std::size_t>> back;
    for (auto it = hops.rbegin(); it != hops.rend(); ++it)
      back.emplace_back(it->first, 1 - it->second);
    Chain(to, back, from);
  }

  void Chain(DeviceId from, const std::vector<std::pair<const Resource*, std::size_t>>& hops,
             DeviceId to) {
    DeviceId at = from;
    for (const auto& [resource, way] : hops) {
      Join(at, resource->in[way]);
      at = resource->out[way];
    }
    Join(at, to);
  }

  // "0-7,10,12-15"
  std::vector<std::uint64_t> Radical(const pugi::xml_node& node) {
    const std::string text = Need(node, "radical");
    const InputFault where = builder_.At(Line(node), "cluster.radical", text);
    std::vector<std::uint64_t> numbers;
    std::string_view rest = text;
    while (true) {
      const std::size_t comma = rest.find(',');
      const std::string_view part = Trim(rest.substr(0, comma));
      const std::size_t dash = part.find('-');
      const std::uint64_t first = ParseCount(part.substr(0, dash), where, 0, UINT32_MAX);
      const std::uint64_t last = dash == std::string_view::npos
                                     ? first
                                     : ParseCount(part.substr(dash + 1), where, first, UINT32_MAX);
      if (last - first >= kMostDevices - numbers.size()) {
        builder_.Fail(where.line, where.field, text, "names too many hosts", "at most 1,000,000");
      }
      for (std::uint64_t n = first; n <= last; ++n) numbers.push_back(n);
      if (comma == std::string_view::npos) return numbers;
      rest.remove_prefix(comma + 1);
    }
  }

  // "3,4;4,3;5,1;2": lists of counts.
  std::vector<std::vector<std::uint64_t>> Parameters(const pugi::xml_node& node) {
    const std::string text = Need(node, "topo_parameters");
    const InputFault where = builder_.At(Line(node), "cluster.topo_parameters", text);
    std::vector<std::vector<std::uint64_t>> lists(1);
    std::string_view rest = text;
    while (true) {
      const std::size_t end = rest.find_first_of(",;");
      lists.back().push_back(ParseCount(Trim(rest.substr(0, end)), where, 1, kMostDevices));
      if (end == std::string_view::npos) return lists;
      if (rest[end] == ';') lists.emplace_back();
      rest.remove_prefix(end + 1);
    }
  }

  struct Cluster {
    pugi::xml_node node;
    std::vector<DeviceId> hosts;
    std::vector<DeviceId> entry;  // Where a host's traffic joins the network of the cluster.
    BitsPerSecond rate;
    Picoseconds latency;
    std::string id;
  };
  [[noreturn]] void BadShape(const Cluster& cluster, std::string problem, std::string expected) {
    builder_.Fail(Line(cluster.node), "cluster.topo_parameters",
                  cluster.node.attribute("topo_parameters").value(), std::move(problem),
                  std::move(expected));
  }
  // Before the switches of a shape are built.
  void CheckShape(const Cluster& cluster, double switches, double cables) const {
    builder_.CheckSize(Line(cluster.node), "cluster.topo_parameters",
                       cluster.node.attribute("topo_parameters").value(),
                       static_cast<double>(cluster.hosts.size()) + switches, cables);
  }
  void NeedHosts(const Cluster& cluster, std::uint64_t count) {
    if (cluster.hosts.size() != count) {
      BadShape(cluster,
               "makes " + std::to_string(count) + " hosts, radical names " +
                   std::to_string(cluster.hosts.size()) + ":",
               "equal counts");
    }
  }

  void ReadCluster(const pugi::xml_node& node) {
    Cluster cluster{.node = node,
                    .rate = Rate(node, "bw"),
                    .latency = Latency(node, "lat"),
                    .id = Need(node, "id")};
    const std::string prefix = Need(node, "prefix");
    const std::string suffix = Need(node, "suffix");
    const std::string shape = node.attribute("topology").as_string("FLAT");
    for (const std::uint64_t n : Radical(node)) {
      const std::string name = prefix + std::to_string(n) + suffix;
      cluster.hosts.push_back(AddHost(node, name, shape == "TORUS"));
    }
    cluster.entry = cluster.hosts;
    if (node.attribute("limiter_link")) AddLimiters(&cluster);
    if (node.attribute("loopback_bw")) ++loopbacks_;
    if (shape == "FLAT") {
      BuildFlat(cluster, prefix, suffix);
    } else if (shape == "TORUS") {
      BuildTorus(cluster);
    } else if (shape == "FAT_TREE") {
      BuildFatTree(cluster);
    } else if (shape == "DRAGONFLY") {
      BuildDragonfly(cluster);
    } else {
      builder_.Fail(Line(node), "cluster.topology", shape, "is not known",
                    "FLAT, TORUS, FAT_TREE, DRAGONFLY");
    }
  }

  // All that a host sends or receives passes its limiter.
  void AddLimiters(Cluster* cluster) {
    for (std::size_t h = 0; h < cluster->hosts.size(); ++h) {
      const Resource limiter =
          AddResource(cluster->id + " limiter " + std::to_string(h),
                      Rate(cluster->node, "limiter_link"), Picoseconds(0), Sharing::kShared);
      const DeviceId door = builder_.AddSwitch(cluster->id + " door " + std::to_string(h));
      Join(cluster->hosts[h], limiter.in[0]);
      Join(limiter.out[0], cluster->hosts[h]);
      Join(limiter.out[0], door);
      Join(door, limiter.in[0]);
      cluster->entry[h] = door;
    }
  }

  void BuildFlat(const Cluster& cluster, const std::string& prefix, const std::string& suffix) {
    const pugi::xml_node& node = cluster.node;
    std::string router_name = node.attribute("router_id").value();
    if (router_name.empty()) router_name = prefix + cluster.id + "_router" + suffix;
    const DeviceId router = builder_.AddSwitch(router_name);
    Name(node, router_name, router);
    const Sharing sharing = SharingOf(node, "sharing_policy", Sharing::kSplitDuplex);
    DeviceId from_hosts = router;
    DeviceId to_hosts = router;
    if (node.attribute("bb_bw")) {
      // All traffic inside the cluster and to the outside crosses the backbone once.
      const Resource backbone =
          AddResource(cluster.id + " backbone", Rate(node, "bb_bw"), Latency(node, "bb_lat"),
                      SharingOf(node, "bb_sharing_policy", Sharing::kShared));
      from_hosts = backbone.in[0];
      to_hosts = backbone.out[0];
      Join(backbone.out[0], router);
      Join(router, backbone.in[0]);
    }
    for (std::size_t h = 0; h < cluster.hosts.size(); ++h) {
      if (sharing == Sharing::kSplitDuplex) {
        builder_.AddLink(cluster.entry[h], from_hosts, cluster.rate, cluster.latency);
        builder_.AddLink(to_hosts, cluster.entry[h], cluster.rate, cluster.latency);
        continue;
      }
      const Resource link =
          AddResource(cluster.id + " " + std::to_string(h), cluster.rate, cluster.latency, sharing);
      Join(cluster.entry[h], link.in[0]);
      Join(link.out[0], from_hosts);
      Join(to_hosts, link.in[0]);
      Join(link.out[0], cluster.entry[h]);
    }
  }

  void BuildTorus(const Cluster& cluster) {
    const auto lists = Parameters(cluster.node);
    if (lists.size() != 1) BadShape(cluster, "is no list of sizes:", "3,2,2");
    std::uint64_t total = 1;
    for (const std::uint64_t size : lists[0]) total = std::min(total * size, kMostDevices + 1);
    NeedHosts(cluster, total);
    std::uint64_t stride = 1;
    for (const std::uint64_t size : lists[0]) {
      for (std::uint64_t h = 0; h < total; ++h) {
        const std::uint64_t x = h / stride % size;
        // Sizes 1 and 2 have no second way around.
        if (size == 1 || (size == 2 && x == 1)) continue;
        const std::uint64_t next = h - x * stride + (x + 1) % size * stride;
        builder_.AddCable(cluster.entry[h], cluster.entry[next], cluster.rate, cluster.latency);
      }
      stride *= size;
    }
  }

  // Level i has one switch per (position among the blocks above, choice of ups below); it joins the
  // members of its block one level down that made the same choices.
  void BuildFatTree(const Cluster& cluster) {
    const auto lists = Parameters(cluster.node);
    const std::uint64_t levels = lists[0][0];
    if (lists.size() != 4 || lists[0].size() != 1 || levels > 8 || lists[1].size() != levels ||
        lists[2].size() != levels || lists[3].size() != levels) {
      BadShape(cluster, "is no fat tree:", "levels;down per level;up per level;parallel links");
    }
    std::uint64_t total = 1;
    for (const std::uint64_t down : lists[1]) total = std::min(total * down, kMostDevices + 1);
    NeedHosts(cluster, total);
    double switches = 0;
    double cables = 0;
    double ways = 1;
    double parts = static_cast<double>(total);
    for (std::uint64_t level = 0; level < levels; ++level) {
      ways *= static_cast<double>(lists[2][level]);
      cables += parts * ways;
      parts /= static_cast<double>(lists[1][level]);
      switches += parts * ways;
    }
    CheckShape(cluster, switches, cables);
    std::vector<DeviceId> below = cluster.entry;  // Index: block x choices + choice.
    std::uint64_t blocks = total;
    std::uint64_t choices = 1;
    for (std::uint64_t level = 0; level < levels; ++level) {
      const std::uint64_t down = lists[1][level];
      const std::uint64_t up = lists[2][level];
      const BitsPerSecond rate(cluster.rate.count() * lists[3][level]);
      std::vector<DeviceId> here;
      for (std::uint64_t block = 0; block < blocks / down; ++block) {
        for (std::uint64_t choice = 0; choice < choices * up; ++choice) {
          const DeviceId id =
              builder_.AddSwitch(cluster.id + " switch " + std::to_string(level + 1) + "." +
                                 std::to_string(here.size()));
          here.push_back(id);
          for (std::uint64_t k = 0; k < down; ++k) {
            const std::uint64_t lower = (block * down + k) * choices + choice / up;
            builder_.AddCable(below[lower], id, rate, cluster.latency);
          }
        }
      }
      below = std::move(here);
      blocks /= down;
      choices *= up;
    }
  }

  void BuildDragonfly(const Cluster& cluster) {
    const auto lists = Parameters(cluster.node);
    if (lists.size() != 4 || lists[0].size() != 2 || lists[1].size() != 2 || lists[2].size() != 2 ||
        lists[3].size() != 1) {
      BadShape(cluster, "is no dragonfly:", "groups,links;chassis,links;routers,links;nodes");
    }
    const std::uint64_t groups = lists[0][0];
    const std::uint64_t chassis = lists[1][0];
    const std::uint64_t blades = lists[2][0];
    const std::uint64_t nodes = lists[3][0];
    const std::uint64_t per_group = chassis * blades;
    if (groups > kMostDevices / per_group || groups * per_group > kMostDevices / nodes) {
      BadShape(cluster, "is too large:", "at most 1,000,000 hosts");
    }
    NeedHosts(cluster, groups * per_group * nodes);
    if (groups > per_group) {
      BadShape(cluster, "has more groups than routers per group:", "one router for each group");
    }
    const auto count = static_cast<double>(groups * per_group);
    CheckShape(cluster, count,
               count * (static_cast<double>(nodes) + static_cast<double>(chassis + blades - 2) / 2 +
                        static_cast<double>(groups - 1) / 2 / static_cast<double>(per_group)));
    const auto faster = [&](std::uint64_t cables) {
      return BitsPerSecond(cluster.rate.count() * cables);
    };
    std::vector<DeviceId> routers;
    for (std::uint64_t r = 0; r < groups * per_group; ++r) {
      routers.push_back(builder_.AddSwitch(cluster.id + " router " + std::to_string(r)));
      for (std::uint64_t k = 0; k < nodes; ++k) {
        builder_.AddCable(cluster.entry[r * nodes + k], routers[r], cluster.rate, cluster.latency);
      }
    }
    for (std::uint64_t g = 0; g < groups; ++g) {
      for (std::uint64_t a = 0; a < per_group; ++a) {
        for (std::uint64_t b = a + 1; b < per_group; ++b) {
          const bool same_chassis = a / blades == b / blades;
          const bool same_blade = a % blades == b % blades;
          if (!same_chassis && !same_blade) continue;
          builder_.AddCable(routers[g * per_group + a], routers[g * per_group + b],
                            faster(same_chassis ? lists[2][1] : lists[1][1]), cluster.latency);
        }
      }
      // Router j of group i reaches group j, at its router i.
      for (std::uint64_t other = g + 1; other < groups; ++other) {
        builder_.AddCable(routers[g * per_group + other], routers[other * per_group + g],
                          faster(lists[0][1]), cluster.latency);
      }
    }
  }

  std::string_view text_;
  Builder builder_;
  std::map<std::string, DeviceId> points_;
  std::map<std::string, Resource> resources_;
  std::vector<std::pair<pugi::xml_node, bool>> routes_;
  std::set<std::pair<DeviceId, DeviceId>> joints_;
  std::uint32_t hosts_ = 0;
  std::uint64_t loopbacks_ = 0;
  std::uint64_t profiles_ = 0;
  std::uint64_t bare_numbers_ = 0;
  std::uint64_t fat_pipes_ = 0;
};

}  // namespace

Topology ReadSimGrid(std::string_view text, std::string_view file_name) {
  return Reader(text, file_name).Read();
}

}  // namespace windtunnel::foreign
