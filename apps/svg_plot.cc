#include "apps/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/markup.h"

namespace windtunnel {
namespace {

constexpr double kWidth = 760;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 34;
constexpr double kPlotHeight = 300;
constexpr double kLegendLine = 18;

bool Drawable(const PlotPoint& point) {
  return point.x > 0 && point.y > 0 && std::isfinite(point.x) && std::isfinite(point.y);
}

std::string Open(std::string_view title, double height) {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n<text x=\"{:.0f}\" "
      "y=\"18\" class=\"title\">{}</text>\n",
      kWidth, height, EscapeMarkup(title), kLeft, EscapeMarkup(title));
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     EscapeMarkup(text));
}

/// A number as short as it can be said: "0.01", "2", "500".
std::string TickLabel(double value) { return fmt::format("{:g}", value); }

/// Marks at 1, 2 and 5 of each power of ten within the range; only the powers when they are many.
std::vector<double> DecimalTicks(double low, double high) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int power = first; power <= last; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit != 1.0 && last - first > 3) continue;
      const double value = digit * std::pow(10.0, power);
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push_back(value);
    }
  }
  return ticks;
}

/// Marks at powers of two, thinned to at most twelve.
std::vector<double> BinaryTicks(double low, double high) {
  const int first = static_cast<int>(std::ceil(std::log2(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(high) + 1e-9));
  const int stride = std::max(1, (last - first + 11) / 12);
  std::vector<double> ticks;
  for (int power = first; power <= last; power += stride) ticks.push_back(std::exp2(power));
  return ticks;
}

struct LogAxis {
  double low;
  double high;
  double from;  ///< Drawing coordinate of `low`.
  double to;
  double At(double value) const {
    return from + (to - from) * std::log(value / low) / std::log(high / low);
  }
};

std::string Legend(const std::vector<PlotSeries>& series, double top) {
  std::string out;
  double x = kLeft;
  double y = top;
  for (const PlotSeries& one : series) {
    const double width = 40 + 6.6 * static_cast<double>(one.label.size());
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += kLegendLine;
    }
    out += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"2\"{}/>\n",
        x, y - 4, x + 22, y - 4, SeriesColour(one.colour),
        one.dashed ? " stroke-dasharray=\"5 4\"" : "");
    out += Text(x + 27, y, "start", one.label);
    x += width;
  }
  return out;
}

double LegendHeight(const std::vector<PlotSeries>& series) {
  double x = kLeft;
  double lines = 1;
  for (const PlotSeries& one : series) {
    const double width = 40 + 6.6 * static_cast<double>(one.label.size());
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      lines += 1;
    }
    x += width;
  }
  return lines * kLegendLine;
}

}  // namespace

std::string_view SeriesColour(std::size_t index) {
  static constexpr std::array<std::string_view, 8> kColours = {
      "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#777777"};
  return kColours[index % kColours.size()];
}

std::string HeatColour(double load) {
  const double t = std::clamp(load, 0.0, 1.0);
  // Pale sand over orange to dark red, each half a straight line in RGB.
  constexpr std::array<std::array<double, 3>, 3> kStops = {
      {{0xf4, 0xee, 0xe1}, {0xf2, 0x9a, 0x3f}, {0x9c, 0x10, 0x1f}}};
  const std::size_t half = t < 0.5 ? 0 : 1;
  const double part = (t - 0.5 * static_cast<double>(half)) * 2;
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i)
    rgb[i] = static_cast<int>(
        std::lround(kStops[half][i] + part * (kStops[half + 1][i] - kStops[half][i])));
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

std::string ShortSize(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string LogLogPlot(std::string_view title, std::string_view unit,
                       const std::vector<PlotSeries>& series) {
  double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = 0, reference_high = 0;
  for (const PlotSeries& one : series) {
    for (const PlotPoint& point : one.points) {
      if (!Drawable(point)) continue;
      x_low = std::min(x_low, point.x);
      x_high = std::max(x_high, point.x);
      // A dashed line is a reference: it may leave the drawing, the measured curves set its range.
      if (one.dashed) {
        if (point.y > reference_high) reference_high = point.y;
        continue;
      }
      y_low = std::min(y_low, point.y);
      y_high = std::max(y_high, point.y);
    }
  }
  const double bottom = kTop + kPlotHeight;
  const double height = bottom + 54 + LegendHeight(series);
  std::string out = Open(title, height);
  if (y_high == 0) {
    return out + Text(kLeft, kTop + 20, "start", "nothing to draw: no value above zero") +
           "</svg>\n";
  }
  // A single point still gets a width, and curves do not touch the frame.
  if (x_low == x_high) {
    x_low /= 2;
    x_high *= 2;
  }
  y_low /= 1.15;
  y_high = std::max(y_high, std::min(reference_high, 32 * y_high)) * 1.15;
  const LogAxis x_axis{x_low, x_high, kLeft, kWidth - kRight};
  const LogAxis y_axis{y_low, y_high, bottom, kTop};
  for (const double tick : BinaryTicks(x_low, x_high)) {
    const double x = x_axis.At(tick);
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>\n", x,
        kTop, bottom);
    out += Text(x, bottom + 16, "middle", ShortSize(tick));
  }
  for (const double tick : DecimalTicks(y_low, y_high)) {
    const double y = y_axis.At(tick);
    out += fmt::format(
        "<line x1=\"{1:.1f}\" y1=\"{0:.1f}\" x2=\"{2:.1f}\" y2=\"{0:.1f}\" class=\"grid\"/>\n", y,
        kLeft, kWidth - kRight);
    out += Text(kLeft - 6, y + 4, "end", TickLabel(tick));
  }
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"frame\"/>\n",
      kLeft, kTop, kWidth - kRight - kLeft, kPlotHeight);
  out += fmt::format(
      "<text x=\"14\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
      "{0:.1f})\">{1}</text>\n",
      kTop + kPlotHeight / 2, EscapeMarkup(unit));
  out += Text(kLeft + (kWidth - kRight - kLeft) / 2, bottom + 34, "middle", "message size");
  for (const PlotSeries& one : series) {
    std::string line;
    std::string marks;
    std::size_t drawn = 0;
    for (const PlotPoint& point : one.points) {
      if (!Drawable(point) || point.y < y_low || point.y > y_high) continue;
      const double x = x_axis.At(point.x);
      const double y = y_axis.At(point.y);
      line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x, y);
      ++drawn;
      if (one.dashed) continue;
      if (one.scatter) {
        marks += fmt::format("<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"1.5\" fill=\"{}\"/>\n", x, y,
                             SeriesColour(one.colour));
        continue;
      }
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\"><title>{}: {}, {:.4g} "
          "{}</title></circle>\n",
          x, y, SeriesColour(one.colour), EscapeMarkup(one.label), ShortSize(point.x), point.y,
          EscapeMarkup(unit));
    }
    if (drawn > 1 && !one.scatter) {
      out += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", line,
          SeriesColour(one.colour), one.dashed ? " stroke-dasharray=\"5 4\"" : "");
    }
    out += marks;
  }
  return out + Legend(series, bottom + 56) + "</svg>\n";
}

