#include "collectives/nccl/graph_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "collectives/nccl/search_rules.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

/// As the C format %#lx: zero stands without 0x.
std::string Device(const HostDevice& device, bool hexadecimal) {
  const std::uint64_t id = (std::uint64_t{device.host} << 56) + device.dev;
  return hexadecimal && id != 0 ? fmt::format("0x{:x}", id) : fmt::format("{}", id);
}

XmlElement Leaf(const char* name, const HostDevice& device, bool hexadecimal) {
  XmlElement out;
  out.name = name;
  out.Set("dev", Device(device, hexadecimal));
  return out;
}

XmlElement GpuLeaf(const HostDevice& device, const SearchRules& rules, const System& system) {
  XmlElement out = Leaf("gpu", device, rules.writes_hex_devices);
  if (!rules.writes_ranks) return out;
  for (const SystemNode& gpu : system.nodes(NodeKind::kGpu)) {
    if (gpu.host() == device.host && gpu.gpu.dev == static_cast<int>(device.dev)) {
      out.Set("rank", std::to_string(gpu.gpu.rank));
    }
  }
  return out;
}

XmlElement ChannelElement(const SearchGraph::Channel& channel, const SearchRules& rules,
                          const System& system) {
  XmlElement out;
  out.name = "channel";
  const bool hexadecimal = rules.writes_hex_devices;
  if (!channel.nets.empty()) out.children.push_back(Leaf("net", channel.nets[0], hexadecimal));
  for (const HostDevice& gpu : channel.gpus) out.children.push_back(GpuLeaf(gpu, rules, system));
  if (channel.nets.size() > 1) out.children.push_back(Leaf("net", channel.nets[1], hexadecimal));
  return out;
}

XmlElement GraphElement(const SearchGraph& graph, const SearchRules& rules, const System& system) {
  int id = static_cast<int>(graph.id);
  if (graph.id == GraphId::kCollNetDirect && rules.collnet_direct_id_two) {
    id = static_cast<int>(GraphId::kCollNetChain);
  }
  XmlElement out;
  out.name = "graph";
  out.Set("id", std::to_string(id));
  out.Set("pattern", std::to_string(static_cast<int>(graph.pattern)));
  out.Set("crossnic", std::to_string(graph.cross_nic));
  out.Set("nchannels", std::to_string(graph.channel_count));
  out.Set("speedintra", fmt::format("{:g}", graph.bw_intra));
  out.Set("speedinter", fmt::format("{:g}", graph.bw_inter));
  if (rules.writes_latency) out.Set("latencyinter", fmt::format("{:g}", graph.latency_inter));
  out.Set("typeintra", std::string(Name(graph.type_intra)));
  out.Set("typeinter", std::string(Name(graph.type_inter)));
  out.Set("samechannels", graph.same_channels ? "1" : "0");
  for (const SearchGraph::Channel& channel : graph.channels) {
    out.children.push_back(ChannelElement(channel, rules, system));
  }
  return out;
}

class GraphReader {
 public:
  GraphReader(const XmlDocument& document, const System& system, const SearchRules& rules)
      : document_(document), system_(system), rules_(rules) {}

  std::vector<SearchGraph> Read() const {
    const XmlElement& root = document_.root;
    if (root.name != "graphs") Fail(root, "", "is not a graph file", "", "<graphs version=\"1\">");
    if (Integer(root, "version", 0, 1'000) != 1)
      Fail(root, "version", "is", *root.Find("version"), "1");
    std::vector<SearchGraph> out;
    for (const XmlElement& child : root.children) {
      if (child.name == "graph") out.push_back(ReadGraph(child));
    }
    return out;
  }

 private:
  [[noreturn]] void Fail(const XmlElement& element, const std::string& attribute,
                         std::string problem, std::string value, std::string expected) const {
    throw ConfigError(
        {.file = document_.file,
         .line = element.line,
         .field = "<" + element.name + (attribute.empty() ? "" : " " + attribute) + ">",
         .value = std::move(value),
         .problem = std::move(problem),
         .expected = std::move(expected)});
  }
  const std::string& Text(const XmlElement& element, const std::string& attribute) const {
    const std::string* text = element.Find(attribute);
    if (text == nullptr) Fail(element, attribute, "is missing", "", "a value");
    return *text;
  }
  int Integer(const XmlElement& element, const std::string& attribute, int least, int most) const {
    const std::string& text = Text(element, attribute);
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text.c_str(), &end, 0);
    if (errno != 0 || end == text.c_str() || *end != '\0' || value < least || value > most) {
      Fail(element, attribute, "is out of range or no number:", text,
           fmt::format("{} to {}", least, most));
    }
    return static_cast<int>(value);
  }
  float Rate(const XmlElement& element, const std::string& attribute, float most) const {
    const std::string& text = Text(element, attribute);
    char* end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !(value >= 0 && value <= most)) {
      Fail(element, attribute, "is out of range or no number:", text,
           fmt::format("0 to {:g}", most));
    }
    return value;
  }
  PathType Type(const XmlElement& element, const std::string& attribute) const {
    const std::string& text = Text(element, attribute);
    const auto type = PathTypeFromName(text);
    if (!type)
      Fail(element, attribute, "is no path type:", text,
           "LOC, NVL, NVB, PIX, PXB, P2C, PXN, PHB or SYS");
    return *type;
  }

