// `windtunnel measure` where it cannot measure; what it does on a GPU is held by the data check of
// the measurement itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using ::testing::HasSubstr;

// GPU 1000 is nowhere: without CUDA, driver or GPU the first lack is named, with one this number.
TEST(MeasureCommandTest, SaysInOneLineWhyItCannotMeasure) {
  for (const char* kind : {"nccl", "p2p", "launch", "gemm", "hbm", "copy"}) {
    const testing::ProgramResult run = testing::RunProgram({"measure", kind, "--gpus", "1000"});
    EXPECT_EQ(run.exit_code, 1) << kind;
    EXPECT_EQ(run.out, "") << kind;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << kind << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("windtunnel: error: ")) << kind;
  }
}

TEST(MeasureCommandTest, AnUnknownKindIsAnsweredWithTheKnownOnes) {
  const testing::ProgramResult run = testing::RunProgram({"measure", "gem"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("one of nccl, p2p, launch, gemm, hbm, copy"));
  EXPECT_THAT(run.err, HasSubstr("did you mean 'gemm'?"));
  EXPECT_EQ(testing::RunProgram({"measure"}).exit_code, 1);
}

TEST(MeasureCommandTest, JoiningAJobWithoutALauncherIsAnsweredInOneLine) {
  const testing::ProgramResult run = testing::RunProgram({"measure", "nccl", "--join", "id"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  // Without CUDA in the build that is the lack that is named.
  EXPECT_THAT(run.err, ::testing::AnyOf(HasSubstr("mpirun or srun"), HasSubstr("without CUDA")));
}

}  // namespace
}  // namespace windtunnel
