// The levels of fidelity against each other: the same plan on the same network, packet by packet,
// as flows, and against what no network can beat. Bands: 2 % of the closed form on an idle network
// and 5 % between flow and packet under load, from 1 MiB per flow on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "collectives/analytic_bound.h"
#include "collectives/functional.h"
#include "collectives/simulation.h"
#include "interconnect/fabric.h"
#include "interconnect/flow_network.h"
#include "interconnect/foreign/foreign_topology.h"
#include "interconnect/packet_network.h"
#include "interconnect/topology_file.h"
#include "tests/support/network_contract.h"
#include "tests/support/plain_setting.h"

namespace windtunnel {
namespace {

using ::windtunnel::testing::AllToAllPlan;
using ::windtunnel::testing::PlainSetting;
using ::windtunnel::testing::RingPlan;

constexpr BitsPerSecond kRate = GigabytesPerSecond(50);
constexpr double kFlowBand = 0.05;

/// Endpoints with a port of `kRate` each on a fabric with InfiniBand's frames.
Cluster Fabric(std::uint32_t endpoints, const std::string& kind,
               std::map<std::string, std::string> options = {}) {
  Topology topology;
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
  }
  topology.node_count = endpoints;
  BuildFabric({.kind = kind, .rate = kRate, .options = std::move(options)}, Catalogue::Shipped(),
              &topology);
  return Cluster(std::move(topology));
}

struct Levels {
  double packet_us = 0;
  double flow_us = 0;
  double bound_us = 0;
};

Levels RunLevels(const Plan& plan, const Cluster& cluster,
                 const std::vector<std::uint32_t>& places = {}) {
  const auto time_on = [&](Network& network) {
    PlainSetting setting(cluster, network);
    setting.places = places;
    return ToMicroseconds(RunTimed(plan, network, setting).time);
  };
  PacketNetwork packet(cluster.topology());
  FlowNetwork flow(cluster);
  FlowNetwork idle(cluster, {.contention = false});
  PlainSetting setting(cluster, idle);
  setting.places = places;
  return {time_on(packet), time_on(flow), ToMicroseconds(BoundOf(plan, idle, setting).time)};
}

void ExpectAgreement(const Levels& levels, double band, const std::string& what) {
  EXPECT_NEAR(levels.flow_us / levels.packet_us, 1, band) << what;
  EXPECT_GE(levels.packet_us, levels.bound_us) << what;
  EXPECT_GE(levels.flow_us, levels.bound_us) << what;
}

/// Every pair is one message, all at once, each on a channel of its own.
Plan Messages(std::uint32_t ranks, const std::vector<std::pair<Rank, Rank>>& pairs, Bytes size) {
  Plan plan;
  plan.request = {.function = Function::kAllToAll,
                  .rank_count = ranks,
                  .type = DataType::kInt8,
                  .count = size.count()};
  plan.algorithm = "messages";
  std::uint32_t channel = 0;
  for (const auto& [from, to] : pairs) {
    const Peer target{to, 0};
    const Peer source{from, 0};
    auto sends = std::make_shared<ListProgram>();
    sends->Append({.count = size.count(), .send_to = {&target, 1}, .has_source = true});
    auto receives = std::make_shared<ListProgram>();
    receives->Append(
        {.count = size.count(), .receive_from = {&source, 1}, .has_destination = true});
    plan.blocks.push_back({from, channel, "send", sends});
    plan.blocks.push_back({to, channel, "receive", receives});
    ++channel;
  }
  return plan;
}

TEST(LevelsTest, OnAnIdleNetworkAMessageTakesItsClosedForm) {
  for (const Cluster& cluster :
       {Fabric(8, "single-switch"), Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}}),
        Fabric(8, "torus", {{"sides", "2x4"}})}) {
    const Route route = *cluster.FindRoute(cluster.gpus()[0], cluster.gpus()[7]);
    const WireFormat format = LinkWireFormat(cluster.topology(), route[0]);
    for (const Bytes size : {MiB(1), MiB(16), MiB(256)}) {
      const double closed =
          ToMicroseconds(SerializationTime(format.Wire(size), kRate) + cluster.Latency(route));
      const Levels levels = RunLevels(Messages(8, {{0, 7}}, size), cluster);
      const std::string what =
          std::to_string(route.size()) + " hops, " + std::to_string(size.count() >> 20) + " MiB";
      EXPECT_NEAR(levels.packet_us / closed, 1, 0.02) << what;
      EXPECT_NEAR(levels.flow_us / closed, 1, 1e-6) << what;
      ExpectAgreement(levels, 0.02, what);
    }
  }
}

