// `windtunnel validate`: its checks for continuous integration, logs and diagnoses from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

void Write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

/// All runs of 8 H100 of the shipped set, on a topology whose NVLinks have `share` of their rate.
fs::path RunsOnLinksOf(int per_cent) {
  const fs::path folder = testing::TemporaryDir() / ("links-" + std::to_string(per_cent));
  std::string topology = testing::ReadFile(testing::SourceDir() / "topologies/hgx-h100.yaml");
  const std::string link = R"({from: "gpu[0-7]", to: nvswitch, kind: nvlink})";
  const std::size_t at = topology.find(link);
  EXPECT_NE(at, std::string::npos);
  // 18 links of 25 GB/s.
  topology.replace(at, link.size(),
                   R"({from: "gpu[0-7]", to: nvswitch, kind: nvlink, rate: )" +
                       std::to_string(18 * 25 * per_cent / 100) + " GB/s}");
  Write(folder / "topology" / "node.yaml", topology);
  Json set =
      Json::parse(testing::ReadFile(testing::SourceDir() / "validate/data/nvidia-h100.json"));
  Json runs = Json::array();
  for (Json& run : set["runs"]) {
    if (run["ranks"] != 8) continue;
    run["topology"] = "../topology/node.yaml";  // As seen from the run file.
    runs.push_back(std::move(run));
  }
  EXPECT_GT(runs.size(), 3u);
  set["runs"] = std::move(runs);
  Write(folder / "runs" / "h100.json", set.dump());
  return folder / "runs";
}

TEST(ValidateChecks, LinksATenthSlowerFailAgainstTheBaselineOfTheRightOnes) {
  const fs::path right = RunsOnLinksOf(100);
  const fs::path slow = RunsOnLinksOf(90);
  const std::string baseline = (testing::TemporaryDir() / "known.json").string();
  const auto written =
      testing::RunProgram({"validate", "--data", right.string(), "--write-baseline", baseline});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const auto same =
      testing::RunProgram({"validate", "--data", right.string(), "--baseline", baseline});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 moved by more than 3 points"));
  const auto moved =
      testing::RunProgram({"validate", "--data", slow.string(), "--baseline", baseline});
  EXPECT_EQ(moved.exit_code, 2) << moved.out << moved.err;
  EXPECT_THAT(moved.out, HasSubstr(">256 MiB"));
}

TEST(ValidateChecks, LinksATenthSlowerFailThePlateauCheckWithoutAnyRecord) {
  const auto right = testing::RunProgram(
      {"validate", "--data", RunsOnLinksOf(100).string(), "--require-plateau", "5"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  const auto slow = testing::RunProgram(
      {"validate", "--data", RunsOnLinksOf(90).string(), "--require-plateau", "5"});
  EXPECT_EQ(slow.exit_code, 2) << slow.out << slow.err;
  EXPECT_THAT(slow.out, HasSubstr("plateau off: h100 x 8"));
}

TEST(ValidateChecks, ARunThatIsNoLongerCountedFailsTheBaseline) {
  const fs::path runs = RunsOnLinksOf(100);
  const fs::path fewer = testing::TemporaryDir() / "fewer";
  Json set = Json::parse(testing::ReadFile(runs / "h100.json"));
  const std::string lost = set["runs"][0]["id"];
  set["runs"].erase(0);
  Write(fewer / "h100.json", set.dump());
  const std::string baseline = (testing::TemporaryDir() / "all.json").string();
  ASSERT_EQ(testing::RunProgram({"validate", "--data", runs.string(), "--write-baseline", baseline})
                .exit_code,
            0);
  const auto result =
      testing::RunProgram({"validate", "--data", fewer.string(), "--baseline", baseline});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, AllOf(HasSubstr("no longer counted"), HasSubstr(lost)));
}

TEST(ValidateChecks, AFileThatIsNoBaselineIsRefusedByName) {
  const fs::path file = testing::TemporaryDir() / "other.json";
  Write(file, "{\"runs\": {}}");
  const auto result = testing::RunProgram({"validate", "public", "--baseline", file.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("other.json"), HasSubstr("no baseline")));
}

TEST(ValidateFlags, ExcludeEachOtherWhereTheyMeanNothingTogether) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--tolerance", "5"},
                                                {"-t", "hgx-h100"},
                                                {"--log", "x", "--baseline", "y"},
                                                {"--diagnose", "--csv", "x"},
                                                {"--diagnose", "--search-topology"},
                                                {"--require-plateau", "500"},
                                                {"--max-ranks", "8"},
                                                {"--fidelity", "atomic"},
                                                {"--basline", "x"}}) {
    std::vector<std::string> arguments{"validate"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto result = testing::RunProgram(arguments);
    EXPECT_EQ(result.exit_code, 1) << flags.front();
    EXPECT_THAT(result.err, HasSubstr(flags.front())) << result.err;
  }
}

