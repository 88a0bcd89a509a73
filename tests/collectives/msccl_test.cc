// MSCCL programs: read, written, proved; wrong ones refused with the place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/algorithm.h"
#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::msccl {
namespace {

using ::testing::HasSubstr;

TEST(MscclXmlTest, ReadsAndProvesOrRefusesEveryReferenceFile) {
  WT_REFERENCE_OR_SKIP(reference);
  std::size_t proved = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(reference / "facts" / "topofiles" / "msccl")) {
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Program program = ReadXml(entry.path());
    const std::string fault = Prove(program);
    if (fault.empty()) {
      ++proved;
      EXPECT_EQ(WriteXml(ParseXml(WriteXml(program), "again")), WriteXml(program));
    } else {
      // A refusal names rank and step or chunk.
      EXPECT_THAT(fault, HasSubstr("rank"));
      RecordProperty(entry.path().stem().string(), fault);
      std::printf("refused %s: %s\n", entry.path().filename().c_str(), fault.c_str());
    }
  }
  EXPECT_GE(proved, 5);
}

std::string RingText() {
  const CollectiveRequest request{
      .rank_count = 4, .type = DataType::kInt64, .count = 8, .in_place = true};
  return WriteXml(FromPlan(
      FindAlgorithm("ring").MakePlan(request, PlainLayout(request, 1, 1 << 20)), "ring of four"));
}

TEST(MscclXmlTest, WritesAPlanThatReadsBackAndIsProved) {
  const Program program = ParseXml(RingText(), "ring.xml");
  EXPECT_EQ(program.gpus.size(), 4);
  EXPECT_EQ(Prove(program), "");
  EXPECT_EQ(WriteXml(program), RingText());
  const Plan plan = MakePlan(program, 4000, DataType::kFloat);
  RankBuffers buffers = MakeBuffers(plan.request);
  FillInputs(plan.request, buffers);
  RunFunctional(plan, buffers);
  EXPECT_EQ(CountWrong(plan.request, buffers), 0);
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MscclXmlTest, NamesRankChunkAndStepOfAWrongSchedule) {
  const std::string bent = Replaced(RingText(), "type=\"rrs\"", "type=\"rcs\"");
  const std::string fault = Prove(ParseXml(bent, "bent.xml"));
  EXPECT_THAT(fault, HasSubstr("rank"));
  EXPECT_THAT(fault, HasSubstr("chunk"));
  EXPECT_THAT(fault, HasSubstr("step"));
}

TEST(MscclXmlTest, NamesTheMissingSendOfADeadlock) {
  const std::string bent = Replaced(RingText(), "type=\"s\"", "type=\"nop\"");
  EXPECT_THAT(Prove(ParseXml(bent, "bent.xml")), HasSubstr("deadlock"));
}

TEST(MscclXmlTest, RefusesWrongInputWithLineAndField) {
  const auto fault_of = [](const std::string& text) {
    try {
      ParseXml(text, "f.xml");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string ring = RingText();
  EXPECT_THAT(fault_of("<!DOCTYPE a>" + ring), HasSubstr("DOCTYPE"));
  EXPECT_THAT(fault_of("<algo"), HasSubstr("not XML"));
  EXPECT_THAT(fault_of(Replaced(ring, "nchannels", "nchanels")),
              HasSubstr("did you mean 'nchannels'"));
  EXPECT_THAT(fault_of(Replaced(ring, "coll=\"allreduce\"", "coll=\"custom\"")),
              HasSubstr("not known"));
  EXPECT_THAT(fault_of(Replaced(ring, "send=\"1\"", "send=\"4\"")), HasSubstr("f.xml:3"));
  EXPECT_THAT(fault_of(Replaced(ring, "step s=\"1\"", "step s=\"2\"")), HasSubstr("gap"));
  EXPECT_THAT(fault_of(Replaced(ring, "depid=\"-1\" deps=\"-1\"", "depid=\"7\" deps=\"0\"")),
              HasSubstr("does not exist"));
}

}  // namespace
}  // namespace windtunnel::msccl
