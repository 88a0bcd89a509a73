#include "collectives/analytic_bound.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"
#include "sim/parse_units.h"

namespace windtunnel {

AnalyticBound BoundOf(const Plan& plan, FlowNetwork& idle, ExecutionSetting& setting) {
  WT_CHECK(idle.name() == "idle") << "a bound needs a network without contention";
  AnalyticBound bound;
  bound.run = RunTimed(plan, idle, setting);
  bound.idle = bound.run.time;
  const std::span<const LinkUse> use = idle.link_use();
  for (LinkId link = 0; link < use.size(); ++link) {
    if (use[link].busy <= bound.busiest_time) continue;
    bound.busiest_time = use[link].busy;
    bound.busiest_wire = use[link].wire;
    bound.busiest = link;
  }
  SimTime first_start(bound.idle);
  for (Rank r = 0; r < plan.request.rank_count; ++r) {
    first_start = std::min(first_start, setting.StartOf(r));
  }
  const Picoseconds link_end = first_start.since_start() + bound.busiest_time;
  bound.link_bound = link_end > bound.idle;
  bound.time = std::max(bound.idle, link_end);
  return bound;
}

std::string DescribeBound(const AnalyticBound& bound, const Topology& topology) {
  std::string link = "no link carries data";
  if (bound.busiest_time.count() > 0) {
    const Link& busiest = topology.links[bound.busiest];
    link = fmt::format("busiest link {} -> {}: {} on the wire take {}",
                       topology.devices[busiest.from].name, topology.devices[busiest.to].name,
                       FormatSize(bound.busiest_wire), FormatTime(bound.busiest_time));
  }
  return fmt::format(
      "bound {}: {} (chain of the plan on an idle network {}; {})", FormatTime(bound.time),
      bound.link_bound ? "the busiest link" : "the longest chain", FormatTime(bound.idle), link);
}

}  // namespace windtunnel
