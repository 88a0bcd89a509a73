// Whole calls against results that can be written down: ranks on one switch, endpoints that cost
// nothing, links without headers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collectives/algorithm.h"
#include "collectives/functional.h"
#include "collectives/simulation.h"
#include "collectives/timed_executor.h"
#include "interconnect/cluster.h"
#include "interconnect/flow_network.h"

namespace windtunnel {
namespace {

/// `ranks` GPUs, one per host, on a switch that never blocks; `rate` one way, `latency` per link.
Topology Star(std::uint32_t ranks, BitsPerSecond rate, Picoseconds latency = Picoseconds(0)) {
  Topology topology{.name = "star", .source = "star", .node_count = ranks};
  topology.devices.push_back({.name = "switch",
                              .kind = DeviceKind::kNetworkSwitch,
                              .attributes = {{"protocol", "ideal"}}});
  for (std::uint32_t r = 0; r < ranks; ++r) {
    topology.devices.push_back(
        {.name = "gpu" + std::to_string(r), .kind = DeviceKind::kGpu, .node = r});
    topology.links.push_back(
        {.from = r + 1, .to = 0, .kind = LinkKind::kNetwork, .rate = rate, .latency = latency});
    topology.links.push_back(
        {.from = 0, .to = r + 1, .kind = LinkKind::kNetwork, .rate = rate, .latency = latency});
  }
  return topology;
}

CallOutcome RunOnStar(CollectiveRequest request, SimulationOptions options,
                      BitsPerSecond rate = GigabytesPerSecond(25)) {
  options.ideal_endpoints = true;
  return Simulation(Cluster(Star(request.rank_count, rate)), options).Run(request);
}

SimulationOptions Flow() { return {.fidelity = Fidelity::kFlow}; }

constexpr double kRate = 25e9;

double Milliseconds(const CallOutcome& call) { return ToMicroseconds(call.time) * 1e-3; }

/// Ranks are devices; every pair that talks has a direct link.
class DirectLinks final : public ExecutionSetting {
 public:
  DirectLinks(const Cluster& cluster, Network& network) : cluster_(cluster), network_(network) {}
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    const auto route = cluster_.FindRoute(sender.rank, to.rank);
    EXPECT_TRUE(route.has_value());
    EXPECT_EQ(route->size(), 1u);
    return {.route = network_.AddRoute(*route)};
  }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override { return {}; }
  const BlockTimes& TimesOf(Rank, const Block&) override { return times_; }
  SimTime StartOf(Rank) override { return SimTime(); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }

