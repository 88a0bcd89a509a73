// `windtunnel report`: the page it writes and the results it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <regex>

#include "apps/collective_result.h"
#include "apps/html_report.h"
#include "apps/svg_plot.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// A result of two hosts with two GPUs each, small enough to check by eye.
Json SmallResult() {
  Json rows = Json::array();
  for (const std::uint64_t size : {8ULL, 65536ULL, 1ULL << 30}) {
    const double ideal_us = static_cast<double>(size) / 400e3;
    const double time_us = 10 + ideal_us;
    const double algbw = static_cast<double>(size) / time_us / 1e3;
    const Json place = {
        {"time_us", time_us}, {"algbw_gbps", algbw}, {"busbw_gbps", 1.5 * algbw}, {"wrong", 0}};
    rows.push_back(
        {{"size", size},
         {"count", size / 4},
         {"type", "float"},
         {"redop", "sum"},
         {"root", -1},
         {"out_of_place", place},
         {"in_place", place},
         {"algorithm", size < 1000 ? "Tree" : "Ring"},
         {"protocol", size < 1000 ? "LL" : "Simple"},
         {"channels", 2},
         {"bound", size < 1000 ? "launch" : "link node0/nic0 -> leaf0"},
         {"link_bound_us", ideal_us},
         {"shares",
          {{{"cause", "launch"}, {"time_us", 10.0}}, {{"cause", "link"}, {"time_us", ideal_us}}}},
         {"links",
          {{{"name", "node0/nic0 -> leaf0"},
            {"utilisation", ideal_us / time_us},
            {"payload_bytes", size},
            {"wire_bytes", size + size / 8}},
           {{"name", "node1/gpu1 -> node1/nic0"},
            {"utilisation", 0.5 * ideal_us / time_us},
            {"payload_bytes", size},
            {"wire_bytes", size}}}}});
  }
  return {{"version", "0.1.0"},
          {"seed", 7},
          {"input_digest", "00000000000000ff"},
          {"topology", {{"name", "two <hosts>"}, {"source", "two.yaml"}}},
          {"collective", "all_reduce"},
          {"ranks", 4},
          {"notes", {"rate of nic0 was not said: 50 GB/s taken"}},
          {"rows", rows}};
}

std::string Written(const std::string& text, const std::string& name = "result.json") {
  const auto path = testing::TemporaryDir() / name;
  std::ofstream(path) << text;
  return path.string();
}

