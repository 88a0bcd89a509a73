#pragma once
// A job without software: rank r on GPU r, routes by the graph, endpoints that cost what the test
// says (nothing by default). And plans that are no product's algorithm.

#include <memory>
#include <optional>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/timed_executor.h"
#include "interconnect/cluster.h"

namespace windtunnel::testing {

class PlainSetting final : public ExecutionSetting {
 public:
  PlainSetting(const Cluster& cluster, Network& network) : cluster_(cluster), network_(network) {}
  Route RouteOf(Rank from, Rank to) const {
    return *cluster_.FindRoute(cluster_.gpus()[Place(from)], cluster_.gpus()[Place(to)]);
  }
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    ConnectionPath path = CostFrom(sender.rank);
    path.route = network_.AddRoute(RouteOf(sender.rank, to.rank));
    return path;
  }
  ConnectionPath CostFrom(Rank sender) const {
    ConnectionPath path = cost;
    if (sender == odd_rank) path.reaction += Nanoseconds(100);
    return path;
  }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override { return {}; }
  const BlockTimes& TimesOf(Rank, const Block&) override { return times; }
  SimTime StartOf(Rank) override { return start; }
  Picoseconds EndOf(Rank) override { return end; }

  BlockTimes times;
  ConnectionPath cost;
  SimTime start;
  Picoseconds end;
  Rank odd_rank = UINT32_MAX;         ///< Reacts 100 ns later than all others.
  std::vector<std::uint32_t> places;  ///< GPU of each rank; empty: rank r on GPU r.

 private:
  std::uint32_t Place(Rank rank) const { return places.empty() ? rank : places[rank]; }
  const Cluster& cluster_;
  Network& network_;
};

/// One ring 0, 1, ..., over floats; the message in `ranks` near-equal chunks.
inline Plan RingPlan(std::uint32_t ranks, std::uint64_t count, std::uint32_t slices = 1) {
  const CollectiveRequest request{
      .function = Function::kAllReduce, .rank_count = ranks, .count = count};
  const ChannelLayout layout = PlainLayout(request, 1, (count * 4 + ranks - 1) / ranks, slices);
  return FindAlgorithm("ring").MakePlan(request, layout);
}

/// Every rank sends `count` floats to every other one, all at once.
inline Plan AllToAllPlan(std::uint32_t ranks, std::uint64_t count) {
  Plan plan;
  plan.request = {.function = Function::kAllToAll, .rank_count = ranks, .count = count};
  plan.algorithm = "all at once";
  for (Rank r = 0; r < ranks; ++r) {
    for (std::uint32_t k = 1; k < ranks; ++k) {
      auto program = std::make_shared<ListProgram>();
      const Peer out{(r + k) % ranks, 0};
      const Peer in{(r + ranks - k) % ranks, 0};
      program->Append({.count = count, .send_to = {&out, 1}, .has_source = true});
      program->Append({.count = count, .receive_from = {&in, 1}, .has_destination = true});
      plan.blocks.push_back({.rank = r, .channel = k, .role = "pair", .program = program});
    }
  }
  return plan;
}

}  // namespace windtunnel::testing
