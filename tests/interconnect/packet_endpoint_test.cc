// What the sources of connections do: NIC and software per message, striping, TCP, outages, jitter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interconnect/packet_network.h"
#include "sim/error.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

class Ends final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override { ++injected; }
  void OnDelivered(SimTime now, std::uint64_t token) override {
    at.push_back(now.since_start());
    tokens.push_back(token);
  }
  std::vector<Picoseconds> at;
  std::vector<std::uint64_t> tokens;
  std::uint64_t injected = 0;
};

/// Messages of one size from GPU 0 to GPU 1 over one switch.
Ends SendMany(const Topology& star, const PacketNetwork::Options& options, std::uint32_t count,
              Bytes size) {
  PacketNetwork network(star, options);
  Ends ends;
  network.set_client(&ends);
  const RouteId route = network.AddRoute({0, 3});
  for (std::uint32_t i = 0; i < count; ++i) network.Send(route, size, i);
  network.RunToIdle();
  EXPECT_EQ(ends.tokens.size(), count);
  EXPECT_EQ(ends.injected, count);
  EXPECT_TRUE(std::is_sorted(ends.tokens.begin(), ends.tokens.end()));
  network.Reset();
  return ends;
}

Topology Star(BitsPerSecond rate, Picoseconds latency, const std::string& protocol = "ideal") {
  Topology star = testing::StarTopology(2, LinkKind::kNetwork, rate, latency);
  star.devices.back().attributes["protocol"] = protocol;
  return star;
}

TEST(PacketNicTest, OneStepAtATimeMovesAChunkPerStepAndWireTime) {
  const BitsPerSecond rate = GigabytesPerSecond(100);
  for (const Bytes chunk : {KiB(128), MiB(1)}) {
    PacketNetwork::Options options;
    options.nic.step = Microseconds(11);
    options.nic.step_window = 1;
    const Ends ends = SendMany(Star(rate, Picoseconds(0)), options, 100, chunk);
    // The header's second wire (16 bytes) and rounding of 32 bursts come on top.
    const double each =
        static_cast<double>((Microseconds(11) + SerializationTime(chunk, rate)).count());
    EXPECT_NEAR(static_cast<double>(ends.at.back().count()) / 100, each, 1000) << chunk.count();
  }
}

TEST(PacketNicTest, ALongerWayAddsItsRoundTripToEachStep) {
  const BitsPerSecond rate = GigabytesPerSecond(100);
  PacketNetwork::Options options;
  options.nic.step = Microseconds(11);
  options.nic.step_window = 1;
  const Ends near = SendMany(Star(rate, Picoseconds(0)), options, 10, KiB(128));
  const Ends far = SendMany(Star(rate, Microseconds(1)), options, 10, KiB(128));
  EXPECT_EQ(far.at.back() - near.at.back(), 9 * Microseconds(4) + Microseconds(2));
}

TEST(PacketNicTest, TheMessageRateBoundsSmallMessagesAndPostingAddsOnce) {
  PacketNetwork::Options options;
  options.nic.message_rate = 1'000'000;
  options.nic.post = Nanoseconds(400);
  const Topology star = Star(GigabytesPerSecond(100), Nanoseconds(100));
  const Ends ends = SendMany(star, options, 100, Bytes(8));
  EXPECT_EQ(ends.at[99] - ends.at[0], 99 * Microseconds(1));
  EXPECT_EQ(ends.at[0] - SendMany(star, {}, 1, Bytes(8)).at[0], Nanoseconds(400));
}

TEST(PacketNicTest, ConnectionsOfOneNicShareItsMessageRate) {
  const Topology star =
      testing::StarTopology(3, LinkKind::kNetwork, GigabytesPerSecond(100), Nanoseconds(100));
  PacketNetwork::Options options;
  options.nic.message_rate = 1'000'000;
  PacketNetwork network(star, options);
  Ends ends;
  network.set_client(&ends);
  for (std::uint64_t i = 0; i < 10; ++i) {
    network.Send(network.AddRoute({0, 3}), Bytes(8), i);
    network.Send(network.AddRoute({0, 5}), Bytes(8), i);
  }
  network.RunToIdle();
  EXPECT_EQ(ends.at.back() - ends.at.front(), 19 * Microseconds(1));
  network.Reset();
}

TEST(PacketNicTest, QueuePairsCutAMessageOrTakeTurnsAndDeliverInOrder) {
  const Topology star = Star(GigabytesPerSecond(50), Nanoseconds(500), "infiniband");
  const Picoseconds whole = SendMany(star, {}, 8, Bytes(1'000'003)).at.back();
  for (const bool split : {true, false}) {
    PacketNetwork::Options options;
    options.nic.queue_pairs = 4;
    options.nic.split_messages = split;
    const Ends ends = SendMany(star, options, 8, Bytes(1'000'003));
    EXPECT_NEAR(ToMicroseconds(ends.at.back()), ToMicroseconds(whole), 0.5) << split;
    EXPECT_EQ(SendMany(star, options, 3, Bytes(0)).at.size(), 3u);
  }
}

