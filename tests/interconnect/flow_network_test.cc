#include "interconnect/flow_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "sim/random.h"

namespace windtunnel {
namespace {

// `count` endpoints around one switch; frames cost nothing, so that times are plain arithmetic.
Topology Star(std::uint32_t count, BitsPerSecond rate, Picoseconds half_latency) {
  Topology topology;
  topology.name = "star";
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i),
                                .kind = DeviceKind::kGpu,
                                .node = i,
                                .attributes = {{"protocol", "ideal"}}});
  }
  topology.node_count = count;
  topology.devices.push_back({.name = "switch", .kind = DeviceKind::kNetworkSwitch});
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const auto& [from, to] : {std::pair{i, count}, std::pair{count, i}}) {
      topology.links.push_back({.from = from,
                                .to = to,
                                .kind = LinkKind::kNetwork,
                                .rate = rate,
                                .latency = half_latency});
    }
  }
  return topology;
}
LinkId Up(std::uint32_t endpoint) { return 2 * endpoint; }
LinkId Down(std::uint32_t endpoint) { return 2 * endpoint + 1; }

class Recorder final : public NetworkClient {
 public:
  void OnInjected(SimTime now, std::uint64_t token) override {
    EXPECT_TRUE(injected.emplace(token, now.since_start()).second) << "injected twice: " << token;
    if (on_injected) on_injected(token);
  }
  void OnDelivered(SimTime now, std::uint64_t token) override {
    EXPECT_TRUE(injected.contains(token));
    EXPECT_TRUE(delivered.emplace(token, now.since_start()).second) << "delivered twice: " << token;
    order.push_back(token);
    if (on_delivered) on_delivered(token);
  }
  std::map<std::uint64_t, Picoseconds> injected;
  std::map<std::uint64_t, Picoseconds> delivered;
  std::vector<std::uint64_t> order;
  std::function<void(std::uint64_t)> on_injected;
  std::function<void(std::uint64_t)> on_delivered;
};

class FlowNetworkTest : public testing::Test {
 protected:
  void Build(Topology topology) {
    cluster = std::make_unique<Cluster>(std::move(topology));
    network = std::make_unique<FlowNetwork>(*cluster);
    network->set_client(&client);
  }
  RouteId StarRoute(std::uint32_t from, std::uint32_t to) {
    return network->AddRoute({Up(from), Down(to)});
  }
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<FlowNetwork> network;
  Recorder client;
};

constexpr BitsPerSecond kRate = GigabytesPerSecond(25);
const Bytes kMessage = MiB(1);

TEST_F(FlowNetworkTest, OneMessageTakesItsBytesOverTheRateAndTheLatencies) {
  Build(Star(4, kRate, Nanoseconds(500)));
  network->Send(StarRoute(0, 1), kMessage, 7);
  network->RunToIdle();
  EXPECT_EQ(client.injected.at(7), SerializationTime(kMessage, kRate));
  EXPECT_EQ(client.delivered.at(7), SerializationTime(kMessage, kRate) + Nanoseconds(1000));
  EXPECT_EQ(network->open_messages(), 0u);
}

TEST_F(FlowNetworkTest, MessagesOnDisjointPathsDoNotSeeEachOther) {
  Build(Star(4, kRate, Nanoseconds(0)));
  network->Send(StarRoute(0, 1), kMessage, 0);
  network->Send(StarRoute(1, 2), kMessage, 1);
  network->RunToIdle();
  EXPECT_EQ(client.delivered.at(0), SerializationTime(kMessage, kRate));
  EXPECT_EQ(client.delivered.at(1), SerializationTime(kMessage, kRate));
  EXPECT_EQ(network->effort().share_rounds, 0u);
}

