#include "interconnect/topology_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "sim/error.h"
#include "sim/markup.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

constexpr std::size_t kKinds = 8;
constexpr std::array<const char*, kKinds> kFill = {"#cfe8cf", "#d9d9f2", "#f2e6cc", "#cfe4f2",
                                                   "#f2d9d9", "#e0e0e0", "#eeeeee", "#e6cff2"};
constexpr std::array<const char*, 6> kStroke = {"#2e7d32", "#6a1b9a", "#8d6e63",
                                                "#5c6bc0", "#c62828", "#00838f"};

const char* Fill(DeviceKind kind) { return kFill[static_cast<std::size_t>(kind)]; }
const char* Stroke(LinkKind kind) { return kStroke[static_cast<std::size_t>(kind)]; }

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string LinkText(const Link& link) {
  std::string text(Name(link.kind));
  if (link.generation != 0) text += fmt::format(" {}", link.generation);
  if (link.width > 1) text += fmt::format(" x{}", link.width);
  return text + (link.down ? ", down" : ", " + FormatRate(link.rate));
}

struct Edge {
  LinkId link;
  bool both;
};
// Links that have an equal partner in the other direction are drawn once.
std::vector<Edge> Edges(const Topology& topology) {
  std::map<std::tuple<DeviceId, DeviceId, LinkKind, std::uint64_t>, std::vector<std::size_t>> open;
  std::vector<Edge> edges;
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    auto& partners = open[{link.to, link.from, link.kind, link.rate.count()}];
    if (!partners.empty()) {
      edges[partners.back()].both = true;
      partners.pop_back();
      continue;
    }
    open[{link.from, link.to, link.kind, link.rate.count()}].push_back(edges.size());
    edges.push_back({id, false});
  }
  return edges;
}

int Layer(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kNetworkSwitch:
      return 0;
    case DeviceKind::kNic:
    case DeviceKind::kStorage:
      return 1;
    case DeviceKind::kCpu:
      return 2;
    case DeviceKind::kPcieSwitch:
      return 3;
    case DeviceKind::kGpu:
    case DeviceKind::kTpu:
      return 4;
    case DeviceKind::kNvSwitch:
      return 5;
  }
  return 5;
}
constexpr int kLayers = 6;

}  // namespace

std::string TopologyToDot(const Topology& topology) {
  std::string out =
      fmt::format("digraph {} {{\n  graph [rankdir=TB];\n  node [shape=box, style=filled];\n",
                  Quote(topology.name));
  std::map<std::uint32_t, std::vector<DeviceId>> hosts;
  for (DeviceId id = 0; id < topology.devices.size(); ++id)
    hosts[topology.devices[id].node].push_back(id);
  for (const auto& [node, devices] : hosts) {
    const bool host = node != kNoNode;
    if (host) out += fmt::format("  subgraph cluster_{} {{\n    label=\"host {}\";\n", node, node);
    for (const DeviceId id : devices) {
      const Device& device = topology.devices[id];
      const std::string label =
          device.model.empty() ? device.name : device.name + "\n" + device.model;
      out += fmt::format("  {}d{} [label={}, fillcolor=\"{}\"];\n", host ? "  " : "", id,
                         Quote(label), Fill(device.kind));
    }
    if (host) out += "  }\n";
  }
  for (const Edge& edge : Edges(topology)) {
    const Link& link = topology.links[edge.link];
    out += fmt::format("  d{} -> d{} [{}color=\"{}\", label={}{}];\n", link.from, link.to,
                       edge.both ? "dir=none, " : "", Stroke(link.kind), Quote(LinkText(link)),
                       link.down ? ", style=dashed" : "");
  }
  return out + "}\n";
}

