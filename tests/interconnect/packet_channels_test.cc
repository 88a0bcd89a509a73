// Virtual channels: where they switch, and that a ring of credits stands still without them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "interconnect/catalogue.h"
#include "interconnect/cluster.h"
#include "interconnect/fabric.h"
#include "interconnect/packet_network.h"
#include "interconnect/route_choice.h"
#include "interconnect/virtual_channels.h"
#include "sim/error.h"
#include "sim/random.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

TEST(ChannelOrderTest, ARingGetsOneDateLineAndTwoChannels) {
  constexpr std::uint32_t kNodes = 8;
  ChannelOrder order(2);
  int crossings = 0;
  for (std::uint32_t from = 0; from < kNodes; ++from) {
    std::vector<std::uint32_t> route;
    for (std::uint32_t hop = 0; hop + 1 < kNodes; ++hop) route.push_back((from + hop) % kNodes);
    const std::vector<std::uint8_t> lanes = order.Assign(route);
    EXPECT_TRUE(std::is_sorted(lanes.begin(), lanes.end()));
    crossings += lanes.back();
    EXPECT_EQ(order.Assign(route), lanes) << "asked again";
  }
  EXPECT_EQ(order.circles(), 0u);
  EXPECT_GT(crossings, 0);
}

TEST(ChannelOrderTest, ATreeNeedsOneAndOneChannelLeavesTheCircle) {
  ChannelOrder tree(8);
  EXPECT_THAT(tree.Assign(std::vector<std::uint32_t>{0, 3}), ::testing::ElementsAre(0, 0));
  EXPECT_THAT(tree.Assign(std::vector<std::uint32_t>{2, 1}), ::testing::ElementsAre(0, 0));
  ChannelOrder one(1);
  for (std::uint32_t from = 0; from < 4; ++from) {
    one.Assign(std::vector<std::uint32_t>{from, (from + 1) % 4});
  }
  EXPECT_EQ(one.circles(), 1u);
}

/// Kahn's method: whether the dependencies of all routes can be put in order.
bool Ordered(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
             std::uint32_t channels) {
  std::vector<std::uint32_t> waiting_for(channels);
  for (const auto& [first, second] : edges) ++waiting_for[second];
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < channels; ++i) {
    if (waiting_for[i] == 0) ready.push_back(i);
  }
  std::uint32_t done = 0;
  for (; !ready.empty(); ++done) {
    const std::uint32_t at = ready.back();
    ready.pop_back();
    for (const auto& [first, second] : edges) {
      if (first == at && --waiting_for[second] == 0) ready.push_back(second);
    }
  }
  return done == channels;
}

TEST(ChannelOrderTest, RandomWalksNeverCloseACircleOfChannels) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(seed);
    constexpr std::uint32_t kNodes = 9;  // A 3 x 3 torus; link 4 n + d leaves node n.
    RandomStream random(seed, "walks");
    ChannelOrder order(16);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (int walk = 0; walk < 60; ++walk) {
      auto node = static_cast<std::uint32_t>(random.Below(kNodes));
      std::vector<std::uint32_t> route;
      for (int hop = 0; hop < 4; ++hop) {
        const auto way = static_cast<std::uint32_t>(random.Below(4));
        route.push_back(4 * node + way);
        const std::uint32_t x = node % 3;
        const std::uint32_t y = node / 3;
        node = way < 2 ? (x + 1 + way) % 3 + 3 * y : x + 3 * ((y + way - 1) % 3);
      }
      const std::vector<std::uint8_t> lanes = order.Assign(route);
      for (std::size_t i = 1; i < route.size(); ++i) {
        edges.push_back({route[i - 1] * 16 + lanes[i - 1], route[i] * 16 + lanes[i]});
      }
    }
    EXPECT_EQ(order.circles(), 0u);
    EXPECT_TRUE(Ordered(edges, 4 * kNodes * 16));
  }
}

/// `count` routers in a ring, links one way: link i leads from router i to the next.
Topology Ring(std::uint32_t count) {
  Topology ring;
  ring.name = "ring";
  for (std::uint32_t i = 0; i < count; ++i) {
    ring.devices.push_back(
        {.name = "router" + std::to_string(i), .kind = DeviceKind::kNetworkSwitch});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    ring.links.push_back(
        {i, (i + 1) % count, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(100), Nanoseconds(500)});
  }
  return ring;
}

/// Every router sends to the one before it, all the way around, through buffers of one frame.
std::uint64_t AllTheWayAround(const Topology& ring, std::uint32_t channels) {
  PacketNetwork::Options options;
  options.virtual_channels = channels;
  options.link_buffer = Bytes(4096 + 26);
  options.burst.bursts_per_message = 0;
  PacketNetwork network(ring, options);
  const auto count = static_cast<std::uint32_t>(ring.devices.size());
  for (std::uint32_t from = 0; from < count; ++from) {
    Route route;
    for (std::uint32_t hop = 0; hop + 1 < count; ++hop) route.push_back((from + hop) % count);
    network.Send(network.AddRoute(route), KiB(256), from);
  }
  EXPECT_EQ(network.credit_circles(), channels == 1 ? 1u : 0u);
  network.RunToIdle();
  std::uint64_t bytes = 0;
  for (const LinkUse& use : network.link_use()) bytes += use.payload.count();
  network.Reset();
  return bytes;
}

