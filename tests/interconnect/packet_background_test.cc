// Traffic of others, trees of reducing switches, and the range of time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "interconnect/background_traffic.h"
#include "interconnect/packet_network.h"
#include "sim/error.h"
#include "sim/parse_units.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

class Ends final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { at.push_back(now.since_start()); }
  std::vector<Picoseconds> at;
};

TEST(BackgroundTrafficTest, DrawsHaveMeanAndVarianceOne) {
  RandomStream random(1, "draws");
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = ExponentialDraw(random);
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.01);
  EXPECT_NEAR(squares / kDraws, 2, 0.05);
}

/// 64 MiB from GPU 0 to 1; GPU 2 sends to GPU 1 by chance.
Picoseconds WithLoad(double share, std::uint64_t seed, double* measured = nullptr) {
  const Topology star =
      testing::StarTopology(3, LinkKind::kNetwork, GigabytesPerSecond(25), Nanoseconds(500));
  PacketNetwork::Options options;
  options.retry.seed = seed;
  if (share > 0) options.background.push_back({.from = 2, .to = 1, .share = share});
  PacketNetwork network(star, options);
  Ends ends;
  network.set_client(&ends);
  const RouteId route = network.AddRoute({0, 3});
  Picoseconds end;
  for (int run = 0; run < 2; ++run) {
    ends.at.clear();
    network.Send(route, MiB(64), 0);
    network.RunToIdle();
    EXPECT_EQ(ends.at.size(), 1u) << "nobody hears of the others' messages";
    EXPECT_TRUE(run == 0 || end == ends.at[0]) << "the second run repeats the first";
    end = ends.at[0];
    if (measured != nullptr) {
      *measured = static_cast<double>(network.link_use()[4].busy.count()) /
                  static_cast<double>(end.count());
    }
    network.Reset();
  }
  return end;
}

TEST(BackgroundTrafficTest, ALoadTakesItsShareOfTheWireAndTheRunEnds) {
  const double alone = static_cast<double>(WithLoad(0, 1).count());
  for (const double share : {0.2, 0.4}) {
    double measured = 0;
    const auto loaded = static_cast<double>(WithLoad(share, 1, &measured).count());
    EXPECT_NEAR(measured, share, 0.12) << "some 25 messages by chance";
    EXPECT_NEAR(loaded / alone, 1 / (1 - measured), 0.1) << share;
  }
}

/// Ends the run when its one message is in.
class EndsTheRun final : public NetworkClient {
 public:
  explicit EndsTheRun(Network& network) : network_(network) {}
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override {
    at = now.since_start();
    network_.EndOfRun();
  }
  Picoseconds at;

 private:
  Network& network_;
};

TEST(BackgroundTrafficTest, WhatOthersSendAfterTheEndOfTheRunIsNotCounted) {
  const Topology star =
      testing::StarTopology(3, LinkKind::kNetwork, GigabytesPerSecond(25), Nanoseconds(500));
  PacketNetwork::Options options;
  // Twice the wire of GPU 2: it stays busy long after the message of GPU 0 is in.
  for (int i = 0; i < 2; ++i) options.background.push_back({.from = 2, .to = 1, .share = 1});
  PacketNetwork network(star, options);
  EndsTheRun client(network);
  network.set_client(&client);
  const RouteId route = network.AddRoute({0, 3});
  for (int run = 0; run < 2; ++run) {
    network.Send(route, MiB(16), 0);
    network.RunToIdle();
    ASSERT_GT(network.queue().now().since_start(), client.at) << "the others go on";
    const LinkUse& up = network.link_use()[4];
    EXPECT_LE(up.busy, client.at);
    EXPECT_GT(up.busy, client.at / 4);
    // Frames that have begun count whole, so at most one frame more than the busy time holds.
    const Picoseconds wire = SerializationTime(up.wire, star.links[4].rate);
    EXPECT_GE(wire, up.busy);
    EXPECT_LE(wire, up.busy + SerializationTime(Bytes(4096 + 26), star.links[4].rate));
    EXPECT_EQ(network.link_use()[0].payload, MiB(16)) << "the job's own bytes are all there";
    network.Reset();
  }
}

TEST(BackgroundTrafficTest, AnotherSeedGivesAnotherTime) {
  EXPECT_NE(WithLoad(0.3, 1), WithLoad(0.3, 2));
}

TEST(BackgroundTrafficTest, LoadsOutOfRangeAreRefused) {
  EXPECT_THROW(WithLoad(1.5, 1), ConfigError);
}