TEST(LevelsTest, OnAnIdleNetworkCollectivesTakeTheirClosedForm) {
  const Cluster cluster = Fabric(8, "single-switch");
  const Route route = *cluster.FindRoute(cluster.gpus()[0], cluster.gpus()[1]);
  const WireFormat format = LinkWireFormat(cluster.topology(), route[0]);
  for (const std::uint64_t mib : {8, 64}) {
    const Bytes chunk = MiB(mib) / 8;
    const double closed =
        14 * ToMicroseconds(SerializationTime(format.Wire(chunk), kRate) + cluster.Latency(route));
    const Levels levels = RunLevels(RingPlan(8, MiB(mib).count() / 4), cluster);
    EXPECT_NEAR(levels.packet_us / closed, 1, 0.02) << mib;
    ExpectAgreement(levels, 0.02, "ring");
  }
}

// Four, two or one of four senders cross one uplink of a port's rate.
TEST(LevelsTest, FlowsShareASingleBottleneck) {
  const Cluster cluster =
      Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}});
  for (const Bytes size : {MiB(1), MiB(8)}) {
    for (const auto& pairs : std::vector<std::vector<std::pair<Rank, Rank>>>{
             {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, {{0, 4}, {1, 5}, {2, 3}}, {{0, 4}, {1, 2}}}) {
      ExpectAgreement(RunLevels(Messages(8, pairs, size), cluster), kFlowBand,
                      std::to_string(pairs.size()) + " messages");
    }
  }
}

TEST(LevelsTest, AnIncastIsBoundByItsTarget) {
  const Cluster cluster = Fabric(17, "single-switch");
  for (const std::uint32_t senders : {2u, 10u, 16u}) {
    for (const Bytes size : {MiB(1), MiB(4)}) {
      std::vector<std::pair<Rank, Rank>> pairs;
      for (Rank r = 1; r <= senders; ++r) pairs.emplace_back(r, 0);
      const Levels levels = RunLevels(Messages(17, pairs, size), cluster);
      ExpectAgreement(levels, kFlowBand, std::to_string(senders) + " to one");
      const double wire = static_cast<double>(size.count()) * senders / 50e3;
      EXPECT_GE(levels.flow_us, wire);
    }
  }
}

TEST(LevelsTest, AllToAllAgrees) {
  for (const std::uint32_t ranks : {8u, 16u}) {
    ExpectAgreement(
        RunLevels(AllToAllPlan(ranks, MiB(1).count() / 4), Fabric(ranks, "single-switch")),
        kFlowBand, std::to_string(ranks) + " ranks");
  }
}

// 4:1 between two leaves of four: what crosses has a quarter of a port's rate.
class OversubscribedTest : public ::testing::Test {
 protected:
  const Cluster cluster_ =
      Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}});
  const Cluster open_ = Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"spines", "4"}});
  const std::vector<std::uint32_t> alternating_ = {0, 4, 1, 5, 2, 6, 3, 7};
};

TEST_F(OversubscribedTest, AllToAllIsBoundByWhatCrosses) {
  const Levels levels = RunLevels(AllToAllPlan(8, MiB(4).count() / 4), cluster_);
  ExpectAgreement(levels, kFlowBand, "all to all");
  // 16 messages over each uplink.
  const double message = static_cast<double>(MiB(4).count()) / 50e3;
  EXPECT_NEAR(levels.packet_us / message, 16, 0.8);
}

