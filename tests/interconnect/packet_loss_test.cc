#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interconnect/packet_network.h"
#include "sim/error.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

class Order final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t token) override {
    tokens.push_back(token);
    end = now;
  }
  std::vector<std::uint64_t> tokens;
  SimTime end;
};

/// Four messages of 256 KiB from GPU 0 to 1; broken frames on the wire out of GPU 0.
Picoseconds TimeWith(double error_rate, std::uint32_t exponent, bool break_last = false,
                     LinkKind kind = LinkKind::kNetwork) {
  const Topology star = testing::StarTopology(2, kind, GigabytesPerSecond(50), Nanoseconds(500));
  PacketNetwork::Options options;
  options.burst.bursts_per_message = 0;
  options.error_rates[0] = error_rate;
  options.retry.timeout_exponent = exponent;
  PacketNetwork network(star, options);
  Order client;
  network.set_client(&client);
  if (break_last) network.BreakFrame(0, 4 * 64 - 1);
  const RouteId route = network.AddRoute({0, 3});
  for (std::uint64_t i = 0; i < 4; ++i) network.Send(route, KiB(256), i);
  network.RunToIdle();
  EXPECT_THAT(client.tokens, ::testing::ElementsAre(0, 1, 2, 3)) << "order within a route";
  network.Reset();
  return client.end.since_start();
}

TEST(PacketLossTest, TimeGrowsWithTheErrorRateAndStaysFinite) {
  const Picoseconds clean = TimeWith(0, 10);
  const Picoseconds few = TimeWith(1e-2, 10);
  const Picoseconds many = TimeWith(0.2, 10);
  EXPECT_GT(few, clean);
  EXPECT_GT(many, few);
  EXPECT_EQ(TimeWith(0.2, 10), many) << "same seed, same time";
}

TEST(PacketLossTest, LosingEverythingEndsInRetriesExhausted) {
  try {
    TimeWith(1.0, 14);
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("retries exhausted"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gpu0 -> switch"));
  }
}

TEST(PacketLossTest, TheLastFrameIsMissedForOneTimeout) {
  for (const std::uint32_t exponent : {14U, 20U, 22U}) {
    const Picoseconds clean = TimeWith(0, exponent);
    const Picoseconds lost = TimeWith(0, exponent, true);
    const Picoseconds timeout(4'096'000ULL << exponent);
    EXPECT_GE(lost, clean + timeout - Microseconds(1));
    EXPECT_LE(lost, clean + timeout + Microseconds(2));
  }
}

TEST(PacketLossTest, NvlinkReplaysByItselfWithinARoundTrip) {
  const Picoseconds clean = TimeWith(0, 20, false, LinkKind::kNvlink);
  const Picoseconds replayed = TimeWith(0, 20, true, LinkKind::kNvlink);
  EXPECT_GT(replayed, clean);
  EXPECT_LT(replayed, clean + Microseconds(2));
}

}  // namespace
}  // namespace windtunnel
