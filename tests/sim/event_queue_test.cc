#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "sim/random.h"

namespace windtunnel {
namespace {

class Recorder final : public EventHandler {
 public:
  void OnEvent(SimTime now, std::uint64_t payload) override {
    order.push_back({now.since_start().count(), payload});
    if (then) then(now, payload);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> order;
  std::function<void(SimTime, std::uint64_t)> then;
};

SimTime At(std::uint64_t ps) { return SimTime(Picoseconds(ps)); }

TEST(EventQueueTest, RunsByTimeAndThenByOrderOfScheduling) {
  // More instants than slots, and many events in each: rows lose their slots and come again.
  EventQueue queue;
  Recorder recorder;
  RandomStream random(3, "events");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t ps = random.Below(5000) * 1'000'003;
    expected.emplace_back(ps, i);
    queue.Schedule(At(ps), recorder, i);
  }
  EXPECT_EQ(queue.size(), expected.size());
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  EXPECT_EQ(queue.next_time(), At(expected.front().first));
  queue.Run();
  EXPECT_EQ(recorder.order, expected);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.executed(), expected.size());
}

TEST(EventQueueTest, EventsScheduledForNowRunBehindThoseAlreadyDue) {
  EventQueue queue;
  Recorder recorder;
  recorder.then = [&](SimTime now, std::uint64_t payload) {
    if (payload >= 10) return;
    queue.Schedule(now, recorder, payload + 10);
    queue.Schedule(now + Picoseconds(5), recorder, payload + 20);
  };
  for (std::uint64_t i = 0; i < 3; ++i) queue.Schedule(At(7), recorder, i);
  queue.Run();
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected = {
      {7, 0}, {7, 1}, {7, 2}, {7, 10}, {7, 11}, {7, 12}, {12, 20}, {12, 21}, {12, 22}};
  EXPECT_EQ(recorder.order, expected);
}

TEST(EventQueueTest, StopsBehindTheLimitAndGoesOnFromThere) {
  EventQueue queue;
  Recorder recorder;
  for (std::uint64_t i = 0; i < 10; ++i) queue.Schedule(At(i * 10), recorder, i);
  queue.RunUntil(At(40));
  EXPECT_EQ(recorder.order.size(), 5u);
  EXPECT_EQ(queue.now(), At(40));
  EXPECT_EQ(queue.next_time(), At(50));
  EXPECT_EQ(queue.size(), 5u);
  queue.Run();
  queue.Reset();
  EXPECT_EQ(queue.now(), At(0));
}

}  // namespace
}  // namespace windtunnel
