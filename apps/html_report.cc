#include "apps/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/html_page.h"
#include "apps/svg_cluster.h"
#include "apps/svg_plot.h"
#include "sim/markup.h"

namespace windtunnel {
namespace {

constexpr std::size_t kLinksInHeatMap = 32;
constexpr std::size_t kLinksInTable = 16;

std::string Fact(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", EscapeMarkup(name), EscapeMarkup(value));
}

std::string LabelOf(const CollectiveResult& result) {
  return result.collective + " on " + result.topology_name;
}

/// All results in one drawing; a series per place, a dashed line for the bound of the links.
std::string Curves(const std::vector<CollectiveResult>& results, bool busbw) {
  std::vector<PlotSeries> series;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CollectiveResult& result = results[i];
    const std::string prefix = results.size() > 1 ? LabelOf(result) + ", " : "";
    PlotSeries out_of_place{.label = prefix + "out of place", .points = {}, .colour = 3 * i};
    PlotSeries in_place{.label = prefix + "in place", .points = {}, .colour = 3 * i + 1};
    PlotSeries bound{
        .label = prefix + "bound of the links", .points = {}, .dashed = true, .colour = 3 * i + 2};
    for (const ResultRow& row : result.rows) {
      const double size = static_cast<double>(row.size);
      const PlaceFigures& out = row.out_of_place;
      out_of_place.points.push_back({size, busbw ? out.busbw : out.time_us});
      in_place.points.push_back({size, busbw ? row.in_place.busbw : row.in_place.time_us});
      if (row.link_bound_us > 0)
        bound.points.push_back(
            {size, busbw ? out.busbw * out.time_us / row.link_bound_us : row.link_bound_us});
    }
    series.push_back(std::move(out_of_place));
    series.push_back(std::move(in_place));
    if (!bound.points.empty()) series.push_back(std::move(bound));
  }
  return busbw ? LogLogPlot("Bus bandwidth over message size", "busbw, GB/s", series)
               : LogLogPlot("Time of one call over message size", "time, us", series);
}

std::string PlaceCells(const PlaceFigures& place) {
  std::string cells = fmt::format("<td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td>", place.time_us,
                                  place.algbw, place.busbw);
  if (!place.wrong) return cells + "<td>N/A</td>";
  return cells +
         fmt::format("<td{}>{}</td>", *place.wrong == 0 ? "" : " class=\"bad\"", *place.wrong);
}

std::string Table(const CollectiveResult& result) {
  std::string out =
      "<div class=\"wide\"><table>\n<tr><th>size, B</th><th>count</th><th "
      "class=\"text\">type</th><th class=\"text\">redop</th><th>root</th>";
  for (const char* place : {"out of place", "in place"})
    out += fmt::format(
        "<th>{}: time, us</th><th>algbw, GB/s</th><th>busbw, GB/s</th><th>#wrong</th>", place);
  out +=
      "<th class=\"text\">algorithm</th><th>channels</th><th class=\"text\">bound by</th></tr>\n";
  for (const ResultRow& row : result.rows) {
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td>",
        row.size, row.count, EscapeMarkup(row.type), EscapeMarkup(row.redop), row.root);
    out += PlaceCells(row.out_of_place) + PlaceCells(row.in_place);
    out += fmt::format("<td class=\"text\">{}/{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
                       EscapeMarkup(row.algorithm), EscapeMarkup(row.protocol), row.channels,
                       EscapeMarkup(row.bound));
  }
  return out + "</table></div>\n";
}

/// What the time of the sizes went into: one column per size.
std::string Shares(const CollectiveResult& result) {
  std::vector<std::string> causes;
  for (const ResultRow& row : result.rows)
    for (const ResultShare& share : row.shares)
      if (share.time_us > 0 && std::ranges::find(causes, share.cause) == causes.end())
        causes.push_back(share.cause);
  if (causes.empty()) return "";
  std::vector<StackedBar> bars;
  for (const ResultRow& row : result.rows) {
    StackedBar bar{.x = static_cast<double>(row.size),
                   .parts = std::vector<double>(causes.size(), 0.0)};
    for (const ResultShare& share : row.shares) {
      const auto cause = std::ranges::find(causes, share.cause);
      if (cause != causes.end())
        bar.parts[static_cast<std::size_t>(cause - causes.begin())] += share.time_us;
    }
    bars.push_back(std::move(bar));
  }
  return ShareBars("Where the time went", causes, bars);
}

/// Links by the work they did over all sizes, busiest first; equals in the order of their names.
std::vector<std::string> BusiestLinks(const CollectiveResult& result) {
  std::map<std::string, double> busiest;
  for (const ResultRow& row : result.rows)
    for (const ResultLink& link : row.links)
      busiest[link.name] = std::max(busiest[link.name], link.utilisation);
  std::vector<std::string> names;
  for (const auto& [name, unused] : busiest) names.push_back(name);
  std::ranges::stable_sort(
      names, [&](const std::string& a, const std::string& b) { return busiest[a] > busiest[b]; });
  return names;
}