// Case A07.
TEST_F(OversubscribedTest, ARingByLeafIsNotSlowedAndAnAlternatingOneFourTimes) {
  const Plan ring = RingPlan(8, MiB(64).count() / 4);
  const Levels ordered = RunLevels(ring, cluster_);
  const Levels ordered_open = RunLevels(ring, open_);
  const Levels alternating = RunLevels(ring, cluster_, alternating_);
  ExpectAgreement(ordered, kFlowBand, "by leaf");
  ExpectAgreement(ordered_open, kFlowBand, "by leaf, open");
  ExpectAgreement(alternating, kFlowBand, "alternating");
  EXPECT_NEAR(ordered.packet_us / ordered_open.packet_us, 1, 0.02);
  EXPECT_NEAR(ordered.flow_us / ordered_open.flow_us, 1, 0.001);
  EXPECT_NEAR(alternating.packet_us / ordered.packet_us, 4, 0.2);
  EXPECT_NEAR(alternating.flow_us / ordered.flow_us, 4, 0.1);
}

// Until the uplink is slower than a port: four ports at 8:1 share half of one's rate.
TEST_F(OversubscribedTest, ARingByLeafSlowsOnlyBelowThePortsRate) {
  const Plan ring = RingPlan(8, MiB(64).count() / 4);
  const Levels equal = RunLevels(ring, cluster_);
  const Levels half = RunLevels(
      ring, Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "8:1"}}));
  ExpectAgreement(equal, kFlowBand, "uplink as fast as a port");
  ExpectAgreement(half, kFlowBand, "uplink half as fast");
  EXPECT_NEAR(half.flow_us / equal.flow_us, 2, 0.05);
  EXPECT_NEAR(half.packet_us / equal.packet_us, 2, 0.1);
}

// Which of several networks and orders is faster does not depend on the level.
TEST(LevelsTest, AlternativesComeInTheSameOrder) {
  const Plan all_to_all = AllToAllPlan(8, MiB(1).count() / 4);
  const Plan ring = RingPlan(8, MiB(16).count() / 4);
  const std::vector<std::uint32_t> alternating = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<Levels> runs;
  for (const Cluster& cluster :
       {Fabric(8, "single-switch"),
        Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "4:1"}}),
        Fabric(8, "leaf-spine", {{"ports_per_leaf", "4"}, {"oversubscription", "2:1"}}),
        Fabric(8, "rail-optimised", {{"ports_per_leaf", "4"}})}) {
    runs.push_back(RunLevels(all_to_all, cluster));
    runs.push_back(RunLevels(ring, cluster));
    runs.push_back(RunLevels(ring, cluster, alternating));
  }
  for (std::size_t a = 0; a < runs.size(); ++a) {
    ExpectAgreement(runs[a], kFlowBand, "alternative " + std::to_string(a));
    for (std::size_t b = 0; b < runs.size(); ++b) {
      // Those that packet level tells apart by more than the band.
      if (runs[a].packet_us < runs[b].packet_us * (1 - kFlowBand)) {
        EXPECT_LT(runs[a].flow_us, runs[b].flow_us) << a << " before " << b;
      }
    }
  }
}

double PacketUs(const Plan& plan, const Cluster& cluster, const PacketNetwork::Options& options) {
  PacketNetwork network(cluster.topology(), options);
  PlainSetting setting(cluster, network);
  return ToMicroseconds(RunTimed(plan, network, setting).time);
}

/// How much longer frame by frame takes than in bursts.
double FramesOverBursts(const Plan& plan, const Cluster& cluster, double bursts_us) {
  PacketNetwork::Options frames;
  frames.burst.bursts_per_message = 0;
  return PacketUs(plan, cluster, frames) / bursts_us;
}

// 64 endpoints send each other 1 MiB, all at once: the hosts of a leaf meet in its uplinks, what
// comes from three leaves in the downlinks.
TEST(LargeLevelsTest, AllToAllOverFourLeavesAgrees) {
  const Plan plan = AllToAllPlan(64, MiB(1).count() / 4);
  for (const char* oversubscription : {"1:1", "4:1"}) {
    const Cluster cluster = Fabric(
        64, "leaf-spine", {{"ports_per_leaf", "16"}, {"oversubscription", oversubscription}});
    const Levels levels = RunLevels(plan, cluster);
    ExpectAgreement(levels, kFlowBand, oversubscription);
    EXPECT_NEAR(FramesOverBursts(plan, cluster, levels.packet_us), 1, 0.05) << oversubscription;
  }
}

