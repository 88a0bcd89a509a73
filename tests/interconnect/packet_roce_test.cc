// Lossless Ethernet on whole networks: incast, pause, marks, rates; leaf-spine under random load.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "interconnect/packet_network.h"
#include "sim/error.h"
#include "sim/random.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

constexpr BitsPerSecond kRate = GigabitsPerSecond(25);
constexpr Picoseconds kLatency = Microseconds(1);

/// Hosts around one switch that speaks `protocol`.
Topology Star(std::uint32_t hosts, const std::string& protocol) {
  Topology star = testing::StarTopology(hosts, LinkKind::kNetwork, kRate, kLatency);
  star.devices.back().attributes["protocol"] = protocol;
  return star;
}

class Ends final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { at.push_back(now.since_start()); }
  std::vector<Picoseconds> at;
};

struct Incast {
  Picoseconds end;
  double slowest_over_fastest = 0;
  std::uint64_t pauses = 0;
  std::uint64_t marks = 0;
  std::uint64_t drops = 0;
  Bytes deepest;
  Bytes buffer;
};

/// `senders` hosts send `size` each to host 0 at once.
Incast RunIncast(std::uint32_t senders, Bytes size, const std::string& protocol,
                 const PacketNetwork::Options& options) {
  const Topology star = Star(senders + 1, protocol);
  PacketNetwork network(star, options);
  Ends ends;
  network.set_client(&ends);
  for (std::uint32_t i = 1; i <= senders; ++i) {
    network.Send(network.AddRoute({2 * i, 1}), size, i);
  }
  network.RunToIdle();
  EXPECT_EQ(ends.at.size(), senders);
  const auto [first, last] = std::minmax_element(ends.at.begin(), ends.at.end());
  Incast result{.end = *last};
  result.slowest_over_fastest =
      static_cast<double>(last->count()) / static_cast<double>(first->count());
  for (const LinkUse& use : network.link_use()) {
    result.pauses += use.pauses;
    result.marks += use.marks;
    result.drops += use.drops;
  }
  result.deepest = Bytes(network.link_use()[1].deepest_queue);
  if (protocol == "roce") {
    result.buffer = network.engine().buffer(0).capacity();
    EXPECT_LE(network.engine().buffer(0).deepest(), result.buffer);
  }
  network.Reset();
  return result;
}

PacketNetwork::Options WithoutDcqcn() {
  PacketNetwork::Options options;
  options.dcqcn.enabled = false;
  return options;
}

/// Wire time of all bytes with their headers, over the last wire.
Picoseconds Bound(std::uint32_t senders, Bytes size, std::uint64_t overhead) {
  const std::uint64_t frames = (size.count() + 4095) / 4096;
  return SerializationTime(senders * (size + Bytes(frames * overhead)), kRate);
}

class IncastTest : public ::testing::TestWithParam<std::uint32_t> {};