std::string TopologyToSvg(const Topology& topology) {
  constexpr std::size_t kMostDevices = 4096;
  if (topology.devices.size() > kMostDevices) {
    throw ConfigError({.file = topology.source,
                       .value = fmt::format("{}", topology.devices.size()),
                       .problem = "has too many devices to draw:",
                       .expected = fmt::format("at most {}", kMostDevices)});
  }
  constexpr int kWidth = 110;
  constexpr int kHeight = 34;
  constexpr int kGap = 14;
  constexpr int kLayerStep = 110;
  constexpr int kMargin = 30;
  // Hosts are columns; inside one, each layer is centred.
  std::map<std::uint32_t, std::array<std::vector<DeviceId>, kLayers>> columns;
  std::vector<DeviceId> outside_top, outside_bottom;
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    const Device& device = topology.devices[id];
    if (device.node == kNoNode) {
      (Layer(device.kind) == 0 ? outside_top : outside_bottom).push_back(id);
    } else {
      columns[device.node][static_cast<std::size_t>(Layer(device.kind))].push_back(id);
    }
  }
  std::vector<std::pair<int, int>> at(topology.devices.size());
  const auto row_width = [](std::size_t count) {
    return static_cast<int>(count) * (kWidth + kGap) - kGap;
  };
  int x = kMargin;
  std::string frames;
  for (const auto& [node, layers] : columns) {
    int width = kWidth;
    for (const auto& layer : layers) width = std::max(width, row_width(layer.size()));
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto& row = layers[static_cast<std::size_t>(layer)];
      int left = x + (width - row_width(row.size())) / 2;
      for (const DeviceId id : row) {
        at[id] = {left, kMargin + 20 + layer * kLayerStep};
        left += kWidth + kGap;
      }
    }
    frames += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#bbb\" "
        "rx=\"8\"/>"
        "<text x=\"{}\" y=\"{}\" fill=\"#666\">host {}</text>\n",
        x - 10, kMargin + kLayerStep - 10, width + 20, (kLayers - 1) * kLayerStep - 30, x,
        kMargin + kLayerStep + 6, node);
    x += width + 3 * kGap;
  }
  int total = std::max(x, kMargin + row_width(std::max(outside_top.size(), outside_bottom.size())));
  for (const auto& [row, layer] :
       {std::pair{&outside_top, 0}, std::pair{&outside_bottom, kLayers - 1}}) {
    int left = (total - row_width(row->size())) / 2;
    for (const DeviceId id : *row) {
      at[id] = {left, kMargin + 20 + layer * kLayerStep};
      left += kWidth + kGap;
    }
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<title>{2}</title>\n",
      total + kMargin, kLayers * kLayerStep + kMargin, EscapeMarkup(topology.name));
  out += frames;
  for (const Edge& edge : Edges(topology)) {
    const Link& link = topology.links[edge.link];
    const auto [x1, y1] = at[link.from];
    const auto [x2, y2] = at[link.to];
    const double thickness = 1 + std::min(5.0, ToGigabytesPerSecond(link.rate) / 100);
    if (y1 == y2) {  // Within a layer: an arc above it, higher the farther the ends are apart.
      out += fmt::format("<path d=\"M {} {} Q {} {} {} {}\" fill=\"none\"", x1 + kWidth / 2, y1,
                         (x1 + x2 + kWidth) / 2, y1 - 20 - std::abs(x1 - x2) / 12, x2 + kWidth / 2,
                         y2);
    } else {
      const bool down = y1 < y2;
      out += fmt::format("<path d=\"M {} {} L {} {}\" fill=\"none\"", x1 + kWidth / 2,
                         down ? y1 + kHeight : y1, x2 + kWidth / 2, down ? y2 : y2 + kHeight);
    }
    out +=
        fmt::format(" stroke=\"{}\" stroke-width=\"{:.1f}\"{}><title>{} {} {}: {}</title></path>\n",
                    Stroke(link.kind), thickness, link.down ? " stroke-dasharray=\"4\"" : "",
                    EscapeMarkup(topology.devices[link.from].name), edge.both ? "-" : "&gt;",
                    EscapeMarkup(topology.devices[link.to].name), EscapeMarkup(LinkText(link)));
  }
  for (DeviceId id = 0; id < topology.devices.size(); ++id) {
    const Device& device = topology.devices[id];
    const auto [left, top] = at[id];
    out += fmt::format(
        "<g><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"#444\"/>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\" "
        "font-size=\"9\">{}</text></g>\n",
        left, top, kWidth, kHeight, Fill(device.kind), left + kWidth / 2, top + 14,
        EscapeMarkup(device.name), left + kWidth / 2, top + 27,
        EscapeMarkup(device.model.empty() ? std::string(Name(device.kind)) : device.model));
  }
  return out + "</svg>\n";
}

}  // namespace windtunnel
