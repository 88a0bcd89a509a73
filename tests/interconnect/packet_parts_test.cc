// Unit tests of the parts of the packet level: wire, credits, arbitration, kernel bridge.

#include <gtest/gtest.h>

#include "interconnect/arbiter.h"
#include "interconnect/credit_counter.h"
#include "interconnect/link_timing.h"
#include "sim/error.h"
#include "sim/systemc_bridge.h"

namespace windtunnel {
namespace {

constexpr SimTime At(std::uint64_t ps) { return SimTime(Picoseconds(ps)); }

LinkTiming::Options Nvlink() {
  return {.rate = GigabytesPerSecond(25),
          .propagation = Nanoseconds(100),
          .max_payload = Bytes(256),
          .frame_overhead = Bytes(32),
          .granule = Bytes(16)};
}

TEST(LinkTimingTest, CountsHeadersPaddingAndBareFrames) {
  const LinkTiming link(Nvlink());
  EXPECT_EQ(link.WireSize(Bytes(0)), Bytes(32));
  EXPECT_EQ(link.WireSize(Bytes(1)), Bytes(16 + 32));
  EXPECT_EQ(link.WireSize(Bytes(256)), Bytes(288));
  EXPECT_EQ(link.WireSize(Bytes(257)), Bytes(288 + 48));
  EXPECT_EQ(link.Frames(Bytes(1024)), 4u);
}

TEST(LinkTimingTest, WireIsFreeExactlyAfterTheLastBit) {
  LinkTiming link(Nvlink());
  const auto first = link.Send(At(1000), Bytes(256));
  EXPECT_EQ(first.wire_free, At(1000 + 11'520));  // 288 B at 25 GB/s.
  EXPECT_EQ(first.last_in, first.wire_free + Nanoseconds(100));
  const auto second = link.Send(At(1001), Bytes(256));
  EXPECT_EQ(second.start, first.wire_free);
}

TEST(LinkTimingTest, LastFrameWaitsForASlowerWireBefore) {
  LinkTiming link(Nvlink());
  const auto booking = link.Send(At(0), At(1'000'000), Bytes(1024));
  EXPECT_EQ(booking.wire_free, At(4 * 11'520));
  EXPECT_EQ(booking.last_out, At(1'000'000 + 11'520));
}

TEST(LinkTimingTest, ZeroRateIsRefused) {
  LinkTiming::Options options = Nvlink();
  options.rate = BitsPerSecond(0);
  EXPECT_THROW(LinkTiming{options}, ConfigError);
}

TEST(CreditCounterTest, CreditIsBackAtItsTimeAndNotBefore) {
  CreditCounter credits(Bytes(100));
  EXPECT_TRUE(credits.Fits(At(0), Bytes(100)));
  credits.Take(Bytes(100));
  EXPECT_EQ(credits.FreeAt(Bytes(60)), CreditCounter::kUnknown);
  credits.Return(At(50), Bytes(40));
  credits.Return(At(20), Bytes(60));  // Out of order.
  EXPECT_EQ(credits.FreeAt(Bytes(60)), At(20));
  EXPECT_FALSE(credits.Fits(At(19), Bytes(60)));
  EXPECT_TRUE(credits.Fits(At(20), Bytes(60)));
  EXPECT_EQ(credits.returning(), Bytes(40));
  EXPECT_THROW(credits.Return(At(60), Bytes(1)), InternalError);
  credits.Reset();
  EXPECT_EQ(credits.available(), Bytes(100));
}

TEST(CreditCounterTest, LostCreditIsNoticedAtReset) {
  CreditCounter credits(Bytes(100));
  credits.Take(Bytes(1));
  EXPECT_THROW(credits.Reset(), InternalError);
}

TEST(DeficitRoundRobinTest, SharesBytesEquallyBetweenLargeAndSmallBursts) {
  std::vector<DeficitRoundRobin::Member> members(2);
  DeficitRoundRobin round;
  round.Activate(members, 0);
  round.Activate(members, 1);
  const std::uint64_t size[] = {1000, 100};
  std::uint64_t sent[] = {0, 0};
  for (int i = 0; i < 1100; ++i) {
    const std::uint32_t id =
        round.Pick(members, 1000, [&size](std::uint32_t queue) { return size[queue]; });
    sent[id] += size[id];
    round.Charge(members, size[id]);
  }
  EXPECT_NEAR(static_cast<double>(sent[0]) / static_cast<double>(sent[1]), 1.0, 0.02);
}

// Ten connections that start at a device share one place beside each link that comes in.
TEST(PortArbiterTest, SourcesOfADeviceHaveOnePlaceAmongItsPorts) {
  constexpr std::uint32_t kOwn = 12;
  std::vector<PortArbiter::Member> members(13);
  PortArbiter arbiter;
  arbiter.set_own(kOwn);
  arbiter.Activate(members, 10);
  arbiter.Activate(members, 11);
  for (std::uint32_t id = 0; id < 10; ++id) arbiter.ActivateSource(members, id);
  std::vector<int> turns(12, 0);
  const auto pick = [&] {
    return arbiter.Pick(members, 100, [](std::uint32_t) { return std::uint64_t{100}; });
  };
  for (int i = 0; i < 300; ++i) {
    ++turns[pick()];
    arbiter.Charge(members, 100);
  }
  EXPECT_EQ(turns[10], 100);
  EXPECT_EQ(turns[11], 100);
  for (std::uint32_t id = 0; id < 10; ++id) EXPECT_EQ(turns[id], 10) << id;
  // Sources that have nothing left go one by one, then their place.
  while (!arbiter.empty()) {
    pick();
    arbiter.Drop(members, 100);
  }
  arbiter.ActivateSource(members, 3);
  EXPECT_EQ(pick(), 3u);
}

class Recorder final : public EventHandler {
 public:
  void OnEvent(SimTime now, std::uint64_t payload) override {
    if (payload == 99) throw SimulationError("as asked");
    times.push_back(now);
    if (exact) {
      EXPECT_EQ(SystemcBridge::Instance().KernelNow(), now);
    }
  }
  std::vector<SimTime> times;
  bool exact = false;
};

TEST(SystemcBridgeTest, RunsQueuesOneAfterAnotherAtEitherPace) {
  for (const KernelPace pace : {KernelPace::kDecoupled, KernelPace::kExact, KernelPace::kExact}) {
    EventQueue queue;
    Recorder recorder;
    recorder.exact = pace == KernelPace::kExact;
    for (const std::uint64_t at : {5U, 1U, 700'000'000U, 5U}) queue.Schedule(At(at), recorder, 0);
    SystemcBridge::Instance().Run(queue, pace);
    EXPECT_EQ(recorder.times, (std::vector<SimTime>{At(1), At(5), At(5), At(700'000'000)}));
  }
}

TEST(SystemcBridgeTest, WhatAHandlerThrowsComesOut) {
  EventQueue queue;
  Recorder recorder;
  queue.Schedule(At(1), recorder, 99);
  EXPECT_THROW(SystemcBridge::Instance().Run(queue), SimulationError);
  EventQueue next;
  next.Schedule(At(1), recorder, 0);
  SystemcBridge::Instance().Run(next);
  EXPECT_EQ(recorder.times.size(), 1u);
}

// Case H19.
TEST(SystemcBridgeTest, AHundredDaysAreExactAndTwoHundredAreRefused) {
  EventQueue queue;
  Recorder recorder;
  const SimTime hundred_days{Seconds(100 * 86'400)};
  queue.Schedule(hundred_days, recorder, 0);
  SystemcBridge::Instance().Run(queue, KernelPace::kExact);
  EXPECT_EQ(recorder.times.back(), hundred_days);
  EXPECT_THROW(static_cast<void>(hundred_days + Seconds(100 * 86'400)), SimulationError);
}

}  // namespace
}  // namespace windtunnel