// Eight hosts of 12.5 GB/s on one link of 50 GB/s, which every message crosses.
TEST(LargeLevelsTest, ARingOverOneBackboneAgrees) {
  const Cluster cluster(ReadForeignTopology(
      "<platform version='4.1'><cluster id='c' prefix='n' radical='0-7' suffix='' speed='1Gf'"
      " bw='12.5GBps' lat='1us' bb_bw='50GBps' bb_lat='1us'/></platform>",
      ForeignFormat::kSimGridXml, "test"));
  const Plan plan = RingPlan(8, MiB(64).count() / 4);
  const Levels levels = RunLevels(plan, cluster);
  ExpectAgreement(levels, kFlowBand, "ring");
  EXPECT_NEAR(FramesOverBursts(plan, cluster, levels.packet_us), 1, 0.05);
}

class DcqcnLevelsTest : public ::testing::Test {
 protected:
  static Cluster Roce() {
    Topology topology =
        testing::StarTopology(11, LinkKind::kNetwork, GigabitsPerSecond(100), Nanoseconds(500));
    topology.devices.back().attributes["protocol"] = "roce";
    return Cluster(std::move(topology));
  }
  static Levels Incast(Bytes size, bool dcqcn) {
    std::vector<std::pair<Rank, Rank>> pairs;
    for (Rank r = 1; r <= 10; ++r) pairs.emplace_back(r, 0);
    const Cluster cluster = Roce();
    const Plan plan = Messages(11, pairs, size);
    Levels levels = RunLevels(plan, cluster);
    PacketNetwork::Options options;
    options.dcqcn.enabled = dcqcn;
    levels.packet_us = PacketUs(plan, cluster, options);
    return levels;
  }
};

TEST_F(DcqcnLevelsTest, AnIncastThatPausesAloneEndsAsFlowsDo) {
  ExpectAgreement(Incast(MiB(4), false), kFlowBand, "pauses");
}

// Known gap, and DCQCN's own: ten senders at line rate are cut every 50 us while the queue drains,
// ten times and more, and rise by a thousandth of the line per 55 us afterwards, so a hundred rises
// later the wire is full again. It costs about that time once, however long the flows are.
TEST_F(DcqcnLevelsTest, AnIncastLosesTheTimeOfAHundredRisesAndThenFillsTheWire) {
  const double hundred_rises = 5'500;
  const Levels few = Incast(MiB(4), true);
  const Levels many = Incast(MiB(256), true);
  EXPECT_NEAR((few.packet_us - few.flow_us) / hundred_rises, 0.6, 0.4);
  EXPECT_NEAR((many.packet_us - many.flow_us) / hundred_rises, 0.8, 0.4);
  ExpectAgreement(many, kFlowBand, "256 MiB");
}

/// Endpoints on a torus or switch, as other simulators write them.
Topology Imported(const std::string& kinds, const std::string& counts) {
  const bool two = kinds.find(',') != std::string::npos;
  return ReadTopologyText("topology: [ " + kinds + " ]\nnpus_count: [ " + counts +
                              " ]\nbandwidth: [ " + (two ? "50, 50" : "50") + " ]\nlatency: [ " +
                              (two ? "500, 500" : "500") + " ]\n",
                          TopologyFormat::kYaml, "test");
}

SimulationOptions At(Fidelity fidelity, const std::string& algorithm = "") {
  SimulationOptions options{.fidelity = fidelity, .algorithm = algorithm};
  options.ideal_endpoints = true;
  return options;
}

// Two hosts of eight on rails: NCCL's rings cross between equal NICs.
TEST(LevelsTest, ARingOverRailsAgrees) {
  const Topology topology = LoadTopology("hgx-h100*2:ib-ndr-rail");
  for (const std::uint64_t mib : {64, 256}) {
    const CollectiveRequest request{.rank_count = 16, .count = MiB(mib).count() / 4};
    const CallOutcome packet =
        Simulation(Cluster(topology), At(Fidelity::kPacket, "ring")).Run(request);
    const CallOutcome flow =
        Simulation(Cluster(topology), At(Fidelity::kFlow, "ring")).Run(request);
    EXPECT_NEAR(ToMicroseconds(flow.time) / ToMicroseconds(packet.time), 1, kFlowBand) << mib;
    EXPECT_GE(packet.time, packet.ideal) << mib;
    EXPECT_GE(flow.time, flow.ideal) << mib;
  }
}

