// Unit tests of lossless Ethernet without a network: pause, marks, rates, windows, numbers.

#include <gtest/gtest.h>

#include "interconnect/infiniband/go_back_n.h"
#include "interconnect/nic_pacer.h"
#include "interconnect/roce/dcqcn_rate.h"
#include "interconnect/roce/ecn_marking.h"
#include "interconnect/roce/pfc.h"
#include "interconnect/tcp/grpc_framing.h"
#include "interconnect/tcp/tcp_window.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr SimTime At(Picoseconds t) { return SimTime(t); }

TEST(PfcTest, HeadroomIsTheWireBothWaysTheResponseAndTwoFrames) {
  // 100 Gb/s: 12.5 bytes per ns. 2 x 500 ns + 2000 ns = 37,500 bytes.
  const Bytes headroom =
      PfcHeadroom(GigabitsPerSecond(100), Nanoseconds(500), Nanoseconds(2000), Bytes(4178));
  EXPECT_EQ(headroom, Bytes(37'500 + 1 + 2 * 4178 + 84));
}

TEST(PfcTest, ResponseTimesAreThoseOfTheStandard) {
  EXPECT_EQ(PfcResponseTime(GigabitsPerSecond(10)), Picoseconds(60 * 512 * 100));
  EXPECT_EQ(PfcResponseTime(GigabitsPerSecond(25)), Picoseconds(80 * 512 * 40));
  EXPECT_EQ(PfcResponseTime(GigabitsPerSecond(100)), Picoseconds(394 * 512 * 10));
  EXPECT_EQ(PfcResponseTime(GigabitsPerSecond(400)), Picoseconds(905 * 512 * 5 / 2));
  EXPECT_EQ(PfcResponseTime(GigabitsPerSecond(800)), PfcResponseTime(GigabitsPerSecond(400)));
}

TEST(PfcTest, PausesAboveTheThresholdOnceAndResumesBelowTheGap) {
  PfcIngress port;
  port.Add(Bytes(1000));
  EXPECT_FALSE(port.ShouldPause(Bytes(1000)));
  port.Add(Bytes(1));
  EXPECT_TRUE(port.ShouldPause(Bytes(1000)));
  EXPECT_FALSE(port.ShouldPause(Bytes(1000))) << "one frame says it";
  port.Remove(Bytes(100));
  EXPECT_FALSE(port.ShouldResume(Bytes(1000), Bytes(100)));
  port.Remove(Bytes(1));
  EXPECT_TRUE(port.ShouldResume(Bytes(1000), Bytes(100)));
  EXPECT_FALSE(port.ShouldResume(Bytes(1000), Bytes(100)));
}

TEST(PfcTest, AnEmptyPortResumesWhateverTheThreshold) {
  PfcIngress port;
  port.Add(Bytes(10));
  EXPECT_TRUE(port.ShouldPause(Bytes(0)));
  port.Remove(Bytes(10));
  EXPECT_TRUE(port.ShouldResume(Bytes(0), Bytes(3000)));
}

TEST(PfcTest, TheThresholdFallsAsTheSharedBufferFills) {
  SharedBuffer buffer(Bytes(10'000));
  buffer.Reserve(Bytes(2'000));
  EXPECT_EQ(buffer.Threshold(0.125), Bytes(1'000));
  buffer.Add(Bytes(4'000));
  EXPECT_EQ(buffer.Threshold(0.125), Bytes(500));
  buffer.Add(Bytes(5'000));
  EXPECT_EQ(buffer.Threshold(0.125), Bytes(0));
  EXPECT_THROW(buffer.Remove(Bytes(9'001)), InternalError);
}

TEST(EcnMarkingTest, NothingBelowKminAllFromKmaxOnAStraightLineBetween) {
  EcnOptions options = EcnThresholds({}, GigabitsPerSecond(25));
  EXPECT_EQ(options.kmin, Bytes(100'000));
  EXPECT_EQ(options.kmax, Bytes(400'000));
  EXPECT_EQ(MarkingShare(options, Bytes(100'000)), 0);
  EXPECT_EQ(MarkingShare(options, Bytes(250'000)), 0.1);
  EXPECT_EQ(MarkingShare(options, Bytes(400'000)), 1);
  options.enabled = false;
  EXPECT_EQ(MarkingShare(options, Bytes(400'000)), 0);
}

TEST(EcnMarkingTest, SharesComeOutOverManyFrames) {
  const EcnOptions options = EcnThresholds({}, GigabitsPerSecond(400));
  RandomStream random(1, "queue");
  const std::uint64_t marked = MarkedFrames(options, Bytes(2'000'000), 100'000, random);
  EXPECT_NEAR(static_cast<double>(marked), 10'000, 300);  // Half of pmax 0.2; 3 sigma.
}

TEST(DcqcnRateTest, TheFirstNotificationHalvesTheRate) {
  DcqcnRate rate({}, GigabitsPerSecond(40));
  EXPECT_FALSE(rate.limited());
  EXPECT_EQ(rate.Send(At(Microseconds(7)), Bytes(4096)), At(Microseconds(7))) << "the wire paces";
  rate.OnCnp(At(Microseconds(10)));
  EXPECT_EQ(rate.Rate(At(Microseconds(10))), GigabitsPerSecond(20));
  EXPECT_EQ(rate.alpha(), 1.0) << "(1 - g) 1 + g";
}

TEST(DcqcnRateTest, AlphaFallsByGPerTimerWithoutNotification) {
  DcqcnOptions options;
  options.rate_timer = Seconds(1);
  DcqcnRate rate(options, GigabitsPerSecond(40));
  rate.OnCnp(At(Picoseconds(0)));
  static_cast<void>(rate.Rate(At(Microseconds(55) - Picoseconds(1))));
  EXPECT_EQ(rate.alpha(), 1.0);
  static_cast<void>(rate.Rate(At(Microseconds(55))));
  EXPECT_EQ(rate.alpha(), 1.0 - 1.0 / 256);
}

TEST(DcqcnRateTest, AlphaFadesOnAtLineRateSoALaterCutIsMild) {
  DcqcnRate rate({}, GigabitsPerSecond(40));
  rate.OnCnp(At(Picoseconds(0)));
  double alpha = 1;
  for (int i = 0; i < 1000; ++i) alpha *= 1 - 1.0 / 256;
  const SimTime later = At(1000 * Microseconds(55));
  rate.OnCnp(later);
  EXPECT_NEAR(static_cast<double>(rate.Rate(later).count()), 40e9 * (1 - alpha / 2), 1e3);
}

TEST(DcqcnRateTest, FastRecoveryHalvesTheDistanceThenTheTargetGrows) {
  DcqcnOptions options;
  options.alpha_timer = Seconds(1);
  DcqcnRate rate(options, GigabitsPerSecond(40));
  rate.OnCnp(At(Picoseconds(0)));
  rate.OnCnp(At(Picoseconds(0)));  // Target 20, now 10 Gb/s.
  double current = 10e9;
  double target = 20e9;
  for (std::uint64_t i = 1; i <= 8; ++i) {
    if (i > 5) target += 40e6;
    current = (current + target) / 2;
    EXPECT_NEAR(static_cast<double>(rate.Rate(At(i * Microseconds(55))).count()), current, 1) << i;
  }
}

TEST(DcqcnRateTest, BytesAndTimerTogetherGrowTheTargetFaster) {
  DcqcnOptions options;
  options.alpha_timer = Seconds(1);
  options.byte_counter = Bytes(1000);
  DcqcnRate rate(options, GigabitsPerSecond(40));
  rate.OnCnp(At(Picoseconds(0)));
  rate.OnCnp(At(Picoseconds(0)));
  const SimTime six = At(6 * Microseconds(55));
  double current = 10e9;
  double target = 20e9;
  for (int i = 1; i <= 6; ++i) {  // By the timer.
    if (i > 5) target += 40e6;
    current = (current + target) / 2;
  }
  EXPECT_NEAR(static_cast<double>(rate.Rate(six).count()), current, 1);
  static_cast<void>(rate.Send(six, Bytes(6000)));
  for (int i = 1; i <= 6; ++i) {  // By bytes: only the sixth finds both beyond fast recovery.
    target += i > 5 ? 400e6 : 40e6;
    current = (current + target) / 2;
  }
  EXPECT_NEAR(static_cast<double>(rate.Rate(six).count()), current, 1);
}

TEST(DcqcnRateTest, TheRateNeverLeavesItsRange) {
  DcqcnRate rate({}, GigabitsPerSecond(100));
  for (std::uint64_t i = 0; i < 100; ++i) rate.OnCnp(At(i * Microseconds(50)));
  EXPECT_EQ(rate.Rate(At(Microseconds(4950))), BitsPerSecond(100'000'000));
  EXPECT_EQ(rate.Rate(At(Seconds(100))), GigabitsPerSecond(100));
  EXPECT_FALSE(rate.limited());
}

TEST(DcqcnRateTest, TheNextSendCountsRisesThatComeMeanwhile) {
  DcqcnOptions options;
  options.alpha_timer = Seconds(1);
  DcqcnRate rate(options, GigabitsPerSecond(8));
  rate.OnCnp(At(Picoseconds(0)));  // 4 Gb/s = 0.5 bytes per ns.
  EXPECT_EQ(rate.Send(At(Picoseconds(0)), Bytes(1000)), At(Microseconds(2)));
  // 40,000 bytes: 27,500 in the first 55 us at 4 Gb/s, the rest at 6 Gb/s (0.75 bytes per ns).
  const SimTime next = rate.Send(At(Picoseconds(0)), Bytes(40'000));
  EXPECT_NEAR(ToMicroseconds(next.since_start()), 55 + 12'500 / 750.0, 1e-3);
}

TEST(DcqcnRateTest, ConnectxCutsAtMostOncePerFourMicroseconds) {
  DcqcnRate rate(DcqcnOptions::ConnectX(), GigabitsPerSecond(400));
  for (std::uint64_t i = 0; i < 8; ++i) rate.OnCnp(At(i * Microseconds(1)));
  EXPECT_EQ(rate.cuts(), 2u);
}

TEST(GoBackNTest, TakesFramesInOrderAndReportsAGapOnce) {
  GoBackN numbers;
  EXPECT_EQ(numbers.Arrive(0), GoBackN::Verdict::kAccept);
  EXPECT_EQ(numbers.Arrive(2), GoBackN::Verdict::kGap);
  EXPECT_EQ(numbers.Arrive(3), GoBackN::Verdict::kDiscard);
  EXPECT_EQ(numbers.Restart(), 1u);
  EXPECT_EQ(numbers.Arrive(4), GoBackN::Verdict::kDiscard) << "still on its way from before";
  EXPECT_EQ(numbers.Arrive(1), GoBackN::Verdict::kAccept);
  EXPECT_EQ(numbers.Arrive(1), GoBackN::Verdict::kDiscard) << "a copy";
  EXPECT_EQ(numbers.retries(), 0u) << "progress forgives";
}

TEST(GoBackNTest, OnlyTheTimerOfTheLowestLostFrameCounts) {
  GoBackN numbers;
  EXPECT_TRUE(numbers.Lose(5, At(Microseconds(10))));
  EXPECT_FALSE(numbers.Lose(7, At(Microseconds(12))));
  EXPECT_TRUE(numbers.Lose(3, At(Microseconds(11))));
  EXPECT_FALSE(numbers.TimerFires(At(Microseconds(10))));
  EXPECT_TRUE(numbers.TimerFires(At(Microseconds(11))));
  EXPECT_EQ(numbers.Restart(), 1u);
  EXPECT_FALSE(numbers.TimerFires(At(Microseconds(12))));
}

TEST(GoBackNTest, ALossThatItsRepetitionMadeGoodHidesNoLaterOne) {
  GoBackN numbers;
  EXPECT_TRUE(numbers.Lose(0, At(Microseconds(10))));
  EXPECT_EQ(numbers.Restart(), 1u);
  EXPECT_TRUE(numbers.Lose(1, At(Microseconds(11)))) << "from before the restart";
  EXPECT_EQ(numbers.Arrive(0), GoBackN::Verdict::kAccept);
  EXPECT_EQ(numbers.Arrive(1), GoBackN::Verdict::kAccept);
  EXPECT_TRUE(numbers.Lose(2, At(Microseconds(12))));
  EXPECT_TRUE(numbers.TimerFires(At(Microseconds(12))));
}

TEST(NicPacerTest, PostsThenKeepsTheRate) {
  NicPacer nic({.post = Nanoseconds(300), .message_rate = 200'000'000});
  EXPECT_EQ(nic.Start(At(Picoseconds(0))), At(Nanoseconds(300)));
  EXPECT_EQ(nic.Start(At(Picoseconds(0))), At(Nanoseconds(305)));
  EXPECT_EQ(nic.Start(At(Nanoseconds(100))), At(Nanoseconds(400)));
}

TEST(TcpWindowTest, StartsWithTenSegmentsAndDoublesPerRoundTripToItsLimit) {
  TcpOptions options;
  options.largest_window = Bytes(100 * 1448);
  TcpWindow tcp(options, Bytes(1448));
  for (const std::uint64_t segments : {10U, 20U, 40U, 80U, 100U, 100U}) {
    EXPECT_EQ(tcp.window(), Bytes(segments * 1448));
    const Bytes window = tcp.window();
    for (Bytes acked; acked < window; acked += Bytes(1448)) tcp.OnAck(Bytes(1448));
  }
}

TEST(TcpWindowTest, ALossHalvesAndThenOneSegmentPerRoundTrip) {
  TcpOptions options;
  TcpWindow tcp(options, Bytes(1000));
  tcp.OnAck(Bytes(6'000));
  tcp.OnLoss();
  EXPECT_EQ(tcp.window(), Bytes(8'000));
  EXPECT_FALSE(tcp.slow_start());
  for (int i = 0; i < 8; ++i) tcp.OnAck(Bytes(1000));
  EXPECT_NEAR(static_cast<double>(tcp.window().count()), 9'000, 60);
  tcp.OnTimeout();
  EXPECT_EQ(tcp.window(), Bytes(1000));
  EXPECT_TRUE(tcp.slow_start());
}

TEST(TcpWindowTest, CpuTimeIsThatOfItsRateAndItsPieces) {
  TcpOptions options;
  options.cpu_rate = GigabitsPerSecond(8);
  options.cpu_per_segment = Microseconds(2);
  EXPECT_EQ(TcpCpuTime(options, KiB(64)), Picoseconds(65'536'000 + 2'000'000));
}

TEST(GrpcFramingTest, EachSixteenKibibytesCarryNineBytesMore) {
  const GrpcOptions options;
  EXPECT_EQ(GrpcBytes(options, Bytes(0)), Bytes(5 + 9));
  EXPECT_EQ(GrpcBytes(options, KiB(16) - Bytes(5)), KiB(16) + Bytes(9));
  EXPECT_EQ(GrpcBytes(options, KiB(64)), KiB(64) + Bytes(5 + 5 * 9));
}

}  // namespace
}  // namespace windtunnel
