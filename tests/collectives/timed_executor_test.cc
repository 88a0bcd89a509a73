#include "collectives/timed_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/error.h"

namespace windtunnel {
namespace {

// Every message takes `serial` on the wire of its sender and `flight` to arrive. No sharing: what
// the executor does alone is visible.
class IdleNetwork final : public Network, public EventHandler {
 public:
  IdleNetwork(Picoseconds flight, BitsPerSecond rate) : flight_(flight), rate_(rate) {}
  std::string_view name() const override { return "idle"; }
  RouteId AddRoute(const Route&) override { return routes_++; }
  GroupId AddGroup(GroupKind, DeviceId, DeviceId, std::span<const DeviceId>) override { return 0; }
  void Send(RouteId, Bytes size, std::uint64_t token) override {
    const SimTime injected = queue_.now() + SerializationTime(size, rate_);
    queue_.Schedule(injected, *this, token * 2);
    queue_.Schedule(injected + flight_, *this, token * 2 + 1);
    bytes_ += size.count();
  }
  void SendGroup(GroupId, Bytes, std::uint64_t) override {}
  void set_client(NetworkClient* client) override { client_ = client; }
  EventQueue& queue() override { return queue_; }
  std::span<const LinkUse> link_use() const override { return {}; }
  std::uint64_t open_messages() const override { return 0; }
  std::string DescribeStall() const override { return ""; }
  void Reset() override { queue_.Reset(); }
  void RunToIdle() override { queue_.Run(); }
  void OnEvent(SimTime now, std::uint64_t payload) override {
    if (payload % 2 == 0) {
      client_->OnInjected(now, payload / 2);
    } else {
      client_->OnDelivered(now, payload / 2);
    }
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Picoseconds flight_;
  BitsPerSecond rate_;
  NetworkClient* client_ = nullptr;
  EventQueue queue_;
  RouteId routes_ = 0;
  std::uint64_t bytes_ = 0;
};

struct FixedSetting final : ExecutionSetting {
  BlockTimes times;
  ConnectionPath path;
  Picoseconds start;
  ConnectionPath PathOf(const Block&, const Peer&) override { return path; }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override { return {}; }
  const BlockTimes& TimesOf(Rank, const Block&) override { return times; }
  SimTime StartOf(Rank) override { return SimTime(start); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }
};

// Rank 0 sends `messages` ops to rank 1, which receives `receives`.
Plan PairPlan(std::uint64_t messages, std::uint64_t receives, std::uint64_t count,
              std::uint32_t slices = 1) {
  Plan plan{.request = {.function = Function::kSendRecv,
                        .rank_count = 2,
                        .type = DataType::kInt8,
                        .count = count},
            .algorithm = "Test"};
  auto sender = std::make_shared<ListProgram>();
  auto receiver = std::make_shared<ListProgram>();
  const Peer to{1, 0}, from{0, 0};
  for (std::uint64_t i = 0; i < messages; ++i) {
    sender->Append({.count = count, .send_to = {&to, 1}, .has_source = true, .slices = slices});
  }
  for (std::uint64_t i = 0; i < receives; ++i) {
    receiver->Append(
        {.count = count, .receive_from = {&from, 1}, .has_destination = true, .slices = slices});
  }
  plan.blocks = {{0, 0, "send", sender}, {1, 0, "receive", receiver}};
  return plan;
}

TEST(TimedExecutor, OneMessageTakesWireTimeFlightAndReaction) {
  IdleNetwork network(Nanoseconds(500), GigabytesPerSecond(10));
  FixedSetting setting;
  setting.path.reaction = Nanoseconds(300);
  setting.start = Microseconds(2);
  const auto result = RunTimed(PairPlan(1, 1, 1000), network, setting);
  EXPECT_EQ(result.time, Microseconds(2) + Nanoseconds(100 + 500 + 300));
  EXPECT_EQ(result.messages, 1u);
}

TEST(TimedExecutor, WorkOfTheBlockAndTheWireOverlap) {
  IdleNetwork network(Nanoseconds(0), GigabytesPerSecond(10));
  FixedSetting setting;
  setting.times.copy_rate = GigabytesPerSecond(5);  // Twice as slow as the wire: the block decides.
  setting.times.slice_overhead = Nanoseconds(40);
  const auto result = RunTimed(PairPlan(1, 1, 1000), network, setting);
  // Sender 40 + 200, then the receiver's own slice 40 + 200.
  EXPECT_EQ(result.time, Nanoseconds(480));
}

TEST(TimedExecutor, WhatTheSenderStoresLastStillHasToCross) {
  IdleNetwork network(Nanoseconds(500), GigabytesPerSecond(1000));
  FixedSetting setting;
  setting.path.flight = Nanoseconds(500);
  setting.times.slice_overhead = Nanoseconds(300);
  // 300 of work, 500 of flight, 300 of the receiver's work.
  EXPECT_EQ(RunTimed(PairPlan(1, 1, 8), network, setting).time, Nanoseconds(1100));
}

TEST(TimedExecutor, SlicesPipelineThroughTheReceiver) {
  IdleNetwork network(Nanoseconds(0), GigabytesPerSecond(1000));
  FixedSetting setting;
  setting.times.copy_rate = GigabytesPerSecond(1);
  const auto whole = RunTimed(PairPlan(1, 1, 1000, 1), network, setting).time;
  IdleNetwork again(Nanoseconds(0), GigabytesPerSecond(1000));
  const auto sliced = RunTimed(PairPlan(1, 1, 1000, 4), again, setting).time;
  EXPECT_EQ(whole, Microseconds(2));
  EXPECT_EQ(sliced,
            Nanoseconds(1250));  // 4 slices of 250 ns by the sender, one more by the receiver.
}

TEST(TimedExecutor, ASenderIsAtMostItsSlotsAheadOfTheReceiver) {
  // The receiver's block is slow; credits return after 1 us. With 2 slots the third send waits for
  // the first credit.
  IdleNetwork network(Nanoseconds(0), GigabytesPerSecond(1000));
  FixedSetting setting;
  setting.path.slots = 2;
  setting.path.credit_return = Microseconds(1);
  const auto result = RunTimed(PairPlan(6, 6, 0), network, setting);
  EXPECT_EQ(result.time, Microseconds(2));  // Ops 1-2 at 0, 3-4 at 1 us, 5-6 at 2 us.
  EXPECT_EQ(result.accounts[0].wait_credit, Microseconds(2));
}

// Case A21: a constant cost per step and one step in flight: rate = chunk / (cost + chunk / B).
TEST(TimedExecutor, ACostPerStepSetsTheRateOfSmallSteps) {
  for (const std::uint64_t chunk : {std::uint64_t{128} << 10, std::uint64_t{1} << 20}) {
    IdleNetwork network(Nanoseconds(0), GigabytesPerSecond(50));
    FixedSetting setting;
    setting.path.slots = 1;
    setting.path.post = Microseconds(11);
    const Picoseconds step =
        Microseconds(11) + SerializationTime(Bytes(chunk), GigabytesPerSecond(50));
    EXPECT_EQ(RunTimed(PairPlan(10, 10, chunk), network, setting).time, 10 * step);
  }
}

TEST(TimedExecutor, AMissingSendIsADeadlockThatNamesRanksAndOperation) {
  IdleNetwork network(Nanoseconds(1), GigabytesPerSecond(1));
  FixedSetting setting;
  try {
    RunTimed(PairPlan(1, 2, 8), network, setting);
    FAIL() << "no deadlock found";
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 1"));
    EXPECT_THAT(error.what(), testing::HasSubstr("waits for rank 0 to send"));
    EXPECT_THAT(error.what(), testing::HasSubstr("sendrecv"));
  }
}

TEST(TimedExecutor, AMissingReceiveIsADeadlockThatNamesWhoHoldsTheSlots) {
  IdleNetwork network(Nanoseconds(1), GigabytesPerSecond(1));
  FixedSetting setting;
  setting.path.slots = 3;
  try {
    RunTimed(PairPlan(5, 1, 8), network, setting);
    FAIL() << "no deadlock found";
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("waits for rank 1 to free a slot"));
    EXPECT_THAT(error.what(), testing::HasSubstr("3 of 3 slots held"));
  }
}

TEST(TimedExecutor, AccountsOfABlockAddUpToItsLife) {
  IdleNetwork network(Nanoseconds(700), GigabytesPerSecond(3));
  FixedSetting setting;
  setting.times.copy_rate = GigabytesPerSecond(2);
  setting.times.slice_overhead = Nanoseconds(123);
  setting.path.slots = 2;
  setting.path.credit_return = Nanoseconds(400);
  const auto result = RunTimed(PairPlan(20, 20, 999, 2), network, setting);
  for (std::size_t b = 0; b < 2; ++b) {
    const BlockAccount& a = result.accounts[b];
    EXPECT_EQ(a.wait_data + a.wait_credit + a.wait_link + a.overhead + a.copy,
              result.rank_end[b].since_start());
  }
}

TEST(TimedExecutor, ManyOpsWithoutTimeNeedNoStack) {
  IdleNetwork network(Nanoseconds(1), GigabytesPerSecond(1));
  FixedSetting setting;
  Plan plan{.request = {.rank_count = 1, .type = DataType::kInt8}, .algorithm = "Test"};
  auto copies = std::make_shared<ListProgram>();
  for (int i = 0; i < 1'000'000; ++i)
    copies->Append({.count = 1, .has_source = true, .has_destination = true});
  plan.blocks = {{0, 0, "copy", copies}};
  EXPECT_EQ(RunTimed(plan, network, setting).time, Picoseconds(0));
}

}  // namespace
}  // namespace windtunnel
