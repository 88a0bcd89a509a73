#include "interconnect/fabric_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "interconnect/cluster.h"
#include "interconnect/route_choice.h"
#include "interconnect/topology_file.h"

namespace windtunnel {
namespace {

constexpr BitsPerSecond kRate = GigabitsPerSecond(400);

// `hosts` hosts of `nics` GPUs, each with a NIC of its own.
Topology Hosts(std::uint32_t hosts, std::uint32_t nics) {
  Topology topology;
  topology.node_count = hosts;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    for (std::uint32_t i = 0; i < nics; ++i) {
      const std::string place = "node" + std::to_string(h);
      const auto gpu = static_cast<DeviceId>(topology.devices.size());
      topology.devices.push_back({.name = place + "/gpu" + std::to_string(i),
                                  .kind = DeviceKind::kGpu,
                                  .node = h,
                                  .index = i});
      topology.devices.push_back({.name = place + "/nic" + std::to_string(i),
                                  .kind = DeviceKind::kNic,
                                  .node = h,
                                  .index = i});
      for (const auto& [a, b] : {std::pair{gpu, gpu + 1}, std::pair{gpu + 1, gpu}}) {
        topology.links.push_back({.from = a,
                                  .to = b,
                                  .kind = LinkKind::kPcie,
                                  .rate = GigabitsPerSecond(500),
                                  .latency = Nanoseconds(100)});
      }
    }
  }
  return topology;
}

Cluster Build(Topology topology, const std::string& kind,
              std::map<std::string, std::string> options = {}, std::string model = "") {
  BuildFabric({.kind = kind,
               .model = std::move(model),
               .rate = kRate,
               .options = std::move(options),
               .where = {.field = "fabric"}},
              Catalogue::Shipped(), &topology);
  return Cluster(std::move(topology));
}
std::string Fault(const std::string& kind, std::map<std::string, std::string> options) {
  try {
    Build(Hosts(4, 2), kind, std::move(options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}
std::vector<DeviceId> Nics(const Cluster& cluster) {
  return cluster.topology().DevicesOf(DeviceKind::kNic);
}
std::size_t Switches(const Cluster& cluster) {
  return cluster.topology().DevicesOf(DeviceKind::kNetworkSwitch).size();
}

TEST(LeafSpineTest, OverSubscriptionIsTheRatioOfDownToUp) {
  const Cluster cluster =
      Build(Hosts(8, 1), "leaf-spine", {{"hosts_per_leaf", "4"}, {"oversubscription", "4:1"}});
  std::uint64_t down = 0;
  std::uint64_t up = 0;
  for (const Link& link : cluster.topology().links) {
    const Device& from = cluster.topology().devices[link.from];
    if (from.name != "leaf0") continue;
    const Device& to = cluster.topology().devices[link.to];
    (to.kind == DeviceKind::kNic ? down : up) += link.rate.count();
  }
  EXPECT_EQ(down, 4 * kRate.count());
  EXPECT_EQ(up, kRate.count());
}

TEST(LeafSpineTest, ASlowUplinkBetweenTwoRacksIsGivenByNumberAndRate) {
  const Cluster cluster =
      Build(Hosts(3, 1), "leaf-spine",
            {{"hosts_per_leaf", "2"}, {"uplinks", "1"}, {"uplink_rate", "100 Gb/s"}});
  const auto nics = Nics(cluster);
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(nics[0], nics[1])), kRate);
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(nics[0], nics[2])), GigabitsPerSecond(100));
}

TEST(LeafSpineTest, OneLeafNeedsNoSpine) {
  EXPECT_EQ(Switches(Build(Hosts(4, 2), "leaf-spine")), 1u);
}

