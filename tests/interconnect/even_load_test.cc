#include "interconnect/even_load.h"

#include <gtest/gtest.h>

#include "interconnect/fabric.h"

namespace windtunnel {
namespace {

constexpr double kPort = 50e9 * 4096 / 4122;  // Payload bytes per second of 400 Gb/s InfiniBand.

Cluster Fabric(std::uint32_t endpoints, const std::string& kind,
               std::map<std::string, std::string> options) {
  Topology topology;
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
  }
  topology.node_count = endpoints;
  BuildFabric({.kind = kind, .rate = GigabitsPerSecond(400), .options = std::move(options)},
              Catalogue::Shipped(), &topology);
  return Cluster(std::move(topology));
}

TEST(EvenLoadTest, AnIncastTakesItsPort) {
  const Cluster cluster = Fabric(8, "single-switch", {});
  EvenLoad load(cluster);
  for (DeviceId from = 1; from < 8; ++from) load.Add(from, 0, 1e6);
  EXPECT_NEAR(load.TakeBusiest().seconds, 7e6 / kPort, 1e-12);
  EXPECT_EQ(load.TakeBusiest().seconds, 0);  // Forgotten.
}

// 16 ports on 2 leaves with 2 uplinks each: 8 senders share 2 links, of all equal routes half each.
TEST(EvenLoadTest, UplinksShareWhatCrossesThem) {
  const Cluster cluster = Fabric(16, "leaf-spine", {{"hosts_per_leaf", "8"}, {"uplinks", "2"}});
  EvenLoad load(cluster);
  for (DeviceId from = 0; from < 8; ++from) load.Add(from, from + 8, 1e6);
  const EvenLoad::Busiest busiest = load.TakeBusiest();
  EXPECT_NEAR(busiest.seconds, 4e6 / kPort, 1e-12);
  const Link& link = cluster.topology().links[busiest.link];
  EXPECT_EQ(cluster.topology().devices[link.from].kind, DeviceKind::kNetworkSwitch);
}

// All pairs at once are all pairs one by one, whatever the shape.
TEST(EvenLoadTest, AllPairsOfNodesAreTheSumOfTheirPairs) {
  const std::map<std::string, std::string> tree{{"ports_per_leaf", "4"},
                                                {"oversubscription", "2:1"}};
  for (const auto& [kind, options] :
       {std::pair{"fat-tree", tree},
        std::pair{"torus", std::map<std::string, std::string>{{"sides", "4x4"}}},
        std::pair{"dragonfly", std::map<std::string, std::string>{}}}) {
    const Cluster cluster = Fabric(16, kind, options);
    EvenLoad one_by_one(cluster);
    EvenLoad at_once(cluster);
    std::vector<std::vector<DeviceId>> nodes;
    for (DeviceId id = 0; id < 16; id += 4) nodes.push_back({id, id + 1, id + 2, id + 3});
    for (DeviceId from = 0; from < 16; ++from) {
      for (DeviceId to = 0; to < 16; ++to) {
        if (from / 4 != to / 4) one_by_one.Add(from, to, 3e5);
      }
    }
    at_once.AddBetweenNodes(nodes, 3e5);
    const EvenLoad::Busiest expected = one_by_one.TakeBusiest();
    EXPECT_GT(expected.seconds, 0) << kind;
    EXPECT_NEAR(at_once.TakeBusiest().seconds, expected.seconds, expected.seconds * 1e-9) << kind;
  }
}

}  // namespace
}  // namespace windtunnel
