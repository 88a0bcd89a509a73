#include "collectives/job_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"

namespace windtunnel {
namespace {

using testing::HasSubstr;

std::string FaultOf(const JobCalls& job) {
  try {
    CheckJob(job);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

JobCalls FourRanks() {
  JobCalls job;
  for (int rank = 0; rank < 4; ++rank) {
    job.ranks.push_back({{.count = 100}, {.function = Function::kAllGather, .count = 10}});
  }
  return job;
}

TEST(JobCheckTest, AcceptsCallsThatFit) { EXPECT_EQ(FaultOf(FourRanks()), ""); }

TEST(JobCheckTest, NamesTheMissingRankAndItsCall) {
  JobCalls job = FourRanks();
  job.ranks[2].pop_back();
  EXPECT_THAT(FaultOf(job),
              HasSubstr("rank 2 is missing in collective 2 (all_gather of 10 float)"));
}

TEST(JobCheckTest, NamesWhatDiffers) {
  JobCalls job = FourRanks();
  job.ranks[1][0].count = 99;
  EXPECT_THAT(FaultOf(job), HasSubstr("with count 99"));
  job = FourRanks();
  job.ranks[1][0].type = DataType::kHalf;
  EXPECT_THAT(FaultOf(job), HasSubstr("with type half"));
  job = FourRanks();
  job.ranks[3][0].op = ReduceOp::kMax;
  EXPECT_THAT(FaultOf(job), HasSubstr("with operator max"));
  job = FourRanks();
  std::swap(job.ranks[3][0], job.ranks[3][1]);
  EXPECT_THAT(FaultOf(job), HasSubstr("with order"));
}

TEST(JobCheckTest, RefusesWithTheCodeOfNccl) {
  JobCalls job = FourRanks();
  job.gpus = {"0", "1", "1", "2"};
  EXPECT_THAT(FaultOf(job), HasSubstr("rank 1 too (ncclInvalidUsage)"));
  job = FourRanks();
  job.ranks[0].push_back({.function = Function::kBroadcast, .count = 1, .root = 4});
  EXPECT_THAT(FaultOf(job), HasSubstr("ncclInvalidArgument"));
  job = FourRanks();
  job.ranks[1].push_back({.kind = RankCall::Kind::kSend, .count = 1, .peer = 1});
  EXPECT_THAT(FaultOf(job), HasSubstr("send to itself"));
}

TEST(JobCheckTest, NamesASendWithoutReceive) {
  JobCalls job = FourRanks();
  job.ranks[1].push_back({.kind = RankCall::Kind::kSend, .count = 1, .peer = 3});
  EXPECT_THAT(FaultOf(job), HasSubstr("rank 1 sends to rank 3 without the other half"));
}

}  // namespace
}  // namespace windtunnel