TEST(FatTreeTest, TwoThousandGpusBuildFastAndReachEachOther) {
  const auto begin = std::chrono::steady_clock::now();
  const Cluster cluster = Build(Hosts(256, 8), "fat-tree", {{"leaves_per_pod", "16"}}, "quantum-2");
  const auto nics = Nics(cluster);
  ASSERT_EQ(nics.size(), 2048u);
  // 64 leaves in 4 pods of 16, 32 aggregations each, 32 planes of 16 cores.
  EXPECT_EQ(Switches(cluster), 64u + 4 * 32 + 32 * 16);
  RouteChooser chooser(cluster, RoutePolicy::kEcmp, 1);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto route = chooser.Choose({nics[i], nics[(i + 1024) % nics.size()]});
    ASSERT_TRUE(route.has_value());
    EXPECT_LE(route->size(), 6u);
    EXPECT_EQ(cluster.Bottleneck(*route), kRate);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(FatTreeTest, FarPodsAreThreeTiersAway) {
  const Cluster cluster =
      Build(Hosts(16, 1), "fat-tree", {{"ports_per_leaf", "2"}, {"leaves_per_pod", "2"}});
  const auto nics = Nics(cluster);
  EXPECT_EQ(cluster.FindRoute(nics[0], nics[1])->size(), 2u);
  EXPECT_EQ(cluster.FindRoute(nics[0], nics[2])->size(), 4u);
  EXPECT_EQ(cluster.FindRoute(nics[0], nics[4])->size(), 6u);
}

TEST(RailOptimisedTest, EqualIndicesMeetAtOneLeaf) {
  const Cluster cluster = Build(Hosts(128, 8), "rail-optimised", {{"ports_per_leaf", "128"}});
  const auto nics = Nics(cluster);
  ASSERT_EQ(nics.size(), 1024u);
  EXPECT_EQ(cluster.FindRoute(nics[3], nics[8 * 100 + 3])->size(), 2u);
  EXPECT_EQ(cluster.FindRoute(nics[3], nics[8 * 100 + 4])->size(), 4u);
}

TEST(RailOptimisedTest, WithoutASpineRailsDoNotMeet) {
  const Cluster cluster = Build(Hosts(4, 8), "rail-optimised", {{"spine", "no"}});
  const auto nics = Nics(cluster);
  EXPECT_TRUE(cluster.FindRoute(nics[0], nics[8]).has_value());
  EXPECT_FALSE(cluster.FindRoute(nics[0], nics[9]).has_value());
  EXPECT_EQ(Switches(cluster), 8u);
}

TEST(RailOptimisedTest, UnequalHostsKeepTheirRails) {
  Topology topology = Hosts(2, 8);
  const Topology small = Hosts(1, 4);
  const auto base = static_cast<DeviceId>(topology.devices.size());
  for (Device device : small.devices) {
    device.node = 2;
    device.name = "small/" + device.name;
    topology.devices.push_back(device);
  }
  for (Link link : small.links) {
    link.from += base;
    link.to += base;
    topology.links.push_back(link);
  }
  topology.node_count = 3;
  const Cluster cluster = Build(std::move(topology), "rail-optimised");
  const auto nics = Nics(cluster);
  ASSERT_EQ(nics.size(), 20u);
  EXPECT_EQ(cluster.FindRoute(nics[2], nics[18])->size(), 2u);
  EXPECT_EQ(cluster.FindRoute(nics[7], nics[18])->size(), 4u);
}

TEST(DragonflyTest, AnyTwoPortsAreAtMostThreeRouterCablesApart) {
  const Cluster cluster =
      Build(Hosts(72, 1), "dragonfly",
            {{"ports_per_router", "2"}, {"routers_per_group", "4"}, {"global_links", "2"}});
  const auto nics = Nics(cluster);
  EXPECT_EQ(Switches(cluster), 36u);
  for (std::size_t i = 1; i < nics.size(); ++i) {
    EXPECT_LE(cluster.FindRoute(nics[0], nics[i])->size(), 5u);
  }
}

TEST(DragonflyTest, TooFewGlobalLinksAreRefused) {
  EXPECT_THAT(Fault("dragonfly",
                    {{"ports_per_router", "1"}, {"routers_per_group", "1"}, {"global_links", "1"}}),
              testing::HasSubstr("gives a group 1 ways out, for 7 other groups"));
}

TEST(DragonflyPlusTest, GroupsMeetOverTheirSpines) {
  const Cluster cluster = Build(Hosts(32, 1), "dragonfly-plus",
                                {{"leaves_per_group", "2"},
                                 {"spines_per_group", "2"},
                                 {"ports_per_leaf", "4"},
                                 {"global_links", "3"}});
  const auto nics = Nics(cluster);
  EXPECT_EQ(Switches(cluster), 16u);
  EXPECT_EQ(cluster.FindRoute(nics[0], nics[4])->size(), 4u);
  EXPECT_LE(cluster.FindRoute(nics[0], nics[31])->size(), 6u);
}

std::size_t RouterLinks(const Cluster& cluster) {
  std::size_t count = 0;
  for (const Link& link : cluster.topology().links) {
    if (cluster.topology().devices[link.from].kind == DeviceKind::kNetworkSwitch &&
        cluster.topology().devices[link.to].kind == DeviceKind::kNetworkSwitch) {
      ++count;
    }
  }
  return count;
}

TEST(TorusTest, EveryRouterHasOneCablePerSideAndDirection) {
  EXPECT_EQ(RouterLinks(Build(Hosts(64, 1), "torus", {{"sides", "4x4x4"}})), 64u * 3 * 2);
  EXPECT_EQ(RouterLinks(Build(Hosts(64, 1), "mesh", {{"sides", "4x4x4"}})), 48u * 3 * 2);
}

TEST(TorusTest, SidesOfOneAndTwoHaveNoSecondWayAround) {
  EXPECT_EQ(RouterLinks(Build(Hosts(2, 1), "torus", {{"sides", "1x2"}})), 2u);
  EXPECT_EQ(RouterLinks(Build(Hosts(1, 1), "torus", {{"sides", "1x1"}})), 0u);
}

TEST(TorusTest, ATwistMovesTheWayAround) {
  const Cluster plain = Build(Hosts(32, 1), "torus", {{"sides", "4x8"}});
  const Cluster twisted = Build(Hosts(32, 1), "torus", {{"sides", "4x8"}, {"twist", "4"}});
  const auto nics = Nics(plain);
  EXPECT_EQ(RouterLinks(plain), RouterLinks(twisted));
  // (0, 0) to (3, 4): one step back in x; the twist brings the four steps in y along.
  EXPECT_EQ(plain.FindRoute(nics[0], nics[19])->size(), 2u + 5);
  EXPECT_EQ(twisted.FindRoute(nics[0], nics[19])->size(), 2u + 1);
}

TEST(FabricTest, BareEndpointsAreJoinedThemselves) {
  Topology topology;
  for (std::uint32_t i = 0; i < 4; ++i) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
  }
  topology.node_count = 4;
  const Cluster cluster = Build(std::move(topology), "leaf-spine", {{"ports_per_leaf", "2"}});
  EXPECT_EQ(cluster.FindRoute(0, 3)->size(), 4u);
}

