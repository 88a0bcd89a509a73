// From the used parts of a topology file to the graph: nodes, PCI tree, NVLinks, C2C, side links,
// flattened switches, links between CPUs, order of the links. Source of every rate:
// NVIDIA/nccl src/graph/topo.h and topo.cc, v2.28.9.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "interconnect/nccl/system.h"
#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

constexpr float kPower9Rate = 32.0F;
constexpr float kArmRate = 6.0F;
constexpr float kIntelBroadwellRate = 6.0F;
constexpr float kIntelSapphireRapidsRate = 22.0F;
constexpr float kIntelEmeraldRapidsRate = 40.0F;
constexpr float kAmdRate = 16.0F;
constexpr float kZhaoxinRate = 6.0F;
constexpr float kYongfengRate = 9.0F;
constexpr int kDefaultNetMbps = 10'000;
constexpr int kDefaultLanes = 16;
constexpr int kDefaultLaneRate = 60;  ///< 8 GT/s: 60 x 100 Mb/s per lane.

std::int64_t MakeId(std::uint32_t host, std::uint64_t local) {
  return static_cast<std::int64_t>((std::uint64_t{host} << 56) | (local & 0x00ff'ffff'ffff'ffffU));
}

/// "0000:0a:00.1" -> 0x0000a001: the hexadecimal digits up to the first other character.
std::uint64_t BusId(std::string_view text) {
  std::uint64_t value = 0;
  int digits = 0;
  for (const char c : text) {
    if (c == ':' || c == '.') continue;
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      break;
    }
    if (++digits > 16) break;
    value = value * 16 + static_cast<std::uint64_t>(digit);
  }
  return value;
}

/// What the class of a PCI device stands for; the first prefix that fits.
NodeKind KindOfClass(std::string_view text) {
  static constexpr std::pair<std::string_view, NodeKind> kTable[] = {
      {"0x060400", NodeKind::kPci}, {"0x068000", NodeKind::kNvs}, {"0x068001", NodeKind::kCpu},
      {"0x03", NodeKind::kGpu},     {"0x02", NodeKind::kNic},
  };
  for (const auto& [prefix, kind] : kTable) {
    if (text.starts_with(prefix)) return kind;
  }
  return NodeKind::kPci;
}

/// 4 or 5 for a Broadcom switch of that generation that shows itself as two levels, else 0.
int BroadcomGeneration(std::uint64_t device, std::uint64_t level) {
  constexpr std::uint64_t kIgnoreVariant = ~std::uint64_t{0xfff};
  if ((device & kIgnoreVariant) == 0x1000'c010'1000'a000U) return 4;
  if ((device & kIgnoreVariant) == (0x1000'c030'1000'0000U | level * 0x1000)) return 5;
  return 0;
}

class Builder {
 public:
  Builder(const std::string& file, const TopologyRules& rules, XmlMode mode, bool collnet,
          std::vector<std::string>& warnings)
      : file_(file), rules_(rules), mode_(mode), collnet_(collnet), warnings_(warnings) {}

  System Build(const XmlElement& top) {
    for (const XmlElement& child : top.children) {
      if (child.name == "cpu") {
        AddCpu(child);
      } else {
        Ignore(child, top);
      }
    }
    if (system_.count(NodeKind::kCpu) == 0)
      Fail(top, "", "no cpu with a used GPU or NIC", "", "a cpu");
    AddNvlinks(top, nullptr, 0);
    if (rules_.c2c) AddC2c(top, nullptr, 0);
    if (rules_.side_links) AddSideLinks(top, nullptr, 0);
    CheckNvlinkPairs(top);
    FlattenBroadcomSwitches();
    ConnectCpus();
    for (std::uint32_t i = 0; i < system_.count(NodeKind::kCpu); ++i) {
      PutUpLinkLast({NodeKind::kCpu, i}, std::nullopt);
    }
    return std::move(system_);
  }

 private:
  // --- messages ---
  [[noreturn]] void Fail(const XmlElement& element, const std::string& attribute,
                         std::string problem, std::string value, std::string expected) const {
    throw ConfigError(
        {.file = file_,
         .line = element.line,
         .field = "<" + element.name + (attribute.empty() ? "" : " " + attribute) + ">",
         .value = std::move(value),
         .problem = std::move(problem),
         .expected = std::move(expected)});
  }
  /// A default that NCCL takes in silence: an error in strict mode, else a warning.
  void Default(const XmlElement& element, const std::string& attribute, const std::string& problem,
               const std::string& value, const std::string& taken) {
    if (mode_ == XmlMode::kStrict) Fail(element, attribute, problem, value, "a value NCCL knows");
    Note(element, attribute,
         problem + (value.empty() ? "" : " '" + value + "'") + "; taken as " + taken);
  }
  void Note(const XmlElement& element, const std::string& attribute, const std::string& text) {
    std::string line = file_ + ":" + std::to_string(element.line) + ": <" + element.name +
                       (attribute.empty() ? "" : " " + attribute) + ">: " + text;
    if (std::find(warnings_.begin(), warnings_.end(), line) == warnings_.end()) {
      warnings_.push_back(std::move(line));
    }
  }
  void Ignore(const XmlElement& child, const XmlElement& parent) {
    Note(child, "", "unknown below <" + parent.name + ">, ignored");
  }

  // --- attributes ---
  const std::string& Text(const XmlElement& element, const std::string& attribute,
                          const std::string& expected) const {
    const std::string* text = element.Find(attribute);
    if (text == nullptr) Fail(element, attribute, "is missing", "", expected);
    return *text;
  }
  /// As NCCL reads whole numbers: base from the text, the longest prefix that is a number.
  int ToInteger(const XmlElement& element, const std::string& attribute, const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 0);
    if (errno != 0 || value > std::numeric_limits<int>::max() ||
        value < std::numeric_limits<int>::min()) {
      Fail(element, attribute, "is out of range:", text, "a whole number of 32 bits");
    }
    if (end == text.c_str() || *end != '\0') {
      Default(element, attribute, "is not a whole number:", text, std::to_string(value));
    }
    return static_cast<int>(value);
  }
  int Integer(const XmlElement& element, const std::string& attribute) {
    return ToInteger(element, attribute, Text(element, attribute, "a whole number"));
  }
  int IntegerOr(const XmlElement& element, const std::string& attribute, int otherwise) {
    const std::string* text = element.Find(attribute);
    return text == nullptr ? otherwise : ToInteger(element, attribute, *text);
  }

  // --- nodes ---
  NodeRef Create(const XmlElement& element, NodeKind kind, std::int64_t id) {
    if (system_.FindById(kind, id)) {
      Default(element, "", "a second " + std::string(Name(kind)) + " of one id", "",
              "another node");
    }
    auto& all = system_.nodes(kind);
    if (all.size() == kMaxNodesPerKind) {
      Fail(element, "", "too many nodes of kind " + std::string(Name(kind)), "",
           "at most " + std::to_string(kMaxNodesPerKind));
    }
    all.emplace_back();
    all.back().id = id;
    return {kind, static_cast<std::uint32_t>(all.size() - 1)};
  }
  void ConnectBoth(NodeRef a, NodeRef b, LinkKind kind, float rate) {
    system_.Connect(a, b, kind, rate);
    system_.Connect(b, a, kind, rate);
  }

  std::uint32_t HostOf(const XmlElement& cpu) {
    const std::string* text = cpu.Find("host_hash");
    const std::uint64_t hash = text == nullptr ? 0 : std::strtoull(text->c_str(), nullptr, 16);
    auto& hosts = system_.host_hashes;
    const auto found = std::find(hosts.begin(), hosts.end(), hash);
    if (found != hosts.end()) return static_cast<std::uint32_t>(found - hosts.begin());
    if (hosts.size() == 127) Fail(cpu, "host_hash", "too many hosts", "", "at most 127");
    hosts.push_back(hash);
    return static_cast<std::uint32_t>(hosts.size() - 1);
  }

  void AddCpu(const XmlElement& element) {
    const int numa = Integer(element, "numaid");
    const std::uint32_t host = HostOf(element);
    const NodeRef cpu =
        Create(element, NodeKind::kCpu, MakeId(host, static_cast<std::uint64_t>(numa)));
    ReadCpuModel(element, cpu);
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        AddPci(child, cpu, host);
      } else if (child.name == "nic") {
        AddVirtualNic(child, cpu, host);
      } else {
        Ignore(child, element);
      }
    }
  }

  void ReadCpuModel(const XmlElement& element, NodeRef ref) {
    auto& cpu = system_.at(ref).cpu;
    const std::string& arch = Text(element, "arch", "x86_64, arm64 or ppc64");
    if (arch.starts_with("x86_64")) {
      cpu.arch = CpuArch::kX86;
    } else if (arch.starts_with("arm64")) {
      cpu.arch = CpuArch::kArm;
    } else if (arch.starts_with("ppc64")) {
      cpu.arch = CpuArch::kPower;
    } else {
      Default(element, "arch", "unknown", arch, "a CPU without known limits");
    }
    if (cpu.arch != CpuArch::kX86) return;
    const std::string& vendor =
        Text(element, "vendor", "GenuineIntel, AuthenticAMD or CentaurHauls");
    if (vendor.starts_with("GenuineIntel")) {
      cpu.vendor = CpuVendor::kIntel;
      const int family = Integer(element, "familyid");
      const int model = Integer(element, "modelid");
      cpu.model = CpuModel::kIntelBroadwell;
      if (family == 6 && model >= 0x55) cpu.model = CpuModel::kIntelSkylake;
      if (family == 6 && model >= 0x8F && rules_.intel_spr_and_erp) {
        cpu.model = model >= 0xCF ? CpuModel::kIntelEmeraldRapids : CpuModel::kIntelSapphireRapids;
      }
    } else if (vendor.starts_with("AuthenticAMD")) {
      cpu.vendor = CpuVendor::kAmd;
    } else if (vendor.starts_with("CentaurHauls") || vendor.starts_with("  Shanghai  ")) {
      cpu.vendor = CpuVendor::kZhaoxin;
      if (Integer(element, "familyid") == 7 && Integer(element, "modelid") == 0x5B) {
        cpu.model = CpuModel::kYongfeng;
      }
    } else {
      Default(element, "vendor", "unknown", vendor, "a CPU without known limits");
    }
  }

  /// A NIC without a PCI device. Its id holds no NUMA number, so the NICs of all CPUs of a host
  /// share one node below the first.
  void AddVirtualNic(const XmlElement& element, NodeRef cpu, std::uint32_t host) {
    NodeRef nic{NodeKind::kNic, 0};
    if (const auto known = system_.FindById(NodeKind::kNic, MakeId(host, 0))) {
      nic.index = *known;
    } else {
      nic = Create(element, NodeKind::kNic, MakeId(host, 0));
      ConnectBoth(cpu, nic, LinkKind::kPci, kLocalRate);
    }
    AddNets(element, nic, host, std::nullopt);
  }

  void AddNets(const XmlElement& nic_element, NodeRef nic, std::uint32_t host,
               std::optional<std::uint64_t> bus_id) {
    for (const XmlElement& child : nic_element.children) {
      if (child.name != "net") {
        Ignore(child, nic_element);
      } else if (child.Find("dev") == nullptr) {
        Note(child, "dev", "is missing, the NIC takes no part");
      } else {
        AddNet(child, nic, host, bus_id);
      }
    }
  }

  void AddNet(const XmlElement& element, NodeRef nic, std::uint32_t host,
              std::optional<std::uint64_t> bus_id) {
    const int dev = Integer(element, "dev");
    const NodeRef ref =
        Create(element, NodeKind::kNet, MakeId(host, static_cast<std::uint64_t>(dev)));
    SystemNode& node = system_.at(ref);
    auto& net = node.net;
    net.dev = dev;
    if (const std::string* guid = element.Find("guid")) {
      net.asic = std::strtoull(guid->c_str(), nullptr, 16);
    } else {
      net.asic = rules_.missing_guid_tells_hosts ? static_cast<std::uint64_t>(node.id)
                                                 : static_cast<std::uint64_t>(dev);
      Default(element, "guid", "is missing", "", "a card of its own");
    }
    int mbps = IntegerOr(element, "speed", 0);
    if (mbps <= 0) {
      const std::string* text = element.Find("speed");
      Default(element, "speed", "is not known:", text == nullptr ? "" : *text,
              std::to_string(kDefaultNetMbps) + " Mb/s");
      mbps = kDefaultNetMbps;
    }
    net.rate = static_cast<float>(mbps / 8000.0);
    if (const std::string* latency = element.Find("latency");
        latency != nullptr && rules_.nic_latency) {
      net.latency = std::strtof(latency->c_str(), nullptr);
      if (!(net.latency >= 0 && net.latency < 1e9F)) {
        Fail(element, "latency", "is not a latency:", *latency, "microseconds, 0 or more");
      }
    }
    net.port = IntegerOr(element, "port", 0);
    net.gdr = IntegerOr(element, "gdr", 0) != 0;
    net.max_channels = IntegerOr(element, "maxconn", 64);
    net.collnet = IntegerOr(element, "coll", collnet_ ? 1 : 0) != 0;
    if (rules_.device_nodes) {
      net.rail = IntegerOr(element, "rail", -1);
      net.plane = IntegerOr(element, "plane", -1);
    }
    net.pci_group = bus_id ? *bus_id : net.asic;
    const float rate = net.rate;
    ConnectBoth(nic, ref, LinkKind::kNet, rate);
  }

  void AddPci(const XmlElement& element, NodeRef parent, std::uint32_t host) {
    const std::uint64_t bus_id = BusId(Text(element, "busid", "dddd:bb:dd.f"));
    const XmlElement* gpu = element.Child("gpu");
    const XmlElement* nic = element.Child("nic");
    const NodeKind kind = ReadClass(element, gpu, nic);
    std::optional<NodeRef> made;
    if (gpu != nullptr) {
      for (const XmlElement& child : element.children) {
        if (child.name != "gpu") continue;
        if (child.Find("rank") == nullptr) {
          Note(child, "rank", "is missing, the GPU takes no part");
          return;
        }
        if (made && !rules_.device_nodes) break;
        if (rules_.device_nodes) {
          AddGpuOnDevice(element, child, parent, MakeId(host, bus_id));
        } else {
          made = AddGpu(child, MakeId(host, bus_id));
        }
      }
    }
    if (nic != nullptr) {
      const std::int64_t id =
          MakeId(host, rules_.nic_drops_function ? bus_id & ~std::uint64_t{0xf} : bus_id);
      NodeRef ref{NodeKind::kNic, 0};
      if (const auto known = system_.FindById(NodeKind::kNic, id)) {
        ref.index = *known;  // A further port of a card: the card has its link already.
      } else {
        ref = Create(*nic, NodeKind::kNic, id);
        made = ref;
      }
      AddNets(*nic, ref, host, bus_id);
    } else if (kind == NodeKind::kPci && gpu == nullptr) {
      made = AddSwitch(element, MakeId(host, bus_id), host);
    }
    if (!made) return;
    ConnectBoth(*made, parent, LinkKind::kPci, LinkRate(element));
  }

  /// From 2.30 on GPUs hang below the node of their package, which carries the links.
  void AddGpuOnDevice(const XmlElement& element, const XmlElement& gpu_element, NodeRef parent,
                      std::int64_t id) {
    NodeRef device{NodeKind::kDev, 0};
    if (const auto known = system_.FindById(NodeKind::kDev, id)) {
      device.index = *known;
    } else {
      device = Create(element, NodeKind::kDev, id);
      ConnectBoth(device, parent, LinkKind::kPci, LinkRate(element));
    }
    std::int64_t gpu_id = id;
    while (system_.FindById(NodeKind::kGpu, gpu_id)) ++gpu_id;
    const NodeRef gpu = AddGpu(gpu_element, gpu_id);
    system_.at(device).gpu.dev = system_.at(gpu).gpu.dev;
    system_.at(device).gpu.sm = system_.at(gpu).gpu.sm;
    ConnectBoth(device, gpu, LinkKind::kLoc, kLocalRate);
  }

  NodeKind ReadClass(const XmlElement& element, const XmlElement* gpu, const XmlElement* nic) {
    const std::string* text = element.Find("class");
    if (text == nullptr) {
      const std::string taken = gpu != nullptr ? "a GPU" : nic != nullptr ? "a NIC" : "a bridge";
      Default(element, "class", "is missing", "", taken);
      return gpu != nullptr ? NodeKind::kGpu : nic != nullptr ? NodeKind::kNic : NodeKind::kPci;
    }
    const NodeKind kind = KindOfClass(*text);
    if (gpu != nullptr && kind != NodeKind::kGpu)
      Default(element, "class", "is no GPU's:", *text, "a GPU, as its child says");
    if (gpu == nullptr && nic != nullptr && kind != NodeKind::kNic)
      Default(element, "class", "is no NIC's:", *text, "a NIC, as its child says");
    return gpu != nullptr ? NodeKind::kGpu : nic != nullptr ? NodeKind::kNic : kind;
  }

  NodeRef AddGpu(const XmlElement& element, std::int64_t id) {
    const NodeRef ref = Create(element, NodeKind::kGpu, id);
    auto& gpu = system_.at(ref).gpu;
    gpu.dev = Integer(element, "dev");
    gpu.rank = Integer(element, "rank");
    gpu.sm = Integer(element, "sm");
    if (element.Find("gdr") == nullptr)
      Default(element, "gdr", "is missing", "", "1 (GPUDirect RDMA possible)");
    gpu.gdr = IntegerOr(element, "gdr", 1) != 0;
    return ref;
  }

  NodeRef AddSwitch(const XmlElement& element, std::int64_t id, std::uint32_t host) {
    const NodeRef ref = Create(element, NodeKind::kPci, id);
    std::uint64_t device = 0;
    int shift = 48;
    for (const char* attribute : {"vendor", "device", "subsystem_vendor", "subsystem_device"}) {
      if (element.Find(attribute) != nullptr) {
        device +=
            static_cast<std::uint64_t>(static_cast<std::int64_t>(IntegerOr(element, attribute, 0)))
            << shift;
      }
      shift -= 16;
    }
    system_.at(ref).pci.device = device;
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        AddPci(child, ref, host);
      } else if (child.name != "pcilink") {
        Ignore(child, element);
      }
    }
    return ref;
  }

  /// GB/s = lanes x rate per lane (units of 100 Mb/s) / 80.
  float LinkRate(const XmlElement& element) {
    const std::string* width_text = element.Find("link_width");
    int width = width_text == nullptr || width_text->empty()
                    ? 0
                    : ToInteger(element, "link_width", *width_text);
    if (width < 0) Fail(element, "link_width", "is negative:", *width_text, "lanes");
    if (width == 0) {
      Default(element, "link_width", "is not known:", width_text == nullptr ? "" : *width_text,
              std::to_string(kDefaultLanes) + " lanes");
      width = kDefaultLanes;
    }
    const std::string* speed = element.Find("link_speed");
    const std::string text = speed == nullptr ? "" : *speed;
    double lane = kDefaultLaneRate;
    if (const auto known = PcieLaneRate(text, rules_)) {
      lane = *known;
    } else if (mode_ == XmlMode::kStrict) {
      lane = LaneRateFromNumber(element, text);
    } else {
      Note(element, "link_speed", "NCCL does not know '" + text + "'; taken as 8 GT/s (Gen3)");
    }
    return static_cast<float>(width * lane / 80.0);
  }

  /// Strict mode: the number in the text. 8b/10b up to 5 GT/s, 128b/130b above (as NCCL's table).
  double LaneRateFromNumber(const XmlElement& element, const std::string& text) const {
    char* end = nullptr;
    const double transfers = std::strtod(text.c_str(), &end);
    const std::string_view rest(end);
    if (end == text.c_str() || !rest.starts_with(" GT/s") ||
        !(transfers > 0 && transfers <= 1024)) {
      Fail(element, "link_speed", "is no PCIe speed:", text, "such as '16.0 GT/s PCIe'");
    }
    return transfers * (transfers <= 5 ? 6.0 : 7.5);
  }

  // --- links that need all nodes ---
  /// Walks the tree with the bus id above and the host; calls `visit(element, bus id, host)` for
  /// elements named `name`.
  template <class Visit>
  void Walk(const XmlElement& element, std::string_view name, const std::string* bus_id,
            std::uint32_t host, const Visit& visit) {
    if (element.name == name) {
      visit(element, bus_id == nullptr ? std::string() : *bus_id, host);
      return;
    }
    if (element.name == "cpu") host = HostOf(element);
    if (const std::string* own = element.Find("busid")) bus_id = own;
    bool gpu_seen = false;
    for (const XmlElement& child : element.children) {
      // GPUs of one package name the same links: the first counts.
      if (child.name == "gpu" && gpu_seen && rules_.device_nodes) continue;
      gpu_seen = gpu_seen || child.name == "gpu";
      Walk(child, name, bus_id, host, visit);
    }
  }

  /// Kind of node that carries the links of a GPU.
  NodeKind LinkEnd() const { return rules_.device_nodes ? NodeKind::kDev : NodeKind::kGpu; }
  std::optional<NodeRef> GpuAt(const std::string& bus_id, std::uint32_t host) const {
    const auto index = system_.FindById(LinkEnd(), MakeId(host, BusId(bus_id)));
    if (!index) return std::nullopt;
    return NodeRef{LinkEnd(), *index};
  }

  /// The CPU above a node of the PCI tree: through switches only.
  std::optional<NodeRef> CpuAbove(NodeRef node, std::optional<NodeRef> from) const {
    if (node.kind == NodeKind::kCpu) return node;
    for (const SystemLink& link : system_.at(node).links) {
      if (link.kind != LinkKind::kPci || link.to == from) continue;
      if (link.to.kind != NodeKind::kPci && link.to.kind != NodeKind::kCpu) continue;
      if (const auto cpu = CpuAbove(link.to, node)) return cpu;
    }
    return std::nullopt;
  }

  void AddNvlinks(const XmlElement& top, const std::string* bus_id, std::uint32_t host) {
    Walk(top, "nvlink", bus_id, host,
         [&](const XmlElement& element, const std::string& own, std::uint32_t at) {
           const auto gpu = GpuAt(own, at);
           if (!gpu)
             Fail(element, "", "belongs to no used GPU:", own, "a GPU with a rank above it");
           AddNvlink(element, *gpu, at);
         });
  }

  void AddNvlink(const XmlElement& element, NodeRef gpu, std::uint32_t host) {
    const int count = Integer(element, "count");
    if (count < 0)
      Fail(element, "count", "is negative:", *element.Find("count"), "number of links");
    const std::string* target = element.Find("target");
    const std::string* far_class = element.Find("tclass");
    NodeKind far = NodeKind::kNvs;
    if (far_class != nullptr) {
      far = KindOfClass(*far_class);
    } else {
      const bool is_gpu = target != nullptr && GpuAt(*target, host).has_value();
      far = is_gpu ? NodeKind::kGpu : NodeKind::kNvs;
      Default(element, "tclass", "is missing", "", is_gpu ? "a GPU, as its target" : "an NVSwitch");
    }
    std::optional<NodeRef> remote;
    if (far == NodeKind::kGpu) {
      remote = GpuAt(Text(element, "target", "bus id of the other GPU"), host);
      if (!remote) Note(element, "target", "'" + *target + "' takes no part, the link is left out");
      if (remote == gpu)
        Default(element, "target", "is the GPU itself:", *target, "a link to itself");
    } else if (far == NodeKind::kCpu) {
      remote = CpuAbove(gpu, std::nullopt);
    } else {
      // All switches of a system are one node: any GPU reaches any other through them.
      if (system_.count(NodeKind::kNvs) == 0) Create(element, NodeKind::kNvs, 0);
      remote = NodeRef{NodeKind::kNvs, 0};
    }
    if (!remote) return;
    const float rate = static_cast<float>(count) * NvlinkRate(system_.at(gpu).gpu.sm, rules_);
    system_.Connect(gpu, *remote, LinkKind::kNvl, rate);
    if (remote->kind != LinkEnd()) system_.Connect(*remote, gpu, LinkKind::kNvl, rate);
  }

  /// A link between two GPUs counts in the direction of the GPU that names it, so both have to.
  void CheckNvlinkPairs(const XmlElement& top) const {
    for (std::uint32_t i = 0; i < system_.count(LinkEnd()); ++i) {
      const NodeRef gpu{LinkEnd(), i};
      for (const SystemLink& link : system_.at(gpu).links) {
        if (link.kind != LinkKind::kNvl || link.to.kind != LinkEnd()) continue;
        const auto& back = system_.at(link.to).links;
        const bool both = std::any_of(back.begin(), back.end(), [&](const SystemLink& other) {
          return other.kind == LinkKind::kNvl && other.to == gpu;
        });
        if (!both) {
          Fail(top, "nvlink",
               "GPU dev " + std::to_string(system_.at(gpu).gpu.dev) + " names a link to dev " +
                   std::to_string(system_.at(link.to).gpu.dev) + " that is not named the other way",
               "", "both GPUs name the link");
        }
      }
    }
  }

  void AddC2c(const XmlElement& top, const std::string* bus_id, std::uint32_t host) {
    Walk(top, "c2c", bus_id, host,
         [&](const XmlElement& element, const std::string& own, std::uint32_t at) {
           const auto gpu = GpuAt(own, at);
           if (!gpu)
             Fail(element, "", "belongs to no used GPU:", own, "a GPU with a rank above it");
           const auto rate =
               static_cast<float>(static_cast<double>(std::int64_t{Integer(element, "bw")} *
                                                      Integer(element, "count")) /
                                  1000.0);
           const auto cpu = CpuAbove(*gpu, std::nullopt);
           if (!cpu) return;
           ConnectBoth(*gpu, *cpu, rules_.c2c_is_own_kind ? LinkKind::kC2c : LinkKind::kNvl, rate);
         });
  }

  void AddSideLinks(const XmlElement& top, const std::string* bus_id, std::uint32_t host) {
    Walk(top, "pcilink", bus_id, host,
         [&](const XmlElement& element, const std::string& own, std::uint32_t at) {
           const auto from = system_.FindById(NodeKind::kPci, MakeId(at, BusId(own)));
           if (!from) Fail(element, "", "belongs to no switch:", own, "a pci bridge above it");
           const std::string& target = Text(element, "target", "bus id of the other switch");
           const auto to = system_.FindById(NodeKind::kPci, MakeId(at, BusId(target)));
           if (!to) {
             Note(element, "target",
                  "'" + target + "' is not in the file or not used, the link is left out");
             return;
           }
           system_.Connect({NodeKind::kPci, *from}, {NodeKind::kPci, *to}, LinkKind::kLoc,
                           kLocalRate);
         });
  }

  // --- corrections ---
  /// Some Broadcom switches show themselves as two levels although all ports have the full rate:
  /// the lower level is folded into the upper.
  void FlattenBroadcomSwitches() {
    for (std::uint32_t s = 0; s < system_.count(NodeKind::kPci); ++s) {
      const int generation = BroadcomGeneration(system_.nodes(NodeKind::kPci)[s].pci.device, 0);
      if (generation == 0 || (generation == 5 && !rules_.flattens_gen5)) continue;
      const std::int64_t upper_id = system_.nodes(NodeKind::kPci)[s].id;
      for (const std::int64_t lower_id : DetachLowerSwitches(s, generation)) {
        FoldSwitch(*system_.FindById(NodeKind::kPci, upper_id),
                   *system_.FindById(NodeKind::kPci, lower_id));
      }
      const std::uint32_t upper = *system_.FindById(NodeKind::kPci, upper_id);
      system_.nodes(NodeKind::kPci)[upper].pci.device |= 0xffff;  // Not a candidate any more.
      s = rules_.flattening_restarts ? static_cast<std::uint32_t>(-1) : 0;
    }
  }

  std::vector<std::int64_t> DetachLowerSwitches(std::uint32_t upper, int generation) {
    std::vector<std::int64_t> lower;
    auto& links = system_.nodes(NodeKind::kPci)[upper].links;
    std::erase_if(links, [&](const SystemLink& link) {
      if (link.to.kind != NodeKind::kPci) return false;
      const SystemNode& other = system_.at(link.to);
      if (BroadcomGeneration(other.pci.device, 1) != generation) return false;
      lower.push_back(other.id);
      return true;
    });
    return lower;
  }

  void FoldSwitch(std::uint32_t upper, std::uint32_t lower) {
    const NodeRef upper_ref{NodeKind::kPci, upper};
    const NodeRef lower_ref{NodeKind::kPci, lower};
    for (const SystemLink& link : std::vector<SystemLink>(system_.at(lower_ref).links)) {
      if (link.to == upper_ref) continue;
      system_.at(upper_ref).links.push_back(link);
      for (SystemLink& back : system_.at(link.to).links) {
        if (back.to != lower_ref) continue;
        back.to = upper_ref;
        break;
      }
    }
    system_.Remove(lower_ref);
  }

  float RateBetweenCpus(const SystemNode& node) const {
    switch (node.cpu.arch) {
      case CpuArch::kPower:
        return kPower9Rate;
      case CpuArch::kArm:
        return kArmRate;
      case CpuArch::kUnknown:
        return kLocalRate;
      case CpuArch::kX86:
        break;
    }
    switch (node.cpu.vendor) {
      case CpuVendor::kIntel:
        switch (node.cpu.model) {
          case CpuModel::kIntelEmeraldRapids:
            return kIntelEmeraldRapidsRate;
          case CpuModel::kIntelSapphireRapids:
            return kIntelSapphireRapidsRate;
          case CpuModel::kIntelSkylake:
            return rules_.intel_skylake;
          default:
            return kIntelBroadwellRate;
        }
      case CpuVendor::kAmd:
        return rules_.amd_limit ? kAmdRate : kLocalRate;
      case CpuVendor::kZhaoxin:
        return node.cpu.model == CpuModel::kYongfeng ? kYongfengRate : kZhaoxinRate;
      case CpuVendor::kUnknown:
        break;
    }
    return kLocalRate;
  }

  void ConnectCpus() {
    const std::uint32_t count = system_.count(NodeKind::kCpu);
    for (std::uint32_t a = 0; a < count; ++a) {
      for (std::uint32_t b = 0; b < count; ++b) {
        const SystemNode& from = system_.nodes(NodeKind::kCpu)[a];
        if (a == b || from.host() != system_.nodes(NodeKind::kCpu)[b].host()) continue;
        system_.Connect({NodeKind::kCpu, a}, {NodeKind::kCpu, b}, LinkKind::kSys,
                        RateBetweenCpus(from));
      }
    }
  }

  /// Paths look at NVLinks first, then down the PCI tree, up the tree last.
  void PutUpLinkLast(NodeRef node, std::optional<NodeRef> above) {
    auto& links = system_.at(node).links;
    if (above) {
      const auto up = std::find_if(links.begin(), links.end(),
                                   [&](const SystemLink& link) { return link.to == *above; });
      WT_CHECK(up != links.end());
      std::rotate(up, up + 1, links.end());
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i].kind == LinkKind::kPci && links[i].to != above) PutUpLinkLast(links[i].to, node);
    }
  }

  /// Source: NCCL_TOPO_MAX_NODES, src/include/graph.h, v2.28.9.
  static constexpr std::size_t kMaxNodesPerKind = 576;

  const std::string& file_;
  const TopologyRules& rules_;
  XmlMode mode_;
  bool collnet_;
  std::vector<std::string>& warnings_;
  System system_;
};

}  // namespace

