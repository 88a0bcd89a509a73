#include "apps/svg_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "apps/svg_plot.h"
#include "sim/markup.h"

namespace windtunnel {
namespace {

constexpr std::string_view kArrow = " -> ";
constexpr std::size_t kMostHosts = 4;
constexpr std::size_t kMostInLayer = 36;

/// "node0" of "node0/gpu3"; "" for a device of no host, as a network switch.
std::string HostOf(const std::string& device) {
  const std::size_t slash = device.rfind('/');
  return slash == std::string::npos ? "" : device.substr(0, slash);
}

std::string ShortName(const std::string& device) { return device.substr(device.rfind('/') + 1); }

/// "gpu" of "node0/gpu3".
std::string KindOf(const std::string& device) {
  std::string name = ShortName(device);
  while (!name.empty() && (std::isdigit(static_cast<unsigned char>(name.back())) != 0 ||
                           name.back() == '-' || name.back() == '.'))
    name.pop_back();
  return name;
}

/// Layer from the top: what stands nearer to the network is drawn higher. A cluster of one host has
/// no host in its names; a device of unknown kind without host is taken for a network switch.
std::size_t LayerOf(const std::string& device) {
  static const std::vector<std::vector<std::string>> kLayers = {{},
                                                                {"nic", "net"},
                                                                {"cpu"},
                                                                {"pcie_switch", "pcie", "pci"},
                                                                {"gpu", "tpu"},
                                                                {"nv_switch", "nvswitch", "nvs"}};
  const std::string kind = KindOf(device);
  for (std::size_t layer = 0; layer < kLayers.size(); ++layer)
    if (std::ranges::find(kLayers[layer], kind) != kLayers[layer].end()) return layer;
  return HostOf(device).empty() ? 0 : 3;
}

/// Orders "gpu2" before "gpu10".
bool ByNumber(const std::string& a, const std::string& b) {
  if (KindOf(a) == KindOf(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

struct Place {
  double x = 0;
  double y = 0;
};

}  // namespace

std::string ClusterPicture(std::string_view title, const std::vector<ResultLink>& links) {
  // Load of each pair of devices, in whichever direction is busier.
  std::map<std::pair<std::string, std::string>, double> lines;
  std::map<std::string, double> hosts;
  for (const ResultLink& link : links) {
    const std::size_t arrow = link.name.find(kArrow);
    if (arrow == std::string::npos) continue;
    std::string a = link.name.substr(0, arrow);
    std::string b = link.name.substr(arrow + kArrow.size());
    for (const std::string& device : {a, b}) {
      double& busiest = hosts[HostOf(device)];
      busiest = std::max(busiest, link.utilisation);
    }
    if (b < a) std::swap(a, b);
    double& load = lines[{a, b}];
    load = std::max(load, link.utilisation);
  }
  hosts.erase("");
  std::vector<std::string> shown;
  for (const auto& [host, unused] : hosts) shown.push_back(host);
  std::ranges::stable_sort(shown, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::ranges::stable_sort(
      shown, [&](const std::string& a, const std::string& b) { return hosts[a] > hosts[b]; });
  const std::size_t left_out = shown.size() > kMostHosts ? shown.size() - kMostHosts : 0;
  shown.resize(shown.size() - left_out);
  const auto drawn = [&](const std::string& device) {
    const std::string host = HostOf(device);
    return host.empty() || std::ranges::find(shown, host) != shown.end();
  };

  constexpr std::size_t kLayerCount = 6;
  using Layer = std::set<std::string, decltype(&ByNumber)>;
  std::map<std::string, std::array<Layer, kLayerCount>> devices;
  for (const auto& [pair, unused] : lines) {
    for (const std::string& device : {pair.first, pair.second}) {
      if (!drawn(device)) continue;
      auto found = devices.find(HostOf(device));
      if (found == devices.end()) {
        std::array<Layer, kLayerCount> layers = {Layer(&ByNumber), Layer(&ByNumber),
                                                 Layer(&ByNumber), Layer(&ByNumber),
                                                 Layer(&ByNumber), Layer(&ByNumber)};
        found = devices.emplace(HostOf(device), std::move(layers)).first;
      }
      found->second[LayerOf(device)].insert(device);
    }
  }

  // Only layers that hold something take room.
  std::array<double, kLayerCount> layer_y{};
  double y = 52;
  for (std::size_t layer = 0; layer < kLayerCount; ++layer) {
    const bool used = std::ranges::any_of(
        devices, [&](const auto& entry) { return !entry.second[layer].empty(); });
    layer_y[layer] = y;
    if (used) y += 84;
  }
  constexpr double kWidth = 760;
  const double height = y - 40;
  std::map<std::string, Place> places;
  const double host_width = kWidth / static_cast<double>(std::max<std::size_t>(1, shown.size()));
  for (const auto& [host, layers] : devices) {
    const auto at = std::ranges::find(shown, host);
    const bool shared = at == shown.end();
    const double left = shared ? 0 : host_width * static_cast<double>(at - shown.begin());
    const double width = shared ? kWidth : host_width;
    for (std::size_t layer = 0; layer < kLayerCount; ++layer) {
      const std::size_t count = std::min(layers[layer].size(), kMostInLayer);
      std::size_t i = 0;
      for (const std::string& device : layers[layer]) {
        if (i == count) break;
        places[device] = {
            left + width * (static_cast<double>(i) + 0.5) / static_cast<double>(count),
            layer_y[layer]};
        ++i;
      }
    }
  }

  std::string heading(title);
  if (left_out > 0)
    heading += fmt::format(" ({} hosts with the busiest links; {} more are alike or idler)",
                           shown.size(), left_out);
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n<text x=\"8\" y=\"18\" "
      "class=\"title\">{}</text>\n",
      kWidth, height, EscapeMarkup(heading), EscapeMarkup(heading));
  for (const auto& [pair, load] : lines) {
    const auto from = places.find(pair.first);
    const auto to = places.find(pair.second);
    if (from == places.end() || to == places.end()) continue;
    // Devices of one layer are joined by a bow, so that the line does not run through those
    // between.
    const bool same_layer = from->second.y == to->second.y;
    const double bow = same_layer ? 18 + std::abs(from->second.x - to->second.x) * 0.08 : 0;
    out += fmt::format(
        "<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"><title>{} and {}: {:.1f} % busy</title></path>\n",
        from->second.x, from->second.y, (from->second.x + to->second.x) / 2,
        (from->second.y + to->second.y) / 2 + bow, to->second.x, to->second.y, HeatColour(load),
        1.2 + 2.4 * load, EscapeMarkup(pair.first), EscapeMarkup(pair.second), 100 * load);
  }
  for (const auto& [device, place] : places) {
    const std::string label = ShortName(device);
    const double half = std::clamp(3.4 * static_cast<double>(label.size()) + 5, 12.0, 44.0);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" rx=\"4\" "
        "class=\"device\"><title>{}</title></rect>\n",
        place.x - half, place.y - 10, 2 * half, EscapeMarkup(device));
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"small\">{}</text>\n",
        place.x, place.y + 4, EscapeMarkup(label));
  }
  for (std::size_t i = 0; i < shown.size(); ++i)
    out += fmt::format("<text x=\"{:.1f}\" y=\"36\" text-anchor=\"middle\">{}</text>\n",
                       host_width * (static_cast<double>(i) + 0.5), EscapeMarkup(shown[i]));
  return out + "</svg>\n";
}

}  // namespace windtunnel