// A call that waits in full buffers says so; one without queues is bound by a link or by hops.
TEST(LevelsTest, WhatWaitsInQueuesIsNotBoundByHops) {
  const auto bound = [](Cluster cluster, Function function, Bytes size) {
    const auto ranks = static_cast<std::uint32_t>(cluster.gpus().size());
    return Simulation(std::move(cluster), At(Fidelity::kPacket))
        .Run({.function = function, .rank_count = ranks, .count = size.count() / 4})
        .bound;
  };
  EXPECT_THAT(bound(Fabric(64, "torus", {{"sides", "4x2"}, {"ports_per_router", "8"}}),
                    Function::kAllToAll, MiB(1)),
              ::testing::HasSubstr("queues in the network, the longest before router"));
  EXPECT_EQ(bound(Cluster(Imported("Switch", "8")), Function::kAllReduce, KiB(4)), "hop latency");
}

// Payload and time are separate: no level changes a bit of the gradients.
TEST(LevelsTest, GradientsAreTheSameBitsAtEveryLevel) {
  const Topology topology = LoadTopology("hgx-h100*2:ib-ndr-rail");
  CollectiveRequest request{.rank_count = 16, .count = 50'003};
  for (const char* algorithm :
       {"", "ring", "tree", "direct", "halving-doubling", "recursive-doubling"}) {
    std::vector<std::vector<std::byte>> results;
    for (const Fidelity fidelity : {Fidelity::kPacket, Fidelity::kFlow, Fidelity::kAnalytic}) {
      const Simulation simulation(Cluster(topology), At(fidelity, algorithm));
      RankBuffers buffers = MakeBuffers(request);
      std::uint32_t state = 2463534242;
      for (auto& input : buffers.input) {
        for (std::size_t i = 0; i + 4 <= input.size(); i += 4) {
          state = state * 1664525 + 1013904223;
          const float gradient = static_cast<float>(static_cast<std::int32_t>(state)) * 3.1e-9F;
          std::memcpy(input.data() + i, &gradient, 4);
        }
      }
      RunFunctional(simulation.PlanOf(request), buffers);
      std::vector<std::byte> all;
      for (const auto& output : buffers.output) all.insert(all.end(), output.begin(), output.end());
      results.push_back(std::move(all));
    }
    EXPECT_TRUE(results[0] == results[1]) << algorithm;
    EXPECT_TRUE(results[0] == results[2]) << algorithm;
  }
}

// Known gap: the ports of a router take turns whatever number of flows each brings (the parking lot
// of switches with credits), and what waits for a full output fills the buffer that others share.
// More traffic than such a network can carry makes packets slower than max-min fair flows, the more
// the faster endpoints push into each router.
TEST(LargeLevelsTest, ToriAndDragonfliesFullOfTrafficAreSlowerAsPackets) {
  struct Case {
    const char* what;
    Cluster cluster;
    Bytes size;
    double least, most;  ///< Packets over flows.
    double by_routes;    ///< At most, with turns by routes in place of ports.
    double bursts;       ///< Frames over bursts: the fuller, the more it matters who comes first.
  };
  const Case cases[] = {
      {"torus, an endpoint per router", Fabric(16, "torus", {{"sides", "4x4"}}), MiB(4), 0.95, 1.05,
       1.05, 0.02},
      {"torus of endpoints", Cluster(Imported("Ring, Ring", "4, 4")), MiB(4), 1, 1.8, 1.4, 0.05},
      {"ring of switches", Cluster(Imported("Ring, Switch", "4, 8")), MiB(2), 1, 1.3, 1.3, 0.05},
      {"torus, eight endpoints per router",
       Fabric(64, "torus", {{"sides", "4x2"}, {"ports_per_router", "8"}}), MiB(1), 1.5, 3, 1.5,
       0.05},
      {"dragonfly", Fabric(64, "dragonfly", {{"ports_per_router", "2"}}), MiB(1), 1, 1.3, 1.2,
       0.1}};
  for (const Case& c : cases) {
    const auto ranks = static_cast<std::uint32_t>(c.cluster.gpus().size());
    const Plan plan = AllToAllPlan(ranks, c.size.count() / 4);
    const Levels levels = RunLevels(plan, c.cluster);
    const double ratio = levels.packet_us / levels.flow_us;
    EXPECT_GE(ratio, c.least) << c.what;
    EXPECT_LE(ratio, c.most) << c.what;
    EXPECT_GE(levels.packet_us, levels.bound_us) << c.what;
    PacketNetwork::Options options;
    options.arbitration = Arbitration::kRoutes;
    EXPECT_LE(PacketUs(plan, c.cluster, options) / levels.flow_us, c.by_routes) << c.what << ratio;
    EXPECT_NEAR(FramesOverBursts(plan, c.cluster, levels.packet_us), 1, c.bursts) << c.what;
  }
}

// One rank in place of all gives what all give: times, links, shares, everything but the events.
TEST(FoldingTest, ChangesNothingButTheWork) {
  struct Case {
    const char* algorithm;
    const char* kinds;
    const char* counts;
    const char* symmetry;
  };
  for (const Case& c :
       {Case{"ring", "Switch", "96", "rotations of 96 ranks: 1 of 96 simulated"},
        Case{"ring", "Ring", "96", "rotations of 96 ranks: 1 of 96 simulated"},
        Case{"direct", "Switch", "96", "rotations of 96 ranks: 1 of 96 simulated"},
        Case{"direct", "FullyConnected", "96", "rotations of 96 ranks: 1 of 96 simulated"},
        Case{"halving-doubling", "Switch", "128",
             "exchanges over 7 bits of the rank: 1 of 128 simulated"},
        Case{"torus", "Ring, Ring", "8, 16", "translations of 8 x 16 ranks: 1 of 128 simulated"}}) {
    const Topology topology = Imported(c.kinds, c.counts);
    SimulationOptions options = At(Fidelity::kFlow, c.algorithm);
    Simulation folded(Cluster(topology), options);
    options.fold_symmetry = false;
    Simulation full(Cluster(topology), options);
    for (const std::uint64_t per_rank : {1, 4096}) {
      const CollectiveRequest request{.rank_count = full.rank_count(),
                                      .count = per_rank * full.rank_count() * 4};
      const CallOutcome one = folded.Run(request);
      const CallOutcome all = full.Run(request);
      SCOPED_TRACE(std::string(c.algorithm) + " on " + c.kinds);
      EXPECT_EQ(one.symmetry, c.symmetry) << one.no_symmetry;
      EXPECT_EQ(all.symmetry, "");
      EXPECT_EQ(one.time, all.time);
      EXPECT_EQ(one.messages, all.messages);
      EXPECT_EQ(one.bound, all.bound);
      EXPECT_EQ(one.ideal, all.ideal);
      ASSERT_EQ(one.shares.size(), all.shares.size());
      for (std::size_t i = 0; i < all.shares.size(); ++i) {
        EXPECT_EQ(one.shares[i].time, all.shares[i].time) << all.shares[i].cause;
      }
      ASSERT_EQ(one.links.rows.size(), all.links.rows.size());
      for (std::size_t i = 0; i < all.links.rows.size(); ++i) {
        EXPECT_EQ(one.links.rows[i].name, all.links.rows[i].name);
        EXPECT_EQ(one.links.rows[i].use.payload, all.links.rows[i].use.payload);
        EXPECT_EQ(one.links.rows[i].use.wire, all.links.rows[i].use.wire);
        EXPECT_EQ(one.links.rows[i].use.busy, all.links.rows[i].use.busy);
        EXPECT_EQ(one.links.rows[i].use.packets, all.links.rows[i].use.packets);
      }
    }
  }
}

/// Endpoints whose traffic all passes one link of twice the rate of their ports.
Topology Backbone(std::uint32_t endpoints) {
  Topology topology;
  topology.devices = {{.name = "in", .kind = DeviceKind::kNetworkSwitch, .node = kNoNode},
                      {.name = "out", .kind = DeviceKind::kNetworkSwitch, .node = kNoNode}};
  const auto join = [&](DeviceId from, DeviceId to, BitsPerSecond rate) {
    topology.links.push_back({.from = from,
                              .to = to,
                              .kind = LinkKind::kNetwork,
                              .rate = rate,
                              .latency = Nanoseconds(500)});
  };
  join(0, 1, 2 * kRate);
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    const auto id = static_cast<DeviceId>(topology.devices.size());
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(i), .kind = DeviceKind::kGpu, .node = i});
    join(id, 0, kRate);
    join(1, id, kRate);
  }
  topology.node_count = endpoints;
  return topology;
}

