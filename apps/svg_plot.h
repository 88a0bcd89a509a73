#pragma once
// Drawings for reports, as SVG text of our own: no script, no font, no address to load from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// Colour number `index` of eight that stay apart for colour-blind readers (Okabe and Ito, "Color
/// Universal Design", 2008); repeats after eight.
std::string_view SeriesColour(std::size_t index);
/// Colour of a load from 0 (pale) to 1 (dark red), as "#rrggbb".
std::string HeatColour(double load);

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string label;
  std::vector<PlotPoint> points;  ///< Points without a logarithm (0) are left out of the drawing.
  bool dashed = false;
  bool scatter = false;  ///< Small points alone, without line and without a label each.
  std::size_t colour = 0;
};

/// Curves over sizes in bytes, both axes logarithmic, legend below.
/// `unit` is the label of the y axis ("busbw, GB/s").
std::string LogLogPlot(std::string_view title, std::string_view unit,
                       const std::vector<PlotSeries>& series);

struct StackedBar {
  double x = 0;               ///< Size in bytes.
  std::vector<double> parts;  ///< One per cause, any unit; drawn as parts of their sum.
};

/// One column per size, split by cause: where the time went.
std::string ShareBars(std::string_view title, const std::vector<std::string>& causes,
                      const std::vector<StackedBar>& bars);

struct HeatRow {
  std::string label;
  std::vector<std::optional<double>> loads;  ///< 0 to 1 per column; nothing = carried no bytes.
};

/// Rows of coloured cells under column labels.
std::string HeatMap(std::string_view title, const std::vector<std::string>& columns,
                    const std::vector<HeatRow>& rows);

/// "8 B", "64 KiB", "1 GiB", "1.5 MiB".
std::string ShortSize(double bytes);

}  // namespace windtunnel