float NvlinkRate(int sm, const TopologyRules& rules) {
  if (sm >= 100) return rules.nvlink_sm100;
  if (sm >= 90) return rules.nvlink_sm90;
  if (sm == 86) return 12.0F;
  if (sm >= 70) return rules.nvlink_sm70;
  if (sm >= 60) return 18.0F;
  return rules.nvlink_sm70;
}

std::optional<int> PcieLaneRate(std::string_view link_speed, const TopologyRules& rules) {
  struct Row {
    std::string_view prefix;
    int rate;
    bool suffix_era;  ///< Came with the texts of Linux 5.7.
  };
  static constexpr Row kTable[] = {
      {"2.5 GT/s", 15, false},       {"5 GT/s", 30, false},         {"8 GT/s", 60, false},
      {"16 GT/s", 120, false},       {"32 GT/s", 240, true},        {"5.0 GT/s PCIe", 30, true},
      {"8.0 GT/s PCIe", 60, true},   {"16.0 GT/s PCIe", 120, true}, {"32.0 GT/s PCIe", 240, true},
      {"64.0 GT/s PCIe", 480, true},
  };
  for (const Row& row : kTable) {
    if (row.suffix_era && !rules.pcie_suffix) continue;
    if (link_speed.starts_with(row.prefix)) return row.rate;
  }
  return std::nullopt;
}

System BuildSystem(const XmlElement& used, const std::string& file, const TopologyRules& rules,
                   XmlMode mode, bool collnet, std::vector<std::string>& warnings) {
  return Builder(file, rules, mode, collnet, warnings).Build(used);
}

}  // namespace windtunnel::nccl
