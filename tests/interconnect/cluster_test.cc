#include "interconnect/cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "interconnect/topology_file.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

Topology FromYaml(std::string_view text) {
  return ReadTopologyText(text, TopologyFormat::kYaml, "test.yaml");
}

// Names of the devices a route passes, ends included: "gpu0 nvswitch gpu1".
std::string Path(const Cluster& cluster, const std::optional<Route>& route) {
  if (!route) return "none";
  std::string out;
  for (const LinkId id : *route) {
    const Link& link = cluster.topology().links[id];
    if (out.empty()) out = cluster.topology().devices[link.from].name;
    out += " " + cluster.topology().devices[link.to].name;
  }
  return out;
}

DeviceId Id(const Cluster& cluster, std::string_view name) {
  const auto id = cluster.topology().Find(name);
  if (!id) throw std::runtime_error("no device " + std::string(name));
  return *id;
}

std::string PathBetween(const Cluster& cluster, std::string_view from, std::string_view to) {
  return Path(cluster, cluster.FindRoute(Id(cluster, from), Id(cluster, to)));
}

constexpr std::string_view kTwoSockets = R"(
devices:
  - {name: "cpu[0-1]", kind: cpu, model: xeon-skylake}
  - {name: "gpu[0-7]", kind: gpu, sm: 80}
links:
  - {from: cpu0, to: cpu1, kind: numa, rate: 10 GB/s, latency: 100 ns}
  - {from: cpu0, to: "gpu[0-3]", kind: pcie, rate: 24 GB/s, latency: 100 ns}
  - {from: cpu1, to: "gpu[4-7]", kind: pcie, rate: 24 GB/s, latency: 100 ns}
)";

TEST(Cluster, RoutesOverNvswitchAtTheRateOfAllLinks) {
  const Cluster cluster(LoadTopology("hgx-h200"));
  const auto route = cluster.FindRoute(cluster.gpus()[0], cluster.gpus()[7]);
  EXPECT_EQ(Path(cluster, route), "gpu0 nvswitch gpu7");
  EXPECT_EQ(cluster.Bottleneck(*route), GigabytesPerSecond(450));
  EXPECT_TRUE(cluster.PeerToPeerPossible(cluster.gpus()[0], cluster.gpus()[7]));
}

TEST(Cluster, RouteToItselfIsEmpty) {
  const Cluster cluster(LoadTopology("hgx-h200"));
  EXPECT_TRUE(cluster.FindRoute(0, 0)->empty());
}

TEST(Cluster, CrossesTheNetworkBetweenHostsOverTheNearNic) {
  const Cluster cluster(LoadTopology("hgx-h100*2"));
  EXPECT_EQ(PathBetween(cluster, "node0/gpu3", "node1/gpu3"),
            "node0/gpu3 node0/pcie3 node0/nic3 switch0 node1/nic3 node1/pcie3 node1/gpu3");
  const auto route = cluster.FindRoute(Id(cluster, "node0/gpu3"), Id(cluster, "node1/gpu3"));
  EXPECT_EQ(cluster.Bottleneck(*route), GigabitsPerSecond(400));
}