TEST(BackgroundTrafficTest, ARunThatStandsStillEndsInSpiteOfTheOthers) {
  // Two messages that wait for each other's credits, and others' messages elsewhere.
  Topology ring;
  for (std::uint32_t i = 0; i < 4; ++i) {
    ring.devices.push_back(
        {.name = "router" + std::to_string(i), .kind = DeviceKind::kNetworkSwitch});
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    ring.links.push_back(
        {i, (i + 1) % 4, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(100), Nanoseconds(500)});
  }
  for (const char* name : {"host0", "host1"}) ring.devices.push_back({.name = name});
  ring.links.push_back({4, 5, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(100), Nanoseconds(500)});
  PacketNetwork::Options options;
  options.virtual_channels = 1;
  options.link_buffer = Bytes(4096 + 26);
  options.background.push_back({.from = 4, .to = 5, .share = 0.5});
  PacketNetwork network(ring, options);
  for (std::uint32_t i = 0; i < 4; ++i) {
    network.Send(network.AddRoute({i, (i + 1) % 4, (i + 2) % 4}), MiB(1), i);
  }
  EXPECT_THROW(network.RunToIdle(), SimulationError);
}

/// Two leaves of four GPUs below two spines.
Topology TwoLeaves() {
  Topology topology;
  for (std::uint32_t i = 0; i < 8; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
  }
  for (const char* name : {"leaf0", "leaf1", "spine0", "spine1"}) {
    topology.devices.push_back({.name = name, .kind = DeviceKind::kNetworkSwitch});
  }
  const auto join = [&](DeviceId a, DeviceId b) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      topology.links.push_back(
          {from, to, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(400), Nanoseconds(500)});
    }
  };
  for (DeviceId gpu = 0; gpu < 8; ++gpu) join(gpu, 8 + gpu / 4);
  for (DeviceId leaf = 8; leaf < 10; ++leaf) {
    for (DeviceId spine = 10; spine < 12; ++spine) join(leaf, spine);
  }
  return topology;
}

