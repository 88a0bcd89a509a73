#include "sim/parse_units.h"

#include <gtest/gtest.h>

namespace windtunnel {
namespace {

Picoseconds TimeOfOneGigabyte(std::string_view rate) {
  return SerializationTime(Bytes(1'000'000'000), ParseRate(rate, {}));
}

// Case T25.
TEST(ParseRate, ReadsEverySpellingOfFiftyGigabytesPerSecondAlike) {
  for (const char* text : {"50 GB/s", "400 Gb/s", "400 Gbit/s", "50e9 B/s", "50GB/s", "400Gbps"}) {
    EXPECT_EQ(TimeOfOneGigabyte(text), Milliseconds(20)) << text;
  }
  EXPECT_NEAR(ToMicroseconds(TimeOfOneGigabyte("50 GiB/s")), 18626.45, 0.01);
  EXPECT_EQ(TimeOfOneGigabyte("50gbps"), Milliseconds(160));
}

TEST(ParseRate, RefusesWhatIsNoRate) {
  for (const char* text :
       {"50", "50 Gb", "50 GB", "", "NaN", "inf GB/s", "-1 GB/s", "1e400 GB/s", "0x10 GB/s",
        "12abc", "1,5 GB/s", "1e-320 GB/s", "0 GB/s", "99999999999999999999 GB/s", "50 Xb/s"}) {
    EXPECT_THROW(ParseRate(text, {}), ConfigError) << text;
  }
}

TEST(ParseTime, TakesMinusZeroAndRefusesBareNumbers) {
  EXPECT_EQ(ParseTime("-0 ns", {}), Picoseconds(0));
  EXPECT_EQ(ParseTime("0", {}), Picoseconds(0));
  EXPECT_EQ(ParseTime("1.5 us", {}), Nanoseconds(1500));
  for (const char* text : {"12", "-1 ns", "1 h", "", "nan"})
    EXPECT_THROW(ParseTime(text, {}), ConfigError) << text;
}

// Case C28.
TEST(ParseNcclTestsSize, ReadsOneBinaryLetter) {
  EXPECT_EQ(ParseNcclTestsSize("128M", {}), Bytes(134'217'728));
  EXPECT_EQ(ParseNcclTestsSize("1G", {}), GiB(1));
  EXPECT_EQ(ParseNcclTestsSize("1g", {}), GiB(1));
  EXPECT_EQ(ParseNcclTestsSize("1GB", {}), GiB(1));
  EXPECT_EQ(ParseNcclTestsSize("1.5M", {}), Bytes(1'572'864));
  for (const char* text : {"10X", "-1", ""})
    EXPECT_THROW(ParseNcclTestsSize(text, {}), ConfigError) << text;
}

}  // namespace
}  // namespace windtunnel
