#include "validate/nccl_plans/verify_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> CasesOf(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Every `stride`-th recorded case of a release agrees in every field.
void ExpectAgreement(const fs::path& plans, const std::string& version, std::size_t stride) {
  const std::vector<fs::path> cases = CasesOf(plans / ("nccl-" + version));
  ASSERT_FALSE(cases.empty()) << version;
  for (std::size_t i = 0; i < cases.size(); i += stride) {
    std::ifstream in(cases[i]);
    const auto case_json = nlohmann::json::parse(in);
    std::uint64_t agree = 0;
    for (const FieldCount& count : VerifySearch(case_json, plans, ParseNcclVersion(version, {}))) {
      EXPECT_THAT(count.first_differences, ::testing::IsEmpty());
      agree += count.agree;
    }
    EXPECT_GT(agree, 20u) << cases[i];
  }
}

class RecordedSearch : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedSearch, AgreesInSystemPathsTransportsAndGraphs) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path plans = reference / "data" / "nccl-plans";
  if (!fs::exists(plans)) GTEST_SKIP() << "skipped: no recorded plans";
  ExpectAgreement(plans, GetParam(), 3);
}

INSTANTIATE_TEST_SUITE_P(OtherReleases, RecordedSearch,
                         ::testing::Values("2.10.3", "2.12.12", "2.18.5", "2.19.4", "2.20.5",
                                           "2.21.5", "2.22.3", "2.23.4", "2.24.3", "2.25.1",
                                           "2.26.2", "2.27.5", "2.27.7", "2.28.7", "2.29.2",
                                           "2.29.7", "2.30.7"));

TEST(RecordedSearchOfTheDefaultRelease, AgreesOnASampleOfAllCases) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path plans = reference / "data" / "nccl-plans";
  if (!fs::exists(plans)) GTEST_SKIP() << "skipped: no recorded plans";
  ExpectAgreement(plans, "2.28.9", 6);
}

TEST(VerifySearch, SeesAWrongField) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path plans = reference / "data" / "nccl-plans";
  if (!fs::exists(plans)) GTEST_SKIP() << "skipped: no recorded plans";
  std::ifstream in(CasesOf(plans / "nccl-2.28.9").front());
  auto case_json = nlohmann::json::parse(in);
  case_json["search"][0]["nChannels"] = 63;
  case_json["system"]["maxBw"] = 1.5;
  std::map<std::string, std::uint64_t> differ;
  for (const FieldCount& count : VerifySearch(case_json, plans, kDefaultNcclVersion)) {
    differ[count.kind] = count.differ;
  }
  EXPECT_EQ(differ["graphs"], 1u);
  EXPECT_EQ(differ["system"], 1u);
  EXPECT_EQ(differ["paths"], 0u);
}

TEST(VerifySearch, NamesATopologyThatIsNotThere) {
  EXPECT_THROW(ResolveTopology("oracles/topo/none.xml", "no-such-folder"), ConfigError);
}

}  // namespace
}  // namespace windtunnel::nccl