TEST(FabricTest, MixedPortRatesKeepTheirOwn) {
  Topology topology = Hosts(2, 1);
  topology.devices[1].attributes["speed"] = "100000";
  topology.devices[3].attributes["speed"] = "200000";
  BuildFabric({.kind = "leaf-spine", .where = {.field = "fabric"}}, Catalogue::Shipped(),
              &topology);
  const Cluster cluster(std::move(topology));
  EXPECT_EQ(cluster.Bottleneck(*cluster.FindRoute(1, 3)), GigabitsPerSecond(100));
  EXPECT_EQ(cluster.topology().links[4].rate, GigabitsPerSecond(100));
  EXPECT_EQ(cluster.topology().links[6].rate, GigabitsPerSecond(200));
}

std::string PortFault(std::uint32_t hosts, const std::string& kind,
                      std::map<std::string, std::string> options, std::string model = "quantum-2") {
  try {
    Build(Hosts(hosts, 1), kind, std::move(options), std::move(model));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SwitchPortsTest, AShapeThatNeedsMorePortsThanItsModelHasIsRefused) {
  // 64 down and 64 up on 64 ports.
  EXPECT_THAT(
      PortFault(128, "leaf-spine", {{"ports_per_leaf", "64"}, {"uplinks", "64"}}),
      testing::AllOf(testing::HasSubstr("options.ports_per_leaf"), testing::HasSubstr("'64'"),
                     testing::HasSubstr("leaf0 128 ports, and quantum-2 has 64"),
                     testing::HasSubstr("uplinks"), testing::HasSubstr("no model")));
  EXPECT_EQ(PortFault(128, "leaf-spine", {{"ports_per_leaf", "32"}}), "");
  EXPECT_EQ(PortFault(128, "leaf-spine", {{"ports_per_leaf", "64"}, {"uplinks", "64"}}, ""), "")
      << "a generic switch has no limit";
  EXPECT_THAT(PortFault(65, "dragonfly", {{"ports_per_router", "1000"}}),
              testing::HasSubstr("options.ports_per_router"));
  EXPECT_THAT(PortFault(65 * 2, "leaf-spine", {{"ports_per_leaf", "2"}}),
              testing::HasSubstr("spine0 65 ports"));
  EXPECT_THAT(PortFault(66, "torus", {{"sides", "2x1"}, {"ports_per_router", "64"}}),
              testing::HasSubstr("router0 65 ports"));
  EXPECT_THAT(PortFault(66, "dragonfly-plus", {{"ports_per_leaf", "66"}}),
              testing::HasSubstr("options.ports_per_leaf"));
  EXPECT_THAT(PortFault(66, "fat-tree", {{"hosts_per_leaf", "66"}}),
              testing::HasSubstr("options.hosts_per_leaf"));
  EXPECT_THAT(PortFault(66, "rail-optimised", {{"ports_per_leaf", "66"}}),
              testing::HasSubstr("rail0/leaf0 66 ports"));
}

TEST(FabricTest, TooLargeShapesAreRefusedBeforeTheyAreBuilt) {
  const auto start = std::chrono::steady_clock::now();
  // 9,000 fully joined routers are 40 million cables.
  EXPECT_THAT(Fault("dragonfly", {{"routers_per_group", "9000"}}),
              testing::AllOf(testing::HasSubstr("options.routers_per_group"),
                             testing::HasSubstr("too many links")));
  EXPECT_THAT(Fault("dragonfly-plus", {{"leaves_per_group", "9000"}}),
              testing::HasSubstr("too many links"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(SwitchPortsTest, ABreakoutCableSharesAPortAndAFastLinkTakesSeveral) {
  // Ports of 800 Gb/s hold two NICs of 400 each, so 128 fill the 64 of one switch.
  EXPECT_EQ(PortFault(128, "leaf-spine", {{"ports_per_leaf", "128"}}, "tomahawk-5"), "");
  EXPECT_THAT(PortFault(129, "leaf-spine", {{"ports_per_leaf", "129"}}, "tomahawk-5"),
              testing::HasSubstr("65 ports"));
  // Ports of 200 Gb/s: a NIC of 400 takes two.
  EXPECT_THAT(PortFault(21, "leaf-spine", {{"ports_per_leaf", "21"}}, "quantum-hdr"),
              testing::HasSubstr("42 ports, and quantum-hdr has 40"));
}

TEST(SwitchPortsTest, ASingleSwitchStandsForALargerOneAndSaysSo) {
  const Cluster crowded = Build(Hosts(256, 1), "single-switch", {}, "quantum-2");
  EXPECT_THAT(crowded.topology().warnings,
              testing::ElementsAre(testing::AllOf(testing::HasSubstr("switch0"),
                                                  testing::HasSubstr("256 ports"),
                                                  testing::HasSubstr("quantum-2 has 64"))));
  EXPECT_TRUE(Build(Hosts(64, 1), "single-switch", {}, "quantum-2").topology().warnings.empty());
  EXPECT_TRUE(Build(Hosts(256, 1), "single-switch").topology().warnings.empty());
}

TEST(FabricTest, UnknownOptionsAndValuesAreNamed) {
  EXPECT_THAT(Fault("leaf-spine", {{"oversubscripton", "4"}}),
              testing::AllOf(testing::HasSubstr("unknown option of leaf-spine"),
                             testing::HasSubstr("did you mean 'oversubscription'")));
  EXPECT_THAT(Fault("leaf-spine", {{"oversubscription", "0"}}), testing::HasSubstr("is no ratio"));
  EXPECT_THAT(Fault("leaf-spine", {{"uplinks", "2"}, {"oversubscription", "2"}}),
              testing::HasSubstr("contradicts oversubscription"));
  EXPECT_THAT(Fault("torus", {}), testing::HasSubstr("is missing"));
  EXPECT_THAT(Fault("torus", {{"sides", "3x3"}}), testing::HasSubstr("make 9 routers"));
  EXPECT_THAT(Fault("rail-optimised", {{"spine", "perhaps"}}),
              testing::HasSubstr("neither yes nor no"));
  EXPECT_THAT(Fault("rail-optimised", {{"spine", "no"}, {"ports_per_leaf", "2"}}),
              testing::HasSubstr("cannot be left out"));
}

TEST(RouteChoiceTest, EcmpIsSeededAndSpreads) {
  const Cluster cluster =
      Build(Hosts(64, 1), "leaf-spine", {{"ports_per_leaf", "32"}, {"spines", "16"}});
  const auto nics = Nics(cluster);
  const auto spines_of = [&](RoutePolicy policy, std::uint64_t seed) {
    RouteChooser chooser(cluster, policy, seed);
    std::vector<LinkId> used;
    for (std::size_t i = 0; i < 32; ++i) {
      used.push_back((*chooser.Choose({nics[i], nics[32 + i]}))[1]);
    }
    return used;
  };
  EXPECT_EQ(spines_of(RoutePolicy::kEcmp, 1), spines_of(RoutePolicy::kEcmp, 1));
  EXPECT_NE(spines_of(RoutePolicy::kEcmp, 1), spines_of(RoutePolicy::kEcmp, 2));
  const auto load = [&](RoutePolicy policy) {
    std::map<LinkId, int> count;
    int most = 0;
    for (const LinkId link : spines_of(policy, 3)) most = std::max(most, ++count[link]);
    return most;
  };
  EXPECT_EQ(load(RoutePolicy::kAdaptive), 2);  // 32 connections over 16 spines.
  EXPECT_GT(load(RoutePolicy::kEcmp), 2);      // Hashes collide.
}

TEST(RouteChoiceTest, UnknownPoliciesAreNamed) {
  EXPECT_EQ(ParseRoutePolicy("adaptive", {}), RoutePolicy::kAdaptive);
  EXPECT_THROW(ParseRoutePolicy("adaptiv", {.field = "--routing"}), ConfigError);
}

TEST(NvlinkDomains, TwoRacksKeepTheirOwnSwitchesAndShareTheNetwork) {
  const Topology racks = LoadTopology("gb200-nvl72*2:ib-ndr-rail");
  EXPECT_EQ(racks.node_count, 36u);
  const Cluster cluster(racks);
  ASSERT_EQ(cluster.gpus().size(), 144u);
  ASSERT_TRUE(racks.Find("nodes0-17/nvswitch").has_value());
  ASSERT_TRUE(racks.Find("nodes18-35/nvswitch").has_value());
  const auto kinds = [&](const char* from, const char* to) {
    std::set<LinkKind> found;
    const auto route = cluster.FindRoute(*racks.Find(from), *racks.Find(to));
    EXPECT_TRUE(route.has_value()) << from << " " << to;
    for (const LinkId link : *route) found.insert(racks.links[link].kind);
    return found;
  };
  // Inside a rack NVLink alone, between racks the network.
  EXPECT_EQ(kinds("node0/gpu0", "node17/gpu3"), std::set<LinkKind>{LinkKind::kNvlink});
  EXPECT_EQ(kinds("node18/gpu0", "node35/gpu3"), std::set<LinkKind>{LinkKind::kNvlink});
  EXPECT_TRUE(kinds("node17/gpu0", "node18/gpu0").contains(LinkKind::kNetwork));
  std::uint64_t rails = 0;
  for (const Device& device : racks.devices) rails += device.kind == DeviceKind::kNic;
  EXPECT_EQ(rails, 144u);
}

}  // namespace
}  // namespace windtunnel