/// A log of nccl-tests of 16 H100 in two nodes whose times are `us(bytes)`.
template <class Time>
std::string LogOf(Time us_of) {
  std::string text =
      "all_reduce_perf -b 8 -e 1G -f 4\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: "
      "20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
  for (int rank = 0; rank < 16; ++rank)
    text += "#  Rank " + std::to_string(rank) + " Group  0 Pid 100" + std::to_string(rank) +
            " on node" + std::to_string(rank / 8) + " device  " + std::to_string(rank % 8) +
            " [0x1b] NVIDIA H100 80GB HBM3\n";
  text +=
      "#\n#                                                              out-of-place              "
      "         in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  for (std::uint64_t bytes = 8; bytes <= (1u << 30); bytes *= 4) {
    const double us = us_of(bytes);
    const double algbw = static_cast<double>(bytes) / us / 1000;
    char line[200];
    std::snprintf(line, sizeof line,
                  "%12llu %13llu     float     sum      -1 %8.4f %7.2f %7.2f      0 %8.4f %7.2f "
                  "%7.2f      0\n",
                  static_cast<unsigned long long>(bytes),
                  static_cast<unsigned long long>(bytes / 4), us, algbw, algbw * 1.875, us, algbw,
                  algbw * 1.875);
    text += line;
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";
}

testing::ProgramResult ValidateLog(const std::string& name, const std::string& text,
                                   std::vector<std::string> more = {}) {
  const fs::path log = testing::TemporaryDir() / name;
  Write(log, text);
  std::vector<std::string> arguments{"validate", "--log", log.string(), "-t", "hgx-h100*2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return testing::RunProgram(arguments);
}

/// The model's own times for the log's sizes.
std::map<std::uint64_t, double> ModelTimes() {
  const auto result =
      ValidateLog("model.log", LogOf([](std::uint64_t) { return 1.0; }), {"--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::uint64_t, double> times;
  const Json report = Json::parse(result.out);
  for (const Json& pair : report["runs"][0]["pairs"])
    times[pair["bytes"].get<std::uint64_t>()] = pair["simulated_us"].get<double>();
  return times;
}

TEST(ValidateLog, ATenthTooSlowEverywhereIsABiasOfTenPerCentInEveryBand) {
  const auto model = ModelTimes();
  const auto result =
      ValidateLog("tenth.log", LogOf([&](std::uint64_t bytes) { return model.at(bytes) / 1.1; }));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("all sizes: median 10.0 %, p90 10.0 %, worst 10.0 %, bias +10.0 %"));
  EXPECT_THAT(result.out, HasSubstr("<=4 KiB:  5 sizes, median 10.0 %"));
  EXPECT_THAT(result.out, HasSubstr("values: 28 checked, none wrong"));
}

TEST(ValidateLog, HalfTooSlowBelow64KibShowsInItsBandsAndNotOnlyInTheMean) {
  const auto model = ModelTimes();
  const auto result = ValidateLog("half.log", LogOf([&](std::uint64_t bytes) {
                                    return model.at(bytes) / (bytes < 65536 ? 1.5 : 1.0);
                                  }));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("median 50.0 %, p90 50.0 %, worst 50.0 %, bias +50.0 %"));
  EXPECT_THAT(result.out, HasSubstr("8-256 MiB:  2 sizes, median 0.0 %"));
}

TEST(ValidateLog, ACliffWithoutACauseIsToldWithSizeAndHeight) {
  const auto model = ModelTimes();
  const auto result = ValidateLog("cliff.log", LogOf([&](std::uint64_t bytes) {
                                    return model.at(bytes) / (bytes >= (512u << 20) ? 0.75 : 1.0);
                                  }));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("at 512 MiB: rate -25 %"));
}