TEST(Cluster, HostsAndNicsAreNoRouters) {
  // Two rails: a host that is on both must not carry traffic between them for others.
  const Cluster cluster(FromYaml(R"(
templates:
  both: {devices: [{name: gpu, kind: gpu, sm: 90}, {name: cpu, kind: cpu}, {name: "nic[0-1]", kind: nic, port_rate: 100 Gb/s}],
         links: [{from: cpu, to: gpu, kind: pcie, generation: 5}, {from: cpu, to: "nic[0-1]", kind: pcie, generation: 5}]}
groups: [{nodes: 3, of: both}]
devices: [{name: "rail[0-1]", kind: network_switch}]
links:
  - {from: node0/nic0, to: rail0, kind: network}
  - {from: node1/nic0, to: rail0, kind: network}
  - {from: node1/nic1, to: rail1, kind: network}
  - {from: node2/nic1, to: rail1, kind: network}
)"));
  EXPECT_EQ(PathBetween(cluster, "node0/gpu", "node1/gpu"),
            "node0/gpu node0/cpu node0/nic0 rail0 node1/nic0 node1/cpu node1/gpu");
  EXPECT_EQ(PathBetween(cluster, "node0/gpu", "node2/gpu"), "none");
}

// T05, T24.
TEST(Cluster, SocketLinkBoundsPairsOfTwoSockets) {
  const Cluster cluster(FromYaml(kTwoSockets));
  const auto inside = cluster.FindRoute(Id(cluster, "gpu0"), Id(cluster, "gpu3"));
  const auto across = cluster.FindRoute(Id(cluster, "gpu0"), Id(cluster, "gpu4"));
  EXPECT_EQ(cluster.Bottleneck(*inside), GigabytesPerSecond(24));
  EXPECT_EQ(cluster.Bottleneck(*across), GigabytesPerSecond(10));
  EXPECT_EQ(Path(cluster, across), "gpu0 cpu0 cpu1 gpu4");
  EXPECT_EQ(cluster.Latency(*across), Nanoseconds(300));
  EXPECT_FALSE(cluster.PeerToPeerPossible(Id(cluster, "gpu0"), Id(cluster, "gpu4")));
  EXPECT_EQ(cluster.PairBound(Id(cluster, "gpu0"), Id(cluster, "gpu4")), GigabytesPerSecond(10));
  EXPECT_EQ(cluster.Bisection(cluster.gpus()), GigabytesPerSecond(10));
}

TEST(Cluster, TheBisectionOfManyDevicesOnOneSwitchIsFoundAtOnce) {
  // One look at each of 65,536 ways through the hub; one look per pair of ways takes minutes.
  Topology star;
  constexpr std::uint32_t kGpus = 65'536;
  for (std::uint32_t i = 0; i < kGpus; ++i)
    star.devices.push_back({.name = "gpu" + std::to_string(i), .node = i});
  star.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
  star.node_count = kGpus;
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    for (const auto& [from, to] : {std::pair{i, kGpus}, std::pair{kGpus, i}})
      star.links.push_back({from, to, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(1), {}});
  }
  const Cluster cluster(std::move(star));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cluster.Bisection(cluster.gpus()), GigabitsPerSecond(kGpus / 2));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5);
}

// T19.
TEST(Cluster, BlockedPeerToPeerGoesUpToTheHostAndDownAgain) {
  const auto box = [](bool p2p) {
    return FromYaml(fmt::format(R"(
devices:
  - {{name: cpu, kind: cpu}}
  - {{name: pcie, kind: pcie_switch}}
  - {{name: "gpu[0-1]", kind: gpu, sm: 80}}
links:
  - {{from: cpu, to: pcie, kind: pcie, generation: 4}}
  - {{from: pcie, to: "gpu[0-1]", kind: pcie, generation: 4, p2p: {}}}
)",
                                p2p));
  };
  const Cluster open(box(true));
  EXPECT_EQ(PathBetween(open, "gpu0", "gpu1"), "gpu0 pcie gpu1");
  EXPECT_TRUE(open.PeerToPeerPossible(2, 3));
  const Cluster blocked(box(false));
  EXPECT_EQ(PathBetween(blocked, "gpu0", "gpu1"), "gpu0 pcie cpu pcie gpu1");
  EXPECT_FALSE(blocked.PeerToPeerPossible(2, 3));
}

