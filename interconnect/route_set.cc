#include "interconnect/route_set.h"

#include <algorithm>

#include "sim/check.h"

namespace windtunnel {

RouteGraph::RouteGraph() { places_.emplace_back(); }

RouteGraph::Place RouteGraph::Add(std::span<const Step> steps) {
  WT_CHECK(!steps.empty()) << "a place without a way out";
  PlaceFacts place{.first = static_cast<std::uint32_t>(steps_.size()),
                   .size = static_cast<std::uint32_t>(steps.size()),
                   .count = 0,
                   .each = CountFrom(steps.front().next)};
  for (const Step& step : steps) {
    const std::uint64_t behind = CountFrom(step.next);
    if (behind != place.each) place.each = 0;
    place.count = std::min(kMost, place.count + behind);
    steps_.push_back(step);
  }
  places_.push_back(place);
  return static_cast<Place>(places_.size() - 1);
}

RouteSet::RouteSet(const Route& route) {
  auto graph = std::make_shared<RouteGraph>();
  for (std::size_t i = route.size(); i-- > 0;) {
    const RouteGraph::Step step[] = {{route[i], start_}};
    start_ = graph->Add(step);
  }
  graph_ = std::move(graph);
}

Route RouteSet::At(std::uint64_t index) const {
  WT_CHECK(index < count()) << "route " << index << " of " << count();
  Route route;
  ForEachLink(index, [&](LinkId link) {
    route.push_back(link);
    return true;
  });
  return route;
}

std::uint64_t RouteSet::IndexOf(std::span<const LinkId> links) const {
  if (empty()) return 0;
  std::uint64_t index = 0;
  RouteGraph::Place at = start_;
  for (const LinkId link : links) {
    if (at == RouteGraph::kTarget) return count();
    const auto steps = graph_->StepsOf(at);
    std::size_t i = 0;
    for (; i < steps.size() && steps[i].link != link; ++i)
      index += graph_->CountFrom(steps[i].next);
    if (i == steps.size()) return count();
    at = steps[i].next;
  }
  return at == RouteGraph::kTarget ? index : count();
}

std::uint64_t RouteSet::IndexByDigits(std::uint64_t number) const {
  WT_CHECK(!empty()) << "no route to choose from";
  std::uint64_t index = 0;
  for (RouteGraph::Place at = start_; at != RouteGraph::kTarget;) {
    const auto steps = graph_->StepsOf(at);
    const std::size_t digit = number % steps.size();
    number /= steps.size();
    for (std::size_t i = 0; i < digit; ++i) index += graph_->CountFrom(steps[i].next);
    at = steps[digit].next;
  }
  return index;
}

}  // namespace windtunnel
