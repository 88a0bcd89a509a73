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

struct Setting {
  double error_rate = 0;
  std::uint32_t exponent = 10;
  bool go_back_n = false;
  LinkId broken_link = UINT32_MAX;  ///< Its `broken_frame` is broken, once.
  LinkKind kind = LinkKind::kNetwork;
  std::uint64_t broken_frame = 4 * 64 - 1;
};

/// Four messages of 256 KiB from GPU 0 to 1 over one switch; frames break on the wire out of GPU 0.
class Lossy {
 public:
  explicit Lossy(const Setting& setting)
      : star_(testing::StarTopology(2, setting.kind, GigabytesPerSecond(50), Nanoseconds(500))),
        network_(star_, Options(setting)) {
    network_.set_client(&client_);
    if (setting.broken_link != UINT32_MAX)
      network_.BreakFrame(setting.broken_link, setting.broken_frame);
    const RouteId route = network_.AddRoute({0, 3});
    for (std::uint64_t i = 0; i < 4; ++i) network_.Send(route, KiB(256), i);
  }
  Picoseconds Run() {
    network_.RunToIdle();
    EXPECT_THAT(client_.tokens, ::testing::ElementsAre(0, 1, 2, 3)) << "order within a route";
    const Picoseconds end = client_.end.since_start();
    network_.Reset();
    return end;
  }
  PacketNetwork& network() { return network_; }

 private:
  static PacketNetwork::Options Options(const Setting& setting) {
    PacketNetwork::Options options;
    options.burst.bursts_per_message = 0;
    options.error_rates[0] = setting.error_rate;
    options.retry.timeout_exponent = setting.exponent;
    options.retry.go_back_n = setting.go_back_n;
    return options;
  }
  Topology star_;
  PacketNetwork network_;
  Order client_;
};

Picoseconds TimeWith(const Setting& setting) { return Lossy(setting).Run(); }

class PacketLossTest : public ::testing::TestWithParam<bool> {};

// Case A16.
TEST_P(PacketLossTest, TimeGrowsWithTheErrorRateAndStaysFinite) {
  const bool back = GetParam();
  const Picoseconds clean = TimeWith({.go_back_n = back});
  Picoseconds before = clean;
  for (const double rate : {1e-2, 0.1, 0.2}) {
    const Picoseconds time = TimeWith({.error_rate = rate, .go_back_n = back});
    EXPECT_GT(time, before) << rate;
    EXPECT_EQ(TimeWith({.error_rate = rate, .go_back_n = back}), time) << "same seed, same time";
    before = time;
  }
  EXPECT_GE(TimeWith({.error_rate = 1e-4, .go_back_n = back}), clean);
}

// Case A16.
TEST_P(PacketLossTest, LosingEverythingEndsAfterRetryCountTimeOuts) {
  Lossy lossy({.error_rate = 1.0, .exponent = 14, .go_back_n = GetParam()});
  try {
    lossy.Run();
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("retries exhausted from gpu0 to gpu1"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gpu0 -> switch"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("retry count 7"));
  }
  EXPECT_EQ(lossy.network().queue().now(), SimTime(7 * Picoseconds(4'096'000ULL << 14)));
}

// Case A17.
// Case A17.
TEST_P(PacketLossTest, TheLastFrameIsMissedForExactlyOneTimeout) {
  for (const std::uint32_t exponent : {14U, 20U, 22U}) {
    for (const LinkId link : {0U, 3U}) {
      const Picoseconds clean = TimeWith({.exponent = exponent, .go_back_n = GetParam()});
      const Picoseconds lost =
          TimeWith({.exponent = exponent, .go_back_n = GetParam(), .broken_link = link});
      EXPECT_EQ(lost - clean, Picoseconds(4'096'000ULL << exponent)) << link;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Repeat, PacketLossTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "GoBackN" : "Selective"; });

TEST(PacketLossOrderTest, ALaterMessageShowsTheGapAtTheEndOfAnEarlierOne) {
  const Picoseconds clean = TimeWith({});
  for (const bool back : {false, true}) {
    const Picoseconds lost =
        TimeWith({.go_back_n = back, .broken_link = 0, .broken_frame = 2 * 64 - 1});
    EXPECT_GT(lost, clean);
    EXPECT_LT(lost, clean + Microseconds(5)) << "no time-out of 4.2 ms";
  }
}

TEST(PacketLossOrderTest, GoingBackSendsMoreThanTheLostFrame) {
  std::uint64_t frames[2];
  for (const bool back : {false, true}) {
    Lossy lossy({.go_back_n = back, .broken_link = 0, .broken_frame = 10});
    lossy.network().RunToIdle();
    frames[back] = lossy.network().link_use()[0].packets;
  }
  EXPECT_EQ(frames[0], 4 * 64 + 1u);
  // What left during one round trip: 2 us at 50 GB/s are 24 frames.
  EXPECT_GE(frames[1], 4 * 64 + 20u);
  EXPECT_LE(frames[1], 4 * 64 + 40u);
}

TEST(PacketLossOrderTest, NvlinkReplaysByItselfWithinARoundTrip) {
  const Picoseconds clean = TimeWith({.kind = LinkKind::kNvlink});
  const Picoseconds replayed = TimeWith({.broken_link = 0, .kind = LinkKind::kNvlink});
  EXPECT_GT(replayed, clean);
  EXPECT_LT(replayed, clean + Microseconds(2));
}

}  // namespace
}  // namespace windtunnel
