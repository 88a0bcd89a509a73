#include "interconnect/foreign/foreign_topology.h"

#include <algorithm>

#include "interconnect/foreign/foreign_builder.h"
#include "sim/check.h"
#include "sim/random.h"

namespace windtunnel {
namespace foreign {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<Line> SplitLines(std::string_view text) {
  std::vector<Line> lines;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Line line{.number = ++number, .text = text.substr(0, end)};
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string_view rest = line.text;
    while (!(rest = Trim(rest)).empty()) {
      const std::size_t word = rest.find_first_of(" \t\r");
      line.words.push_back(rest.substr(0, word));
      rest.remove_prefix(word == std::string_view::npos ? rest.size() : word);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Builder::Builder(std::string_view text, std::string_view file_name, std::string_view name)
    : file_(file_name) {
  topology_.name = name;
  topology_.source = file_;
  topology_.digest = HashBytes(text);
}

InputFault Builder::At(std::uint64_t line, std::string field, std::string_view value) const {
  return {.file = file_, .line = line, .field = std::move(field), .value = std::string(value)};
}

void Builder::Fail(std::uint64_t line, std::string field, std::string_view value,
                   std::string problem, std::string expected) const {
  InputFault fault = At(line, std::move(field), value);
  fault.problem = std::move(problem);
  fault.expected = std::move(expected);
  throw ConfigError(std::move(fault));
}

void Builder::CheckSize(std::uint64_t line, std::string field, std::string_view value,
                        double devices, double cables) const {
  if (devices > static_cast<double>(kMostDevices)) {
    Fail(line, std::move(field), value,
         "makes too many devices:", "at most " + std::to_string(kMostDevices));
  }
  if (2 * cables > static_cast<double>(kMostLinks)) {
    Fail(line, std::move(field), value, "makes too many links:",
         "at most " + std::to_string(kMostLinks) + ", each direction counts");
  }
}

DeviceId Builder::AddEndpoint(std::string name, std::uint32_t node, std::uint32_t index,
                              bool relay) {
  if (topology_.devices.size() >= kMostDevices) {
    Fail(0, "devices", "", "more than " + std::to_string(kMostDevices) + " devices");
  }
  topology_.devices.push_back({.name = std::move(name),
                               .kind = DeviceKind::kGpu,
                               .node = node,
                               .index = index,
                               .relay = relay,
                               .attributes = {{"protocol", "ideal"}}});
  return static_cast<DeviceId>(topology_.devices.size() - 1);
}

DeviceId Builder::AddSwitch(std::string name, DeviceKind kind) {
  if (topology_.devices.size() >= kMostDevices) {
    Fail(0, "devices", "", "more than " + std::to_string(kMostDevices) + " devices");
  }
  topology_.devices.push_back(
      {.name = std::move(name), .kind = kind, .attributes = {{"protocol", "ideal"}}});
  return static_cast<DeviceId>(topology_.devices.size() - 1);
}

void Builder::AddLink(DeviceId from, DeviceId to, BitsPerSecond rate, Picoseconds latency,
                      LinkKind kind) {
  if (topology_.links.size() >= kMostLinks) {
    Fail(0, "links", "", "more than " + std::to_string(kMostLinks) + " links");
  }
  topology_.links.push_back(
      {.from = from, .to = to, .kind = kind, .rate = rate, .latency = latency});
}

void Builder::AddCable(DeviceId a, DeviceId b, BitsPerSecond rate, Picoseconds latency,
                       LinkKind kind) {
  AddLink(a, b, rate, latency, kind);
  AddLink(b, a, rate, latency, kind);
}

Topology Builder::Finish() {
  std::uint32_t nodes = 0;
  for (const Device& device : topology_.devices) {
    if (device.node != kNoNode) nodes = std::max(nodes, device.node + 1);
  }
  topology_.node_count = std::max(nodes, 1u);
  return std::move(topology_);
}

}  // namespace foreign

const std::vector<std::string>& ForeignFormatNames() {
  static const std::vector<std::string> names = {"astra-sim", "ns3", "htsim", "simai", "simgrid"};
  return names;
}

std::optional<ForeignFormat> DetectForeignFormat(std::string_view text) {
  // The first 64 KiB tell; a hostile file is not read twice.
  const auto lines = foreign::SplitLines(text.substr(0, 64 << 10));
  const foreign::Line* first = nullptr;
  bool has_count_key = false;
  bool has_topology_key = false;
  for (const foreign::Line& line : lines) {
    if (line.words.empty() || line.words[0].starts_with('#')) continue;
    if (first == nullptr) first = &line;
    has_count_key = has_count_key || line.words[0].starts_with("npus_count");
    has_topology_key = has_topology_key || line.words[0].starts_with("topology:");
    if (line.text.find("<platform") != std::string_view::npos) return ForeignFormat::kSimGridXml;
  }
  if (first == nullptr) return std::nullopt;
  if (has_count_key && has_topology_key) return ForeignFormat::kAstraSim;
  if (first->words.size() == 2 && first->words[0] == "Nodes") return ForeignFormat::kHtsim;
  const auto is_number = [](std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto numbers =
      static_cast<std::size_t>(std::count_if(first->words.begin(), first->words.end(), is_number));
  if (first->words.size() == 3 && numbers == 3) return ForeignFormat::kNs3;
  if (first->words.size() == 6 && numbers == 5 && !is_number(first->words[5])) {
    return ForeignFormat::kSimAi;
  }
  return std::nullopt;
}

Topology ReadForeignTopology(std::string_view text, ForeignFormat format,
                             std::string_view file_name) {
  switch (format) {
    case ForeignFormat::kAstraSim:
      return foreign::ReadAstraSim(text, file_name);
    case ForeignFormat::kNs3:
      return foreign::ReadNs3(text, file_name);
    case ForeignFormat::kHtsim:
      return foreign::ReadHtsim(text, file_name);
    case ForeignFormat::kSimAi:
      return foreign::ReadSimAi(text, file_name);
    case ForeignFormat::kSimGridXml:
      return foreign::ReadSimGrid(text, file_name);
  }
  WT_CHECK(false) << "unknown foreign format";
  return {};
}

}  // namespace windtunnel