// Links that the symmetry of the ranks maps to themselves carry the traffic of all: the uplink of
// a rack, a backbone. One rank on such a network has its part of them.
TEST(FoldingTest, LinksThatRanksShareAreSharedInTheFoldedRun) {
  const std::map<std::string, std::string> two{{"hosts_per_leaf", "64"}, {"uplinks", "1"}};
  const std::map<std::string, std::string> four{{"hosts_per_leaf", "32"}, {"uplinks", "2"}};
  const Topology racks2 = Fabric(128, "leaf-spine", two).topology();
  const Topology racks4 = Fabric(128, "leaf-spine", four).topology();
  const Topology backbone = Backbone(96);
  struct Case {
    const char* what;
    const Topology* topology;
    const char* algorithm;
    RoutePolicy routing;
  };
  for (const Case& c : {Case{"two racks", &racks2, "halving-doubling", RoutePolicy::kAdaptive},
                        Case{"two racks", &racks2, "recursive-doubling", RoutePolicy::kAdaptive},
                        Case{"four racks", &racks4, "halving-doubling", RoutePolicy::kStatic},
                        Case{"backbone", &backbone, "direct", RoutePolicy::kAdaptive},
                        Case{"backbone", &backbone, "ring", RoutePolicy::kAdaptive}}) {
    SimulationOptions options = At(Fidelity::kFlow, c.algorithm);
    options.routing = c.routing;
    Simulation folded(Cluster(*c.topology), options);
    options.fold_symmetry = false;
    Simulation full(Cluster(*c.topology), options);
    const CollectiveRequest request{.rank_count = full.rank_count(),
                                    .count = full.rank_count() * 4096};
    const CallOutcome one = folded.Run(request);
    const CallOutcome all = full.Run(request);
    SCOPED_TRACE(std::string(c.what) + " " + c.algorithm);
    EXPECT_NE(one.symmetry, "") << one.no_symmetry;
    EXPECT_NEAR(ToMicroseconds(one.time), ToMicroseconds(all.time), 1e-3);
    ASSERT_EQ(one.links.rows.size(), all.links.rows.size());
    EXPECT_EQ(one.links.rows.front().use.payload, all.links.rows.front().use.payload);
    EXPECT_EQ(one.links.rows.front().use.wire, all.links.rows.front().use.wire);
    EXPECT_NEAR(one.links.rows.front().utilisation, all.links.rows.front().utilisation, 1e-6);
    options.fidelity = Fidelity::kAnalytic;
    const CallOutcome bound_of_all = Simulation(Cluster(*c.topology), options).Run(request);
    options.fold_symmetry = true;
    EXPECT_EQ(Simulation(Cluster(*c.topology), options).Run(request).time, bound_of_all.time);
  }
}

// A proof that fails leaves the run as it would have been without it.
TEST(FoldingTest, AFailedProofChangesNothing) {
  const Topology topology = Imported("Ring, Ring", "8, 16");
  SimulationOptions options = At(Fidelity::kFlow, "ring");
  const CollectiveRequest request{.rank_count = 128, .count = 128 * 1024};
  const CallOutcome tried = Simulation(Cluster(topology), options).Run(request);
  options.fold_symmetry = false;
  const CallOutcome plain = Simulation(Cluster(topology), options).Run(request);
  EXPECT_EQ(tried.symmetry, "");
  EXPECT_NE(tried.no_symmetry, "");
  EXPECT_EQ(tried.time, plain.time);
  EXPECT_EQ(tried.events, plain.events);
}

}  // namespace
}  // namespace windtunnel