  SearchGraph ReadGraph(const XmlElement& element) const {
    SearchGraph out;
    out.id = static_cast<GraphId>(Integer(element, "id", 0, 4));
    out.pattern = static_cast<Pattern>(Integer(element, "pattern", 1, 6));
    if (out.pattern == Pattern::kCollNetDirect) out.id = GraphId::kCollNetDirect;
    out.cross_nic = Integer(element, "crossnic", 0, 2);
    out.channel_count = Integer(element, "nchannels", 0, 64);
    out.bw_intra = Rate(element, "speedintra", 1e6F);
    out.bw_inter = Rate(element, "speedinter", 1e6F);
    if (element.Find("latencyinter") != nullptr)
      out.latency_inter = Rate(element, "latencyinter", 1e9F);
    out.type_intra = Type(element, "typeintra");
    out.type_inter = Type(element, "typeinter");
    out.same_channels = Integer(element, "samechannels", 0, 1) != 0;
    for (const XmlElement& child : element.children) {
      if (child.name == "channel") out.channels.push_back(ReadChannel(child, out));
    }
    const auto count = static_cast<std::size_t>(out.channel_count);
    if (out.channels.size() < count) {
      Fail(element, "nchannels",
           "is above the number of channel elements:", Text(element, "nchannels"),
           fmt::format("{} or fewer", out.channels.size()));
    }
    out.channels.resize(count);
    return out;
  }

  SearchGraph::Channel ReadChannel(const XmlElement& element, const SearchGraph& graph) const {
    SearchGraph::Channel out;
    for (const XmlElement& child : element.children) {
      if (child.name == "gpu") out.gpus.push_back(ReadDevice(child, NodeKind::kGpu));
      if (child.name == "net") out.nets.push_back(ReadDevice(child, NodeKind::kNet));
    }
    const bool heads = graph.id == GraphId::kNvls && rules_.writes_nvls_heads_only;
    const std::size_t needed = heads ? 1 : system_.count(NodeKind::kGpu);
    if (out.gpus.size() < needed) {
      Fail(element, "", "has too few gpu elements:", std::to_string(out.gpus.size()),
           std::to_string(needed));
    }
    if (system_.inter && out.nets.size() != 2) {
      Fail(element, "", "has another number of net elements:", std::to_string(out.nets.size()),
           "2, since the job spans nodes");
    }
    if (!system_.inter) out.nets.clear();
    out.gpus.resize(needed);
    return out;
  }

  HostDevice ReadDevice(const XmlElement& element, NodeKind kind) const {
    const std::string& text = Text(element, "dev");
    char* end = nullptr;
    errno = 0;
    const std::uint64_t id = std::strtoull(text.c_str(), &end, rules_.writes_hex_devices ? 16 : 0);
    if (errno != 0 || end == text.c_str() || *end != '\0') {
      Fail(element, "dev", "is no device number:", text, "a hexadecimal number");
    }
    const HostDevice device{static_cast<std::uint32_t>(id >> 56),
                            static_cast<std::uint32_t>(id & 0xffff'ffffU)};
    const auto& nodes = system_.nodes(kind);
    const bool known = std::any_of(nodes.begin(), nodes.end(), [&](const SystemNode& node) {
      const int dev = kind == NodeKind::kGpu ? node.gpu.dev : node.net.dev;
      return node.host() == device.host && dev == static_cast<int>(device.dev);
    });
    if (!known) {
      Fail(element, "dev",
           "dev " + std::to_string(device.dev) + " not found: the graph is for another machine,",
           text, "a " + std::string(Name(kind)) + " of the job");
    }
    return device;
  }

  const XmlDocument& document_;
  const System& system_;
  SearchRules rules_;
};

}  // namespace

std::string WriteGraphXml(const std::vector<SearchGraph>& graphs, const NcclVersion& version,
                          const System& system) {
  const SearchRules rules = SearchRulesOf(version);
  XmlElement root;
  root.name = "graphs";
  root.Set("version", "1");
  for (const SearchGraph& graph : graphs)
    root.children.push_back(GraphElement(graph, rules, system));
  return WriteXml(root);
}

std::vector<SearchGraph> ReadGraphXml(const XmlDocument& document, const System& system,
                                      const NcclVersion& version) {
  return GraphReader(document, system, SearchRulesOf(version)).Read();
}

}  // namespace windtunnel::nccl