TEST(ValidateLog, SizesBelowTheResolutionAreNoUsableRows) {
  const auto result = ValidateLog("zero.log", LogOf([](std::uint64_t) { return 1e-9; }));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("usable"));
}

/// A page that stands by itself, well-formed where it draws, and no larger than `most` bytes.
void ExpectPage(const fs::path& file, std::size_t most) {
  const std::string page = testing::ReadFile(file);
  EXPECT_LT(page.size(), most);
  for (const char* foreign : {"http://", "https://", "<script", "src=", "nan", "inf\""})
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  std::size_t drawings = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos;
       at = page.find("<svg", at + 1)) {
    pugi::xml_document drawing;
    const std::string text = page.substr(at, page.find("</svg>", at) + 6 - at);
    EXPECT_TRUE(drawing.load_string(text.c_str())) << text.substr(0, 200);
    ++drawings;
  }
  EXPECT_GT(drawings, 3u);
}

TEST(ValidatePage, OfTheWholeSetStandsByItselfAndStaysSmall) {
  const fs::path file = testing::TemporaryDir() / "validation.html";
  const auto result = testing::RunProgram({"validate", "--no-leave-out", "--html", file.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectPage(file, 4u << 20);
  const std::string page = testing::ReadFile(file);
  EXPECT_THAT(page, AllOf(HasSubstr("Residuals by size"), HasSubstr("h100 x 8, all_reduce"),
                          HasSubstr("simulated / measured")));
}

TEST(ValidatePage, OfDiagnosesDrawsTheCurvesOfTheCauses) {
  const fs::path file = testing::TemporaryDir() / "diagnoses.html";
  const auto result =
      testing::RunProgram({"validate", "public", "--diagnose", "--html", file.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectPage(file, 4u << 20);
  EXPECT_THAT(testing::ReadFile(file),
              AllOf(HasSubstr("labelled"), HasSubstr("tcp-fallback"), HasSubstr("healthy")));
}

TEST(ValidatePage, TheTablesOfThePageAreThoseOfTheProgram) {
  const std::string page = testing::ReadFile(testing::SourceDir() / "docs/validation.md");
  const std::string begin = "<!-- begin: windtunnel validate --markdown -->\n\n";
  const std::string end = "\n<!-- end: windtunnel validate --markdown -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const auto result = testing::RunProgram({"validate", "--markdown"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // Line by line: the first one that differs says enough.
  std::istringstream of_page(page.substr(from + begin.size(), to - from - begin.size()));
  std::istringstream of_program(result.out);
  std::string page_line, program_line;
  while (std::getline(of_program, program_line)) {
    ASSERT_TRUE(std::getline(of_page, page_line)) << "run tools/update-validation-page";
    ASSERT_EQ(page_line, program_line) << "run tools/update-validation-page";
  }
  EXPECT_FALSE(std::getline(of_page, page_line)) << "run tools/update-validation-page";
}

TEST(ValidateLeaveOut, StandsAtTheEndOfTheWholeSetAndCanBeLeftAway) {
  const auto with = testing::RunProgram({"validate", "nvidia", "--leave-out"});
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("platforms of known classes left out"));
  const auto without = testing::RunProgram({"validate", "--no-leave-out"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, Not(HasSubstr("left out")));
}

TEST(ValidateDiagnose, ALogIsExplainedWithItsCurveAndWhatToCheck) {
  // What TCP sockets make of two nodes.
  const auto result = ValidateLog(
      "tcp.log", LogOf([](std::uint64_t bytes) { return 80 + static_cast<double>(bytes) / 9000; }),
      {"--diagnose"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("transport or path"), HasSubstr("  1 tcp-fallback"),
                                HasSubstr("check: "), HasSubstr("healthy us")));
}

TEST(ValidateDiagnose, TheSetIsTheSameForAnyNumberOfThreads) {
  const auto one = testing::RunProgram({"validate", "public", "--diagnose", "-j", "1"});
  const auto three = testing::RunProgram({"validate", "public", "--diagnose", "-j", "3"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, three.out);
  EXPECT_THAT(one.out, HasSubstr("labelled runs the label's cause is first in"));
}

}  // namespace
}  // namespace windtunnel
