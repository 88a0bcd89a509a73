// Whole collectives at flow level against arithmetic: what shares, what bounds, what does not
// matter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "collectives/analytic_bound.h"
#include "collectives/symmetric_executor.h"
#include "interconnect/fabric.h"
#include "interconnect/foreign/foreign_topology.h"
#include "interconnect/link_load_report.h"
#include "tests/support/plain_setting.h"

namespace windtunnel {
namespace {

using ::windtunnel::testing::AllToAllPlan;
using ::windtunnel::testing::PlainSetting;
using ::windtunnel::testing::RingPlan;

constexpr BitsPerSecond kRate = GigabytesPerSecond(50);

Cluster Analytical(const std::string& kind, std::uint32_t count, double gib_per_s, double ns) {
  return Cluster(ReadForeignTopology(
      "topology: [ " + kind + " ]\nnpus_count: [ " + std::to_string(count) + " ]\nbandwidth: [ " +
          std::to_string(gib_per_s) + " ]\nlatency: [ " + std::to_string(ns) + " ]\n",
      ForeignFormat::kAstraSim, "test"));
}

Topology Endpoints(std::uint32_t count, bool relay = false) {
  Topology topology;
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i),
                                .kind = DeviceKind::kGpu,
                                .node = i,
                                .relay = relay,
                                .attributes = {{"protocol", "ideal"}}});
  }
  topology.node_count = count;
  return topology;
}
void Join(Topology* topology, DeviceId a, DeviceId b, BitsPerSecond rate,
          LinkKind kind = LinkKind::kNetwork) {
  topology->links.push_back({.from = a, .to = b, .kind = kind, .rate = rate});
  topology->links.push_back({.from = b, .to = a, .kind = kind, .rate = rate});
}
Cluster Fabric(std::uint32_t endpoints, const std::string& kind,
               std::map<std::string, std::string> options) {
  Topology topology = Endpoints(endpoints);
  BuildFabric({.kind = kind, .rate = kRate, .options = std::move(options)}, Catalogue::Shipped(),
              &topology);
  for (Device& device : topology.devices) device.attributes["protocol"] = "ideal";
  return Cluster(std::move(topology));
}

struct Outcome {
  ExecutionResult result;
  std::vector<LinkUse> use;
};
Outcome Simulate(const Plan& plan, const Cluster& cluster, std::vector<std::uint32_t> places = {}) {
  FlowNetwork network(cluster);
  PlainSetting setting(cluster, network);
  setting.places = std::move(places);
  Outcome outcome{.result = RunTimed(plan, network, setting)};
  const auto use = network.link_use();
  outcome.use.assign(use.begin(), use.end());
  return outcome;
}
double TimeOf(const Outcome& outcome) { return ToMicroseconds(outcome.result.time) * 1e-6; }

TEST(FlowLevelTest, TheRingTakesItsClosedForm) {
  for (const std::uint32_t n : {2u, 8u, 64u, 256u}) {
    const double bytes = 64.0 * 1024 * 1024;
    const double rate = 400.0 * 1024 * 1024 * 1024;
    const Outcome on_switch = Simulate(RingPlan(n, 16 << 20), Analytical("Switch", n, 400, 468));
    EXPECT_NEAR(TimeOf(on_switch) / (2 * (n - 1) * (936e-9 + bytes / (n * rate))), 1, 1e-4) << n;
    const Outcome on_ring = Simulate(RingPlan(n, 16 << 20), Analytical("Ring", n, 50, 500));
    EXPECT_NEAR(TimeOf(on_ring) / (2 * (n - 1) * (500e-9 + bytes / (n * rate / 8))), 1, 1e-4) << n;
    EXPECT_EQ(on_switch.result.messages, std::uint64_t{2} * (n - 1) * n);
  }
}

TEST(FlowLevelTest, TimeScalesWithRateAndSizeWithoutLatency) {
  const auto time = [](double gib, std::uint64_t count) {
    return TimeOf(Simulate(RingPlan(8, count), Analytical("Switch", 8, gib, 0)));
  };
  EXPECT_NEAR(time(50, 8 << 20) / time(100, 8 << 20), 2, 1e-4);
  EXPECT_NEAR(time(50, 16 << 20) / time(50, 8 << 20), 2, 1e-4);
}