TEST(PacketChannelsTest, OneChannelAndOneFrameOfRoomStandStillAndSaySo) {
  try {
    AllTheWayAround(Ring(4), 1);
    FAIL() << "went through";
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nothing moves any more"));
    EXPECT_THAT(error.what(), HasSubstr("credit cycle"));
    EXPECT_THAT(error.what(), HasSubstr("virtual-channels"));
    for (const char* link :
         {"router0 -> router1", "router1 -> router2", "router2 -> router3", "router3 -> router0"}) {
      EXPECT_THAT(error.what(), HasSubstr(link));
    }
    EXPECT_THAT(error.what(), HasSubstr("0 B of 4122 B free, 4122 B held by the receiver"));
  }
}

TEST(PacketChannelsTest, TwoChannelsCarryTheSameTrafficThrough) {
  for (const std::uint32_t count : {4U, 8U}) {
    EXPECT_EQ(AllTheWayAround(Ring(count), 2),
              std::uint64_t{count} * (count - 1) * KiB(256).count());
  }
}

/// Random messages over a 4 x 4 x 8 torus of 128 GPUs, two frames of room on every channel.
struct TorusRun {
  std::uint64_t circles = 0;
  std::size_t delivered = 0;
  Picoseconds end;
};
TorusRun OverTorus(const std::string& twist, std::uint32_t channels) {
  Topology topology;
  topology.node_count = 128;
  for (std::uint32_t i = 0; i < 128; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i), .node = i});
  }
  BuildFabric({.kind = "torus",
               .rate = GigabitsPerSecond(400),
               .options = {{"sides", "4x4x8"}, {"twist", twist}},
               .where = {.field = "fabric"}},
              Catalogue::Shipped(), &topology);
  const Cluster cluster(std::move(topology));
  PacketNetwork::Options options;
  options.virtual_channels = channels;
  options.link_buffer = 2 * Bytes(4096 + 26);
  PacketNetwork network(cluster.topology(), options);
  class Count final : public NetworkClient {
   public:
    void OnInjected(SimTime, std::uint64_t) override {}
    void OnDelivered(SimTime now, std::uint64_t) override {
      end = now.since_start();
      ++count;
    }
    Picoseconds end;
    std::size_t count = 0;
  } client;
  network.set_client(&client);
  RouteChooser chooser(cluster, RoutePolicy::kAdaptive, 1);
  RandomStream random(1, "torus");
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto from = static_cast<DeviceId>(random.Below(128));
    const auto to = static_cast<DeviceId>((from + 1 + random.Below(127)) % 128);
    const auto route = chooser.Choose({.from = from, .to = to, .channel = i});
    network.Send(network.AddRoute(*route), Bytes(random.Below(100'000)), i);
  }
  TorusRun run{.circles = network.credit_circles()};
  network.RunToIdle();
  run.delivered = client.count;
  run.end = client.end;
  network.Reset();
  return run;
}

TEST(PacketChannelsTest, ATorusWithTwoFramesOfRoomStarvesNobodyTwistedOrNot) {
  for (const std::string twist : {"0", "2"}) {
    SCOPED_TRACE(twist);
    const TorusRun run = OverTorus(twist, 8);
    EXPECT_EQ(run.circles, 0u);
    EXPECT_EQ(run.delivered, 3000u);
  }
  EXPECT_THROW(OverTorus("0", 1), SimulationError) << "one channel stands still";
}

TEST(PacketChannelsTest, ChannelsOfALinkShareItsWireEvenly) {
  // Two flows over one wire on different channels end together, as on one channel.
  const Topology ring = Ring(3);
  PacketNetwork network(ring);
  class Ends final : public NetworkClient {
   public:
    void OnInjected(SimTime, std::uint64_t) override {}
    void OnDelivered(SimTime now, std::uint64_t) override { at.push_back(now.since_start()); }
    std::vector<Picoseconds> at;
  } ends;
  network.set_client(&ends);
  for (const Route& route : {Route{0, 1}, Route{1, 2}, Route{2, 0}}) {
    network.Send(network.AddRoute(route), MiB(4), 0);
  }
  network.RunToIdle();
  ASSERT_EQ(ends.at.size(), 3u);
  EXPECT_LE(ends.at[2].count() - ends.at[0].count(), ends.at[2].count() / 10);
  const Picoseconds bound = SerializationTime(2 * MiB(4), GigabitsPerSecond(100));
  EXPECT_GE(ends.at[2], bound);
  EXPECT_LE(ends.at[2], bound * 115 / 100);
  network.Reset();
}

}  // namespace
}  // namespace windtunnel
