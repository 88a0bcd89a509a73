#include "interconnect/link_load_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"
#include "sim/parse_units.h"

namespace windtunnel {

LinkLoadReport BusiestLinks(const Topology& topology, std::span<const LinkUse> use,
                            Picoseconds span, std::size_t most) {
  WT_CHECK(use.size() == topology.links.size()) << "counters of another topology";
  LinkLoadReport report{.span = span};
  std::vector<LinkId> carrying;
  double sum = 0;
  const auto utilisation = [&](LinkId id) {
    return span.count() == 0
               ? 0.0
               : static_cast<double>(use[id].busy.count()) / static_cast<double>(span.count());
  };
  for (LinkId id = 0; id < use.size(); ++id) {
    if (!topology.links[id].down) ++report.links;
    if (use[id].packets == 0) continue;
    WT_CHECK(use[id].busy <= span) << "link " << id << " was busy for longer than the run";
    carrying.push_back(id);
    sum += utilisation(id);
  }
  report.carrying = carrying.size();
  if (!carrying.empty()) report.mean_utilisation = sum / static_cast<double>(carrying.size());
  const std::size_t shown = std::min(most, carrying.size());
  std::partial_sort(carrying.begin(), carrying.begin() + static_cast<std::ptrdiff_t>(shown),
                    carrying.end(), [&](LinkId a, LinkId b) {
                      return use[a].busy != use[b].busy ? use[a].busy > use[b].busy : a < b;
                    });
  for (std::size_t i = 0; i < shown; ++i) {
    const LinkId id = carrying[i];
    const Link& link = topology.links[id];
    report.rows.push_back(
        {.link = id,
         .name = topology.devices[link.from].name + " -> " + topology.devices[link.to].name,
         .kind = link.kind,
         .use = use[id],
         .utilisation = utilisation(id)});
  }
  return report;
}

std::string FormatLinkLoadReport(const LinkLoadReport& report) {
  std::string text =
      fmt::format("{} of {} links carried data in {}, {:.1f} % busy on average\n", report.carrying,
                  report.links, FormatTime(report.span), 100 * report.mean_utilisation);
  if (report.rows.empty()) return text;
  std::size_t width = 4;
  bool trouble = false;
  for (const LinkLoadReport::Row& row : report.rows) {
    width = std::max(width, row.name.size());
    trouble = trouble || row.use.pauses + row.use.marks + row.use.drops > 0;
  }
  text += fmt::format("{:<{}}  {:<7}  {:>6}  {:>14}  {:>14}  {:>12}", "link", width, "kind", "busy",
                      "payload", "on the wire", "worst queue");
  text += trouble ? fmt::format("  {:>8}  {:>8}  {:>8}\n", "pauses", "marks", "drops") : "\n";
  for (const LinkLoadReport::Row& row : report.rows) {
    text += fmt::format("{:<{}}  {:<7}  {:>5.1f}%  {:>14}  {:>14}  {:>12}", row.name, width,
                        Name(row.kind), 100 * row.utilisation, FormatSize(row.use.payload),
                        FormatSize(row.use.wire), FormatSize(Bytes(row.use.deepest_queue)));
    text += trouble ? fmt::format("  {:>8}  {:>8}  {:>8}\n", row.use.pauses, row.use.marks,
                                  row.use.drops)
                    : "\n";
  }
  return text;
}

}  // namespace windtunnel
