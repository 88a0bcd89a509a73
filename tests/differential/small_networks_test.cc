// Networks that other simulators got wrong: unequal groups, islands, a NIC for all, sides of 1 and
// 2, at packet and flow level.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "collectives/functional.h"
#include "collectives/simulation.h"
#include "interconnect/topology_file.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr Fidelity kLevels[] = {Fidelity::kPacket, Fidelity::kFlow};

Topology Endpoints(std::uint32_t count, bool relay) {
  Topology topology{.name = "endpoints", .source = "endpoints", .node_count = count};
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i),
                                .kind = DeviceKind::kGpu,
                                .node = i,
                                .relay = relay,
                                .attributes = {{"protocol", "ideal"}}});
  }
  return topology;
}
void Join(Topology* topology, DeviceId a, DeviceId b, BitsPerSecond rate,
          LinkKind kind = LinkKind::kNetwork) {
  topology->links.push_back({.from = a, .to = b, .kind = kind, .rate = rate});
  topology->links.push_back({.from = b, .to = a, .kind = kind, .rate = rate});
}

CallOutcome RunOn(const Topology& topology, const CollectiveRequest& request, Fidelity fidelity,
                  const std::string& algorithm = "", std::vector<std::uint32_t> gpus = {}) {
  SimulationOptions options{.fidelity = fidelity, .gpus = std::move(gpus), .algorithm = algorithm};
  options.ideal_endpoints = true;
  return Simulation(Cluster(topology), options).Run(request);
}

// A: 0-3 fully joined at 50 GB/s. B: 4-9 a ring at 100 GB/s. 12.5 GB/s between 0 and 4.
Topology UnequalGroups() {
  Topology topology = Endpoints(10, true);
  for (DeviceId a = 0; a < 4; ++a) {
    for (DeviceId b = a + 1; b < 4; ++b) Join(&topology, a, b, GigabytesPerSecond(50));
  }
  for (DeviceId i = 0; i < 6; ++i) {
    Join(&topology, 4 + i, 4 + (i + 1) % 6, GigabytesPerSecond(100));
  }
  Join(&topology, 0, 4, GigabitsPerSecond(100));
  return topology;
}

// Case T01: whatever the algorithm, all of a group's sum crosses to the other.
TEST(UnequalGroupsTest, AreBoundByTheLinkBetweenThem) {
  const Topology topology = UnequalGroups();
  const CollectiveRequest request{.rank_count = 10, .count = 16 << 20};
  for (const char* algorithm :
       {"ring", "tree", "direct", "halving-doubling", "recursive-doubling"}) {
    std::vector<double> times;
    for (const Fidelity fidelity : kLevels) {
      // Everybody to everybody over a ring of relays stops at packet level: one virtual channel
      // (docs/deviations.md).
      if (fidelity == Fidelity::kPacket && algorithm == std::string("direct")) continue;
      const CallOutcome call = RunOn(topology, request, fidelity, algorithm);
      EXPECT_GE(ToMicroseconds(call.time), 64.0 * 1024 * 1024 / 12.5e3) << algorithm;
      std::uint64_t across = UINT64_MAX;
      for (const LinkLoadReport::Row& link : call.links.rows) {
        if (link.name == "gpu0 -> gpu4" || link.name == "gpu4 -> gpu0") {
          across = std::min(across, link.use.payload.count());
        }
      }
      EXPECT_GE(across, MiB(64).count()) << algorithm;
      EXPECT_NE(across, UINT64_MAX) << algorithm;
      times.push_back(ToMicroseconds(call.time));
    }
    // Exchanges that meet on the bridge get equal shares as flows, and as packets what arbiters of
    // incoming links give them (docs/deviations.md).
    const bool exchanges = std::string(algorithm).ends_with("doubling");
    EXPECT_NEAR(times.back() / times.front(), 1, exchanges ? 0.2 : 0.05) << algorithm;
  }
}

