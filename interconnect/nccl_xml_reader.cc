#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "interconnect/nccl_xml_topology.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

using nccl::XmlElement;

// Whole numbers as NCCL reads them: base from the text.
std::optional<std::int64_t> Integer(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (errno != 0 || end == text.c_str() || *end != '\0') return std::nullopt;
  return value;
}

// The texts NCCL compares by prefix, in its order (NVIDIA/nccl v2.28.9 src/graph/topo.cc).
constexpr std::string_view kNcclSpeeds[] = {"2.5 GT/s",       "5 GT/s",        "8 GT/s",
                                            "16 GT/s",        "32 GT/s",       "2.5 GT/s PCIe",
                                            "5.0 GT/s PCIe",  "8.0 GT/s PCIe", "16.0 GT/s PCIe",
                                            "32.0 GT/s PCIe", "64.0 GT/s PCIe"};

struct Speed {
  std::uint32_t generation;
  std::string_view name;  // In NCCL's spelling; empty when it has none.
};
constexpr std::pair<std::string_view, Speed> kSpeeds[] = {{"2.5", {1, "2.5 GT/s PCIe"}},
                                                          {"5", {2, "5.0 GT/s PCIe"}},
                                                          {"8", {3, "8.0 GT/s PCIe"}},
                                                          {"16", {4, "16.0 GT/s PCIe"}},
                                                          {"32", {5, "32.0 GT/s PCIe"}},
                                                          {"64", {6, "64.0 GT/s PCIe"}},
                                                          {"128", {7, ""}}};

// "16.0 GT/s PCIe" -> generation 4, by the number alone.
std::optional<Speed> SpeedOf(std::string_view text) {
  std::string_view number = text.substr(0, text.find(' '));
  if (number.ends_with(".0")) number.remove_suffix(2);
  if (text.find("GT/s") == std::string_view::npos) return std::nullopt;
  for (const auto& [name, speed] : kSpeeds) {
    if (name == number) return speed;
  }
  return std::nullopt;
}

constexpr std::string_view kNvSwitchClass = "0x068000";
constexpr std::string_view kPowerCpuClass = "0x068001";

// NVLink generation by compute capability: P100 1, V100 2, A100 and RTX 30 3, H100 4, B200 5.
std::uint32_t NvlinkGeneration(std::uint32_t sm) {
  if (sm < 70) return 1;
  if (sm < 80) return 2;
  if (sm < 90) return 3;
  return sm < 100 ? 4 : 5;
}

class Reader {
 public:
  Reader(const nccl::XmlDocument& document, const Catalogue& catalogue,
         const NcclXmlOptions& options)
      : document_(document), catalogue_(catalogue), strict_(options.strict) {
    if (options.complete_as.empty()) return;
    const InputFault where{.file = document.file, .field = "complete as"};
    const auto plus = options.complete_as.find('+');
    complete_gpu_ = &catalogue.Device(options.complete_as.substr(0, plus), where);
    if (plus != std::string::npos)
      complete_nic_ = &catalogue.Device(options.complete_as.substr(plus + 1), where);
  }

  Topology Read() {
    const XmlElement& root = document_.root;
    if (root.name != "system")
      Fail(root, "", "", "is not an NCCL topology", "<system version=\"1\">");
    const std::string* version = root.Find("version");
    const auto number = version == nullptr ? std::nullopt : Integer(*version);
    if (number == 2) {
      Fail(root, "version", *version,
           "is an RCCL topology (AMD GPUs with xGMI), which is not modelled: version", "1 (NCCL)");
    }
    if (number != 1)
      Fail(root, "version", version == nullptr ? "" : *version, "is not known:", "1");
    CountParts(root);
    out_.source = document_.file;
    out_.warnings = document_.warnings;
    for (const XmlElement& cpu : root.children) {
      if (cpu.name == "cpu") {
        AddCpu(cpu);
      } else {
        ++skipped_["unknown <" + cpu.name + ">"];
      }
    }
    if (out_.devices.empty()) Fail(root, "", "", "has no <cpu>", "at least one");
    out_.node_count = static_cast<std::uint32_t>(hosts_.size());
    AddNumaLinks();
    AddNvlinks();
    AddC2cLinks();
    if (out_.DevicesOf(DeviceKind::kGpu).empty()) {
      Fail(root, "", "",
           "describes no GPU that takes part: it is a skeleton that NCCL completes on the machine, "
           "and its devices do not say what they are",
           "the GPU model to complete it as, such as h100-sxm or h100-sxm+connectx-7");
    }
    for (const auto& [what, count] : skipped_)
      out_.notes.push_back(fmt::format("left out: {} {}", count, what));
    return std::move(out_);
  }

