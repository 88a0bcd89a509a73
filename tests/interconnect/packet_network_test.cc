#include "interconnect/packet_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace windtunnel {
namespace {

/// GPUs around one switch, links of the given kind in both directions.
Topology Star(std::uint32_t count, LinkKind kind, BitsPerSecond rate, Picoseconds latency) {
  Topology topology;
  topology.name = "star";
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
  }
  topology.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.links.push_back({i, count, kind, 0, 1, rate, latency});
    topology.links.push_back({count, i, kind, 0, 1, rate, latency});
  }
  return topology;
}

class Recorder final : public NetworkClient {
 public:
  void OnInjected(SimTime now, std::uint64_t token) override { injected[token] = now; }
  void OnDelivered(SimTime now, std::uint64_t token) override {
    EXPECT_TRUE(delivered.emplace(token, now).second) << "delivered twice";
  }
  std::map<std::uint64_t, SimTime> injected, delivered;
};

constexpr std::uint64_t Ps(SimTime t) { return t.since_start().count(); }

TEST(PacketNetworkTest, OneFrameTakesSerializationAndLatencyOfEachHop) {
  const Topology topology = Star(2, LinkKind::kNetwork, GigabytesPerSecond(50), Nanoseconds(500));
  PacketNetwork::Options options;
  options.network_cut_through = false;
  PacketNetwork network(topology, options);
  Recorder client;
  network.set_client(&client);
  const RouteId route = network.AddRoute({0, 3});
  network.Send(route, Bytes(4096), 7);
  network.RunToIdle();
  const std::uint64_t wire = SerializationTime(Bytes(4096 + 26), GigabytesPerSecond(50)).count();
  EXPECT_EQ(Ps(client.injected.at(7)), wire);
  EXPECT_EQ(Ps(client.delivered.at(7)), 2 * wire + 2 * 500'000);
}

TEST(PacketNetworkTest, ManyFramesPayOneFramePerExtraHopWhateverTheBurst) {
  const Topology topology = Star(2, LinkKind::kNetwork, GigabytesPerSecond(50), Nanoseconds(500));
  for (const std::uint32_t bursts : {0U, 1U, 16U, 64U}) {
    PacketNetwork::Options options;
    options.network_cut_through = false;
    options.burst = {.bursts_per_message = bursts, .longest_burst = Bytes(0)};
    PacketNetwork network(topology, options);
    Recorder client;
    network.set_client(&client);
    network.Send(network.AddRoute({0, 3}), MiB(1), 7);
    network.RunToIdle();
    const std::uint64_t frame = SerializationTime(Bytes(4122), GigabytesPerSecond(50)).count();
    EXPECT_NEAR(static_cast<double>(Ps(client.delivered.at(7))),
                static_cast<double>(257 * frame + 2 * 500'000), 300)
        << bursts;
  }
}

TEST(PacketNetworkTest, RunsManyTimesInOneProcess) {
  const Topology topology = Star(4, LinkKind::kNvlink, GigabytesPerSecond(25), Nanoseconds(200));
  PacketNetwork network(topology);
  Recorder client;
  network.set_client(&client);
  std::vector<SimTime> ends;
  for (int run = 0; run < 5; ++run) {
    client.delivered.clear();
    for (std::uint32_t i = 0; i < 4; ++i) {
      network.Send(network.AddRoute({2 * i, 2 * ((i + 1) % 4) + 1}), KiB(100), i);
    }
    network.RunToIdle();
    EXPECT_EQ(client.delivered.size(), 4u);
    ends.push_back(client.delivered.at(3));
    network.Reset();
  }
  EXPECT_THAT(ends, testing::Each(ends.front()));
}

TEST(PacketNetworkTest, IncastSharesTheWireEqually) {
  const Topology topology = Star(11, LinkKind::kNetwork, GigabitsPerSecond(25), Nanoseconds(500));
  PacketNetwork network(topology);
  Recorder client;
  network.set_client(&client);
  for (std::uint32_t i = 1; i < 11; ++i) network.Send(network.AddRoute({2 * i, 1}), MiB(1), i);
  network.RunToIdle();
  const double bound =
      static_cast<double>(SerializationTime(MiB(10), GigabitsPerSecond(25)).count());
  for (const auto& [token, at] : client.delivered) {
    EXPECT_GT(static_cast<double>(Ps(at)), 0.9 * bound);
    EXPECT_LT(static_cast<double>(Ps(at)), 1.02 * bound);
  }
  EXPECT_GT(Ps(client.delivered.at(10)), bound);
}

TEST(PacketNetworkTest, MulticastReachesEveryMemberAndLoadsTheSourceOnce) {
  const Topology topology = Star(8, LinkKind::kNvlink, GigabytesPerSecond(450), Nanoseconds(300));
  PacketNetwork network(topology);
  Recorder client;
  network.set_client(&client);
  const std::vector<DeviceId> members = {0, 1, 2, 3, 4, 5, 6, 7};
  network.SendGroup(network.AddGroup(GroupKind::kMulticast, 8, 0, members), MiB(1), 1);
  network.SendGroup(network.AddGroup(GroupKind::kReduce, 8, 5, members), MiB(1), 2);
  network.RunToIdle();
  EXPECT_EQ(client.delivered.size(), 2u);
  EXPECT_EQ(network.link_use()[0].payload, MiB(2));   // Multicast source, reduction member.
  EXPECT_EQ(network.link_use()[2].payload, MiB(1));   // Reduction member only.
  EXPECT_EQ(network.link_use()[3].payload, MiB(1));   // Multicast member only.
  EXPECT_EQ(network.link_use()[11].payload, MiB(2));  // Multicast member, reduction owner.
  network.Reset();
}

}  // namespace
}  // namespace windtunnel