TEST(UnequalGroupsTest, AllTenRanksHoldTheSameBits) {
  const CollectiveRequest request{.rank_count = 10, .count = 30'001};
  for (const char* algorithm : {"ring", "tree", "direct", "halving-doubling"}) {
    SimulationOptions options{.fidelity = Fidelity::kFlow, .algorithm = algorithm};
    const Simulation simulation(Cluster(UnequalGroups()), options);
    RankBuffers buffers = MakeBuffers(request);
    for (Rank r = 0; r < 10; ++r) {
      for (std::size_t i = 0; i < request.count; ++i) {
        const float value = 1.0F / static_cast<float>(1 + i % 977 + r * 13);
        std::memcpy(buffers.input[r].data() + 4 * i, &value, 4);
      }
    }
    RunFunctional(simulation.PlanOf(request), buffers);
    for (Rank r = 1; r < 10; ++r)
      EXPECT_TRUE(std::ranges::equal(buffers.output[r], buffers.output[0])) << algorithm;
  }
}

// Case T22: the whole is refused with its parts named, a part alone works.
TEST(IslandsTest, AJobInsideOneIslandRuns) {
  Topology topology = UnequalGroups();
  topology.links.resize(topology.links.size() - 2);
  const CollectiveRequest broadcast{
      .function = Function::kBroadcast, .rank_count = 4, .count = 1 << 18};
  for (const Fidelity fidelity : kLevels) {
    EXPECT_THROW(RunOn(topology, {.rank_count = 10, .count = 1}, fidelity), ConfigError);
    // One rank after the other: a chain whose links carry the message once each.
    const CallOutcome call = RunOn(topology, broadcast, fidelity, "", {0, 1, 2, 3});
    EXPECT_NEAR(ToMicroseconds(call.time), 3 * 4 * (1 << 18) / 50e3, 2);
  }
}

// `gpus` GPUs of each of two nodes behind one NIC of 24 GB/s.
Topology OneNicPerNode(std::uint32_t gpus) {
  Topology topology{.name = "one NIC", .source = "one NIC", .node_count = 2};
  const auto add = [&](std::string name, DeviceKind kind, std::uint32_t node, std::uint32_t index) {
    topology.devices.push_back({.name = std::move(name),
                                .kind = kind,
                                .node = node,
                                .index = index,
                                .attributes = {{"protocol", "ideal"}}});
    return static_cast<DeviceId>(topology.devices.size() - 1);
  };
  const DeviceId hub = add("switch", DeviceKind::kNetworkSwitch, kNoNode, 0);
  for (std::uint32_t node = 0; node < 2; ++node) {
    const std::string place = "node" + std::to_string(node);
    const DeviceId bridge = add(place + "/bridge", DeviceKind::kPcieSwitch, node, 0);
    const DeviceId nic = add(place + "/nic", DeviceKind::kNic, node, 0);
    Join(&topology, bridge, nic, GigabytesPerSecond(1000), LinkKind::kPcie);
    Join(&topology, nic, hub, GigabytesPerSecond(24));
    const DeviceId crossbar = add(place + "/nvswitch", DeviceKind::kNvSwitch, node, 0);
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const DeviceId gpu = add(place + "/gpu" + std::to_string(g), DeviceKind::kGpu, node, g);
      Join(&topology, gpu, bridge, GigabytesPerSecond(100), LinkKind::kPcie);
      Join(&topology, gpu, crossbar, GigabytesPerSecond(400), LinkKind::kNvlink);
    }
  }
  return topology;
}

// Case T27.
TEST(SharedNicTest, EachGpuGetsItsShareAndARingTheWhole) {
  const Topology topology = OneNicPerNode(8);
  for (const Fidelity fidelity : kLevels) {
    const CollectiveRequest all_to_all{
        .function = Function::kAllToAll, .rank_count = 16, .count = 1 << 18};
    const double cross = 8.0 * (1 << 20);  // Bytes of a GPU to the other node.
    const CallOutcome exchange = RunOn(topology, all_to_all, fidelity, "direct");
    EXPECT_NEAR(cross / ToMicroseconds(exchange.time) * 1e-3, 3, 0.15);
    const CollectiveRequest all_reduce{.rank_count = 16, .count = 16 << 20};
    const CallOutcome ring = RunOn(topology, all_reduce, fidelity, "ring");
    const double busbw = 2 * 15.0 / 16 * 64 * 1024 * 1024 / ToMicroseconds(ring.time) * 1e-3;
    EXPECT_LE(busbw, 24.0);
    EXPECT_GE(busbw, 23.0);
  }
}

Topology Torus(const std::string& counts) {
  return ReadTopologyText("topology: [ Ring, Ring ]\nnpus_count: [ " + counts +
                              " ]\nbandwidth: [ 50, 50 ]\nlatency: [ 0, 0 ]\n",
                          TopologyFormat::kYaml, "test");
}

constexpr Function kFunctions[] = {
    Function::kAllReduce, Function::kAllGather, Function::kReduceScatter, Function::kBroadcast,
    Function::kReduce,    Function::kAllToAll,  Function::kSendRecv};

// Case T30.
TEST(DegenerateSidesTest, OneRankTakesNoTimeOnTheNetwork) {
  const Topology topology = Torus("1, 1");
  EXPECT_TRUE(topology.links.empty());
  for (const Function function : kFunctions) {
    for (const Fidelity fidelity : kLevels) {
      const CallOutcome call =
          RunOn(topology, {.function = function, .rank_count = 1, .count = 1 << 20}, fidelity);
      EXPECT_EQ(call.time, Picoseconds(0)) << Name(function);
      EXPECT_TRUE(call.links.rows.empty()) << Name(function);
    }
  }
}

TEST(DegenerateSidesTest, TwoRanksHaveOneLink) {
  const Topology topology = Torus("1, 2");
  EXPECT_EQ(topology.links.size(), 2u);  // One each way.
  const double message_us = 4.0 * (1 << 20) / (50 * 1024.0 * 1024 * 1024) * 1e6;
  for (const char* algorithm : {"ring", "torus", "direct"}) {
    for (const Fidelity fidelity : kLevels) {
      const CallOutcome call =
          RunOn(topology, {.rank_count = 2, .count = 1 << 20}, fidelity, algorithm);
      EXPECT_NEAR(ToMicroseconds(call.time) / message_us, 1, 0.02) << algorithm;
    }
  }
  for (const Function function : kFunctions) {
    for (const Fidelity fidelity : kLevels) {
      EXPECT_GT(RunOn(topology, {.function = function, .rank_count = 2, .count = 1 << 20}, fidelity)
                    .time.count(),
                0u)
          << Name(function);
    }
  }
}

}  // namespace
}  // namespace windtunnel