// Case A07.
TEST(FlowLevelTest, AnOverSubscribedSpineSlowsWhatCrossesIt) {
  const Cluster cluster =
      Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}});
  const Cluster open = Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"spines", "1"}});
  // All to all: 16 of a leaf's 28 messages share one uplink of a NIC's rate.
  const double message = 4.0 * (4 << 20) / 50e9;
  EXPECT_NEAR(TimeOf(Simulate(AllToAllPlan(8, 4 << 20), cluster)) / message, 16, 0.05);
  EXPECT_NEAR(TimeOf(Simulate(AllToAllPlan(8, 4 << 20), open)) / message, 7, 0.05);
  // A ring that goes round leaf by leaf crosses once each way; one that alternates, always.
  const Plan ring = RingPlan(8, 32 << 20);
  const double ordered = TimeOf(Simulate(ring, cluster));
  EXPECT_NEAR(ordered / TimeOf(Simulate(ring, open)), 1, 1e-3);
  const double alternating = TimeOf(Simulate(ring, cluster, {0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_NEAR(alternating / ordered, 4, 0.05);
}

TEST(FlowLevelTest, TwoUnequalIslandsAreBoundByTheirBridge) {
  // A: 4 fully joined at 50 GB/s; B: a ring of 6 at 100 GB/s; 12.5 GB/s between gateways 0 and 4.
  Topology topology = Endpoints(10, true);
  for (DeviceId a = 0; a < 4; ++a) {
    for (DeviceId b = a + 1; b < 4; ++b) Join(&topology, a, b, GigabytesPerSecond(50));
  }
  for (DeviceId i = 0; i < 6; ++i) {
    Join(&topology, 4 + i, 4 + (i + 1) % 6, GigabytesPerSecond(100));
  }
  const auto bridge = static_cast<LinkId>(topology.links.size());
  Join(&topology, 0, 4, GigabitsPerSecond(100));
  const Outcome outcome = Simulate(RingPlan(10, 16 << 20), Cluster(topology));
  EXPECT_GE(outcome.use[bridge].payload, MiB(64));
  EXPECT_GE(outcome.use[bridge + 1].payload, MiB(64));
  EXPECT_GE(TimeOf(outcome), 64.0 * 1024 * 1024 / 12.5e9);
}

// `gpus` GPUs behind one 24 GB/s NIC per node, two nodes.
Cluster SharedNic(std::uint32_t gpus) {
  Topology topology;
  const auto add = [&](std::string name, DeviceKind kind, std::uint32_t node) {
    topology.devices.push_back({.name = std::move(name),
                                .kind = kind,
                                .node = node,
                                .attributes = {{"protocol", "ideal"}}});
    return static_cast<DeviceId>(topology.devices.size() - 1);
  };
  const DeviceId hub = add("switch", DeviceKind::kNetworkSwitch, kNoNode);
  for (std::uint32_t node = 0; node < 2; ++node) {
    const std::string place = "node" + std::to_string(node);
    const DeviceId bridge = add(place + "/bridge", DeviceKind::kPcieSwitch, node);
    const DeviceId nic = add(place + "/nic", DeviceKind::kNic, node);
    Join(&topology, bridge, nic, GigabytesPerSecond(1000), LinkKind::kPcie);
    Join(&topology, nic, hub, GigabytesPerSecond(24));
    const DeviceId crossbar = add(place + "/nvswitch", DeviceKind::kNvSwitch, node);
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const DeviceId gpu = add(place + "/gpu" + std::to_string(g), DeviceKind::kGpu, node);
      Join(&topology, gpu, bridge, GigabytesPerSecond(100), LinkKind::kPcie);
      Join(&topology, gpu, crossbar, GigabytesPerSecond(400), LinkKind::kNvlink);
    }
  }
  topology.node_count = 2;
  return Cluster(std::move(topology));
}

TEST(FlowLevelTest, OneNicForAllGpusIsShared) {
  const Cluster cluster = SharedNic(8);
  // All to all: 8 x 8 messages leave each node, so each GPU has 3 GB/s of the NIC.
  const double count = 1 << 20;
  const double per_gpu = 8 * 4 * count / TimeOf(Simulate(AllToAllPlan(16, 1 << 20), cluster)) / 1e9;
  EXPECT_NEAR(per_gpu, 3, 0.01);
  // A ring crosses once each way: bus bandwidth is the NIC's.
  const double bytes = 4.0 * (16 << 20);
  const double busbw =
      2 * 15.0 / 16 * bytes / TimeOf(Simulate(RingPlan(16, 16 << 20), cluster)) / 1e9;
  EXPECT_LE(busbw, 24.0);
  EXPECT_NEAR(busbw, 24, 0.3);
}

// Case C25.
TEST(FlowLevelTest, ATwistedTorusEndsAndMovesTheSameBytes) {
  const Plan plan = RingPlan(128, 128 * 4096, 4);
  const Outcome plain = Simulate(plan, Fabric(128, "torus", {{"sides", "4x4x8"}}));
  const Outcome twisted =
      Simulate(plan, Fabric(128, "torus", {{"sides", "4x4x8"}, {"twist", "2"}}));
  EXPECT_EQ(twisted.result.messages, plain.result.messages);
  EXPECT_GE(twisted.result.time, plain.result.time);
}

TEST(FlowLevelTest, RelabelledRanksOfASymmetricNetworkTakeTheSameTime) {
  const Cluster cluster = Analytical("Switch", 12, 50, 500);
  std::vector<std::uint32_t> places(12);
  std::iota(places.begin(), places.end(), 0u);
  const Picoseconds time = Simulate(AllToAllPlan(12, 100'000), cluster, places).result.time;
  std::reverse(places.begin(), places.end());
  std::swap(places[2], places[7]);
  EXPECT_EQ(Simulate(AllToAllPlan(12, 100'000), cluster, places).result.time, time);
}

AnalyticBound Bound(const Plan& plan, const Cluster& cluster,
                    std::vector<std::uint32_t> places = {}) {
  FlowNetwork idle(cluster, {.contention = false});
  PlainSetting setting(cluster, idle);
  setting.places = std::move(places);
  return BoundOf(plan, idle, setting);
}

TEST(AnalyticBoundTest, ARingOnASwitchReachesItsBound) {
  const Cluster cluster = Analytical("Switch", 16, 400, 468);
  const AnalyticBound bound = Bound(RingPlan(16, 16 << 20), cluster);
  EXPECT_EQ(bound.time, Simulate(RingPlan(16, 16 << 20), cluster).result.time);
  EXPECT_FALSE(bound.link_bound);
}

TEST(AnalyticBoundTest, NoRunIsFasterThanTheBusiestLink) {
  const Cluster cluster =
      Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}});
  for (const Plan& plan : {AllToAllPlan(8, 1 << 20), RingPlan(8, 8 << 20)}) {
    const std::vector<std::uint32_t> places = {0, 4, 1, 5, 2, 6, 3, 7};
    const AnalyticBound bound = Bound(plan, cluster, places);
    const Outcome run = Simulate(plan, cluster, places);
    EXPECT_LE(bound.time, run.result.time);
    EXPECT_GE(
        static_cast<double>(bound.time.count()) / static_cast<double>(run.result.time.count()),
        0.95);
    EXPECT_TRUE(bound.link_bound);
    EXPECT_THAT(DescribeBound(bound, cluster.topology()), ::testing::HasSubstr("spine0"));
  }
}

TEST(LinkReportTest, TheBusiestLinkLeadsAndNothingIsBusierThanTheRun) {
  const Cluster cluster =
      Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}});
  const Outcome run = Simulate(AllToAllPlan(8, 1 << 20), cluster);
  const LinkLoadReport report = BusiestLinks(cluster.topology(), run.use, run.result.time, 3);
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_THAT(report.rows[0].name, ::testing::HasSubstr("spine0"));
  EXPECT_GE(report.rows[0].utilisation, report.rows[1].utilisation);
  EXPECT_LE(report.rows[0].utilisation, 1.0);
  EXPECT_GT(report.rows[0].utilisation, 0.99);
  EXPECT_EQ(report.carrying, 20u);
  const std::string text = FormatLinkLoadReport(report);
  EXPECT_THAT(text, ::testing::HasSubstr("20 of 20 links carried data"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("drops")));
}

}  // namespace
}  // namespace windtunnel
