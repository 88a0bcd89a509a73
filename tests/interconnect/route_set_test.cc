#include "interconnect/route_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "interconnect/cluster.h"
#include "interconnect/fabric.h"
#include "interconnect/route_choice.h"

namespace windtunnel {
namespace {

Cluster Fabric(std::uint32_t endpoints, const std::string& kind,
               std::map<std::string, std::string> options = {}, const std::string& model = "") {
  Topology topology;
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
  }
  topology.node_count = endpoints;
  BuildFabric(
      {.kind = kind, .model = model, .rate = GigabitsPerSecond(400), .options = std::move(options)},
      Catalogue::Shipped(), &topology);
  return Cluster(std::move(topology));
}

TEST(RouteSetTest, HasNoRouteUnlessOneIsGiven) {
  EXPECT_TRUE(RouteSet().empty());
  EXPECT_EQ(RouteSet().count(), 0u);
  EXPECT_EQ(RouteSet(Route{}).count(), 1u);
  EXPECT_EQ(RouteSet(Route{}).At(0), Route{});
  EXPECT_EQ(RouteSet(Route{7, 3, 5}).At(0), (Route{7, 3, 5}));
}

// Two choices of which one goes on in three ways: 1 + 3 routes, listed by the first difference.
TEST(RouteSetTest, NumbersRoutesOfUnequalBranches) {
  auto graph = std::make_shared<RouteGraph>();
  const auto three = graph->Add(std::vector<RouteGraph::Step>{{10, 0}, {11, 0}, {12, 0}});
  const auto one = graph->Add(std::vector<RouteGraph::Step>{{20, 0}});
  const auto start = graph->Add(std::vector<RouteGraph::Step>{{1, one}, {2, three}});
  const RouteSet routes(graph, start);
  ASSERT_EQ(routes.count(), 4u);
  EXPECT_EQ(routes.At(0), (Route{1, 20}));
  EXPECT_EQ(routes.At(1), (Route{2, 10}));
  EXPECT_EQ(routes.At(3), (Route{2, 12}));
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(routes.IndexOf(routes.At(i)), i);
  EXPECT_EQ(routes.IndexOf(Route{2}), 4u);
  EXPECT_EQ(routes.IndexOf(Route{1, 10}), 4u);
  // Digits of 5: 5 mod 2 = 1, then 2 mod 3 = 2.
  EXPECT_EQ(routes.IndexByDigits(5), 3u);
  EXPECT_EQ(routes.IndexByDigits(4), 0u);
}

// Steps through a grid of 17 x 17: C(16, 8) routes to the router at (8, 8), all of 8 + 8 links.
TEST(RouteSetTest, KeepsTheManyRoutesOfATorusAsTheirGraph) {
  const Cluster cluster = Fabric(289, "torus", {{"sides", "17x17"}});
  const auto router = [&](int i) { return *cluster.topology().Find("router" + std::to_string(i)); };
  const RouteSet routes = cluster.EqualCostRoutes(router(0), router(8 * 17 + 8));
  ASSERT_EQ(routes.count(), 12870u);
  std::set<Route> all;
  for (std::uint64_t i = 0; i < routes.count(); ++i) {
    all.insert(routes.At(i));
    ASSERT_EQ(routes.At(i).size(), 16u);
  }
  EXPECT_EQ(all.size(), routes.count());
  EXPECT_EQ(*all.begin(), routes.At(0));
}

TEST(RouteSetTest, RoutesBetweenManySwitchesAreThoseOfEachPair) {
  for (const char* kind : {"fat-tree", "leaf-spine", "torus"}) {
    const bool torus = kind == std::string("torus");
    const Cluster cluster =
        torus ? Fabric(32, kind, {{"sides", "4x8"}}) : Fabric(32, kind, {{"ports_per_leaf", "4"}});
    SwitchRoutes shared(cluster);
    for (DeviceId a = 0; a < cluster.topology().devices.size(); a += 3) {
      for (DeviceId b = 0; b < cluster.topology().devices.size(); b += 5) {
        const RouteSet together = shared.Between(a, b);
        const RouteSet alone = cluster.EqualCostRoutes(a, b);
        ASSERT_EQ(together.count(), alone.count()) << kind << " " << a << " " << b;
        for (std::uint64_t i = 0; i < alone.count(); i += 7) {
          ASSERT_EQ(together.At(i), alone.At(i)) << kind << " " << a << " " << b;
        }
      }
    }
  }
}

// 2,048 ports in two pods: 1,024 ways between leaves of different pods. A permutation across the
// pods takes each way once by destination; by load no link has more than two; by hash links collide
// as balls in bins do, and every aggregation is used.
TEST(RouteChoiceTest, AllWaysOfAFatTreeAreUsed) {
  const Cluster cluster = Fabric(2048, "fat-tree", {}, "quantum-2");
  for (const RoutePolicy policy :
       {RoutePolicy::kStatic, RoutePolicy::kAdaptive, RoutePolicy::kEcmp}) {
    RouteChooser chooser(cluster, policy, 1);
    for (DeviceId from = 0; from < 2048; ++from) chooser.Choose({from, from ^ 1024u});
    std::uint32_t most = 0;
    std::uint32_t used = 0;
    for (LinkId link = 0; link < cluster.topology().links.size(); ++link) {
      const std::uint32_t connections = chooser.connections()[link];
      most = std::max(most, connections);
      used +=
          connections > 0 && cluster.topology().devices[cluster.topology().links[link].from].kind ==
                                 DeviceKind::kNetworkSwitch;
    }
    SCOPED_TRACE(RoutePolicyNames()[static_cast<std::size_t>(policy)]);
    const bool by_hash = policy == RoutePolicy::kEcmp;
    EXPECT_GE(most, by_hash ? 3u : 1u);
    EXPECT_LE(most, by_hash ? 9u : 1u);
    // Leaf to aggregation to core to aggregation to leaf to port; by hash 1 - 1/e of the first
    // four.
    EXPECT_NEAR(used, by_hash ? 2048 * (1 + 4 * 0.632) : 2048 * 5, by_hash ? 200 : 0);
  }
}

}  // namespace
}  // namespace windtunnel
