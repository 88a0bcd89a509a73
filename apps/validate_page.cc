#include "apps/validate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "apps/html_page.h"
#include "apps/svg_plot.h"
#include "sim/markup.h"

namespace windtunnel {
namespace {

using validate::Bands;
using validate::Diagnosis;
using validate::Explanation;
using validate::Goal;
using validate::Group;
using validate::kBandCount;
using validate::Point;
using validate::Predictor;
using validate::ScoredRun;
using validate::Summary;

constexpr std::size_t kRunsOfPlot = 4;
constexpr std::size_t kCausesDrawn = 2;
constexpr std::size_t kCausesListed = 5;
constexpr Group kGroups[] = {Group::kOneNode, Group::kInfinibandRoce, Group::kCloudTransport,
                             Group::kOtherHarness};

std::string Row(const std::string& name, std::size_t runs, const Bands& bands,
                const std::array<Goal, kBandCount>* goals) {
  std::string line = fmt::format("<tr><td class=\"text\">{}</td><td>{}</td>", EscapeMarkup(name),
                                 runs == 0 ? "" : std::to_string(runs));
  for (std::size_t band = 0; band < kBandCount; ++band) {
    const Summary& s = bands[band];
    if (s.points == 0) {
      line += "<td>-</td>";
      continue;
    }
    const bool missed = goals != nullptr && (*goals)[band].median > 0 &&
                        (s.median > (*goals)[band].median || s.p90 > (*goals)[band].p90);
    line += fmt::format("<td{}>{:.1f} / {:.0f} {:+.1f}</td>", missed ? " class=\"bad\"" : "",
                        100 * s.median, 100 * s.p90, 100 * s.bias);
  }
  return line + "</tr>\n";
}

std::string BandTable(const std::vector<ScoredRun>& runs) {
  std::string out =
      "<h2>Errors</h2>\n<p class=\"note\">simulated/measured - 1 in per cent: median / 90th "
      "percentile of the magnitude, signed median; every run has the same weight in each band. "
      "Bold red: a goal is missed.</p>\n<div class=\"wide\"><table>\n<tr><th "
      "class=\"text\">group</th><th>runs</th>";
  for (const std::string_view band : validate::kBandNames)
    out += fmt::format("<th>{}</th>", EscapeMarkup(band));
  out += "</tr>\n";
  for (const Group group : kGroups) {
    const auto in_group = [&](const ScoredRun& run) { return run.counted && run.group == group; };
    const auto count = std::count_if(runs.begin(), runs.end(), in_group);
    if (count == 0) continue;
    out +=
        Row(std::string(ToString(group)), static_cast<std::size_t>(count),
            validate::Summarise(runs, Predictor::kWindtunnel, in_group), &validate::GoalsOf(group));
    out += Row("NCCL's own estimate", 0, validate::Summarise(runs, Predictor::kNccl, in_group),
               nullptr);
    out +=
        Row("data sheet", 0, validate::Summarise(runs, Predictor::kDataSheet, in_group), nullptr);
    out += Row("noise between alike runs", 0, validate::NoiseFloor(runs, in_group), nullptr);
  }
  return out + "</table></div>\n";
}

/// Every row of a group as a point, the median of each size as a line.
std::string Residuals(const std::vector<ScoredRun>& runs) {
  std::string out =
      "<h2>Residuals by size</h2>\n<p class=\"note\">Simulated over measured time; 1 is right, "
      "above it the simulation is too slow.</p>\n";
  for (const Group group : kGroups) {
    std::map<std::uint64_t, std::vector<double>> by_size;
    // Points that would fall on one another are drawn once: the page stays small.
    std::map<std::pair<std::uint64_t, long>, double> cells;
    for (const ScoredRun& run : runs) {
      if (!run.counted || run.group != group) continue;
      for (const Point& point : run.points) {
        const double ratio = point.predicted_us[0] / point.measured_us;
        by_size[point.bytes].push_back(ratio);
        constexpr double kCell = 0.01;
        cells[{point.bytes, std::lround(std::log(ratio) / kCell)}] = ratio;
      }
    }
    if (by_size.empty()) continue;
    PlotSeries rows{.label = "a row of a run", .points = {}, .scatter = true, .colour = 5};
    for (const auto& [cell, ratio] : cells)
      rows.points.push_back({static_cast<double>(cell.first), ratio});
    PlotSeries median{.label = "median of the size", .points = {}, .colour = 1};
    PlotSeries right{.label = "right", .points = {}, .dashed = true, .colour = 7};
    for (auto& [bytes, ratios] : by_size) {
      std::sort(ratios.begin(), ratios.end());
      const auto x = static_cast<double>(bytes);
      // Sizes of one or two runs would make the line jump.
      if (ratios.size() >= 3) median.points.push_back({x, ratios[ratios.size() / 2]});
      right.points.push_back({x, 1});
    }
    out += LogLogPlot(ToString(group), "simulated / measured", {rows, median, right});
  }
  return out;
}

double BusBandwidth(const ScoredRun& run, std::uint64_t bytes, double us) {
  return static_cast<double>(bytes) *
         BusBandwidthFactor(run.platform.facts.function, run.platform.facts.ranks) / us / 1000;
}

std::string Curves(const std::vector<ScoredRun>& runs) {
  std::map<std::string, std::vector<const ScoredRun*>> by_plot;
  for (const ScoredRun& run : runs) {
    if (run.points.empty()) continue;
    by_plot[fmt::format("{}{}, {}", run.counted ? "" : "not counted: ", run.platform.name,
                        run.run.collective)]
        .push_back(&run);
  }
  std::string out =
      "<h2>Curves by platform</h2>\n<p class=\"note\">Bus bandwidth, measured with marks, "
      "simulated dashed in the same colour.</p>\n";
  std::size_t drawn = 0, left_out = 0;
  for (const auto& [title, group] : by_plot) {
    if (drawn == kPlotsOfPage) {
      left_out += group.size();
      continue;
    }
    ++drawn;
    std::vector<PlotSeries> series;
    for (std::size_t i = 0; i < std::min(kRunsOfPlot, group.size()); ++i) {
      const ScoredRun& run = *group[i];
      PlotSeries measured{.label = run.run.id, .points = {}, .colour = i};
      PlotSeries simulated{.label = "simulated", .points = {}, .dashed = true, .colour = i};
      for (const Point& point : run.points) {
        const auto x = static_cast<double>(point.bytes);
        measured.points.push_back({x, BusBandwidth(run, point.bytes, point.measured_us)});
        simulated.points.push_back({x, BusBandwidth(run, point.bytes, point.predicted_us[0])});
      }
      series.push_back(std::move(measured));
      series.push_back(std::move(simulated));
    }
    out += LogLogPlot(title, "busbw, GB/s", series);
    if (group.size() > kRunsOfPlot)
      out += fmt::format("<p class=\"note\">{} more runs of this kind are not drawn.</p>\n",
                         group.size() - kRunsOfPlot);
  }
  if (left_out > 0)
    out += fmt::format("<p class=\"note\">{} runs of further platforms are not drawn.</p>\n",
                       left_out);
  return out;
}

std::string CauseName(const Explanation& cause) {
  return cause.setting.empty() ? cause.fault : cause.fault + " (" + cause.setting + ")";
}

std::string DiagnosisSection(const Diagnosis& d) {
  std::string out = fmt::format("<h2>{}</h2>\n<dl><dt>platform</dt><dd>{}</dd>\n",
                                EscapeMarkup(d.run), EscapeMarkup(d.platform));
  if (!d.label.empty()) out += fmt::format("<dt>labelled</dt><dd>{}</dd>\n", EscapeMarkup(d.label));
  out += fmt::format("<dt>evidence</dt><dd>{}</dd></dl>\n", EscapeMarkup(d.evidence.text));
  const auto curve = [&](std::string label, const std::vector<double>& us, bool dashed,
                         std::size_t colour) {
    PlotSeries series{.label = std::move(label), .points = {}, .dashed = dashed, .colour = colour};
    for (std::size_t i = 0; i < d.bytes.size(); ++i)
      series.points.push_back({static_cast<double>(d.bytes[i]), us[i]});
    return series;
  };
  std::vector<PlotSeries> series{curve("measured", d.measured_us, false, 0),
                                 curve("healthy", d.healthy_us, false, 2)};
  for (const Explanation& cause : d.causes) {
    if (series.size() == 2 + kCausesDrawn) break;
    if (cause.statistical || cause.fault == "healthy") continue;
    const std::size_t colour = series.size() == 2 ? 1 : 3;
    series.push_back(curve(CauseName(cause), cause.predicted_us, true, colour));
  }
  out += LogLogPlot("Time of one call", "time, us", series);
  out +=
      "<div class=\"wide\"><table>\n<tr><th>place</th><th class=\"text\">cause</th><th>weight, "
      "%</th><th>median error, %</th><th class=\"text\">what to check</th></tr>\n";
  for (std::size_t i = 0; i < std::min(kCausesListed, d.causes.size()); ++i) {
    const Explanation& cause = d.causes[i];
    out += fmt::format(
        "<tr><td>{}</td><td class=\"text\">{}</td><td>{:.1f}</td><td>{:.1f}</td><td "
        "class=\"text\">{}</td></tr>\n",
        i + 1, EscapeMarkup(CauseName(cause)), 100 * cause.weight, 100 * cause.median_error,
        EscapeMarkup(cause.check));
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string ValidationPage(const std::vector<ScoredRun>& runs, const std::string& decisions) {
  const auto counted =
      std::count_if(runs.begin(), runs.end(), [](const ScoredRun& run) { return run.counted; });
  return HtmlPageStart("Simulated against measured",
                       fmt::format("{} runs, {} counted; decisions: {}. GB are 10^9 bytes. What is "
                                   "compared and how stands in docs/validation.md.",
                                   runs.size(), counted, decisions)) +
         BandTable(runs) + Residuals(runs) + Curves(runs) + std::string(kHtmlPageEnd);
}

std::string DiagnosisPage(const std::vector<Diagnosis>& diagnoses) {
  std::string out = HtmlPageStart(
      "Which fault explains the curve",
      "Weights order the causes and are no probability; how they come about stands in "
      "docs/validation.md. Runs whose best cause is \"healthy\" and that carry no label are left "
      "out of a set of several.");
  std::size_t drawn = 0;
  for (const Diagnosis& diagnosis : diagnoses) {
    if (diagnosis.causes.empty()) continue;
    if (diagnoses.size() > 1 && diagnosis.label.empty() &&
        diagnosis.causes.front().fault == "healthy")
      continue;
    if (drawn++ == kPlotsOfPage) {
      out += "<p class=\"note\">Further runs are not drawn.</p>\n";
      break;
    }
    out += DiagnosisSection(diagnosis);
  }
  return out + std::string(kHtmlPageEnd);
}

}  // namespace windtunnel
