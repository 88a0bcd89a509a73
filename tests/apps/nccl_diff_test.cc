// The log of a run against our decisions, as a user compares them. The logs are made of what the
// program itself says, so a shipped system serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "apps/command.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ProgramResult;
using testing::RunProgram;
using testing::TemporaryDir;

// `lines` as rank 0 would have printed them under `version`.
std::string AsLog(const std::string& lines, const std::string& version) {
  std::string log = "NCCL version " + version + "+cuda12.4\n";
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) log += "host:1:2 [0] NCCL INFO " + line + "\n";
  return log;
}

ProgramResult Diff(const std::string& log, const std::vector<std::string>& more = {}) {
  const auto file = TemporaryDir() / "nccl.log";
  std::ofstream(file) << log;
  std::vector<std::string> args = {"nccl", "diff", file.string(), "-t", "hgx-h100", "--nodes", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return RunProgram(args);
}

std::string Channels(const std::string& version) {
  return RunProgram(
             {"nccl", "channels", "-t", "hgx-h100", "--nodes", "2", "--nccl-version", version})
      .out;
}

TEST(NcclDiff, OfWhatTheProgramItselfSaysIsEmpty) {
  const std::string table =
      RunProgram({"nccl", "table", "-t", "hgx-h100", "--nodes", "2", "--nccl-version", "2.26.2"})
          .out;
  const ProgramResult result = Diff(AsLog(Channels("2.26.2") + table, "2.26.2"));
  EXPECT_EQ(result.exit_code, kExitDone) << result.out << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("16 ranks on 2 nodes, NCCL 2.26.2"), HasSubstr("ring"),
                                HasSubstr("tuning")));
}

TEST(NcclDiff, NamesTheLineOfWhatDiffers) {
  std::string lines = Channels("2.28.9");
  lines.replace(lines.find(" 0  "), 4, " 1  ");  // The first rank of channel 0, on line 2.
  const ProgramResult result = Diff(AsLog(lines, "2.28.9"));
  EXPECT_EQ(result.exit_code, kExitJobFailed);
  EXPECT_THAT(result.out, AllOf(HasSubstr("line 2: ring, channel 0"), HasSubstr("log:  1 "),
                                HasSubstr("ours: 0 ")));
}

TEST(NcclDiff, TellsWhatIsWrongWithItsInput) {
  const ProgramResult missing = RunProgram({"nccl", "diff", "no.log", "-t", "hgx-h100"});
  EXPECT_EQ(missing.exit_code, kExitInputWrong);
  EXPECT_THAT(missing.err, HasSubstr("no.log: cannot be read"));
  const ProgramResult empty = Diff("hello\n");
  EXPECT_EQ(empty.exit_code, kExitInputWrong);
  EXPECT_THAT(empty.err, HasSubstr("NCCL_DEBUG=INFO"));
  const ProgramResult without = Diff("host:1:2 [0] NCCL INFO Bootstrap : Using eth0\n");
  EXPECT_EQ(without.exit_code, kExitInputWrong);
  EXPECT_THAT(without.err, HasSubstr("NCCL_DEBUG_SUBSYS"));
}

}  // namespace
}  // namespace windtunnel