TEST(PacketNicTest, AQueuePairsWindowIsItsOwn) {
  const Topology star = Star(GigabytesPerSecond(50), Microseconds(5), "infiniband");
  PacketNetwork::Options options;
  options.window = KiB(64);
  const Picoseconds one = SendMany(star, options, 1, MiB(8)).at.back();
  options.nic.queue_pairs = 4;
  const Picoseconds four = SendMany(star, options, 1, MiB(8)).at.back();
  EXPECT_NEAR(static_cast<double>(one.count()) / static_cast<double>(four.count()), 4, 0.2);
}

/// Two leaves of two GPUs below four spines; the caller's way is over the first spine.
class SpreadTest : public ::testing::Test {
 protected:
  SpreadTest() {
    for (std::uint32_t i = 0; i < 4; ++i) {
      topology_.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
    }
    for (std::uint32_t i = 0; i < 6; ++i) {
      topology_.devices.push_back({.name = (i < 2 ? "leaf" : "spine") + std::to_string(i),
                                   .kind = DeviceKind::kNetworkSwitch});
    }
    for (DeviceId gpu = 0; gpu < 4; ++gpu) Join(gpu, 4 + gpu / 2);
    for (DeviceId leaf = 4; leaf < 6; ++leaf) {
      for (DeviceId spine = 6; spine < 10; ++spine) Join(leaf, spine);
    }
  }
  /// Payload that leaves leaf 0 towards each spine.
  std::vector<std::uint64_t> Uplinks(const std::string& protocol,
                                     PacketNetwork::QueuePairPaths paths,
                                     std::uint32_t queue_pairs) {
    for (DeviceId id = 4; id < 10; ++id) topology_.devices[id].attributes["protocol"] = protocol;
    PacketNetwork::Options options;
    options.nic.queue_pairs = queue_pairs;
    options.queue_pair_paths = paths;
    PacketNetwork network(topology_, options);
    network.Send(network.AddRoute({0, 8, 17, 5}), MiB(1), 0);
    network.RunToIdle();
    std::vector<std::uint64_t> payload;
    for (LinkId link = 8; link < 16; link += 2) {
      payload.push_back(network.link_use()[link].payload.count());
    }
    EXPECT_EQ(network.link_use()[5].payload, MiB(1));
    network.Reset();
    return payload;
  }

 private:
  void Join(DeviceId a, DeviceId b) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      topology_.links.push_back(
          {from, to, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(100), Nanoseconds(500)});
    }
  }
  Topology topology_;
};

TEST_F(SpreadTest, QueuePairsTakeEqualWaysByProtocolOrAsAsked) {
  using Paths = PacketNetwork::QueuePairPaths;
  const std::uint64_t whole = MiB(1).count();
  EXPECT_THAT(Uplinks("infiniband", Paths::kAuto, 4), ::testing::ElementsAre(whole, 0, 0, 0));
  EXPECT_THAT(Uplinks("infiniband", Paths::kEven, 4), ::testing::Each(whole / 4));
  EXPECT_THAT(Uplinks("infiniband", Paths::kEven, 8), ::testing::Each(whole / 4));
  const std::vector<std::uint64_t> hashed = Uplinks("roce", Paths::kAuto, 8);
  EXPECT_LT(hashed[0], whole);
  EXPECT_EQ(hashed[0] + hashed[1] + hashed[2] + hashed[3], whole);
  EXPECT_EQ(Uplinks("roce", Paths::kHash, 8), hashed);
  EXPECT_THAT(Uplinks("roce", Paths::kSame, 8), ::testing::ElementsAre(whole, 0, 0, 0));
}

TEST(PacketTcpTest, SlowStartDoublesPerRoundTripUntilTheWindow) {
  const Topology star = Star(GigabitsPerSecond(100), Microseconds(25), "ethernet");
  PacketNetwork::Options options;
  options.tcp.enabled = true;
  options.tcp.cpu_rate = BitsPerSecond(0);
  // 10 + 20 + 40 + 80 segments leave in four round trips of 100 us, then the last arrives.
  const Ends ends = SendMany(star, options, 1, Bytes(150 * 1448));
  EXPECT_GE(ToMicroseconds(ends.at[0]), 3 * 100 + 50);
  EXPECT_LE(ToMicroseconds(ends.at[0]), 3 * 100 + 50 + 25);
  options.tcp.largest_window = Bytes(20 * 1448);
  const Ends bounded = SendMany(star, options, 1, Bytes(150 * 1448));
  EXPECT_GE(ToMicroseconds(bounded.at[0]), 7 * 100 + 50);  // 10 + 7 x 20.
  EXPECT_LE(ToMicroseconds(bounded.at[0]), 7 * 100 + 50 + 25);
}