TEST(SwitchTreeTest, LeavesReduceAndCopySoThatAnUplinkCarriesEachByteOnce) {
  const Topology topology = TwoLeaves();
  PacketNetwork network(topology);
  Ends ends;
  network.set_client(&ends);
  const std::vector<DeviceId> members = {0, 1, 2, 3, 4, 5, 6, 7};
  const GroupId reduce = network.AddGroup(GroupKind::kReduce, 10, 5, members);
  const GroupId copy = network.AddGroup(GroupKind::kMulticast, 10, 2, members);
  network.SendGroup(reduce, MiB(1), 1);
  network.RunToIdle();
  const auto payload = [&](LinkId link) { return network.link_use()[link].payload; };
  for (LinkId gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(payload(2 * gpu), MiB(1)) << "every member up";
  EXPECT_EQ(payload(16), MiB(1)) << "leaf0 -> spine0: one sum of four";
  EXPECT_EQ(payload(20), MiB(1)) << "leaf1 -> spine0";
  EXPECT_EQ(payload(18), Bytes(0)) << "the other spine idles";
  EXPECT_EQ(payload(11), MiB(1)) << "down to GPU 5";
  const Picoseconds reduced = ends.at.at(0);
  network.Reset();

  network.SendGroup(copy, MiB(1), 2);
  network.RunToIdle();
  EXPECT_EQ(payload(17), MiB(1)) << "spine0 -> leaf0: one copy for four";
  EXPECT_EQ(payload(21), MiB(1));
  for (LinkId gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(payload(2 * gpu + 1), MiB(1));
  network.Reset();

  // Up two links and down two at 400 Gb/s, two reductions of 100 ns, all cut through.
  const Bytes wire = MiB(1) + Bytes(256 * 26);
  const Picoseconds idle =
      SerializationTime(wire, GigabitsPerSecond(400)) + 4 * Nanoseconds(500) + 2 * Nanoseconds(100);
  EXPECT_GE(reduced, idle);
  EXPECT_LE(reduced, idle + Nanoseconds(10));
}

TEST(SwitchTreeTest, ThreeLevelsReduceAtEachOne) {
  // 16 GPUs on 8 leaves, 4 aggregations, 2 spines that hang at the core.
  Topology topology;
  for (std::uint32_t i = 0; i < 16; ++i) topology.devices.push_back({.name = "gpu"});
  std::vector<LinkId> up;  // Of each device but the core.
  DeviceId first = 0;
  for (std::uint32_t count = 16; count > 1; count /= 2) {
    const auto next = static_cast<DeviceId>(topology.devices.size());
    for (std::uint32_t i = 0; i < count / 2; ++i) {
      topology.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      up.push_back(static_cast<LinkId>(topology.links.size()));
      for (const auto& [from, to] :
           {std::pair{first + i, next + i / 2}, std::pair{next + i / 2, first + i}}) {
        topology.links.push_back(
            {from, to, LinkKind::kNetwork, 0, 1, GigabitsPerSecond(400), Nanoseconds(500)});
      }
    }
    first = next;
  }
  const auto core = static_cast<DeviceId>(topology.devices.size() - 1);
  PacketNetwork network(topology);
  Ends ends;
  network.set_client(&ends);
  std::vector<DeviceId> members;
  for (DeviceId gpu = 0; gpu < 16; ++gpu) members.push_back(gpu);
  network.SendGroup(network.AddGroup(GroupKind::kReduce, core, 3, members), MiB(1), 0);
  network.RunToIdle();
  for (const LinkId link : up) EXPECT_EQ(network.link_use()[link].payload, MiB(1)) << link;
  network.Reset();
  const Picoseconds idle = SerializationTime(MiB(1) + Bytes(256 * 26), GigabitsPerSecond(400)) +
                           8 * Nanoseconds(500) + 4 * Nanoseconds(100);
  EXPECT_GE(ends.at.at(0), idle);
  EXPECT_LE(ends.at.at(0), idle + Nanoseconds(20));
  ends.at.clear();
  network.SendGroup(network.AddGroup(GroupKind::kMulticast, core, 3, members), MiB(1), 0);
  network.RunToIdle();
  for (const LinkId link : up) EXPECT_EQ(network.link_use()[link + 1].payload, MiB(1)) << link;
  network.Reset();
}

TEST(SwitchTreeTest, ALeafWithOneMemberIsPartOfItsLink) {
  const Topology topology = TwoLeaves();
  PacketNetwork network(topology);
  Ends ends;
  network.set_client(&ends);
  const std::vector<DeviceId> members = {0, 4};
  network.SendGroup(network.AddGroup(GroupKind::kReduce, 10, 0, members), KiB(4), 1);
  network.RunToIdle();
  const Picoseconds frame = SerializationTime(Bytes(4096 + 26), GigabitsPerSecond(400));
  const Picoseconds header = SerializationTime(Bytes(26), GigabitsPerSecond(400));
  EXPECT_EQ(ends.at.at(0), frame + 3 * header + 4 * Nanoseconds(500) + Nanoseconds(100));
  network.Reset();
}

// Case H19.
TEST(TimeRangeTest, AHundredDaysAreExactInTheNetworkAndTwoHundredAreRefused) {
  Topology star =
      testing::StarTopology(2, LinkKind::kNetwork, BitsPerSecond(1'000'000), Nanoseconds(500));
  const SimTime late(Seconds(100 * 86'400));
  PacketNetwork network(star);
  Ends ends;
  network.set_client(&ends);
  const RouteId route = network.AddRoute({0, 3});
  class Sender final : public EventHandler {
   public:
    explicit Sender(std::function<void()> send) : send_(std::move(send)) {}
    void OnEvent(SimTime, std::uint64_t) override { send_(); }

   private:
    std::function<void()> send_;
  } sender([&] { network.Send(route, Bytes(0), 0); });
  network.queue().Schedule(late, sender, 0);
  network.RunToIdle();
  // 26 bytes at 1 Mb/s on each of two links.
  EXPECT_EQ(ends.at.at(0), late.since_start() + 2 * Microseconds(208) + 2 * Nanoseconds(500));
  network.Reset();

  for (Link& link : star.links) link.latency = Seconds(100 * 86'400);
  PacketNetwork longer(star);
  EXPECT_THROW(
      {
        longer.Send(longer.AddRoute({0, 3}), Bytes(0), 0);
        longer.RunToIdle();
      },
      SimulationError);
}

/// A clock that schedules its next edge.
class Clock final : public EventHandler {
 public:
  Clock(EventQueue& queue, Picoseconds period, std::uint64_t edges)
      : queue_(queue), period_(period), left_(edges) {}
  void OnEvent(SimTime now, std::uint64_t) override {
    last = now;
    if (--left_ > 0) queue_.Schedule(now + period_, *this, 0);
  }
  SimTime last;

 private:
  EventQueue& queue_;
  Picoseconds period_;
  std::uint64_t left_;
};

TEST(TimeRangeTest, ACycleOfNineTenthsOfANanosecondNeverDrifts) {
  const Picoseconds cycle = ParseTime("0.9 ns", {.field = "clock"});
  EXPECT_EQ(cycle * 1'000'000'000, Milliseconds(900));
  EventQueue queue;
  Clock clock(queue, cycle, 1'000'000);
  queue.Schedule(SimTime(cycle), clock, 0);
  queue.Run();
  EXPECT_EQ(clock.last, SimTime(Microseconds(900)));
  // The last of 10^9 edges, from the edge before it.
  EventQueue late;
  Clock end(late, cycle, 2);
  late.Schedule(SimTime(cycle * 999'999'999), end, 0);
  late.Run();
  EXPECT_EQ(end.last, SimTime(Milliseconds(900)));
}

TEST(TimeRangeTest, AnEventAtThePresentTimeRunsAfterThoseThatWait) {
  class Order final : public EventHandler {
   public:
    explicit Order(EventQueue& queue) : queue_(queue) {}
    void OnEvent(SimTime now, std::uint64_t payload) override {
      seen.push_back(payload);
      if (payload == 1) queue_.Schedule(now, *this, 3);
    }
    std::vector<std::uint64_t> seen;

   private:
    EventQueue& queue_;
  };
  EventQueue queue;
  Order order(queue);
  queue.Schedule(SimTime(), order, 1);
  queue.Schedule(SimTime(), order, 2);
  queue.Run();
  EXPECT_THAT(order.seen, ::testing::ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace windtunnel