std::string ShareBars(std::string_view title, const std::vector<std::string>& causes,
                      const std::vector<StackedBar>& bars) {
  std::vector<PlotSeries> legend;
  for (std::size_t i = 0; i < causes.size(); ++i)
    legend.push_back({.label = causes[i], .points = {}, .colour = i});
  constexpr double kBarsHeight = 180;
  const double bottom = kTop + kBarsHeight;
  std::string out = Open(title, bottom + 54 + LegendHeight(legend));
  const double slot =
      (kWidth - kRight - kLeft) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  for (const int percent : {0, 25, 50, 75, 100}) {
    const double y = bottom - kBarsHeight * percent / 100;
    out += fmt::format(
        "<line x1=\"{1:.1f}\" y1=\"{0:.1f}\" x2=\"{2:.1f}\" y2=\"{0:.1f}\" class=\"grid\"/>\n", y,
        kLeft, kWidth - kRight);
    out += Text(kLeft - 6, y + 4, "end", fmt::format("{} %", percent));
  }
  const std::size_t label_stride = 1 + bars.size() / 13;
  for (std::size_t b = 0; b < bars.size(); ++b) {
    double sum = 0;
    for (const double part : bars[b].parts) sum += part;
    double y = bottom;
    const double x = kLeft + slot * static_cast<double>(b);
    for (std::size_t i = 0; i < bars[b].parts.size() && sum > 0; ++i) {
      const double height = kBarsHeight * bars[b].parts[i] / sum;
      if (height <= 0) continue;
      y -= height;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
          "fill=\"{}\"><title>{}: {} {:.1f} %</title></rect>\n",
          x + slot * 0.1, y, slot * 0.8, height, SeriesColour(i), ShortSize(bars[b].x),
          EscapeMarkup(causes[i]), 100 * bars[b].parts[i] / sum);
    }
    if (b % label_stride == 0)
      out += Text(x + slot / 2, bottom + 16, "middle", ShortSize(bars[b].x));
  }
  out += Text(kLeft + (kWidth - kRight - kLeft) / 2, bottom + 34, "middle", "message size");
  return out + Legend(legend, bottom + 56) + "</svg>\n";
}

std::string HeatMap(std::string_view title, const std::vector<std::string>& columns,
                    const std::vector<HeatRow>& rows) {
  constexpr double kLabels = 250;
  constexpr double kRow = 16;
  const double top = kTop + 16;
  const double cell =
      (kWidth - kRight - kLabels) / static_cast<double>(std::max<std::size_t>(1, columns.size()));
  const double bottom = top + kRow * static_cast<double>(rows.size());
  std::string out = Open(title, bottom + 40);
  const std::size_t label_stride = 1 + columns.size() / 10;
  for (std::size_t c = 0; c < columns.size(); c += label_stride)
    out += Text(kLabels + cell * (static_cast<double>(c) + 0.5), top - 5, "middle", columns[c]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = top + kRow * static_cast<double>(r);
    out += Text(kLabels - 6, y + 12, "end", rows[r].label);
    for (std::size_t c = 0; c < rows[r].loads.size(); ++c) {
      const std::optional<double> load = rows[r].loads[c];
      if (!load) continue;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"{}\"><title>{}, {}: {:.1f} %</title></rect>\n",
          kLabels + cell * static_cast<double>(c) + 0.5, y + 0.5, cell - 1, kRow - 1,
          HeatColour(*load), EscapeMarkup(rows[r].label), EscapeMarkup(columns[c]), 100 * *load);
    }
  }
  // The scale of the colours.
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i)
    out +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10.2\" height=\"10\" fill=\"{}\"/>\n",
                    kLabels + 10 * i, bottom + 12, HeatColour((i + 0.5) / kSteps));
  out += Text(kLabels - 6, bottom + 21, "end", "idle");
  out += Text(kLabels + 10 * kSteps + 6, bottom + 21, "start", "busy all the time");
  return out + "</svg>\n";
}

}  // namespace windtunnel