TEST(PacketTcpTest, OneCoreBoundsOneConnection) {
  const Topology star = Star(GigabitsPerSecond(100), Microseconds(5), "ethernet");
  PacketNetwork::Options options;
  options.tcp.enabled = true;
  const Ends ends = SendMany(star, options, 1, MiB(64));
  const double rate = static_cast<double>(MiB(64).count()) * 8 / ToMicroseconds(ends.at[0]) / 1e3;
  EXPECT_LE(rate, 42);
  EXPECT_GE(rate, 40);
}

TEST(PacketTcpTest, GrpcAddsItsFramesAndItsTimePerMessage) {
  const Topology star = Star(GigabitsPerSecond(100), Microseconds(5), "ethernet");
  PacketNetwork::Options options;
  options.tcp.enabled = true;
  const Picoseconds plain = SendMany(star, options, 1, KiB(4)).at[0];
  options.grpc.enabled = true;
  const Picoseconds grpc = SendMany(star, options, 1, KiB(4)).at[0];
  EXPECT_GE(grpc, plain + options.grpc.per_message);
  EXPECT_LE(grpc, plain + options.grpc.per_message + Nanoseconds(20));
}

TEST(PacketTcpTest, AFullSwitchDropsAndTheStreamGoesOn) {
  Topology star =
      testing::StarTopology(11, LinkKind::kNetwork, GigabitsPerSecond(25), Microseconds(5));
  star.devices.back().attributes["protocol"] = "ethernet";
  PacketNetwork::Options options;
  options.tcp.enabled = true;
  options.switch_buffer = KiB(512);
  PacketNetwork network(star, options);
  Ends ends;
  network.set_client(&ends);
  for (std::uint32_t i = 1; i <= 10; ++i) network.Send(network.AddRoute({2 * i, 1}), MiB(2), i);
  network.RunToIdle();
  EXPECT_EQ(ends.at.size(), 10u);
  std::uint64_t drops = 0;
  for (const LinkUse& use : network.link_use()) drops += use.drops;
  EXPECT_GT(drops, 0u);
  network.Reset();
}

TEST(PacketOutageTest, ATransportOutlastsAShortOutageAndGivesUpOnALongOne) {
  const Topology star = Star(GigabytesPerSecond(50), Nanoseconds(500), "infiniband");
  for (const bool back : {false, true}) {
    SCOPED_TRACE(back);
    PacketNetwork::Options options;
    options.retry.timeout_exponent = 10;  // 4.194 ms.
    options.retry.go_back_n = back;
    const Picoseconds clean = SendMany(star, options, 1, MiB(1)).at[0];
    options.outages[0] = {{SimTime(Microseconds(5)), SimTime(Milliseconds(10))}};
    const Picoseconds flap = SendMany(star, options, 1, MiB(1)).at[0];
    EXPECT_GT(flap, Milliseconds(10));
    EXPECT_LT(flap, Milliseconds(10) + clean + Milliseconds(5));
    options.outages[0] = {{SimTime(Microseconds(5)), CreditCounter::kUnknown}};
    try {
      SendMany(star, options, 1, MiB(1));
      FAIL();
    } catch (const SimulationError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("retries exhausted from gpu0 to gpu1"));
    }
  }
}

TEST(PacketOutageTest, NvlinkWaitsForItsLinkOrNamesTheOneThatStaysDown) {
  const Topology star =
      testing::StarTopology(2, LinkKind::kNvlink, GigabytesPerSecond(50), Nanoseconds(500));
  PacketNetwork::Options options;
  options.outages[3] = {{SimTime(Microseconds(5)), SimTime(Milliseconds(1))}};
  EXPECT_GT(SendMany(star, options, 1, MiB(1)).at[0], Milliseconds(1));
  options.outages[3] = {{SimTime(Microseconds(5)), CreditCounter::kUnknown}};
  try {
    SendMany(star, options, 1, MiB(1));
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("switch -> gpu1 is down"));
  }
}

TEST(PacketJitterTest, DelaysStayWithinTheirBoundInOrderAndRepeat) {
  const Topology star = Star(GigabytesPerSecond(50), Nanoseconds(500), "infiniband");
  PacketNetwork::Options options;
  options.jitter = Microseconds(20);
  const Ends once = SendMany(star, options, 50, Bytes(100));
  EXPECT_EQ(SendMany(star, options, 50, Bytes(100)).at, once.at);
  options.retry.seed = 2;
  EXPECT_NE(SendMany(star, options, 50, Bytes(100)).at, once.at);
  const Picoseconds plain = SendMany(star, {}, 1, Bytes(100)).at[0];
  EXPECT_GE(once.at.front(), plain);
  EXPECT_LE(once.at.back(), plain + Microseconds(20) + Microseconds(1));
}

}  // namespace
}  // namespace windtunnel