// Case A09.
TEST_F(FlowNetworkTest, IncastSharesTheLastLinkEqually) {
  for (const std::uint32_t senders : {10u, 96u, 255u}) {
    client = Recorder();
    Build(Star(senders + 1, BitsPerSecond(25'000'000'000), Nanoseconds(100)));
    for (std::uint32_t s = 0; s < senders; ++s) {
      network->Send(StarRoute(s, senders), kMessage, s);
    }
    network->RunToIdle();
    const double all = senders * static_cast<double>(kMessage.count()) * 8 / 25e9 * 1e12;
    for (std::uint32_t s = 0; s < senders; ++s) {
      EXPECT_NEAR(static_cast<double>(client.delivered.at(s).count()), all + 200'000, 1e-6 * all);
    }
    EXPECT_EQ(network->link_use()[Down(senders)].payload, kMessage * senders);
    EXPECT_LE(network->link_use()[Down(senders)].busy, client.delivered.at(0));
  }
}

TEST_F(FlowNetworkTest, AFlowThatEndsLeavesItsShareToTheOthers) {
  Build(Star(3, kRate, Nanoseconds(0)));
  network->Send(StarRoute(0, 2), kMessage, 0);
  network->Send(StarRoute(1, 2), kMessage * 3, 1);
  network->RunToIdle();
  // Both at half rate until the first has moved 1 MiB, then 2 MiB at full rate.
  const auto unit = static_cast<double>(SerializationTime(kMessage, kRate).count());
  EXPECT_NEAR(static_cast<double>(client.delivered.at(0).count()), 2 * unit, 3);
  EXPECT_NEAR(static_cast<double>(client.delivered.at(1).count()), 4 * unit, 3);
}

TEST_F(FlowNetworkTest, AFlowHeldUpElsewhereLeavesRoomToItsNeighbour) {
  // 0 -> 3 and 1 -> 3 share the way down to 3; 0 -> 2 shares the way up of 0.
  Topology topology = Star(4, kRate, Nanoseconds(0));
  topology.links[Down(3)].rate = GigabytesPerSecond(10);
  Build(std::move(topology));
  network->Send(StarRoute(0, 3), kMessage * 5, 0);
  network->Send(StarRoute(1, 3), kMessage * 5, 1);
  network->Send(StarRoute(0, 2), kMessage * 20, 2);
  network->RunToIdle();
  // 5 GB/s each into 3; the third flow has the 20 GB/s that are left of 25.
  const auto unit = static_cast<double>(SerializationTime(kMessage, GigabytesPerSecond(1)).count());
  EXPECT_NEAR(static_cast<double>(client.delivered.at(0).count()), unit, 10);
  EXPECT_NEAR(static_cast<double>(client.delivered.at(1).count()), unit, 10);
  EXPECT_NEAR(static_cast<double>(client.delivered.at(2).count()), unit, 10);
}

TEST_F(FlowNetworkTest, ACapLimitsItsRouteAndLeavesTheRest) {
  Build(Star(3, kRate, Nanoseconds(0)));
  const RouteId capped = network->AddRoute({Up(0), Down(2)}, GigabytesPerSecond(5));
  network->Send(capped, kMessage * 5, 0);
  network->Send(StarRoute(1, 2), kMessage * 20, 1);
  network->RunToIdle();
  const auto unit = static_cast<double>(SerializationTime(kMessage, GigabytesPerSecond(1)).count());
  EXPECT_NEAR(static_cast<double>(client.delivered.at(0).count()), unit, 10);
  EXPECT_NEAR(static_cast<double>(client.delivered.at(1).count()), unit, 10);
}

TEST_F(FlowNetworkTest, MessagesOfOneRouteArriveInOrder) {
  Build(Star(2, kRate, Nanoseconds(300)));
  const RouteId route = StarRoute(0, 1);
  for (std::uint64_t i = 0; i < 20; ++i) network->Send(route, Bytes((20 - i) * 1000), i);
  network->RunToIdle();
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(client.order[i], i);
  EXPECT_EQ(client.injected.at(19), SerializationTime(Bytes(210'000), kRate));
}

TEST_F(FlowNetworkTest, AMessageSentOnInjectionFollowsWithoutAGap) {
  Build(Star(3, kRate, Nanoseconds(300)));
  const RouteId route = StarRoute(0, 2);
  client.on_injected = [&](std::uint64_t token) {
    if (token < 9) network->Send(route, kMessage, token + 1);
  };
  network->Send(route, kMessage, 0);
  network->Send(StarRoute(1, 2), kMessage * 10, 100);
  network->RunToIdle();
  EXPECT_NEAR(static_cast<double>(client.injected.at(9).count()),
              static_cast<double>(SerializationTime(kMessage * 20, kRate).count()), 20);
  EXPECT_LE(network->effort().share_rounds, 3u);
}

TEST_F(FlowNetworkTest, HeadersTakeTheirPartOfTheWire) {
  Topology topology = Star(2, GigabitsPerSecond(400), Nanoseconds(0));
  for (Device& device : topology.devices) device.attributes["protocol"] = "roce";
  Build(std::move(topology));
  network->Send(StarRoute(0, 1), Bytes(4096 * 100), 0);
  network->Send(StarRoute(1, 0), Bytes(1), 1);
  network->RunToIdle();
  EXPECT_EQ(client.injected.at(0), SerializationTime(Bytes(4178 * 100), GigabitsPerSecond(400)));
  EXPECT_EQ(client.injected.at(1), SerializationTime(Bytes(83), GigabitsPerSecond(400)));
  EXPECT_EQ(network->link_use()[Up(0)].wire, Bytes(417'800));
  EXPECT_EQ(network->link_use()[Up(0)].payload, Bytes(409'600));
  EXPECT_EQ(network->link_use()[Up(0)].packets, 100u);
}

TEST_F(FlowNetworkTest, AnEmptyMessageTakesTheLatency) {
  Build(Star(2, kRate, Nanoseconds(500)));
  network->Send(StarRoute(0, 1), Bytes(0), 0);
  network->RunToIdle();
  EXPECT_EQ(client.delivered.at(0), Nanoseconds(1000));
}

TEST_F(FlowNetworkTest, AMessageToTheSameDeviceTakesNoTime) {
  Build(Star(2, kRate, Nanoseconds(500)));
  network->Send(network->AddRoute({}), kMessage, 0);
  network->RunToIdle();
  EXPECT_EQ(client.delivered.at(0), Picoseconds(0));
}

TEST_F(FlowNetworkTest, AMulticastCrossesTheOwnersLinkOnceAndReachesAll) {
  Build(Star(4, kRate, Nanoseconds(250)));
  const std::vector<DeviceId> members = {0, 1, 2, 3};
  const GroupId group = network->AddGroup(GroupKind::kMulticast, 4, 0, members);
  network->SendGroup(group, kMessage, 0);
  network->RunToIdle();
  EXPECT_EQ(client.delivered.at(0), SerializationTime(kMessage, kRate) + Nanoseconds(500));
  EXPECT_EQ(network->link_use()[Up(0)].payload, kMessage);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(network->link_use()[Down(i)].payload, kMessage);
  }
  EXPECT_EQ(network->link_use()[Up(1)].payload, Bytes(0));
}

TEST_F(FlowNetworkTest, AReductionTakesAllOperandsAndOneResult) {
  Build(Star(4, kRate, Nanoseconds(250)));
  const std::vector<DeviceId> members = {0, 1, 2, 3};
  const GroupId group = network->AddGroup(GroupKind::kReduce, 4, 0, members);
  network->SendGroup(group, kMessage, 0);
  network->RunToIdle();
  EXPECT_EQ(client.delivered.at(0), SerializationTime(kMessage, kRate) + Nanoseconds(600));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(network->link_use()[Up(i)].payload, kMessage);
  EXPECT_EQ(network->link_use()[Down(0)].payload, kMessage);
  EXPECT_EQ(network->link_use()[Down(1)].payload, Bytes(0));
}

// Random messages: nothing is lost, no link is used above its rate, two runs agree to the bit.
TEST_F(FlowNetworkTest, RandomTrafficKeepsTheLawsAndRepeats) {
  std::vector<std::map<std::uint64_t, Picoseconds>> runs;
  for (int run = 0; run < 2; ++run) {
    client = Recorder();
    Build(Star(12, kRate, Nanoseconds(700)));
    RandomStream random(11, "flow_network_test");
    std::vector<RouteId> routes;
    for (std::uint32_t a = 0; a < 12; ++a) {
      for (std::uint32_t b = 0; b < 12; ++b) {
        if (a != b) routes.push_back(StarRoute(a, b));
      }
    }
    std::uint64_t sent = 0;
    std::uint64_t bytes = 0;
    const auto send = [&] {
      const std::uint64_t size = random.Below(1 << 20);
      bytes += size;
      network->Send(routes[random.Below(routes.size())], Bytes(size), sent++);
    };
    client.on_delivered = [&](std::uint64_t) {
      if (sent < 4000) send();
    };
    for (int i = 0; i < 200; ++i) send();
    network->RunToIdle();
    EXPECT_EQ(client.delivered.size(), 4000u);
    Picoseconds end;
    for (const auto& [token, time] : client.delivered) end = std::max(end, time);
    std::uint64_t counted = 0;
    for (std::uint32_t i = 0; i < 12; ++i) {
      counted += network->link_use()[Up(i)].payload.count();
      EXPECT_LE(network->link_use()[Up(i)].busy, end);
      EXPECT_LE(network->link_use()[Down(i)].busy, end);
    }
    EXPECT_EQ(counted, bytes);
    runs.push_back(client.delivered);
    network->Reset();
    EXPECT_EQ(network->link_use()[0].payload, Bytes(0));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// Endpoints that keep `window` messages of random sizes on their way to random others, `each` in
// all.
struct Traffic {
  Picoseconds time;
  FlowNetwork::Effort effort;
  Picoseconds busiest;
  std::map<std::uint64_t, Picoseconds> delivered;
};
Traffic RandomTraffic(std::uint32_t endpoints, std::uint32_t window, std::uint32_t each,
                      bool equal_sizes, const FlowNetwork::Options& options) {
  // Links of three speeds, so that flows are bound now at one end and now at the other.
  Topology topology = Star(endpoints, GigabytesPerSecond(25), Nanoseconds(500));
  for (std::uint32_t i = 0; i < endpoints; i += 3) {
    topology.links[Up(i)].rate = GigabytesPerSecond(50);
    topology.links[Down(i)].rate = GigabytesPerSecond(40);
  }
  const Cluster cluster(std::move(topology));
  FlowNetwork network(cluster, options);
  Recorder client;
  network.set_client(&client);
  std::vector<std::vector<RouteId>> routes(endpoints);
  for (std::uint32_t from = 0; from < endpoints; ++from) {
    for (std::uint32_t to = 0; to < endpoints; ++to) {
      routes[from].push_back(from == to ? 0 : network.AddRoute({Up(from), Down(to)}));
    }
  }
  // A stream per endpoint: what it sends does not depend on when.
  std::vector<RandomStream> streams;
  for (std::uint32_t from = 0; from < endpoints; ++from) {
    streams.emplace_back(7, "endpoint" + std::to_string(from));
  }
  std::vector<std::uint32_t> left(endpoints, each);
  std::uint64_t token = 0;
  std::map<std::uint64_t, std::uint32_t> sender;
  const auto send = [&](std::uint32_t from) {
    if (left[from] == 0) return;
    --left[from];
    RandomStream& random = streams[from];
    const auto to =
        static_cast<std::uint32_t>((from + 1 + random.Below(endpoints - 1)) % endpoints);
    const std::uint64_t size = equal_sizes ? 1 << 20 : (1 << 20) + random.Below(1 << 20);
    sender[token] = from;
    network.Send(routes[from][to], Bytes(size), token++);
  };
  client.on_injected = [&](std::uint64_t done) { send(sender.at(done)); };
  for (std::uint32_t from = 0; from < endpoints; ++from) {
    for (std::uint32_t k = 0; k < window; ++k) send(from);
  }
  network.RunToIdle();
  EXPECT_EQ(client.delivered.size(), std::size_t{endpoints} * each);
  Traffic traffic{network.queue().now().since_start(), network.effort(), Picoseconds(0),
                  client.delivered};
  for (const LinkUse& use : network.link_use()) {
    traffic.busiest = std::max(traffic.busiest, use.busy);
  }
  return traffic;
}

TEST(ManyFlowsTest, RatesThatWaitChangeTimesLittleAndNeverBeatTheLinks) {
  for (const bool equal_sizes : {false, true}) {
    const Traffic exact = RandomTraffic(64, 16, 100, equal_sizes, {.many_flows = 0});
    const Traffic waiting = RandomTraffic(64, 16, 100, equal_sizes, {.many_flows = 256});
    const auto ratio =
        static_cast<double>(waiting.time.count()) / static_cast<double>(exact.time.count());
    EXPECT_NEAR(ratio, 1, 0.01) << equal_sizes;
    EXPECT_GE(waiting.time, waiting.busiest);
    EXPECT_GE(exact.time, exact.busiest);
    EXPECT_LT(waiting.effort.share_updates * 3, exact.effort.share_updates * 2);
  }
}

// Routes of one to five links of three rates, some over a link twice, and groups; each source sends
// its next message when the last has left, or has arrived. By source and number.
using Arrivals = std::map<std::pair<std::uint32_t, std::uint32_t>, Picoseconds>;
Arrivals RandomRoutes(std::uint64_t seed, bool on_delivery, const FlowNetwork::Options& options,
                      FlowNetwork::Effort* effort) {
  constexpr std::uint32_t kEndpoints = 60;
  constexpr std::uint32_t kSources = 200;
  constexpr std::uint32_t kEach = 15;
  Topology topology = Star(kEndpoints, GigabytesPerSecond(25), Nanoseconds(on_delivery ? 0 : 500));
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    topology.links[link].rate = GigabytesPerSecond(25ULL << link % 3);
  }
  const Cluster cluster(std::move(topology));
  FlowNetwork network(cluster, options);
  RandomStream random(seed, "routes");
  std::vector<RouteId> routes;
  for (std::uint32_t source = 0; source < kSources; ++source) {
    Route route;
    for (std::uint64_t hops = 1 + random.Below(5); hops > 0; --hops) {
      route.push_back(static_cast<LinkId>(random.Below(2 * kEndpoints)));
    }
    if (source % 4 == 0) route.push_back(route.front());
    routes.push_back(network.AddRoute(route));
  }
  const std::vector<DeviceId> members = {1, 4, 7, 9};
  const GroupId group = network.AddGroup(GroupKind::kMulticast, kEndpoints, 1, members);
  std::vector<RandomStream> streams;
  for (std::uint32_t source = 0; source < kSources; ++source) {
    streams.emplace_back(seed, "source" + std::to_string(source));
  }
  std::vector<std::uint32_t> sent(kSources);
  Recorder client;
  network.set_client(&client);
  const auto send = [&](std::uint32_t source) {
    if (sent[source] == kEach) return;
    const std::uint64_t token = std::uint64_t{source} << 32 | sent[source]++;
    // Few sizes, so that much ends at one instant; empty ones, too.
    const Bytes size(streams[source].Below(4) * (256 << 10));
    if (source == 0) {
      network.SendGroup(group, size, token);
    } else {
      network.Send(routes[source], size, token);
    }
  };
  (on_delivery ? client.on_delivered : client.on_injected) = [&](std::uint64_t done) {
    send(static_cast<std::uint32_t>(done >> 32));
  };
  for (std::uint32_t source = 0; source < kSources; ++source) send(source);
  network.RunToIdle();
  if (effort != nullptr) *effort = network.effort();
  Arrivals arrivals;
  for (const auto& [token, time] : client.delivered) {
    arrivals[{static_cast<std::uint32_t>(token >> 32), static_cast<std::uint32_t>(token)}] = time;
  }
  EXPECT_EQ(arrivals.size(), std::size_t{kSources} * kEach);
  return arrivals;
}

// Rates that only the neighbourhood of a change recomputes are those of the whole network.
TEST(TouchedFlowsTest, TimesAreThoseOfWholeComponents) {
  FlowNetwork::Effort some, all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool on_delivery : {false, true}) {
      const Arrivals touched = RandomRoutes(seed, on_delivery, {.many_flows = 0}, &some);
      const Arrivals whole =
          RandomRoutes(seed, on_delivery, {.many_flows = 0, .whole_components = true}, &all);
      for (const auto& [message, time] : whole) {
        ASSERT_NEAR(static_cast<double>(touched.at(message).count()),
                    static_cast<double>(time.count()), 100)
            << "seed " << seed << (on_delivery ? ", on delivery" : ", on injection") << ", message "
            << message.second << " of " << message.first;
      }
    }
  }
  const auto updates = [](bool whole) {
    return RandomTraffic(48, 8, 60, false, {.many_flows = 0, .whole_components = whole})
        .effort.share_updates;
  };
  EXPECT_LT(updates(false), updates(true));
}

// Seven of eight flows on a link leave and four come at one instant: three would fit, and the
// fourth makes all of them share with the eighth.
TEST(TouchedFlowsTest, FlowsThatFitWhereOthersAreHeldBackShareToo) {
  const auto arrivals = [](bool whole) {
    Topology topology = Star(24, kRate, Nanoseconds(0));
    topology.links[Down(8)].rate = kRate * 4;
    const Cluster cluster(std::move(topology));
    FlowNetwork network(cluster, {.whole_components = whole});
    Recorder client;
    network.set_client(&client);
    std::vector<RouteId> routes;
    for (std::uint32_t s = 0; s < 8; ++s) routes.push_back(network.AddRoute({Up(s), Down(8)}));
    // Flows elsewhere, so that these are few of all.
    for (std::uint32_t s = 10; s < 24; ++s) {
      network.Send(network.AddRoute({Up(s), Down(9)}), kMessage * 100, 1000 + s);
    }
    std::uint32_t ended = 0;
    client.on_delivered = [&](std::uint64_t token) {
      if (token >= 8 || ++ended != 7) return;
      for (std::uint32_t s = 0; s < 4; ++s) network.Send(routes[s], kMessage * 8, 100 + s);
    };
    for (std::uint32_t s = 0; s < 8; ++s) {
      network.Send(routes[s], s == 7 ? kMessage * 4 : kMessage, s);
    }
    network.RunToIdle();
    return client.delivered;
  };
  const auto touched = arrivals(false);
  // 1 MiB at half the rate, then 0.8 of the rate for each until the eighth is done, then all of it.
  const auto unit = static_cast<double>(SerializationTime(kMessage, kRate).count());
  EXPECT_NEAR(static_cast<double>(touched.at(7).count()), (2 + 3 / 0.8) * unit, 1000);
  EXPECT_NEAR(static_cast<double>(touched.at(100).count()), (2 + 3 / 0.8 + 5) * unit, 1000);
  for (const auto& [token, time] : arrivals(true)) {
    EXPECT_NEAR(static_cast<double>(touched.at(token).count()), static_cast<double>(time.count()),
                100)
        << token;
  }
}

// 0 crosses a link twice that 1 crosses once, and another that gets four flows more: then 1 has
// what 0 no longer takes.
TEST(TouchedFlowsTest, ARouteThatCrossesALinkTwiceLeavesItsRoomTwice) {
  Topology topology = Star(24, kRate, Nanoseconds(0));
  const Cluster cluster(std::move(topology));
  FlowNetwork network(cluster);
  Recorder client;
  network.set_client(&client);
  for (std::uint32_t s = 3; s < 24; ++s) {
    network.Send(network.AddRoute({Up(s), Down(2)}), kMessage * 100, 1000 + s);
  }
  const RouteId twice = network.AddRoute({Down(0), Down(0), Down(1)});
  network.Send(twice, kMessage * 10, 0);
  network.Send(network.AddRoute({Down(0)}), kMessage * 7, 1);
  const RouteId other = network.AddRoute({Up(2)});
  std::vector<RouteId> late;
  for (int i = 0; i < 4; ++i) late.push_back(network.AddRoute({Down(1)}));
  client.on_delivered = [&](std::uint64_t token) {
    if (token != 2) return;
    for (std::uint32_t i = 0; i < 4; ++i) network.Send(late[i], kMessage * 100, 10 + i);
  };
  network.Send(other, kMessage * 3, 2);
  network.RunToIdle();
  // Of 7 MiB 1 at a third of the rate, then 6 at 0.6: 0 has a fifth on the other link.
  const auto unit = static_cast<double>(SerializationTime(kMessage, kRate).count());
  EXPECT_NEAR(static_cast<double>(client.delivered.at(1).count()), (3 + 6 / 0.6) * unit, 1000);
}

// All change at one instant: nobody waits.
TEST(ManyFlowsTest, LockstepIsSharedAtOnce) {
  const auto time = [](std::size_t many_flows) {
    const Cluster cluster(Star(24, GigabytesPerSecond(25), Nanoseconds(500)));
    FlowNetwork network(cluster, {.many_flows = many_flows});
    Recorder client;
    network.set_client(&client);
    std::map<std::uint64_t, std::pair<RouteId, std::uint32_t>> open;
    std::uint64_t token = 0;
    const auto send = [&](RouteId route, std::uint32_t rest) {
      open[token] = {route, rest};
      network.Send(route, Bytes(1 << 20), token++);
    };
    client.on_delivered = [&](std::uint64_t done) {
      const auto [route, rest] = open.at(done);
      if (rest > 0) send(route, rest - 1);
    };
    for (std::uint32_t from = 0; from < 24; ++from) {
      for (std::uint32_t k = 1; k < 6; ++k) {
        send(network.AddRoute({Up(from), Down((from + k) % 24)}), 20);
      }
    }
    network.RunToIdle();
    return network.queue().now();
  };
  EXPECT_EQ(time(10), time(0));
}

}  // namespace
}  // namespace windtunnel
