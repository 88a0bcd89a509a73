// How far coarse bursts are from frame-by-frame runs.

#include <gtest/gtest.h>

#include <algorithm>

#include "interconnect/packet_network.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

/// Counts to the end of all messages.
class LastDelivery final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { end = std::max(end, now); }
  SimTime end;
};

double EndOf(std::uint32_t bursts, Bytes size, bool incast) {
  const Topology star =
      testing::StarTopology(8, LinkKind::kNetwork, GigabytesPerSecond(50), Nanoseconds(500));
  PacketNetwork::Options options;
  options.burst.bursts_per_message = bursts;
  PacketNetwork network(star, options);
  LastDelivery client;
  network.set_client(&client);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t step = 1; step < 8; ++step) {
      const std::uint32_t to = incast ? 0 : (from + step) % 8;
      if (to == from) continue;
      network.Send(network.AddRoute({2 * from, 2 * to + 1}), size, 0);
    }
  }
  network.RunToIdle();
  return static_cast<double>(client.end.since_start().count());
}

TEST(PacketBurstTest, IncastAndAllToAllEndWithinFivePercentOfFrameByFrame) {
  for (const bool incast : {true, false}) {
    for (const Bytes size : {KiB(64), MiB(1)}) {
      const double exact = EndOf(0, size, incast);
      EXPECT_NEAR(EndOf(32, size, incast) / exact, 1.0, 0.05) << incast << " " << size.count();
    }
  }
}

TEST(PacketBurstTest, EventsPerMessageAreBounded) {
  const Topology star =
      testing::StarTopology(2, LinkKind::kNvlink, GigabytesPerSecond(450), Nanoseconds(300));
  PacketNetwork::Options options;
  options.burst.longest_burst = Bytes(0);
  options.link_buffer = GiB(4);
  PacketNetwork network(star, options);
  network.Send(network.AddRoute({0, 3}), GiB(8), 0);
  network.RunToIdle();
  // Two per burst (wire free at the source, arrival at the switch), injected, delivered.
  EXPECT_LE(network.queue().executed(), 2 * 32 + 2u);
}

// Else a few of them to one output fill what frames to several would share.
TEST(PacketBurstTest, ABurstIsAtMostAnEighthOfTheBuffers) {
  const Topology star =
      testing::StarTopology(2, LinkKind::kNetwork, GigabytesPerSecond(50), Nanoseconds(100));
  PacketNetwork network(star, {});
  network.Send(network.AddRoute({0, 3}), MiB(16), 0);
  network.RunToIdle();
  // 128 KiB without what 200 ns hold, in eighths of whole frames: three of 4 KiB.
  EXPECT_EQ(network.engine().credits(0).capacity(), KiB(128));
  EXPECT_EQ(network.engine().arrivals(), (MiB(16).count() + 3 * 4096 - 1) / (3 * 4096));
}

TEST(PacketBurstTest, ALongWireHasTwiceItsLoopAsBuffer) {
  const Topology star =
      testing::StarTopology(2, LinkKind::kNetwork, GigabytesPerSecond(50), Microseconds(10));
  PacketNetwork network(star, {});
  EXPECT_EQ(network.engine().credits(0).capacity(), 2 * 2 * Bytes(10 * 50'000));
}

TEST(PacketBurstTest, IncastIsNotFasterThanTheWire) {
  const double incast = EndOf(32, MiB(1), true);
  EXPECT_GE(incast,
            static_cast<double>(SerializationTime(49 * MiB(1), GigabytesPerSecond(50)).count()));
}

}  // namespace
}  // namespace windtunnel
