#include "collectives/symmetric_executor.h"

#include <gtest/gtest.h>

#include <map>

#include "interconnect/foreign/foreign_topology.h"
#include "tests/support/plain_setting.h"

namespace windtunnel {
namespace {

using ::windtunnel::testing::PlainSetting;
using ::windtunnel::testing::RingPlan;

// Endpoints that take their time.
PlainSetting Slow(const Cluster& cluster, Network& network) {
  PlainSetting setting(cluster, network);
  setting.times = {.slice_overhead = Nanoseconds(40), .reduce_rate = GigabytesPerSecond(300)};
  setting.cost = {.reaction = Nanoseconds(70), .credit_return = Nanoseconds(200)};
  setting.start = SimTime(Nanoseconds(500));
  setting.end = Nanoseconds(300);
  return setting;
}

Cluster Analytical(const std::string& kind, const std::string& count) {
  const std::string dimensions = kind.find(',') == std::string::npos ? "1" : "2";
  const std::string rate = dimensions == "1" ? "50" : "50, 30";
  const std::string latency = dimensions == "1" ? "500" : "500, 700";
  return Cluster(ReadForeignTopology("topology: [ " + kind + " ]\nnpus_count: [ " + count +
                                         " ]\nbandwidth: [ " + rate + " ]\nlatency: [ " + latency +
                                         " ]\n",
                                     ForeignFormat::kAstraSim, "test"));
}

// Every rank sends a message of its own size of step `k` to the rank `offsets[k]` away, and waits
// for what comes from the other side.
Plan ShiftPlan(std::uint32_t ranks, const std::vector<std::uint32_t>& offsets, bool exchange) {
  Plan plan;
  plan.request = {.function = Function::kAllToAll, .rank_count = ranks, .count = 1};
  plan.algorithm = "shifts";
  for (Rank r = 0; r < ranks; ++r) {
    auto program = std::make_shared<ListProgram>();
    for (std::uint32_t k = 0; k < offsets.size(); ++k) {
      const Rank to = exchange ? r ^ offsets[k] : (r + offsets[k]) % ranks;
      const Rank from = exchange ? r ^ offsets[k] : (r + ranks - offsets[k]) % ranks;
      const Peer out{to, 0};
      const Peer in{from, 0};
      program->Append({.count = 100'000, .send_to = {&out, 1}, .has_source = true, .step = k});
      program->Append(
          {.count = 100'000, .receive_from = {&in, 1}, .has_destination = true, .step = k});
    }
    plan.blocks.push_back({.rank = r, .role = "shift", .program = program});
  }
  return plan;
}

WayOfConnection WaysOf(const PlainSetting& setting) {
  return [&setting](const Block& from, const Peer& to) {
    return ConnectionWay{.cost = setting.CostFrom(from.rank),
                         .route = setting.RouteOf(from.rank, to.rank)};
  };
}

// Both ways of running must agree to the picosecond, on times and on links.
void ExpectExact(const Plan& plan, const Cluster& cluster, const std::string& symmetry) {
  FlowNetwork full_network(cluster);
  PlainSetting full_setting = Slow(cluster, full_network);
  const ExecutionResult full = RunTimed(plan, full_network, full_setting);
  FlowNetwork unused(cluster);
  PlainSetting setting = Slow(cluster, unused);
  std::string why;
  const auto folded = RunSymmetric(plan, cluster, setting, WaysOf(setting), &why);
  ASSERT_TRUE(folded.has_value()) << why;
  EXPECT_EQ(folded->symmetry, symmetry);
  EXPECT_EQ(folded->result.time, full.time);
  EXPECT_EQ(folded->result.rank_end, full.rank_end);
  EXPECT_EQ(folded->result.messages, full.messages);
  EXPECT_LT(folded->result.events, full.events);
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    EXPECT_EQ(folded->result.accounts[b].wait_data, full.accounts[b].wait_data);
    EXPECT_EQ(folded->result.accounts[b].wait_link, full.accounts[b].wait_link);
  }
  const auto use = full_network.link_use();
  for (LinkId link = 0; link < use.size(); ++link) {
    EXPECT_EQ(folded->link_use[link].payload, use[link].payload) << link;
    EXPECT_EQ(folded->link_use[link].busy, use[link].busy) << link;
  }
}

TEST(SymmetricExecutorTest, ARingOnASwitchIsARotation) {
  ExpectExact(RingPlan(8, 8 * 4096), Analytical("Switch", "8"),
              "rotations of 8 ranks: 1 of 8 simulated");
  ExpectExact(RingPlan(12, 12 * 4096, 4), Analytical("Switch", "12"),
              "rotations of 12 ranks: 1 of 12 simulated");
}

TEST(SymmetricExecutorTest, ARingOnARingIsARotation) {
  ExpectExact(RingPlan(9, 9 * 4096), Analytical("Ring", "9"),
              "rotations of 9 ranks: 1 of 9 simulated");
}

TEST(SymmetricExecutorTest, SharedLinksAreFoldedWithTheirFlows) {
  // Three steps along the ring: each link carries three flows at a time.
  ExpectExact(ShiftPlan(10, {3, 1, 2}, false), Analytical("Ring", "10"),
              "rotations of 10 ranks: 1 of 10 simulated");
}

TEST(SymmetricExecutorTest, ExchangesOnASwitchAreBits) {
  ExpectExact(ShiftPlan(16, {8, 4, 2, 1}, true), Analytical("Switch", "16"),
              "exchanges over 4 bits of the rank: 1 of 16 simulated");
}

TEST(SymmetricExecutorTest, EverybodyToEverybodyIsARotation) {
  const CollectiveRequest request{.rank_count = 12, .count = 12 * 4096};
  const Plan plan = FindAlgorithm("direct").MakePlan(request, PlainLayout(request, 1, 1 << 30));
  EXPECT_NE(plan.symmetry, "");
  ExpectExact(plan, Analytical("Switch", "12"), "rotations of 12 ranks: 1 of 12 simulated");
}

TEST(SymmetricExecutorTest, AllReduceOnATorusIsATranslation) {
  const CollectiveRequest request{.rank_count = 12, .count = 12 * 4096};
  ChannelLayout layout = PlainLayout(request, 4, 1 << 30);
  layout.sides = {3, 4};
  const Plan plan = FindAlgorithm("torus").MakePlan(request, layout);
  EXPECT_NE(plan.symmetry, "");
  ExpectExact(plan, Analytical("Ring, Ring", "3, 4"),
              "translations of 3 x 4 ranks: 1 of 12 simulated");
}

// Two channels on one route: first one behind the other, then both at once.
TEST(SymmetricExecutorTest, MessagesThatMeetOnOneRouteAreNotFolded) {
  const Cluster cluster = Analytical("Switch", "8");
  FlowNetwork network(cluster);
  PlainSetting setting = Slow(cluster, network);
  const auto one_per_route = [&](const Block& from, const Peer& to) {
    ConnectionWay way = WaysOf(setting)(from, to);
    way.one_per_route = true;
    return way;
  };
  const CollectiveRequest request{.rank_count = 8, .count = 8 * 4096};
  std::string why;
  for (const std::uint32_t channels : {1u, 2u}) {
    const Plan plan =
        FindAlgorithm("ring").MakePlan(request, PlainLayout(request, channels, 1 << 30));
    EXPECT_EQ(RunSymmetric(plan, cluster, setting, one_per_route, &why).has_value(), channels == 1);
    EXPECT_TRUE(RunSymmetric(plan, cluster, setting, WaysOf(setting)).has_value());
  }
  EXPECT_EQ(why, "two connections of a rank send on one route at one instant");
}

TEST(SymmetricExecutorTest, WaysThatDependOnTheirOrderAreNotFolded) {
  const Cluster cluster = Analytical("Switch", "8");
  FlowNetwork network(cluster);
  PlainSetting setting = Slow(cluster, network);
  std::string why;
  const auto ways = [&](const Block& from, const Peer& to) {
    ConnectionWay way = WaysOf(setting)(from, to);
    way.fixed = from.rank != 5;
    return way;
  };
  EXPECT_FALSE(RunSymmetric(RingPlan(8, 8 * 4096), cluster, setting, ways, &why).has_value());
  EXPECT_EQ(why, "connections choose among equal ways as they come");
}

TEST(SymmetricExecutorTest, ALongRingVouchesForItself) {
  // 1024 x 1024 x 2 ops: too many to compare one by one.
  EXPECT_NE(RingPlan(1024, 1024 * 1024).symmetry, "");
  EXPECT_EQ(RingPlan(1024, 1024 * 1024 + 4).symmetry, "");
  ExpectExact(RingPlan(800, 800 * 64), Analytical("Switch", "800"),
              "rotations of 800 ranks: 1 of 800 simulated");
}

std::string WhyNot(const Plan& plan, const Cluster& cluster, Rank odd_rank = UINT32_MAX) {
  FlowNetwork network(cluster);
  PlainSetting setting = Slow(cluster, network);
  setting.odd_rank = odd_rank;
  std::string why;
  EXPECT_FALSE(RunSymmetric(plan, cluster, setting, WaysOf(setting), &why).has_value());
  return why;
}

TEST(SymmetricExecutorTest, WhatIsNotAlikeIsNotFolded) {
  // Chunks of unequal size.
  EXPECT_NE(WhyNot(RingPlan(8, 8 * 4096 + 4), Analytical("Switch", "8")), "");
  // One rank reacts later.
  EXPECT_NE(WhyNot(RingPlan(8, 8 * 4096), Analytical("Switch", "8"), 3), "");
  // One slower link.
  Topology topology = Analytical("Switch", "8").topology();
  topology.links[6].rate = GigabytesPerSecond(20);
  EXPECT_EQ(WhyNot(RingPlan(8, 8 * 4096), Cluster(topology)),
            "the links of different ranks differ");
  // A rotation of all ranks changes a two-sided network.
  EXPECT_NE(WhyNot(RingPlan(8, 8 * 4096), Analytical("Ring, Switch", "4, 2")), "");
}

}  // namespace
}  // namespace windtunnel
