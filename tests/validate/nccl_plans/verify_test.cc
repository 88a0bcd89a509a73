#include "validate/nccl_plans/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

TEST(Verify, AllFieldsOfTheDefaultVersionAgree) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto plans = reference / "data" / "nccl-plans";
  if (!std::filesystem::exists(plans)) GTEST_SKIP() << "no recorded plans";
  VerifyOptions options;
  options.data = plans;
  options.version = kDefaultNcclVersion;
  options.case_filter = "h100-8g";  // A bounded sample; `windtunnel nccl verify` runs all.
  const VerifyReport report = Verify(options);
  EXPECT_GT(report.agree(), 10'000u);
  EXPECT_EQ(report.differ(), 0u) << report.ToText().substr(0, 4000);
}

TEST(Verify, TheRecordedSearchServesAsInput) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto plans = reference / "data" / "nccl-plans";
  if (!std::filesystem::exists(plans)) GTEST_SKIP() << "no recorded plans";
  VerifyOptions options;
  options.data = plans;
  options.case_filter = "a100-8g-8n200-N2";
  options.from_recorded_search = true;
  EXPECT_EQ(Verify(options).differ(), 0u);
}

TEST(Verify, RefusesAFolderWithoutCases) {
  VerifyOptions options;
  options.data = "no-such-folder";
  EXPECT_THROW(Verify(options), ConfigError);
}

}  // namespace
}  // namespace windtunnel::nccl
