// Every collective on clusters in the small: three tiers, rails, unequal hosts, as NCCL would run
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/simulation.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

struct ClusterCase {
  const char* name;
  const char* text;
  std::size_t tiers;  // Of switches: hops between the farthest NICs are twice that.
};
constexpr ClusterCase kClusters[] = {
    {"ThreeTiers",
     "nodes: 4\nof: hgx-h100\nfabric: {kind: fat-tree, model: quantum-2, options: "
     "{ports_per_leaf: \"8\", leaves_per_pod: \"2\"}}\n",
     3},
    {"Rails",
     "nodes: 4\nof: hgx-h100\nfabric: {kind: rail-optimised, model: quantum-2, options: "
     "{ports_per_leaf: \"2\"}}\n",
     2},
    {"RailsApart",
     "nodes: 4\nof: hgx-h100\nfabric: {kind: rail-optimised, model: quantum-2, options: "
     "{spine: \"no\"}}\n",
     1},
    {"UnequalHosts",
     "groups:\n  - {nodes: 2, of: hgx-a100}\n  - {nodes: 1, of: hgx-a100-4}\nfabric: {kind: "
     "ib-hdr}\n",
     1},
};

class ClustersTest : public ::testing::TestWithParam<ClusterCase> {
 protected:
  static Topology Load() {
    return ReadTopologyText(GetParam().text, TopologyFormat::kYaml, "cluster.yaml");
  }
};

TEST_P(ClustersTest, HasItsTiers) {
  const Cluster cluster(Load());
  const std::vector<DeviceId> nics = cluster.topology().DevicesOf(DeviceKind::kNic);
  std::size_t longest = 0;
  for (const DeviceId nic : nics) {
    if (nic == nics.front()) continue;
    const RouteSet routes = cluster.EqualCostRoutes(nics.front(), nic);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(routes.count(), 64); ++i) {
      const Route route = routes.At(i);
      const bool on_the_network = std::all_of(route.begin(), route.end(), [&](LinkId link) {
        return cluster.topology().links[link].kind == LinkKind::kNetwork;
      });
      if (on_the_network) longest = std::max(longest, route.size());
    }
  }
  EXPECT_EQ(longest, 2 * GetParam().tiers);
}

TEST_P(ClustersTest, RunsEveryCollective) {
  const Topology topology = Load();
  Simulation flow(Cluster(topology), {.fidelity = Fidelity::kFlow});
  for (std::uint8_t f = 0; f <= static_cast<std::uint8_t>(Function::kHypercube); ++f) {
    const auto function = static_cast<Function>(f);
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{100'000}}) {
      const CollectiveRequest request{
          .function = function, .rank_count = flow.rank_count(), .count = count};
      SCOPED_TRACE(std::string(Name(function)) + " of " + std::to_string(count));
      const bool power_of_two = (request.rank_count & (request.rank_count - 1)) == 0;
      if (function == Function::kHypercube && !power_of_two) {
        EXPECT_THROW(flow.Run(request), ConfigError);
        continue;
      }
      const CallOutcome call = flow.Run(request);
      EXPECT_GT(call.time.count(), 0u);
      EXPECT_GE(call.time, call.ideal);
      EXPECT_GT(call.messages, 0u);
      for (const auto& link : call.links.rows) EXPECT_LE(link.utilisation, 1.0) << link.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, ClustersTest, ::testing::ValuesIn(kClusters),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(SixtyFourGpusTest, RunAtPacketLevel) {
  Simulation packet(Cluster(LoadTopology("hgx-h100*8:ib-ndr-rail")), {});
  const CallOutcome call = packet.Run({.rank_count = 64, .count = 1 << 18});
  EXPECT_GE(call.time, call.ideal);
  EXPECT_GT(call.messages, 0u);
}

}  // namespace
}  // namespace windtunnel