 private:
  [[noreturn]] void Fail(const XmlElement& element, std::string_view attribute, std::string value,
                         std::string problem, std::string expected = {}) const {
    throw ConfigError({.file = document_.file,
                       .line = element.line,
                       .field = attribute.empty() ? fmt::format("<{}>", element.name)
                                                  : fmt::format("<{} {}>", element.name, attribute),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }
  void Warn(const XmlElement& element, std::string_view attribute, std::string text) {
    out_.warnings.push_back(fmt::format("{}:{}: <{} {}>: {}", document_.file, element.line,
                                        element.name, attribute, text));
  }
  // A default that NCCL takes in silence.
  void Default(const XmlElement& element, std::string_view attribute, const std::string& problem,
               const std::string& taken) {
    const std::string* text = element.Find(attribute);
    if (strict_)
      Fail(element, attribute, text == nullptr ? "" : *text, problem, "a value that says it");
    Warn(element, attribute, problem + (text == nullptr ? "" : " '" + *text + "'") + "; " + taken);
  }

  void CountParts(const XmlElement& element) {
    if (element.name == "gpu") {
      ++gpu_elements_;
      if (element.Find("rank") != nullptr) ++ranked_gpus_;
    }
    if (element.name == "net") ++net_elements_;
    for (const XmlElement& child : element.children) CountParts(child);
  }

  std::string Required(const XmlElement& element, std::string_view attribute,
                       std::string expected) const {
    const std::string* text = element.Find(attribute);
    if (text == nullptr) Fail(element, attribute, "", "is missing", std::move(expected));
    return *text;
  }
  std::uint32_t RequiredCount(const XmlElement& element, std::string_view attribute) const {
    const std::string text = Required(element, attribute, "a whole number");
    const auto value = Integer(text);
    if (!value || *value < 0 || *value > 1'000'000'000)
      Fail(element, attribute, text, "is not a count:", "a whole number, 0 or more");
    return static_cast<std::uint32_t>(*value);
  }

  DeviceId Add(const XmlElement& element, Device device) {
    if (hosts_.size() > 1 || several_hosts_)
      device.name = fmt::format("node{}/{}", device.node, device.name);
    if (!names_.insert(device.name).second)
      Fail(element, "", device.name, "is there twice:", "a dev, numaid or busid of its own");
    out_.devices.push_back(std::move(device));
    return static_cast<DeviceId>(out_.devices.size() - 1);
  }
  void Join(DeviceId a, DeviceId b, Link link) {
    link.from = a;
    link.to = b;
    out_.links.push_back(link);
    std::swap(link.from, link.to);
    out_.links.push_back(link);
  }

  // Everything but the attributes that have a field of their own; those without a fixed place in
  // NCCL's own output keep the element's name with them.
  static void Keep(const XmlElement& element, std::initializer_list<std::string_view> own,
                   std::initializer_list<std::string_view> known, Device* device) {
    for (const auto& [name, value] : element.attributes) {
      if (std::find(own.begin(), own.end(), name) != own.end()) continue;
      const bool plain = std::find(known.begin(), known.end(), name) != known.end();
      device->attributes[plain ? name : element.name + ":" + name] = value;
    }
  }

  std::string MatchCpu(const Device& cpu) const {
    const auto text = [&](const char* name) {
      const auto found = cpu.attributes.find(name);
      return found == cpu.attributes.end() ? std::string() : found->second;
    };
    const auto family = Integer(text("familyid"));
    const auto model = Integer(text("modelid"));
    const DeviceModel* best = nullptr;
    for (const DeviceModel& candidate : catalogue_.devices()) {
      if (candidate.kind != DeviceKind::kCpu || candidate.arch != text("arch")) continue;
      if (candidate.arch != "x86_64") return candidate.name;
      if (candidate.vendor != text("vendor")) continue;
      // The newest model that is not newer than this one; any of the vendor when all are.
      const bool fits = family && model &&
                        (candidate.family < *family ||
                         (candidate.family == *family && candidate.cpu_model <= *model));
      const bool better =
          best == nullptr || (fits && std::pair(candidate.family, candidate.cpu_model) >
                                          std::pair(best->family, best->cpu_model));
      if (better) best = &candidate;
    }
    return best == nullptr ? "" : best->name;
  }

  void AddCpu(const XmlElement& element) {
    const std::string* hash = element.Find("host_hash");
    const std::string host = hash == nullptr ? "" : *hash;
    if (hosts_.empty()) {
      for (const XmlElement& other : document_.root.children) {
        const std::string* text = other.Find("host_hash");
        if (other.name == "cpu" && (text == nullptr ? "" : *text) != host) several_hosts_ = true;
      }
    }
    const auto [known, fresh] = hosts_.try_emplace(host, static_cast<std::uint32_t>(hosts_.size()));
    Device cpu{.kind = DeviceKind::kCpu, .node = known->second};
    cpu.index = RequiredCount(element, "numaid");
    cpu.name = fmt::format("cpu{}", cpu.index);
    Keep(element, {"numaid"}, {"host_hash", "affinity", "arch", "vendor", "familyid", "modelid"},
         &cpu);
    if (element.Find("arch") == nullptr) {
      Default(element, "arch", "is missing", "an Intel Skylake host is assumed");
      cpu.model = "xeon-skylake";
    } else {
      cpu.model = MatchCpu(cpu);
    }
    const DeviceId id = Add(element, std::move(cpu));
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        AddPci(child, id);
      } else if (child.name == "nic") {
        AddNets(child, id, nullptr);
      } else {
        ++skipped_["unknown <" + child.name + ">"];
      }
    }
  }

  Link PcieLink(const XmlElement& element, Device* device) {
    Link link{.kind = LinkKind::kPcie};
    const std::string* text = element.Find("link_speed");
    const auto speed = text == nullptr ? std::nullopt : SpeedOf(*text);
    const bool nccl_knows =
        text != nullptr && std::any_of(std::begin(kNcclSpeeds), std::end(kNcclSpeeds),
                                       [&](std::string_view s) { return text->starts_with(s); });
    if (speed) {
      link.generation = speed->generation;
      if (!nccl_knows && strict_) {
        if (!speed->name.empty()) device->attributes["link_speed"] = speed->name;
      } else if (!nccl_knows) {
        Warn(element, "link_speed",
             fmt::format("'{}' is none of NCCL's spellings; NCCL counts it as Gen3, the wire is "
                         "taken as Gen{}",
                         *text, speed->generation));
      }
    } else {
      Default(element, "link_speed", "is not known", "Gen3 is taken, as NCCL does");
      link.generation = 3;
    }
    const std::string* width = element.Find("link_width");
    const auto lanes = width == nullptr ? std::nullopt : Integer(*width);
    if (width != nullptr && (!lanes || *lanes < 0 || *lanes > 64))
      Fail(element, "link_width", *width, "is not a count of lanes:", "0 to 64");
    if (!lanes || *lanes == 0)
      Default(element, "link_width", "is not known", "16 lanes are taken, as NCCL does");
    link.width = !lanes || *lanes == 0 ? 16 : static_cast<std::uint32_t>(*lanes);
    const LinkModel* model = catalogue_.FindLink(LinkKind::kPcie, link.generation);
    link.rate = model->lane_rate * link.width;
    link.latency = model->latency;
    return link;
  }

  void AddPci(const XmlElement& element, DeviceId parent) {
    Device device{.node = out_.devices[parent].node,
                  .bus_id = Required(element, "busid", "dddd:bb:dd.f")};
    Keep(element, {"busid"},
         {"class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
          "link_width"},
         &device);
    const std::string* pci_class = element.Find("class");
    const auto of_class = [&](std::string_view prefix) {
      return pci_class != nullptr && pci_class->starts_with(prefix);
    };
    const XmlElement* gpu = element.Child("gpu");
    const XmlElement* nic = element.Child("nic");
    if (gpu != nullptr) {
      AddGpu(element, gpu, std::move(device), parent);
    } else if (nic != nullptr) {
      const Link link = PcieLink(element, &device);
      AddNets(*nic, parent, &device, link);
    } else if (of_class("0x03")) {
      if (gpu_elements_ == 0 && GpuModel(element) != nullptr) {
        AddGpu(element, nullptr, std::move(device), parent);
      } else {
        ++skipped_["GPU card without <gpu>"];
      }
    } else if (of_class("0x02")) {
      if (net_elements_ == 0 && gpu_elements_ == 0) {
        CompleteNic(element, std::move(device), parent);
      } else {
        ++skipped_["NIC card without <nic>"];
      }
    } else if (of_class(kNvSwitchClass)) {
      ++skipped_["NVSwitch card"];
    } else {
      AddSwitch(element, std::move(device), parent);
    }
  }

  void AddSwitch(const XmlElement& element, Device device, DeviceId parent) {
    if (element.Find("class") == nullptr)
      Default(element, "class", "is missing", "a bridge is taken");
    device.kind = DeviceKind::kPcieSwitch;
    device.index = switches_++;
    device.name = fmt::format("pcie{}", device.index);
    std::string side_links;
    for (const XmlElement& child : element.children) {
      if (child.name == "pcilink")
        side_links += (side_links.empty() ? "" : ";") + Required(child, "target", "a busid");
    }
    if (!side_links.empty()) device.attributes["pcilink"] = side_links;
    const Link link = PcieLink(element, &device);
    const DeviceId id = Add(element, std::move(device));
    Join(parent, id, link);
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        AddPci(child, id);
      } else if (child.name != "pcilink") {
        ++skipped_["unknown <" + child.name + ">"];
      }
    }
  }

  const DeviceModel* GpuModel(const XmlElement& pci) const {
    if (complete_gpu_ != nullptr) return complete_gpu_;
    const std::string* vendor = pci.Find("vendor");
    const std::string* device = pci.Find("device");
    if (vendor == nullptr || device == nullptr) return nullptr;
    for (const DeviceModel& model : catalogue_.devices()) {
      if (model.kind == DeviceKind::kGpu && model.pci_device == *device &&
          model.pci_vendor == *vendor)
        return &model;
    }
    return nullptr;
  }

  void AddGpu(const XmlElement& pci, const XmlElement* gpu, Device device, DeviceId parent) {
    device.kind = DeviceKind::kGpu;
    const DeviceModel* model = GpuModel(pci);
    if (gpu == nullptr) {  // Completion of a skeleton, formats of cloud images.
      device.index = completed_gpus_++;
      device.sm = model->sm;
      device.attributes["rank"] = fmt::format("{}", device.index);
      device.attributes["gdr"] = "1";
      Warn(pci, "busid",
           fmt::format("completed as {}: gpu dev {} rank {} sm {} gdr 1", model->name, device.index,
                       device.index, device.sm));
      if (model->nvlink_count > 0 && model->nvlink_generation >= 3) {
        device.attributes["nvlink"] =
            fmt::format("fffffff:ff:ff.0 {} 0x068000", model->nvlink_count);
        Warn(pci, "busid",
             fmt::format("completed with {} NVLinks to one NVSwitch", model->nvlink_count));
      } else if (model->nvlink_count > 0) {
        Warn(pci, "busid",
             "its NVLinks go from GPU to GPU in a way the file does not say; none is "
             "assumed");
      }
    } else {
      if (gpu->Find("rank") == nullptr && ranked_gpus_ > 0) {
        ++skipped_["gpu without rank"];
        return;
      }
      device.index = RequiredCount(*gpu, "dev");
      if (gpu->Find("rank") == nullptr) {
        Default(*gpu, "rank", "is missing in every gpu",
                fmt::format("rank {} is taken", device.index));
        device.attributes["rank"] = fmt::format("{}", device.index);
      }
      if (gpu->Find("sm") == nullptr) {
        if (model == nullptr) {
          Fail(*gpu, "sm", "", "is missing, and the device id is of no known GPU",
               "sm, or the GPU model to complete it as");
        }
        Default(*gpu, "sm", "is missing",
                fmt::format("{} of the {} is taken", model->sm, model->name));
        device.sm = model->sm;
      } else {
        device.sm = RequiredCount(*gpu, "sm");
      }
      if (gpu->Find("gdr") == nullptr) {
        Default(*gpu, "gdr", "is missing", "1 is taken, as NCCL does");
        device.attributes["gdr"] = "1";
      }
      Keep(*gpu, {"dev", "sm"}, {"rank", "gdr"}, &device);
      ReadGpuLinks(*gpu, &device);
    }
    if (model != nullptr && model->sm == device.sm) {
      device.model = model->name;
    } else {
      device.model = ModelBySm(device);
    }
    const auto [twin, fresh] =
        gpu_by_bus_.try_emplace({device.node, device.bus_id}, device.attributes["rank"]);
    if (!fresh) {
      Fail(pci, "busid", device.bus_id,
           fmt::format("ranks {} and {} are both on the GPU with this bus id:", twin->second,
                       device.attributes["rank"]),
           "one rank per GPU");
    }
    device.name = fmt::format("gpu{}", device.index);
    const Link link = PcieLink(pci, &device);
    Join(parent, Add(pci, std::move(device)), link);
  }

  // Where the device id tells nothing: the first GPU of the catalogue with that compute capability.
  std::string ModelBySm(const Device& device) {
    for (const DeviceModel& model : catalogue_.devices()) {
      if (model.kind != DeviceKind::kGpu || model.sm != device.sm) continue;
      const std::string text = fmt::format(
          "{}: sm {} of a device id that is not in the catalogue; memory and compute figures are "
          "those of {}",
          document_.file, device.sm, model.name);
      if (guessed_.insert(text).second) out_.warnings.push_back(text);
      return model.name;
    }
    return "";
  }

  void ReadGpuLinks(const XmlElement& gpu, Device* device) {
    struct Bundle {
      std::string target;
      std::uint32_t count;
      std::string target_class;
    };
    std::vector<Bundle> bundles;
    std::string c2c;
    for (const XmlElement& child : gpu.children) {
      if (child.name == "nvlink") {
        const std::string target = Required(child, "target", "a busid");
        const std::string* tclass = child.Find("tclass");
        if (tclass == nullptr)
          Fail(child, "tclass", "", "is missing", "0x068000, 0x03... or 0x068001");
        const std::uint32_t count = RequiredCount(child, "count");
        const auto known = std::find_if(bundles.begin(), bundles.end(),
                                        [&](const Bundle& b) { return b.target == target; });
        if (known != bundles.end()) {
          known->count += count;  // NCCL adds up repeated targets.
          Warn(child, "target", "repeats " + target + "; the counts are added, as NCCL does");
        } else {
          bundles.push_back({target, count, *tclass});
        }
      } else if (child.name == "c2c") {
        c2c += fmt::format("{}{} {}", c2c.empty() ? "" : ";", RequiredCount(child, "bw"),
                           RequiredCount(child, "count"));
      } else {
        ++skipped_["unknown <" + child.name + ">"];
      }
    }
    std::string text;
    for (const Bundle& bundle : bundles) {
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ";", bundle.target, bundle.count,
                          bundle.target_class);
    }
    if (!text.empty()) device->attributes["nvlink"] = text;
    if (!c2c.empty()) device->attributes["c2c"] = c2c;
  }

  void AddNets(const XmlElement& nic, DeviceId parent, const Device* card, Link link = {}) {
    for (const XmlElement& net : nic.children) {
      if (net.name != "net") {
        ++skipped_["unknown <" + net.name + ">"];
        continue;
      }
      if (net.Find("dev") == nullptr) {
        ++skipped_["net without dev"];
        continue;
      }
      Device device = card != nullptr ? *card : Device{.node = out_.devices[parent].node};
      device.kind = DeviceKind::kNic;
      device.index = RequiredCount(net, "dev");
      Keep(net, {"dev"},
           {"name", "latency", "speed", "port", "guid", "maxconn", "gdr", "coll", "keep"}, &device);
      const std::string* speed = net.Find("speed");
      const auto megabits = speed == nullptr ? std::optional<std::int64_t>(0) : Integer(*speed);
      if (!megabits || *megabits > 100'000'000)
        Fail(net, "speed", *speed, "is not a speed:", "Mb/s, a whole number");
      if (*megabits <= 0) {
        Default(net, "speed", "is not known", "10000 Mb/s (1.25 GB/s) is taken, as NCCL does");
      }
      if (card == nullptr) {
        device.attributes["nic"] = "virtual";
        // A NIC without a PCI card hangs at the CPU itself: no link limits it but its own port.
        link = {.kind = LinkKind::kPcie, .rate = GigabytesPerSecond(5000)};
      }
      device.name = fmt::format("nic{}", device.index);
      const std::string full =
          several_hosts_ ? fmt::format("node{}/{}", device.node, device.name) : device.name;
      // NCCL's dump names a NIC without a card once below every CPU.
      if (names_.contains(full)) device.name += fmt::format("@{}", out_.devices[parent].name);
      Join(parent, Add(net, std::move(device)), link);
    }
  }

  void CompleteNic(const XmlElement& element, Device device, DeviceId parent) {
    device.kind = DeviceKind::kNic;
    device.index = completed_nics_++;
    device.name = fmt::format("nic{}", device.index);
    const std::uint64_t megabits =
        complete_nic_ == nullptr ? 10'000 : complete_nic_->port_rate.count() / 1'000'000;
    if (complete_nic_ != nullptr) device.model = complete_nic_->name;
    device.attributes["name"] = fmt::format("net{}", device.index);
    device.attributes["latency"] = "0";
    device.attributes["speed"] = fmt::format("{}", megabits);
    device.attributes["port"] = "1";
    device.attributes["guid"] = fmt::format("{:#x}", 0x100 + device.index);
    device.attributes["maxconn"] = "131072";
    device.attributes["gdr"] = "1";
    Warn(element, "busid",
         fmt::format("completed with net dev {} speed {} Mb/s{} latency 0 gdr 1", device.index,
                     megabits,
                     complete_nic_ == nullptr ? " (no NIC model was said; NCCL's default)" : ""));
    const Link link = PcieLink(element, &device);
    Join(parent, Add(element, std::move(device)), link);
  }

  void AddNumaLinks() {
    const std::vector<DeviceId> cpus = out_.DevicesOf(DeviceKind::kCpu);
    const LinkModel* model = catalogue_.FindLink(LinkKind::kNuma, 0);
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus.size(); ++j) {
        const Device& a = out_.devices[cpus[i]];
        if (a.node != out_.devices[cpus[j]].node) continue;
        const DeviceModel* cpu = catalogue_.FindDevice(a.model);
        const BitsPerSecond rate = cpu != nullptr ? cpu->numa_rate : model->lane_rate;
        Join(cpus[i], cpus[j], {.kind = LinkKind::kNuma, .rate = rate, .latency = model->latency});
      }
    }
  }

  static std::vector<std::vector<std::string>> SplitRecords(const std::string& text) {
    std::vector<std::vector<std::string>> records(1, {""});
    for (const char c : text) {
      if (c == ';') {
        records.push_back({""});
      } else if (c == ' ') {
        records.back().emplace_back();
      } else {
        records.back().back() += c;
      }
    }
    return records;
  }

  void AddNvlinks() {
    std::optional<DeviceId> plane;
    std::map<std::pair<DeviceId, DeviceId>, std::uint32_t> pairs;
    const std::vector<DeviceId> gpus = out_.DevicesOf(DeviceKind::kGpu);
    for (const DeviceId id : gpus) {
      const auto text = out_.devices[id].attributes.find("nvlink");
      if (text == out_.devices[id].attributes.end()) continue;
      const LinkModel* model =
          catalogue_.FindLink(LinkKind::kNvlink, NvlinkGeneration(out_.devices[id].sm));
      const auto link_of = [&](std::uint32_t count) {
        return Link{.kind = LinkKind::kNvlink,
                    .generation = model->generation,
                    .width = count,
                    .rate = model->lane_rate * count,
                    .latency = model->latency};
      };
      std::uint32_t to_plane = 0;
      for (const auto& record : SplitRecords(text->second)) {
        const std::string& target = record[0];
        const auto count = static_cast<std::uint32_t>(Integer(record[1]).value_or(0));
        const std::string& tclass = record[2];
        if (count == 0) continue;
        if (tclass.starts_with(kNvSwitchClass)) {
          to_plane += count;
        } else if (tclass.starts_with(kPowerCpuClass)) {
          for (const Link& link : out_.links) {
            if (link.to == id && out_.devices[link.from].kind == DeviceKind::kCpu) {
              Join(id, link.from, link_of(count));
              break;
            }
          }
        } else {
          AddNvlinkPair(id, target, link_of(count), gpus, &pairs);
        }
      }
      if (to_plane == 0) continue;
      if (!plane) {
        const auto generation =
            std::clamp<std::uint32_t>(NvlinkGeneration(out_.devices[id].sm), 2, 5);
        out_.devices.push_back({.name = "nvswitch",
                                .kind = DeviceKind::kNvSwitch,
                                .model = fmt::format("nvswitch-{}", generation - 1),
                                .node = several_hosts_ ? kNoNode : 0});
        plane = static_cast<DeviceId>(out_.devices.size() - 1);
      }
      Join(id, *plane, link_of(to_plane));
    }
    for (const auto& [pair, count] : pairs) {
      const auto back = pairs.find({pair.second, pair.first});
      if (back != pairs.end() && back->second == count) continue;
      const std::string text = fmt::format(
          "{}: NVLinks {} -> {} ({}) and back ({}) differ: NCCL counts each direction as declared",
          document_.file, out_.devices[pair.first].name, out_.devices[pair.second].name, count,
          back == pairs.end() ? 0 : back->second);
      if (strict_) throw ConfigError({.file = document_.file, .problem = text});
      out_.warnings.push_back(text);
    }
  }

  void AddNvlinkPair(DeviceId id, const std::string& target, Link link,
                     const std::vector<DeviceId>& gpus,
                     std::map<std::pair<DeviceId, DeviceId>, std::uint32_t>* pairs) {
    const auto complain = [&](const char* problem) {
      const std::string text = fmt::format("{}: {}: NVLink to {} {}", document_.file,
                                           out_.devices[id].name, target, problem);
      if (strict_) throw ConfigError({.file = document_.file, .problem = text});
      out_.warnings.push_back(text + "; it joins nothing, as in NCCL");
    };
    for (const DeviceId other : gpus) {
      if (out_.devices[other].bus_id != target || out_.devices[other].node != out_.devices[id].node)
        continue;
      if (other == id) {
        complain("is the GPU's own bus id");
        return;
      }
      link.from = id;
      link.to = other;
      out_.links.push_back(link);
      (*pairs)[{id, other}] = link.width;
      return;
    }
    complain("is no GPU of this file");
  }

  void AddC2cLinks() {
    for (const DeviceId id : out_.DevicesOf(DeviceKind::kGpu)) {
      const auto text = out_.devices[id].attributes.find("c2c");
      if (text == out_.devices[id].attributes.end()) continue;
      std::uint64_t megabytes = 0;
      std::uint32_t count = 0;
      for (const auto& record : SplitRecords(text->second)) {
        megabytes += static_cast<std::uint64_t>(*Integer(record[0]) * *Integer(record[1]));
        count += static_cast<std::uint32_t>(*Integer(record[1]));
      }
      // The CPU that the GPU hangs below; NCCL joins C2C to it too.
      DeviceId at = id;
      while (out_.devices[at].kind != DeviceKind::kCpu) {
        const auto up = std::find_if(out_.links.begin(), out_.links.end(), [&](const Link& link) {
          return link.to == at && link.kind == LinkKind::kPcie && link.from < at;
        });
        at = up->from;
      }
      Join(id, at,
           {.kind = LinkKind::kC2c,
            .generation = 1,
            .width = std::max(count, 1u),
            .rate = BitsPerSecond(megabytes * 8'000'000),
            .latency = catalogue_.FindLink(LinkKind::kC2c, 1)->latency});
    }
  }

  const nccl::XmlDocument& document_;
  const Catalogue& catalogue_;
  bool strict_;
  const DeviceModel* complete_gpu_ = nullptr;
  const DeviceModel* complete_nic_ = nullptr;
  Topology out_;
  std::map<std::string, std::uint32_t> hosts_;
  bool several_hosts_ = false;
  std::set<std::string> names_;
  std::set<std::string> guessed_;
  std::map<std::pair<std::uint32_t, std::string>, std::string> gpu_by_bus_;
  std::map<std::string, std::uint32_t> skipped_;
  std::uint32_t switches_ = 0;
  std::uint32_t gpu_elements_ = 0;
  std::uint32_t ranked_gpus_ = 0;
  std::uint32_t net_elements_ = 0;
  std::uint32_t completed_gpus_ = 0;
  std::uint32_t completed_nics_ = 0;
};

}  // namespace

Topology TopologyFromNcclXml(const nccl::XmlDocument& document, const Catalogue& catalogue,
                             const NcclXmlOptions& options) {
  return Reader(document, catalogue, options).Read();
}

}  // namespace windtunnel
