#pragma once
// All equal ways between two devices, kept as the graph that they form: the ways of a fat tree are
// the product of the choices at its switches, too many to list.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "interconnect/topology.h"

namespace windtunnel {

/// Links in the order they are crossed; empty = source and target are the same device.
using Route = std::vector<LinkId>;

/// Routes towards one device as places and the steps between them; routes that go on alike share
/// their places. Grows, and never changes what it holds.
class RouteGraph {
 public:
  using Place = std::uint32_t;
  struct Step {
    LinkId link;
    Place next;
  };
  /// Where all routes end.
  static constexpr Place kTarget = 0;
  /// More routes than any index reaches are not told apart from this many.
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

  RouteGraph();
  /// Adds a place that routes leave by `steps` (1 or more, in order), to places added before.
  Place Add(std::span<const Step> steps);
  /// Routes from `place`.
  std::uint64_t CountFrom(Place place) const { return places_[place].count; }
  std::span<const Step> StepsOf(Place place) const {
    return {steps_.data() + places_[place].first, places_[place].size};
  }
  /// The step of route `index` of those from `place`; then `index` is its number among those behind
  /// it. Contract: place is not kTarget, index < CountFrom(place).
  const Step& StepOf(Place place, std::uint64_t& index) const {
    const PlaceFacts& facts = places_[place];
    const Step* step = &steps_[facts.first];
    if (facts.each == 1) {
      step += index;
      index = 0;
    } else if (facts.each != 0) {
      step += index / facts.each;
      index %= facts.each;
    } else {
      while (index >= CountFrom(step->next)) index -= CountFrom((step++)->next);
    }
    return *step;
  }

 private:
  struct PlaceFacts {
    std::uint32_t first = 0;  // Of steps_.
    std::uint32_t size = 0;
    std::uint64_t count = 1;  // Routes from here.
    std::uint64_t each = 0;   // Routes behind each step, where all have as many; else 0.
  };
  std::vector<PlaceFacts> places_;
  std::vector<Step> steps_;
};

/// Routes between two devices in a fixed order: by the first link in which they differ.
class RouteSet {
 public:
  RouteSet() = default;  ///< No route.
  /// One route.
  explicit RouteSet(const Route& route);
  /// All of `graph` from `start`.
  RouteSet(std::shared_ptr<const RouteGraph> graph, RouteGraph::Place start)
      : graph_(std::move(graph)), start_(start) {}

  std::uint64_t count() const { return graph_ ? graph_->CountFrom(start_) : 0; }
  bool empty() const { return graph_ == nullptr; }
  /// Contract: not empty.
  const RouteGraph& graph() const { return *graph_; }
  RouteGraph::Place start() const { return start_; }
  /// Calls `visit(link)` for the links of route `index` until one returns false; true when none
  /// did. Contract: index < count().
  template <class Visit>
  bool ForEachLink(std::uint64_t index, const Visit& visit) const {
    for (RouteGraph::Place at = start_; at != RouteGraph::kTarget;) {
      const RouteGraph::Step& step = graph_->StepOf(at, index);
      if (!visit(step.link)) return false;
      at = step.next;
    }
    return true;
  }
  /// Contract: index < count().
  Route At(std::uint64_t index) const;
  /// Index of the route of these links; count() when it is none of them.
  std::uint64_t IndexOf(std::span<const LinkId> links) const;
  /// Index of the route on which every choice takes the next digit of `number`, lowest first, in
  /// the base of its steps: d-mod-k. Contract: not empty.
  std::uint64_t IndexByDigits(std::uint64_t number) const;

 private:
  std::shared_ptr<const RouteGraph> graph_;
  RouteGraph::Place start_ = RouteGraph::kTarget;
};

}  // namespace windtunnel
