// What the plans of Direct and Torus send, and what they take on networks made for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "collectives/functional.h"
#include "collectives/timed_executor.h"
#include "collectives/torus_sides.h"
#include "interconnect/fabric.h"
#include "interconnect/flow_network.h"
#include "interconnect/foreign/foreign_topology.h"
#include "tests/support/plain_setting.h"

namespace windtunnel {
namespace {

using ::windtunnel::testing::PlainSetting;

Cluster Imported(const std::string& kinds, const std::string& counts, const std::string& rates,
                 const std::string& latencies) {
  return Cluster(ReadForeignTopology("topology: [ " + kinds + " ]\nnpus_count: [ " + counts +
                                         " ]\nbandwidth: [ " + rates + " ]\nlatency: [ " +
                                         latencies + " ]\n",
                                     ForeignFormat::kAstraSim, "test"));
}

Plan PlanOf(const std::string& algorithm, const CollectiveRequest& request,
            std::uint32_t channels = 1, std::vector<std::uint32_t> sides = {}) {
  ChannelLayout layout = PlainLayout(request, channels, 1 << 30);
  layout.sides = std::move(sides);
  EXPECT_EQ(FindAlgorithm(algorithm).WhyNot(request, layout), "");
  return FindAlgorithm(algorithm).MakePlan(request, layout);
}

std::vector<std::uint64_t> SentElements(const Plan& plan) {
  std::vector<std::uint64_t> sent(plan.request.rank_count, 0);
  for (const Block& block : plan.blocks) {
    for (std::uint64_t i = 0; i < block.program->size(); ++i) {
      const PlanOp op = block.program->At(i);
      sent[block.rank] += op.count * op.send_to.size();
    }
  }
  return sent;
}

struct Outcome {
  ExecutionResult result;
  std::uint64_t payload = 0;  // Of all links.
};
Outcome Simulate(const Plan& plan, const Cluster& cluster) {
  FlowNetwork network(cluster);
  PlainSetting setting(cluster, network);
  Outcome outcome{.result = RunTimed(plan, network, setting)};
  for (const LinkUse& use : network.link_use()) outcome.payload += use.payload.count();
  return outcome;
}
double Microseconds(const Outcome& outcome) { return ToMicroseconds(outcome.result.time); }

constexpr double kGib = 1024.0 * 1024 * 1024;

TEST(DirectTest, EachRankSendsTwoPartsToEachOther) {
  const Plan plan = PlanOf("direct", {.rank_count = 12, .count = 12 * 1000});
  EXPECT_THAT(SentElements(plan), ::testing::Each(2 * 11 * 1000));
}

TEST(DirectTest, TwoStepsOnASwitchTakeTwoLatencies) {
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  for (const std::uint32_t n : {2u, 8u, 64u}) {
    const Plan plan = PlanOf("direct", {.rank_count = n, .count = bytes / 4});
    const double expected =
        2 * (0.936 + static_cast<double>(bytes) * (n - 1) / n / (400 * kGib) * 1e6);
    EXPECT_NEAR(Microseconds(Simulate(plan, Imported("Switch", std::to_string(n), "400", "468"))) /
                    expected,
                1, 1e-4)
        << n;
  }
}

TEST(DirectTest, OnAFullMeshEachPairHasItsLink) {
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  const Plan plan = PlanOf("direct", {.rank_count = 8, .count = bytes / 4});
  const double expected = 2 * (0.5 + static_cast<double>(bytes) / 8 / (50 * kGib) * 1e6);
  EXPECT_NEAR(Microseconds(Simulate(plan, Imported("FullyConnected", "8", "50", "500"))) / expected,
              1, 1e-4);
}

TEST(DirectTest, MoreSlicesThanSlotsDoNotWaitInACircle) {
  for (const Function function : {Function::kAllReduce, Function::kReduceScatter,
                                  Function::kAllGather, Function::kAllToAll}) {
    const CollectiveRequest request{.function = function, .rank_count = 5, .count = 50'000};
    const Plan plan = FindAlgorithm("direct").MakePlan(request, PlainLayout(request, 1, 1000));
    EXPECT_NO_THROW(Simulate(plan, Imported("Switch", "5", "50", "500"))) << Name(function);
    EXPECT_EQ(ProveCorrect(plan), "") << Name(function);
  }
}

// A block whose bytes are on the wire is not at its end.
TEST(DirectTest, APostedBlockEndsWhenItsBytesHaveLeft) {
  const CollectiveRequest request{
      .function = Function::kAllToAll, .rank_count = 2, .count = 1 << 20};
  Plan plan = PlanOf("direct", request);
  plan.blocks.erase(std::remove_if(plan.blocks.begin(), plan.blocks.end(),
                                   [](const Block& block) {
                                     return (block.role == "direct send") != (block.rank == 0);
                                   }),
                    plan.blocks.end());  // Rank 0 only sends, rank 1 only receives.
  const Cluster cluster = Imported("Switch", "2", "50", "500");
  const Outcome outcome = Simulate(plan, cluster);
  const double wire = 4.0 * (1 << 20) / (50 * kGib) * 1e6;
  EXPECT_NEAR(ToMicroseconds(outcome.result.rank_end[0].since_start()), wire, 1e-3);
  EXPECT_NEAR(ToMicroseconds(outcome.result.rank_end[1].since_start()), wire + 1, 1e-3);
}

TEST(TorusTest, EachRankSendsWhatARingWould) {
  for (const std::vector<std::uint32_t>& sides :
       {std::vector<std::uint32_t>{4, 4, 8}, {64, 2}, {1, 128}, {128}}) {
    const Plan plan = PlanOf("torus", {.rank_count = 128, .count = 128 * 60}, 6, sides);
    EXPECT_THAT(SentElements(plan), ::testing::Each(2 * 127 * 60));
  }
}

TEST(TorusTest, AllAxesAndBothDirectionsWorkAtOnce) {
  // Four parts of a quarter each; the rings of an axis share no link, so the time is that of a part
  // alone: twice (s-1)/s of the quarter on the first axis, then of its s-th part on the second.
  const double part = 64.0 * 1024 * 1024 / 4;
  const double side = 8;
  const double us = 2 * ((side - 1) * (0.5 + part / side / (50 * kGib) * 1e6) +
                         (side - 1) * (0.5 + part / side / side / (50 * kGib) * 1e6));
  const Plan plan = PlanOf("torus", {.rank_count = 64, .count = 16 << 20}, 4, {8, 8});
  EXPECT_NEAR(Microseconds(Simulate(plan, Imported("Ring, Ring", "8, 8", "50, 50", "500, 500"))),
              us, us * 1e-4);
}

TEST(TorusTest, SidesThatDoNotFitAreRefused) {
  const CollectiveRequest request{.rank_count = 12, .count = 100};
  ChannelLayout layout = PlainLayout(request, 1, 1 << 20);
  const Algorithm& torus = FindAlgorithm("torus");
  EXPECT_THAT(torus.WhyNot(request, layout), ::testing::HasSubstr("not joined as a torus"));
  layout.sides = {3, 5};
  EXPECT_EQ(torus.WhyNot(request, layout), "sides of 3 x 5 make 15 ranks, not 12");
}

// Sides of 1 have no ring; a side of 2 one link, which both directions share.
TEST(TorusTest, DegenerateSidesTakeNoMoreThanTheirLinks) {
  const double message = 4.0 * (1 << 20) / (50 * kGib) * 1e6;
  const Outcome one = Simulate(PlanOf("torus", {.rank_count = 1, .count = 1 << 20}, 1, {1, 1}),
                               Imported("Ring, Ring", "1, 1", "50, 50", "500, 500"));
  EXPECT_EQ(one.result.time, Picoseconds(0));
  EXPECT_EQ(one.payload, 0u);
  const Cluster pair = Imported("Ring, Ring", "1, 2", "50, 50", "500, 500");
  EXPECT_EQ(pair.topology().links.size(), 2u);
  const Outcome two =
      Simulate(PlanOf("torus", {.rank_count = 2, .count = 1 << 20}, 2, {1, 2}), pair);
  EXPECT_NEAR(Microseconds(two), message + 2 * 0.5, 0.01);
}

Cluster Torus(std::map<std::string, std::string> options) {
  Topology topology;
  for (std::uint32_t i = 0; i < 128; ++i) {
    topology.devices.push_back({.name = "npu" + std::to_string(i),
                                .kind = DeviceKind::kGpu,
                                .node = i,
                                .attributes = {{"protocol", "ideal"}}});
  }
  topology.node_count = 128;
  BuildFabric({.kind = "torus", .rate = GigabytesPerSecond(50), .options = std::move(options)},
              Catalogue::Shipped(), &topology);
  for (Device& device : topology.devices) device.attributes["protocol"] = "ideal";
  return Cluster(std::move(topology));
}

// Case C25. Several splits: each axis has one part at a time, or two, or four.
TEST(TorusTest, OnATwistedTorusAllPartsEndAndMoveTheSameBytes) {
  const Cluster plain = Torus({{"sides", "4x4x8"}});
  const Cluster twisted = Torus({{"sides", "4x4x8"}, {"twist", "2"}});
  for (const std::uint32_t parts : {1u, 3u, 6u, 12u}) {
    const Plan plan = PlanOf("torus", {.rank_count = 128, .count = 128 * 6144}, parts, {4, 4, 8});
    const Outcome on_plain = Simulate(plan, plain);
    const Outcome on_twisted = Simulate(plan, twisted);
    EXPECT_EQ(on_twisted.result.messages, on_plain.result.messages) << parts;
    EXPECT_EQ(on_plain.result.messages, std::uint64_t{2} * (3 + 3 + 7) * 128 * parts);
    EXPECT_THAT(SentElements(plan), ::testing::Each(2 * 127 * 6144));
    EXPECT_GE(on_twisted.result.time, on_plain.result.time) << parts;
  }
}

std::vector<std::uint32_t> SidesOf(const Cluster& cluster) {
  const auto gpus = cluster.gpus();
  return TorusSides(cluster, {gpus.begin(), gpus.end()});
}

TEST(TorusSidesTest, AreReadFromTheNetwork) {
  using Sides = std::vector<std::uint32_t>;
  EXPECT_EQ(SidesOf(Imported("Ring, Ring", "8, 4", "50, 50", "500, 500")), Sides({8, 4}));
  EXPECT_EQ(SidesOf(Imported("Ring, Ring, Ring", "2, 3, 2", "50, 50, 50", "5, 5, 5")),
            Sides({2, 3, 2}));
  EXPECT_EQ(SidesOf(Imported("Ring", "6", "50", "500")), Sides({6}));
  EXPECT_EQ(SidesOf(Torus({{"sides", "4x4x8"}})), Sides({4, 4, 8}));
}

TEST(TorusSidesTest, WhatIsNoTorusHasNone) {
  EXPECT_TRUE(SidesOf(Imported("Switch", "8", "50", "500")).empty());
  EXPECT_TRUE(SidesOf(Imported("FullyConnected", "8", "50", "500")).empty());
  EXPECT_TRUE(SidesOf(Imported("Ring, Switch", "4, 4", "50, 50", "500, 500")).empty());
  EXPECT_TRUE(SidesOf(Torus({{"sides", "4x4x8"}, {"twist", "2"}})).empty());
}

}  // namespace
}  // namespace windtunnel