 private:
  const Cluster& cluster_;
  Network& network_;
  BlockTimes times_;
};

// Case T02: the hybrid cube mesh without a switch. Rings over the 400 Gb/s links and over the 200
// Gb/s links, both ways, reach the sum of all links.
TEST(ClosedResults, TwoRingsEachWayFillTheHybridCubeMesh) {
  const std::vector<Rank> fast{0, 3, 2, 1, 5, 6, 7, 4};
  const std::vector<Rank> slow{0, 1, 3, 7, 5, 4, 6, 2};
  Topology mesh{.name = "mesh", .source = "mesh"};
  for (std::uint32_t r = 0; r < 8; ++r) {
    mesh.devices.push_back({.name = "gpu" + std::to_string(r),
                            .kind = DeviceKind::kGpu,
                            .node = 0,
                            .index = r,
                            .attributes = {{"protocol", "ideal"}}});
  }
  for (const auto& [ring, gigabits] : {std::pair(fast, 400), std::pair(slow, 200)}) {
    for (std::size_t i = 0; i < 8; ++i) {
      const Rank a = ring[i];
      const Rank b = ring[(i + 1) % 8];
      const BitsPerSecond rate = GigabitsPerSecond(static_cast<std::uint64_t>(gigabits));
      mesh.links.push_back({.from = a, .to = b, .kind = LinkKind::kNvlink, .rate = rate});
      mesh.links.push_back({.from = b, .to = a, .kind = LinkKind::kNvlink, .rate = rate});
    }
  }
  const Cluster cluster(mesh);
  FlowNetwork network(cluster);
  DirectLinks setting(cluster, network);
  const CollectiveRequest request{.rank_count = 8, .count = 48 << 20};
  ChannelLayout layout;
  std::uint64_t first = 0;
  for (const auto& [ring, share] : {std::pair(fast, 2), std::pair(slow, 1)}) {
    for (const bool forwards : {true, false}) {
      ChannelLayout::Channel channel;
      channel.ring = ring;
      if (!forwards) std::reverse(channel.ring.begin(), channel.ring.end());
      channel.first = first;
      channel.count = request.count / 6 * static_cast<std::uint64_t>(share);
      channel.chunk = channel.count;
      first += channel.count;
      layout.channels.push_back(channel);
    }
  }
  const Plan plan = FindAlgorithm("ring").MakePlan(request, layout);
  EXPECT_EQ(ProveCorrect(plan), "");
  const double us = ToMicroseconds(RunTimed(plan, network, setting).time);
  const double busbw = static_cast<double>(request.count) * 4 / us * 1e-3 *
                       BusBandwidthFactor(Function::kAllReduce, 8);
  EXPECT_LE(busbw, 150.0);  // 2 x 50 + 2 x 25 GB/s.
  EXPECT_GT(busbw, 149.0);
}

// Case C02.
TEST(ClosedResults, TwoRanksTakeTheMessageOnceEachWay) {
  const CallOutcome call = RunOnStar({.rank_count = 2, .count = 64 << 20}, Flow());
  EXPECT_NEAR(Milliseconds(call), 10.737, 0.001);
}

// Case C03: ring times for any number of ranks.
class RankCountTest : public ::testing::TestWithParam<std::uint32_t> {};
TEST_P(RankCountTest, RingsTakeWhatTheirBytesTake) {
  const double n = GetParam();
  const std::uint64_t bytes = 256 << 20;
  const double message_ms = static_cast<double>(bytes) / kRate * 1e3;
  const CollectiveRequest all_reduce{.rank_count = GetParam(), .count = bytes / 4};
  EXPECT_NEAR(Milliseconds(RunOnStar(all_reduce, Flow())), 2 * (n - 1) / n * message_ms,
              1e-3 * message_ms);
  for (const Function function : {Function::kAllGather, Function::kReduceScatter}) {
    const CollectiveRequest request{
        .function = function, .rank_count = GetParam(), .count = bytes / 4 / GetParam()};
    EXPECT_NEAR(Milliseconds(RunOnStar(request, Flow())), (n - 1) / n * message_ms,
                1e-3 * message_ms)
        << Name(function);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, RankCountTest,
                         ::testing::Values(3, 5, 6, 7, 8, 9, 12, 16, 20, 24, 33));

// Case C05: chunks of floor and ceil, no byte lost or doubled.
TEST(ClosedResults, UnevenSizesMoveExactlyTheirBytes) {
  const CallOutcome call =
      RunOnStar({.rank_count = 7, .type = DataType::kInt8, .count = 1'000'003}, Flow());
  std::uint64_t up = 0;
  for (const LinkLoadReport::Row& link : call.links.rows) {
    if (link.name.ends_with("-> switch")) up += link.use.payload.count();
  }
  EXPECT_EQ(up, 2u * 6u * 1'000'003u);
}

// Case C09.
TEST(ClosedResults, SizesAroundTwoToThe31And32AreOrdinary) {
  Picoseconds last;
  for (const std::uint64_t total : {(1ULL << 31) - 4, 1ULL << 31, (1ULL << 31) + 4,
                                    (1ULL << 32) - 4, 1ULL << 32, (1ULL << 32) + 4, 1ULL << 40}) {
    const CallOutcome call = RunOnStar({.function = Function::kAllGather,
                                        .rank_count = 4,
                                        .type = DataType::kInt8,
                                        .count = total / 4},
                                       Flow());
    EXPECT_GT(call.time, last) << total;
    EXPECT_NEAR(ToMicroseconds(call.time), 0.75 * static_cast<double>(total) / kRate * 1e6, 0.001)
        << total;
    last = call.time;
  }
}

// Case C10.
TEST(ClosedResults, OneMessageAboveTwoGibibytesTakesItsTime) {
  for (const std::uint64_t gib : {3, 5}) {
    const CollectiveRequest request{.function = Function::kSendRecv,
                                    .rank_count = 2,
                                    .type = DataType::kInt8,
                                    .count = gib << 30};
    SimulationOptions options = Flow();
    options.algorithm = "point-to-point";
    EXPECT_NEAR(Milliseconds(RunOnStar(request, options)),
                static_cast<double>(gib << 30) / kRate * 1e3, 1.0);
  }
}

// Case C20: what the flags of LL and LL128 leave of the wire.
TEST(ClosedResults, ProtocolsReachTheirShareOfTheWire) {
  const CollectiveRequest request{.rank_count = 4, .count = 16 << 20};
  const auto time = [&](const char* protocol) {
    SimulationOptions options = Flow();
    options.protocol = protocol;
    return ToMicroseconds(RunOnStar(request, options).time);
  };
  const double simple = time("Simple");
  EXPECT_NEAR(simple / time("LL"), 0.5, 1e-3);
  EXPECT_NEAR(simple / time("LL128"), 0.9375, 1e-3);
}

// Case C22.
TEST(ClosedResults, BusBandwidthFactorsAreThoseOfNcclTests) {
  EXPECT_EQ(BusBandwidthFactor(Function::kAllReduce, 8), 1.75);
  for (const Function function :
       {Function::kAllGather, Function::kReduceScatter, Function::kAllToAll})
    EXPECT_EQ(BusBandwidthFactor(function, 8), 0.875);
  for (const Function function : {Function::kBroadcast, Function::kReduce, Function::kSendRecv})
    EXPECT_EQ(BusBandwidthFactor(function, 8), 1);
  EXPECT_EQ(LogicalBytes({.function = Function::kAllGather, .rank_count = 8, .count = 10}), 320u);
  EXPECT_EQ(LogicalBytes({.function = Function::kReduceScatter, .rank_count = 8, .count = 10}),
            320u);
}

// Case A01: uncontended and bound by the network, time follows rate and size.
TEST(ClosedResults, TwiceTheRateHalvesAndTwiceTheSizeDoublesTheTime) {
  const CollectiveRequest request{.rank_count = 8, .count = 1 << 20};
  CollectiveRequest twice = request;
  twice.count *= 2;
  const double base = ToMicroseconds(RunOnStar(request, {}).time);
  EXPECT_NEAR(ToMicroseconds(RunOnStar(request, {}, GigabytesPerSecond(50)).time) / base, 0.5,
              0.002);
  EXPECT_NEAR(ToMicroseconds(RunOnStar(twice, {}).time) / base, 2, 0.002);
}

// Case A18: steps of latency grow linearly on a ring and with the logarithm on a tree.
TEST(ClosedResults, RingLatencyGrowsWithTheRanksAndTreeLatencyWithTheirLogarithm) {
  const auto time_us = [](const char* algorithm, std::uint32_t ranks) {
    SimulationOptions options{.fidelity = Fidelity::kFlow, .algorithm = algorithm, .channels = 1};
    options.ideal_endpoints = true;
    const Cluster cluster(Star(ranks, GigabytesPerSecond(25), Nanoseconds(2500)));
    Simulation simulation(Cluster(cluster.topology()), options);
    return ToMicroseconds(simulation.Run({.rank_count = ranks, .count = ranks}).time);
  };
  constexpr double kAlpha = 5;  // Two links of 2.5 us.
  for (const std::uint32_t ranks : {8u, 64u, 512u}) {
    const double ring = 2 * (ranks - 1) * kAlpha;
    EXPECT_NEAR(time_us("ring", ranks) / ring, 1, 0.01) << ranks;
    EXPECT_LT(time_us("tree", ranks), 1.1 * 2 * std::log2(ranks) * kAlpha) << ranks;
  }
}

// Case A02.
TEST(ClosedResults, NothingIsFree) {
  for (const std::uint32_t ranks : {2u, 4u, 12u}) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{100'000}}) {
      EXPECT_GT(RunOnStar({.rank_count = ranks, .count = count}, {}).time.count(), 0u)
          << ranks << " ranks, " << count;
    }
  }
}

// The levels on an idle star: flow and packet within 2 % from 1 MiB on, packet never below the
// bound of the links.
TEST(ClosedResults, PacketAndFlowAgreeAndRespectTheBound) {
  for (const std::uint64_t count : {std::uint64_t{1} << 18, std::uint64_t{1} << 22}) {
    const CollectiveRequest request{.rank_count = 8, .count = count};
    const CallOutcome packet = RunOnStar(request, {});
    const CallOutcome flow = RunOnStar(request, Flow());
    EXPECT_NEAR(ToMicroseconds(flow.time) / ToMicroseconds(packet.time), 1, 0.02) << count;
    EXPECT_GE(packet.time, packet.ideal);
    EXPECT_GE(flow.time, flow.ideal);
  }
}

}  // namespace
}  // namespace windtunnel