// T22.
TEST(Cluster, IslandsAreComponentsWithoutARoute) {
  const Cluster cluster(FromYaml(R"(
devices: [{name: "gpu[0-3]", kind: gpu, sm: 80}]
links:
  - {from: gpu0, to: gpu1, kind: nvlink, generation: 3, width: 4}
  - {from: gpu2, to: gpu3, kind: nvlink, generation: 3, width: 4}
)"));
  EXPECT_THAT(cluster.Components(), ::testing::ElementsAre(0, 0, 1, 1));
  EXPECT_FALSE(cluster.FindRoute(0, 2).has_value());
  EXPECT_EQ(cluster.PairBound(0, 2).count(), 0u);
  EXPECT_TRUE(cluster.FindRoute(0, 1).has_value());
}

TEST(Cluster, LinksThatAreDownCarryNothing) {
  const Cluster cluster(FromYaml(R"(
devices: [{name: "gpu[0-1]", kind: gpu, sm: 80}]
links: [{from: gpu0, to: gpu1, kind: nvlink, generation: 3, width: 4, down: true}]
)"));
  EXPECT_FALSE(cluster.FindRoute(0, 1).has_value());
}

TEST(Cluster, PrefersTheWideRouteThenTheShortThenTheQuick) {
  const Cluster cluster(FromYaml(R"(
devices: [{name: "gpu[0-1]", kind: gpu, sm: 80}, {name: "sw[0-3]", kind: nv_switch}]
links:
  - {from: gpu0, to: gpu1, kind: nvlink, rate: 10 GB/s, latency: 1 ns}
  - {from: gpu0, to: "sw[0-3]", kind: nvlink, rate: 100 GB/s, latency: 9 ns}
  - {from: sw0, to: sw1, kind: nvlink, rate: 100 GB/s, latency: 1 ns}
  - {from: sw1, to: gpu1, kind: nvlink, rate: 100 GB/s, latency: 9 ns}
  - {from: sw2, to: gpu1, kind: nvlink, rate: 100 GB/s, latency: 5 ns}
  - {from: sw3, to: gpu1, kind: nvlink, rate: 100 GB/s, latency: 5 ns}
)"));
  EXPECT_EQ(PathBetween(cluster, "gpu0", "gpu1"), "gpu0 sw2 gpu1");
  const auto routes = cluster.EqualCostRoutes(0, 1);
  ASSERT_EQ(routes.count(), 3u);
  EXPECT_EQ(Path(cluster, routes.At(0)), "gpu0 sw1 gpu1");
  EXPECT_EQ(Path(cluster, routes.At(2)), "gpu0 sw3 gpu1");
}

// T01: devices of a group reach the other group through its gateway.
TEST(Cluster, GatewaysRelayForTheirGroup) {
  const Cluster cluster(FromYaml(R"(
templates:
  a: {devices: [{name: gpu0, kind: gpu, sm: 80, forward: true}, {name: "gpu[1-3]", kind: gpu, sm: 80}],
      links: [{from: "gpu[0-3]", to: "gpu[0-3]", kind: nvlink, rate: 50 GB/s, latency: 500 ns, pairing: all}]}
  b: {devices: [{name: gpu0, kind: gpu, sm: 80, forward: true}, {name: "gpu[1-5]", kind: gpu, sm: 80}],
      links: [{from: "gpu[0-5]", to: "gpu[1-5,0]", kind: nvlink, rate: 100 GB/s, latency: 500 ns}]}
groups: [{nodes: 1, of: a}, {nodes: 1, of: b}]
links: [{from: node0/gpu0, to: node1/gpu0, kind: network, rate: 12.5 GB/s, latency: 1 us}]
)"));
  EXPECT_EQ(cluster.gpus().size(), 10u);
  EXPECT_EQ(PathBetween(cluster, "node0/gpu2", "node1/gpu1"),
            "node0/gpu2 node0/gpu0 node1/gpu0 node1/gpu1");
  EXPECT_EQ(cluster.Bisection(cluster.gpus().subspan(0)).count() > 0, true);
  EXPECT_EQ(cluster.PairBound(Id(cluster, "node0/gpu2"), Id(cluster, "node1/gpu3")),
            FromGigabytesPerSecond(12.5));
}

TEST(Cluster, NearestNicsComeFirst) {
  const Cluster cluster(LoadTopology("hgx-h100"));
  const auto nics = cluster.NearestNics(Id(cluster, "gpu5"));
  ASSERT_EQ(nics.size(), 8u);
  EXPECT_EQ(cluster.topology().devices[nics[0]].name, "nic5");
  EXPECT_EQ(cluster.topology().devices[nics[1]].name, "nic4");
  EXPECT_EQ(cluster.topology().devices[nics[7]].name, "nic3");
}

TEST(Cluster, RefusesTwoRanksOnOneBusId) {
  Topology topology = LoadTopology("hgx-h100");
  for (Device& device : topology.devices) {
    if (device.kind == DeviceKind::kGpu && device.index < 2) device.bus_id = "0000:1b:00.0";
  }
  try {
    Cluster cluster(topology);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gpu0 and gpu1"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("0000:1b:00.0"));
  }
}

TEST(Cluster, FourThousandGpusTakeSecondsNotQuadraticMemory) {
  const Cluster cluster(LoadTopology("hgx-h100*512"));
  ASSERT_EQ(cluster.gpus().size(), 4096u);
  std::uint64_t hops = 0;
  for (std::size_t i = 0; i < 4096; i += 16) {
    const auto route = cluster.FindRoute(cluster.gpus()[i], cluster.gpus()[(i + 8) % 4096]);
    ASSERT_TRUE(route.has_value());
    hops += route->size();
  }
  EXPECT_EQ(hops, 256u * 6);
}

}  // namespace
}  // namespace windtunnel
