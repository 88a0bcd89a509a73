#include "interconnect/catalogue.h"

#include <fmt/format.h>

#include "proto/catalogue.pb.h"
#include "proto/text_io.h"
#include "sim/data_files.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

// "1980 MHz" -> Hz; "700 W" -> W: units that only the catalogue uses.
double ParseWithSuffix(std::string_view text, std::string_view suffix, const InputFault& where) {
  if (!text.ends_with(suffix)) {
    InputFault fault = where;
    fault.value = text;
    fault.problem = "has no unit:";
    fault.expected = fmt::format("a number with{}", suffix);
    throw ConfigError(std::move(fault));
  }
  return ParseNumber(text.substr(0, text.size() - suffix.size()), where);
}

class EntryReader {
 public:
  EntryReader(std::string file, std::string path, const proto::FieldLines& lines)
      : file_(std::move(file)), path_(std::move(path)), lines_(lines) {}
  InputFault Where(std::string_view field) const {
    std::string path = path_ + "." + std::string(field);
    return {.file = file_, .line = lines_.Line(path), .field = path};
  }
  BitsPerSecond Rate(const std::string& text, std::string_view field) const {
    return text.empty() ? BitsPerSecond() : ParseRate(text, Where(field));
  }
  Picoseconds Time(const std::string& text, std::string_view field) const {
    return text.empty() ? Picoseconds() : ParseTime(text, Where(field));
  }
  Bytes Size(const std::string& text, std::string_view field) const {
    return text.empty() ? Bytes() : ParseSize(text, Where(field));
  }
  [[noreturn]] void Fail(std::string_view field, std::string value, std::string problem,
                         std::string expected) const {
    InputFault fault = Where(field);
    fault.value = std::move(value);
    fault.problem = std::move(problem);
    fault.expected = std::move(expected);
    throw ConfigError(std::move(fault));
  }

 private:
  std::string file_;
  std::string path_;
  const proto::FieldLines& lines_;
};

DeviceModel ReadDevice(const proto::DeviceModelEntry& entry, const EntryReader& reader) {
  const auto kind = DeviceKindFromName(entry.kind());
  if (!kind) reader.Fail("kind", entry.kind(), "unknown device kind", JoinNames(DeviceKindNames()));
  DeviceModel model;
  model.name = entry.name();
  model.kind = *kind;
  model.title = entry.title();
  model.sm = entry.sm();
  model.compute_units = entry.compute_units();
  if (!entry.clock().empty()) {
    model.clock_hz = static_cast<std::uint64_t>(
        ParseWithSuffix(entry.clock(), " MHz", reader.Where("clock")) * 1e6 + 0.5);
  }
  model.memory = reader.Size(entry.memory(), "memory");
  model.memory_rate = reader.Rate(entry.memory_rate(), "memory_rate");
  model.l2 = reader.Size(entry.l2(), "l2");
  for (const auto& [format, value] : entry.tera_ops()) model.tera_ops[format] = value;
  model.nvlink_generation = entry.nvlink_generation();
  model.nvlink_count = entry.nvlink_count();
  model.pcie_generation = entry.pcie_generation();
  model.pcie_width = entry.pcie_width();
  if (!entry.power().empty())
    model.power_w = ParseWithSuffix(entry.power(), " W", reader.Where("power"));
  model.pci_class = entry.pci_class();
  model.pci_vendor = entry.pci_vendor();
  model.pci_device = entry.pci_device();
  model.arch = entry.arch();
  model.vendor = entry.vendor();
  model.family = entry.family();
  model.cpu_model = entry.cpu_model();
  model.port_rate = reader.Rate(entry.port_rate(), "port_rate");
  model.ports = entry.ports();
  model.forwarding_latency = reader.Time(entry.forwarding_latency(), "forwarding_latency");
  model.buffer = reader.Size(entry.buffer(), "buffer");
  model.numa_rate = reader.Rate(entry.numa_rate(), "numa_rate");
  for (const auto& [field, source] : entry.sources()) model.sources[field] = source;
  model.assumed.assign(entry.assumed().begin(), entry.assumed().end());
  return model;
}

}  // namespace

Catalogue Catalogue::FromText(std::string_view devices_yaml, std::string_view devices_name,
                              std::string_view links_yaml, std::string_view links_name) {
  Catalogue catalogue;
  proto::CatalogueFile file;
  proto::FieldLines lines;
  proto::ReadMessage(devices_yaml, proto::Spelling::kYaml, devices_name, &file, &lines);
  for (int i = 0; i < file.devices_size(); ++i) {
    const EntryReader reader(std::string(devices_name), fmt::format("devices[{}]", i), lines);
    const proto::DeviceModelEntry& entry = file.devices(i);
    catalogue.devices_.push_back(ReadDevice(entry, reader));
    std::vector<std::string> names(entry.aliases().begin(), entry.aliases().end());
    names.push_back(entry.name());
    for (const std::string& name : names) {
      if (!catalogue.by_name_.emplace(name, catalogue.devices_.size() - 1).second)
        reader.Fail("name", name, "is used by two models:", "a name of its own");
    }
  }
  proto::FieldLines link_lines;
  proto::ReadMessage(links_yaml, proto::Spelling::kYaml, links_name, &file, &link_lines);
  for (int i = 0; i < file.links_size(); ++i) {
    const EntryReader reader(std::string(links_name), fmt::format("links[{}]", i), link_lines);
    const proto::LinkModelEntry& entry = file.links(i);
    const auto kind = LinkKindFromName(entry.kind());
    if (!kind) reader.Fail("kind", entry.kind(), "unknown link kind", JoinNames(LinkKindNames()));
    if (catalogue.FindLink(*kind, entry.generation()) != nullptr)
      reader.Fail("generation", entry.kind(), "has this generation twice:", "one entry");
    catalogue.links_.push_back(
        {.kind = *kind,
         .generation = entry.generation(),
         .lane_rate = reader.Rate(entry.lane_rate(), "lane_rate"),
         .default_width = entry.default_width() == 0 ? 1 : entry.default_width(),
         .latency = reader.Time(entry.latency(), "latency"),
         .assumed = {entry.assumed().begin(), entry.assumed().end()}});
  }
  return catalogue;
}

const Catalogue& Catalogue::Shipped() {
  static const Catalogue catalogue = [] {
    const auto devices = ShippedFile("catalogue/devices.yaml");
    const auto links = ShippedFile("catalogue/links.yaml");
    return FromText(proto::ReadRegularFile(devices), devices.string(),
                    proto::ReadRegularFile(links), links.string());
  }();
  return catalogue;
}

const DeviceModel* Catalogue::FindDevice(std::string_view model) const {
  const auto found = by_name_.find(model);
  return found == by_name_.end() ? nullptr : &devices_[found->second];
}

const DeviceModel& Catalogue::Device(std::string_view model, const InputFault& where) const {
  if (const DeviceModel* found = FindDevice(model)) return *found;
  std::vector<std::string> known;
  for (const auto& [name, index] : by_name_) known.push_back(name);
  InputFault fault = where;
  fault.value = model;
  fault.problem = "unknown device model";
  fault.expected = "one of " + JoinNames(known);
  fault.nearest = NearestName(model, known);
  throw ConfigError(std::move(fault));
}

const LinkModel* Catalogue::FindLink(LinkKind kind, std::uint32_t generation) const {
  for (const LinkModel& link : links_) {
    if (link.kind == kind && link.generation == generation) return &link;
  }
  return nullptr;
}

}  // namespace windtunnel