std::string LinkSection(const CollectiveResult& result) {
  std::vector<std::string> names = BusiestLinks(result);
  if (names.empty()) return "";
  const std::size_t all = names.size();
  names.resize(std::min(all, kLinksInHeatMap));
  std::vector<std::string> columns;
  std::vector<HeatRow> rows(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) rows[i].label = names[i];
  for (const ResultRow& row : result.rows) {
    columns.push_back(ShortSize(static_cast<double>(row.size)));
    std::map<std::string_view, double> loads;
    for (const ResultLink& link : row.links) loads[link.name] = link.utilisation;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto load = loads.find(names[i]);
      rows[i].loads.push_back(load == loads.end() ? std::nullopt : std::optional(load->second));
    }
  }
  std::string out = "<h3>Links</h3>\n" + HeatMap("Use of the busiest links", columns, rows);
  if (all > names.size())
    out += fmt::format("<p class=\"note\">{} of {} links that carried bytes.</p>\n", names.size(),
                       all);
  const ResultRow& largest = *std::ranges::max_element(result.rows, {}, &ResultRow::size);
  out += ClusterPicture(
      fmt::format("Devices and their links at {}", ShortSize(static_cast<double>(largest.size))),
      largest.links);
  out += fmt::format(
      "<h3>Bytes per link at {}</h3>\n<div class=\"wide\"><table>\n<tr><th "
      "class=\"text\">link</th><th>use</th><th>payload, B</th><th>on the wire, "
      "B</th><th>overhead</th></tr>\n",
      ShortSize(static_cast<double>(largest.size)));
  for (std::size_t i = 0; i < std::min(kLinksInTable, largest.links.size()); ++i) {
    const ResultLink& link = largest.links[i];
    const double overhead = link.payload_bytes == 0
                                ? 0
                                : 100.0 * (static_cast<double>(link.wire_bytes) /
                                               static_cast<double>(link.payload_bytes) -
                                           1);
    out += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{:.1f} %</td><td>{}</td><td>{}</td><td>{:.1f} "
        "%</td></tr>\n",
        EscapeMarkup(link.name), 100 * link.utilisation, link.payload_bytes, link.wire_bytes,
        overhead);
  }
  out += "</table></div>\n";
  if (largest.links.size() > kLinksInTable)
    out += fmt::format("<p class=\"note\">{} more carried bytes.</p>\n",
                       largest.links.size() - kLinksInTable);
  return out;
}

/// Says in words what the curves show, from the figures of the result alone.
std::string Words(const CollectiveResult& result) {
  const ResultRow& smallest = *std::ranges::min_element(result.rows, {}, &ResultRow::size);
  const auto busbw = [](const ResultRow& row) { return row.out_of_place.busbw; };
  const ResultRow& best = *std::ranges::max_element(result.rows, {}, busbw);
  std::string out =
      fmt::format("<p>The smallest message ({}) takes {:.2f} us",
                  ShortSize(static_cast<double>(smallest.size)), smallest.out_of_place.time_us);
  if (!smallest.bound.empty()) out += ", bound by " + EscapeMarkup(smallest.bound);
  out += fmt::format(". The best bus bandwidth is {:.2f} GB/s at {}", best.out_of_place.busbw,
                     ShortSize(static_cast<double>(best.size)));
  if (!best.bound.empty()) out += ", bound by " + EscapeMarkup(best.bound);
  if (best.link_bound_us > 0 && best.out_of_place.time_us > 0)
    out += fmt::format("; that is {:.1f} % of what the links alone would allow",
                       100 * best.link_bound_us / best.out_of_place.time_us);
  out += ".</p>\n";
  // Where the choice changes, the curve may step.
  std::string choices;
  const ResultRow* previous = nullptr;
  for (const ResultRow& row : result.rows) {
    if (previous == nullptr || previous->algorithm != row.algorithm ||
        previous->protocol != row.protocol) {
      choices +=
          fmt::format("{}{}/{} from {}", choices.empty() ? "" : ", ", EscapeMarkup(row.algorithm),
                      EscapeMarkup(row.protocol), ShortSize(static_cast<double>(row.size)));
    }
    previous = &row;
  }
  out += "<p>Algorithm and protocol: " + choices + ".</p>\n";
  std::vector<std::string> said;
  for (const ResultRow& row : result.rows)
    for (const std::string& text : {row.symmetry, row.notice})
      if (!text.empty() && std::ranges::find(said, text) == said.end()) said.push_back(text);
  for (const std::string& text : said) out += "<p class=\"note\">" + EscapeMarkup(text) + "</p>\n";
  return out;
}

std::string Section(const CollectiveResult& result) {
  std::string out = "<h2>" + EscapeMarkup(LabelOf(result)) + "</h2>\n<dl>\n";
  out += Fact("topology", result.topology_source);
  out += Fact("ranks", result.ranks > 0 ? std::to_string(result.ranks) : "");
  out += Fact("NCCL modelled", result.nccl_version);
  out += Fact("fidelity", result.fidelity);
  if (result.average_busbw > 0)
    out += Fact("average busbw", fmt::format("{:.2f} GB/s", result.average_busbw));
  if (result.bound_busbw > 0)
    out += Fact("bound of the links",
                fmt::format("{:.2f} GB/s busbw{}{}", result.bound_busbw,
                            result.bound_link.empty() ? "" : ", set by ", result.bound_link));
  out += Fact("result", result.file);
  out += Fact("made by", fmt::format("windtunnel {}, seed {}, input {}", result.version,
                                     result.seed, result.input_digest));
  out += "</dl>\n";
  for (const std::string& note : result.notes)
    out += "<p class=\"note\">" + EscapeMarkup(note) + "</p>\n";
  if (result.rows.empty()) return out + "<p>The result holds no rows.</p>\n";
  return out + Words(result) + Shares(result) + Table(result) + LinkSection(result);
}

}  // namespace

std::string HtmlReport(const std::vector<CollectiveResult>& results) {
  std::string title = LabelOf(results.front());
  if (results.size() > 1) title += fmt::format(" and {} more", results.size() - 1);
  std::string out = HtmlPageStart(
      title,
      "Simulated by windtunnel; times are those of one call in a row of calls, GB are 10^9 bytes. "
      "How far such figures lie from real runs stands in docs/deviations.md.");
  out += Curves(results, true) + Curves(results, false);
  for (const CollectiveResult& result : results) out += Section(result);
  return out + std::string(kHtmlPageEnd);
}

}  // namespace windtunnel