// Case A09.
TEST_P(IncastTest, CreditsAndPausesBothFillTheWireEquallyAndLoseNothing) {
  const std::uint32_t senders = GetParam();
  const Bytes size = MiB(1);
  for (const char* protocol : {"infiniband", "roce"}) {
    SCOPED_TRACE(protocol);
    const Incast incast = RunIncast(senders, size, protocol, WithoutDcqcn());
    const Picoseconds bound = Bound(senders, size, protocol[0] == 'r' ? 82 : 26);
    EXPECT_GE(incast.end, bound + 2 * kLatency) << "no faster than the wire";
    EXPECT_LE(incast.end, bound + 2 * kLatency + Microseconds(30)) << "sum of bytes / B + latency";
    EXPECT_LE(incast.slowest_over_fastest, 1.035) << "equal shares, but for the last of 32 bursts";
    EXPECT_EQ(incast.drops, 0u);
    if (protocol[0] == 'r') {
      EXPECT_LE(incast.deepest, incast.buffer);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Senders, IncastTest, ::testing::Values(10, 96, 255));

TEST(RoceTest, DcqcnKeepsGoodputBelowTheWireAndSharesNearlyEqual) {
  for (const std::uint32_t senders : {10U, 96U}) {
    const Incast incast = RunIncast(senders, MiB(4), "roce", {});
    const Picoseconds bound = Bound(senders, MiB(4), 82);
    EXPECT_GE(incast.end, bound) << senders;
    EXPECT_LE(incast.end, bound * 3 / 2) << senders;
    EXPECT_EQ(incast.drops, 0u);
    EXPECT_GT(incast.marks, 0u);
  }
}

// Case A14.
TEST(RoceTest, AWindowMakesPausesNeedlessAndALaterNotificationNeverLowersThem) {
  PacketNetwork::Options options;
  options.window_paths = 1;
  EXPECT_EQ(RunIncast(255, MiB(1), "roce", options).pauses, 0u);
  options.dcqcn.cnp_delay = Microseconds(55);
  EXPECT_EQ(RunIncast(255, MiB(1), "roce", options).pauses, 0u);

  PacketNetwork::Options open;
  const Incast soon = RunIncast(255, MiB(1), "roce", open);
  open.dcqcn.cnp_delay = Microseconds(55);
  const Incast late = RunIncast(255, MiB(1), "roce", open);
  EXPECT_GT(soon.pauses, 0u);
  EXPECT_GE(late.pauses, soon.pauses);
  EXPECT_EQ(soon.drops + late.drops, 0u);
}

TEST(RoceTest, TheWindowOfOnePathKeepsOneFlowAtFullRate) {
  const Incast free = RunIncast(1, MiB(4), "roce", WithoutDcqcn());
  PacketNetwork::Options options = WithoutDcqcn();
  options.window_paths = 2;  // Frames come whole, so one path's worth leaves gaps.
  EXPECT_LE(RunIncast(1, MiB(4), "roce", options).end, free.end * 101 / 100);
  options.window_paths = 0;
  options.window = KiB(4);  // One frame per round trip.
  const Picoseconds frame = SerializationTime(Bytes(4096 + 82), kRate);
  const Incast slow = RunIncast(1, MiB(1), "roce", options);
  EXPECT_GE(slow.end, 255 * (frame + 4 * kLatency));
  EXPECT_LE(slow.end, 257 * (frame + 4 * kLatency + Nanoseconds(100)));
}

TEST(RoceTest, ASmallStaticThresholdPausesAndAnIdlePathNever) {
  PacketNetwork::Options options = WithoutDcqcn();
  options.pfc.xoff = KiB(64);
  const Incast incast = RunIncast(10, MiB(1), "roce", options);
  EXPECT_GT(incast.pauses, 0u);
  EXPECT_EQ(incast.drops, 0u);
  EXPECT_LE(incast.end, Bound(10, MiB(1), 82) + 2 * kLatency + Microseconds(30));
  EXPECT_EQ(RunIncast(1, MiB(4), "roce", options).pauses, 0u);
}

TEST(RoceTest, AnIdlePathPaysFramesLatencyAndOneHeaderAsWithCredits) {
  for (const std::uint64_t bytes : {0U, 1U, 4096U, 1'000'003U}) {
    for (const bool dcqcn : {true, false}) {
      PacketNetwork::Options options;
      options.dcqcn.enabled = dcqcn;
      const std::uint64_t frames = std::max<std::uint64_t>((bytes + 4095) / 4096, 1);
      const Picoseconds closed = SerializationTime(Bytes(bytes + frames * 82), kRate) +
                                 2 * kLatency + SerializationTime(Bytes(82), kRate);
      const Picoseconds end = RunIncast(1, Bytes(bytes), "roce", options).end;
      EXPECT_GE(end, closed) << bytes;
      EXPECT_LE(end, closed + Picoseconds(100)) << bytes << ": each burst rounds up";
    }
  }
}

TEST(RoceTest, WithoutPauseAFullSwitchDropsAndEveryMessageStillArrives) {
  PacketNetwork::Options options = WithoutDcqcn();
  options.pfc.enabled = false;
  options.switch_buffer = KiB(256);
  options.retry.timeout_exponent = 8;
  const Incast incast = RunIncast(10, KiB(256), "roce", options);
  EXPECT_GT(incast.drops, 0u);
  EXPECT_GE(incast.end, Bound(10, KiB(256), 82));
}

TEST(RoceTest, HeadroomOfOnesOwnThatIsTooSmallLosesFrames) {
  PacketNetwork::Options options = WithoutDcqcn();
  options.pfc.xoff = KiB(16);
  options.pfc.headroom = Bytes(1);
  options.retry.timeout_exponent = 8;
  EXPECT_GT(RunIncast(10, KiB(256), "roce", options).drops, 0u);
}

TEST(RoceTest, ABufferWithoutRoomForHeadroomIsRefused) {
  PacketNetwork::Options options;
  options.switch_buffer = KiB(16);
  try {
    RunIncast(10, KiB(1), "roce", options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("head-room"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("16 KiB"));
  }
}

TEST(RoceTest, BuffersComeFromTheSwitchsModelOrAttribute) {
  Topology star = Star(4, "roce");
  star.devices.back().model = "tomahawk-4";
  EXPECT_EQ(PacketNetwork(star).engine().buffer(0).capacity(), Bytes(113'000'000));
  star.devices.back().attributes["buffer"] = "2 MB";
  EXPECT_EQ(PacketNetwork(star).engine().buffer(0).capacity(), Bytes(2'000'000));
}

TEST(RoceTest, RatesAreControlledBelow400GigabitsUnlessAskedFor) {
  for (const std::uint64_t gigabits : {200U, 400U}) {
    Topology star = Star(11, "roce");
    for (Link& link : star.links) link.rate = GigabitsPerSecond(gigabits);
    for (const bool asked : {false, true}) {
      PacketNetwork::Options options;
      if (asked) options.dcqcn_below = BitsPerSecond(UINT64_MAX);
      PacketNetwork network(star, options);
      for (std::uint32_t i = 1; i <= 10; ++i)
        network.Send(network.AddRoute({2 * i, 1}), MiB(32), i);
      network.RunToIdle();
      const Picoseconds bound =
          SerializationTime(10 * (MiB(32) + Bytes(8192 * 82)), GigabitsPerSecond(gigabits));
      const bool full = network.queue().now() < SimTime(bound + Microseconds(10));
      EXPECT_EQ(full, gigabits == 400 && !asked) << "without control the last wire never idles";
      EXPECT_GT(network.link_use()[1].marks, 0u);
      network.Reset();
    }
  }
}

TEST(RoceTest, TwoFlowsThatStartApartComeToEqualShares) {
  const Topology star = Star(3, "roce");
  PacketNetwork network(star);
  /// Keeps one message of each flow waiting behind the one under way.
  class Streams final : public NetworkClient {
   public:
    explicit Streams(Network& network) : network_(network) {
      for (std::uint32_t i = 0; i < 2; ++i) routes_[i] = network.AddRoute({2 * (i + 1), 1});
    }
    void Begin(std::uint32_t flow) {
      for (int i = 0; i < 2; ++i) network_.Send(routes_[flow], MiB(1), flow);
    }
    void OnInjected(SimTime, std::uint64_t) override {}
    void OnDelivered(SimTime now, std::uint64_t token) override {
      const auto flow = static_cast<std::uint32_t>(token);
      if (now >= SimTime(Milliseconds(200))) ++late[flow];
      if (flow == 0 && ++count_ == 8) Begin(1);
      if (now < SimTime(Milliseconds(400))) network_.Send(routes_[flow], MiB(1), flow);
    }
    std::uint64_t late[2] = {};

   private:
    Network& network_;
    RouteId routes_[2];
    int count_ = 0;
  } streams(network);
  network.set_client(&streams);
  streams.Begin(0);
  network.RunToIdle();
  const auto first = static_cast<double>(streams.late[0]);
  const auto second = static_cast<double>(streams.late[1]);
  EXPECT_NEAR(first / second, 1, 0.25);
  // 200 ms of 25 Gb/s are 583 MiB of payload in frames.
  EXPECT_GT(first + second, 0.85 * 583);
  EXPECT_LE(first + second, 600);
  network.Reset();
}

TEST(RoceTest, ASlowHostPausesItsSwitchAndLosesNothing) {
  // A NIC of 100 Gb/s whose GPU hangs at a PCIe link of 32 Gb/s.
  Topology topology;
  topology.devices.push_back({.name = "source"});
  topology.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
  topology.devices.back().attributes["protocol"] = "roce";
  topology.devices.push_back({.name = "nic", .kind = DeviceKind::kNic});
  topology.devices.push_back({.name = "gpu"});
  const BitsPerSecond wire = GigabitsPerSecond(100);
  topology.links.push_back({0, 1, LinkKind::kNetwork, 0, 1, wire, kLatency});
  topology.links.push_back({1, 2, LinkKind::kNetwork, 0, 1, wire, kLatency});
  topology.links.push_back({2, 3, LinkKind::kPcie, 3, 4, GigabitsPerSecond(32), kLatency});
  PacketNetwork network(topology, WithoutDcqcn());
  network.Send(network.AddRoute({0, 1, 2}), MiB(64), 0);
  network.RunToIdle();
  EXPECT_GT(network.link_use()[1].pauses, 0u) << "the NIC pauses the switch";
  EXPECT_GT(network.link_use()[0].pauses, 0u) << "the switch pauses the source";
  for (const LinkUse& use : network.link_use()) EXPECT_EQ(use.drops, 0u);
  const Picoseconds pcie = SerializationTime(MiB(64) + Bytes(262'144 * 24), GigabitsPerSecond(32));
  EXPECT_GE(network.queue().now().since_start(), pcie);
  EXPECT_LE(network.queue().now().since_start(), pcie + Microseconds(100));
  network.Reset();
}

TEST(RoceTest, PausesInACircleStandStillAndSaySo) {
  // Four switches in a ring, each sends to the one three switches on.
  Topology ring;
  for (std::uint32_t i = 0; i < 4; ++i) {
    ring.devices.push_back(
        {.name = "switch" + std::to_string(i), .kind = DeviceKind::kNetworkSwitch});
    ring.devices.back().attributes["protocol"] = "roce";
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    ring.links.push_back({i, (i + 1) % 4, LinkKind::kNetwork, 0, 1, kRate, kLatency});
  }
  PacketNetwork::Options options = WithoutDcqcn();
  options.pfc.xoff = KiB(32);
  PacketNetwork network(ring, options);
  for (std::uint32_t i = 0; i < 4; ++i) {
    network.Send(network.AddRoute({i, (i + 1) % 4, (i + 2) % 4}), MiB(16), i);
  }
  try {
    network.RunToIdle();
    FAIL() << "went through";
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("PFC cycle"));
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("switch0 -> switch1 -> switch2 -> switch3 -> switch0\n"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("pfc=off"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("link switch0 -> switch1"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("paused by the receiver"));
  }
}

TEST(RoceTest, ALargeDeadlockIsToldInOneCycleAndCounts) {
  constexpr std::uint32_t kSwitches = 64;
  Topology ring;
  for (std::uint32_t i = 0; i < kSwitches; ++i) {
    ring.devices.push_back(
        {.name = "switch" + std::to_string(i), .kind = DeviceKind::kNetworkSwitch});
    ring.devices.back().attributes["protocol"] = "roce";
  }
  for (std::uint32_t i = 0; i < kSwitches; ++i) {
    ring.links.push_back({i, (i + 1) % kSwitches, LinkKind::kNetwork, 0, 1, kRate, kLatency});
  }
  PacketNetwork::Options options = WithoutDcqcn();
  options.pfc.xoff = KiB(32);
  PacketNetwork network(ring, options);
  for (std::uint32_t i = 0; i < kSwitches; ++i) {
    network.Send(network.AddRoute({i, (i + 1) % kSwitches, (i + 2) % kSwitches}), MiB(16), i);
  }
  try {
    network.RunToIdle();
    FAIL() << "went through";
  } catch (const SimulationError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, ::testing::HasSubstr("each of these 64 links"));
    EXPECT_THAT(text, ::testing::HasSubstr("more ... -> switch0\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("and 62 more links"));
    EXPECT_LT(text.size(), 2000u);
  }
}

TEST(RoceTest, AStandInSwitchHasRoomForLongCablesAndAProductCountsOncePerItsPorts) {
  Topology star = Star(8, "roce");
  for (Link& link : star.links) {
    link.rate = GigabitsPerSecond(800);
    link.latency = Milliseconds(1);  // 100 MB under way on each cable.
  }
  const PacketNetwork network(star);
  const SharedBuffer& buffer = network.engine().buffer(0);
  EXPECT_EQ(buffer.capacity(), 2 * buffer.reserved());
  EXPECT_GT(buffer.reserved(), 8 * Bytes(200'000'000));
  Topology wide = Star(130, "roce");
  wide.devices.back().model = "tomahawk-4";  // 64 ports.
  EXPECT_EQ(PacketNetwork(wide).engine().buffer(0).capacity(), 3 * Bytes(113'000'000));
}

/// 9 leaves of 16 hosts, 4 spines, all links alike.
struct LeafSpine {
  LeafSpine() {
    for (std::uint32_t i = 0; i < 144; ++i) {
      topology.devices.push_back({.name = "host" + std::to_string(i), .index = i});
    }
    for (std::uint32_t i = 0; i < 13; ++i) {
      topology.devices.push_back(
          {.name = (i < 9 ? "leaf" : "spine") + std::to_string(i < 9 ? i : i - 9),
           .kind = DeviceKind::kNetworkSwitch});
      topology.devices.back().attributes["protocol"] = "roce";
    }
    for (std::uint32_t host = 0; host < 144; ++host) Join(host, 144 + host / 16);
    for (std::uint32_t leaf = 0; leaf < 9; ++leaf) {
      for (std::uint32_t spine = 0; spine < 4; ++spine) Join(144 + leaf, 153 + spine);
    }
  }
  void Join(DeviceId a, DeviceId b) {
    topology.links.push_back({a, b, LinkKind::kNetwork, 0, 1, kRate, kLatency});
    topology.links.push_back({b, a, LinkKind::kNetwork, 0, 1, kRate, kLatency});
  }
  Route Between(std::uint32_t from, std::uint32_t to, std::uint32_t spine) const {
    const std::uint32_t up = from / 16;
    const std::uint32_t down = to / 16;
    if (up == down) return {2 * from, 2 * to + 1};
    return {2 * from, 288 + 2 * (up * 4 + spine), 288 + 2 * (down * 4 + spine) + 1, 2 * to + 1};
  }
  Topology topology;
};

struct LeafSpineRun {
  std::vector<Picoseconds> ends;
  std::uint64_t drops = 0;
  Bytes payload;
};

LeafSpineRun RandomFlows(std::uint64_t seed, const PacketNetwork::Options& options) {
  const LeafSpine fabric;
  PacketNetwork network(fabric.topology, options);
  Ends ends;
  network.set_client(&ends);
  RandomStream random(seed, "flows");
  Bytes sent;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto from = static_cast<std::uint32_t>(random.Below(144));
    const auto to = static_cast<std::uint32_t>((from + 1 + random.Below(143)) % 144);
    const auto spine = static_cast<std::uint32_t>(random.Below(4));
    const Bytes size(1 + random.Below(1 << 18));
    sent += size;
    network.Send(network.AddRoute(fabric.Between(from, to, spine)), size, i);
  }
  network.RunToIdle();
  LeafSpineRun run{.ends = ends.at};
  for (LinkId id = 0; id < fabric.topology.links.size(); ++id) {
    run.drops += network.link_use()[id].drops;
    if (id < 288 && id % 2 == 1) run.payload += network.link_use()[id].payload;
  }
  EXPECT_EQ(run.payload, sent);
  network.Reset();
  return run;
}

TEST(RoceTest, AThousandFlowsOver144HostsLoseNothingAndRepeatToTheBit) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    const LeafSpineRun run = RandomFlows(seed, {});
    EXPECT_EQ(run.ends.size(), 1000u);
    EXPECT_EQ(run.drops, 0u);
    EXPECT_EQ(RandomFlows(seed, {}).ends, run.ends);
  }
}

}  // namespace
}  // namespace windtunnel