std::string FaultOf(const std::string& text) {
  try {
    ReadCollectiveResult(Written(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ReportTest, ThePageHoldsTableCurvesLinksAndWords) {
  const CollectiveResult result = ReadCollectiveResult(Written(SmallResult().dump()));
  const std::string page = HtmlReport({result});
  EXPECT_THAT(page, HasSubstr("all_reduce on two &lt;hosts&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<hosts>")));
  EXPECT_THAT(page, AllOf(HasSubstr("Bus bandwidth over message size"),
                          HasSubstr("Time of one call over message size"),
                          HasSubstr("Where the time went"), HasSubstr("Use of the busiest links"),
                          HasSubstr("Devices and their links at 1 GiB")));
  EXPECT_THAT(page, HasSubstr("Tree/LL from 8 B, Ring/Simple from 64 KiB"));
  EXPECT_THAT(page, HasSubstr("rate of nic0 was not said: 50 GB/s taken"));
  // 1 GiB with an eighth of overhead.
  EXPECT_THAT(page, HasSubstr("<td>1073741824</td><td>1207959552</td><td>12.5 %</td>"));
}

TEST(ReportTest, ThePageLoadsNothingAndRunsNoScript) {
  const std::string page = HtmlReport({ReadCollectiveResult(Written(SmallResult().dump()))});
  EXPECT_FALSE(std::regex_search(
      page, std::regex("<script|<link|<img|<iframe|@import|url\\(|src=|href=|https?:")));
}

TEST(ReportTest, EveryDrawingIsWellFormed) {
  const CollectiveResult result = ReadCollectiveResult(Written(SmallResult().dump()));
  const std::string page = HtmlReport({result, result});
  std::size_t drawings = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos;
       at = page.find("<svg", at + 1)) {
    const std::size_t end = page.find("</svg>", at);
    ASSERT_NE(end, std::string::npos);
    const std::string drawing = page.substr(at, end + 6 - at);
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(drawing.c_str())) << drawing.substr(0, 200);
    EXPECT_THAT(drawing, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
    ++drawings;
  }
  EXPECT_EQ(drawings, 2 + 2 * 3);  // Two drawings of all results; three of each.
}

TEST(ReportTest, SizesAndRatesOfZeroAreLeftOutOfTheCurves) {
  Json json = SmallResult();
  json["rows"][0]["size"] = 0;
  json["rows"][0]["out_of_place"]["busbw_gbps"] = 0.0;
  const std::string page = HtmlReport({ReadCollectiveResult(Written(json.dump()))});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf,"))));
}

TEST(ReportTest, AResultWithoutRowsSaysSo) {
  Json json = SmallResult();
  json["rows"] = Json::array();
  EXPECT_THAT(HtmlReport({ReadCollectiveResult(Written(json.dump()))}),
              AllOf(HasSubstr("The result holds no rows"), HasSubstr("nothing to draw")));
}

TEST(ReportTest, WrongElementsStandOut) {
  Json json = SmallResult();
  json["rows"][1]["in_place"]["wrong"] = 3;
  json["rows"][2]["in_place"].erase("wrong");
  const std::string page = HtmlReport({ReadCollectiveResult(Written(json.dump()))});
  EXPECT_THAT(page, AllOf(HasSubstr("<td class=\"bad\">3</td>"), HasSubstr("<td>N/A</td>")));
}

TEST(ReportTest, ColoursOfALoadRunFromPaleToDarkAndStayInRange) {
  EXPECT_EQ(HeatColour(0), "#f4eee1");
  EXPECT_EQ(HeatColour(0.5), "#f29a3f");
  EXPECT_EQ(HeatColour(1), "#9c101f");
  EXPECT_EQ(HeatColour(1.7), HeatColour(1));
}

TEST(ReportTest, WhatIsNoResultIsRefusedWithTheReason) {
  EXPECT_THAT(FaultOf(""), HasSubstr("is empty"));
  EXPECT_THAT(FaultOf("{\n\"a\": 1,\n}"), HasSubstr("result.json:3: is not JSON"));
  EXPECT_THAT(FaultOf("[1]"), HasSubstr("is not an object"));
  EXPECT_THAT(FaultOf("{\"rows\": []}"), HasSubstr("is not the result of a collective"));
  EXPECT_THAT(FaultOf(std::string(100'000, '[')), HasSubstr("is not JSON"));
  Json json = SmallResult();
  json["rows"][1]["out_of_place"]["time_us"] = "fast";
  EXPECT_THAT(FaultOf(json.dump()), HasSubstr("rows[1].out_of_place.time_us: is not a number"));
  json = SmallResult();
  json["rows"][0]["links"][0].erase("name");
  EXPECT_THAT(FaultOf(json.dump()), HasSubstr("rows[0].links[0].name: is missing"));
  json = SmallResult();
  json["rows"][2]["size"] = -4;
  EXPECT_THAT(FaultOf(json.dump()), HasSubstr("rows[2].size: is not a count"));
}

TEST(ReportCommandTest, WritesThePageAndNamesIt) {
  const std::string result = Written(SmallResult().dump(), "small.json");
  const auto page = testing::TemporaryDir() / "below" / "page.html";
  const testing::ProgramResult run = testing::RunProgram({"report", result, "-o", page.string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(page.string()));
  EXPECT_EQ(testing::RunProgram({"report", result, "-o", "-"}).out, testing::ReadFile(page));
}

TEST(ReportCommandTest, RefusesAMissingFileAFolderAndNoFile) {
  EXPECT_EQ(testing::RunProgram({"report"}).exit_code, 1);
  EXPECT_EQ(testing::RunProgram({"report", "no-such.json"}).exit_code, 1);
  EXPECT_EQ(testing::RunProgram({"report", testing::TemporaryDir().string()}).exit_code, 1);
}

}  // namespace
}  // namespace windtunnel
