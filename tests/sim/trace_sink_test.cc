#include "sim/trace_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/error.h"

namespace windtunnel {
namespace {

constexpr SimTime At(std::uint64_t ps) { return SimTime(Picoseconds(ps)); }

TEST(TraceSinkTest, WritesJsonThatParsesWithEveryDigitOfATime) {
  std::ostringstream out;
  {
    TraceSink sink(out, MiB(1));
    sink.NameProcess(3, "rank 3 \"a\\b\"");
    sink.AddSpan(3, 1, "send", At(1'234'567), At(2'234'568), "64 KiB");
    sink.AddCounter(3, "queue", At(5), 17);
  }
  const auto json = nlohmann::json::parse(out.str());
  ASSERT_EQ(json["traceEvents"].size(), 3u);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "rank 3 \"a\\b\"");
  EXPECT_DOUBLE_EQ(json["traceEvents"][1]["ts"], 1.234567);
  EXPECT_DOUBLE_EQ(json["traceEvents"][1]["dur"], 1.000001);
}

TEST(TraceSinkTest, KeepsItsLimitAndStaysWellFormed) {
  std::ostringstream out;
  TraceSink sink(out, Bytes(10'000));
  for (int i = 0; i < 1000; ++i) sink.AddSpan(0, 0, "span", At(0), At(1));
  sink.Finish();
  EXPECT_LE(out.str().size(), 10'000u);
  EXPECT_GT(out.str().size(), 9'000u);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["traceEvents"].size() + sink.left_out(), 1000u);
}

TEST(TraceSinkTest, AFullDiskIsACleanError) {
  std::ostringstream out;
  TraceSink sink(out, MiB(1));
  out.setstate(std::ios::badbit);
  EXPECT_THROW(sink.AddSpan(0, 0, "span", At(0), At(1)), ConfigError);
}

TEST(VcdSinkTest, ALimitWithoutRoomForItsNamesIsACleanError) {
  std::ostringstream out;
  EXPECT_THROW(VcdSink(out, Bytes(20), {"gpu0 -> switch"}), ConfigError);
}

TEST(VcdSinkTest, SpansThatTouchStayOneAndTimesAscend) {
  std::ostringstream out;
  VcdSink sink(out, MiB(1), {"gpu0 -> switch", "switch -> gpu1"});
  sink.AddHigh(0, At(10), At(20));
  sink.AddHigh(1, At(15), At(40));
  sink.AddHigh(0, At(20), At(30));
  sink.AddHigh(0, At(35), At(36));
  sink.Finish(At(100));
  const std::string text = out.str();
  EXPECT_THAT(text, testing::HasSubstr("$var wire 1 ! gpu0_->_switch $end"));
  EXPECT_EQ(text.substr(text.find("#0\n")),
            "#0\n0!\n0\"\n#10\n1!\n#15\n1\"\n#30\n0!\n#35\n1!\n#36\n0!\n#40\n0\"\n#100\n");
}

}  // namespace
}  // namespace windtunnel
