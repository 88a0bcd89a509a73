// Arithmetic and order of the functional executor, and its diagnoses.

#include "collectives/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "collectives/algorithm.h"
#include "collectives/elements.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

using testing::HasSubstr;

template <class T>
void Put(std::span<std::byte> buffer, std::size_t index, T value) {
  std::memcpy(buffer.data() + index * sizeof(T), &value, sizeof(T));
}
template <class T>
T Get(std::span<const std::byte> buffer, std::size_t index) {
  T value;
  std::memcpy(&value, buffer.data() + index * sizeof(T), sizeof(T));
  return value;
}

Plan RingPlan(const CollectiveRequest& request, std::uint32_t channels = 1,
              std::uint64_t chunk_bytes = 1 << 20) {
  return FindAlgorithm("ring").MakePlan(request, PlainLayout(request, channels, chunk_bytes));
}

TEST(ElementsTest, ConvertsHalfToAndFromSinglePrecisionExactly) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = HalfToFloat(half);
    const int exponent = half >> 10 & 31;
    const int mantissa = half & 1023;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
      continue;
    }
    double expected = exponent == 0    ? std::ldexp(mantissa, -24)
                      : exponent == 31 ? INFINITY
                                       : std::ldexp(1024 + mantissa, exponent - 25);
    if ((half & 0x8000) != 0) expected = -expected;
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(FloatToHalf(value), half) << bits;
  }
}

TEST(ElementsTest, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(2049), FloatToHalf(2048));  // Halfway, even below.
  EXPECT_EQ(FloatToHalf(2051), FloatToHalf(2052));  // Halfway, even above.
  EXPECT_EQ(FloatToHalf(65519.99F), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520), 0x7c00);
  EXPECT_EQ(FloatToHalf(0x1p-25F), 0);
  EXPECT_EQ(FloatToHalf(0x1.8p-25F), 1);
  EXPECT_EQ(FloatToBfloat16(std::bit_cast<float>(0x3f808000U)), 0x3f80);
  EXPECT_EQ(FloatToBfloat16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(FunctionalTest, AveragesHalfPrecisionWithoutOverflow) {
  CollectiveRequest request{.rank_count = 8, .type = DataType::kHalf, .count = 100};
  for (const bool average : {true, false}) {
    request.op = average ? ReduceOp::kAvg : ReduceOp::kSum;
    RankBuffers buffers = MakeBuffers(request);
    for (auto& input : buffers.input) {
      for (std::size_t i = 0; i < 100; ++i) Put(input, i, FloatToHalf(8192));
    }
    RunFunctional(RingPlan(request), buffers);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(HalfToFloat(Get<std::uint16_t>(buffers.output[3], i)),
                average ? 8192.0F : INFINITY);
    }
  }
}

TEST(FunctionalTest, RefusesEightBitFloats) {
  for (const DataType type : {DataType::kFp8E4m3, DataType::kFp8E5m2}) {
    EXPECT_THROW(MakeBuffers({.rank_count = 2, .type = type, .op = ReduceOp::kAvg, .count = 4}),
                 ConfigError);
  }
}

TEST(FunctionalTest, AddsAroundTheRingStartingBehindTheOwnerOfTheChunk) {
  const CollectiveRequest request{.rank_count = 4, .count = 16};
  RankBuffers buffers = MakeBuffers(request);
  constexpr float kProbe[] = {1e8F, 1, -1e8F, 1};
  for (Rank rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < 16; ++i) Put(buffers.input[rank], i, kProbe[rank]);
  }
  RunFunctional(RingPlan(request), buffers);
  // Chunk c starts at rank c + 1; results by starting rank 0, 1, 2, 3 are 1, 0, 1, 0.
  constexpr float kByStart[] = {1, 0, 1, 0};
  for (Rank rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_EQ(Get<float>(buffers.output[rank], i), kByStart[(i / 4 + 1) % 4]) << rank << " " << i;
  }
}

TEST(FunctionalTest, RingMovesExactlyTwiceTheMessagePerRankButOne) {
  for (const auto& [n, count, type] :
       {std::tuple{7U, 1'000'003ULL, DataType::kInt8}, std::tuple{8U, 5ULL, DataType::kFloat}}) {
    const CollectiveRequest request{.rank_count = n, .type = type, .count = count};
    const FunctionalResult result = RunCounting(RingPlan(request));
    EXPECT_EQ(result.elements_sent, 2 * (n - 1) * count);
  }
}

TEST(FunctionalTest, OneRankCopiesAndSendsNothing) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax}) {
    for (const bool in_place : {false, true}) {
      const CollectiveRequest request{
          .rank_count = 1, .op = op, .count = 4096, .in_place = in_place};
      RankBuffers buffers = MakeBuffers(request);
      FillInputs(request, buffers);
      EXPECT_EQ(RunFunctional(RingPlan(request), buffers).elements_sent, 0);
      EXPECT_EQ(CountWrong(request, buffers), 0);
    }
  }
}

TEST(FunctionalTest, ZeroBytesNeedNoBlocks) {
  EXPECT_TRUE(RingPlan({.rank_count = 8, .count = 0}).blocks.empty());
}

TEST(FunctionalTest, InPlaceGivesTheSameDataAsOutOfPlace) {
  for (const Function function :
       {Function::kAllReduce, Function::kAllGather, Function::kReduceScatter}) {
    CollectiveRequest request{.function = function, .rank_count = 5, .count = 123};
    RankBuffers separate = MakeBuffers(request);
    FillInputs(request, separate);
    RunFunctional(RingPlan(request, 2, 64), separate);
    request.in_place = true;
    RankBuffers shared = MakeBuffers(request);
    FillInputs(request, shared);
    RunFunctional(RingPlan(request, 2, 64), shared);
    for (Rank rank = 0; rank < 5; ++rank) {
      EXPECT_TRUE(std::equal(separate.output[rank].begin(), separate.output[rank].end(),
                             shared.output[rank].begin(), shared.output[rank].end()));
    }
  }
}

TEST(FunctionalTest, RefusesPartialOverlapNamingTheRank) {
  const CollectiveRequest request{.rank_count = 2, .count = 8};
  RankBuffers buffers = MakeBuffers(request);
  buffers.memory.emplace_back(48);
  buffers.input[1] = buffers.memory.back().bytes().subspan(0, 32);
  buffers.output[1] = buffers.memory.back().bytes().subspan(16, 32);
  try {
    RunFunctional(RingPlan(request), buffers);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1"));
    EXPECT_THAT(error.what(), HasSubstr("overlap"));
  }
}

TEST(FunctionalTest, ReduceNeedsNoOutputOnOtherRanksThanTheRoot) {
  const CollectiveRequest request{
      .function = Function::kReduce, .rank_count = 8, .count = 100, .root = 3};
  RankBuffers buffers = MakeBuffers(request);
  EXPECT_TRUE(buffers.output[2].empty());
  FillInputs(request, buffers);
  RunFunctional(RingPlan(request), buffers);
  EXPECT_EQ(CountWrong(request, buffers), 0);
}

// A plan of which one op can be bent.
Plan Bent(Plan plan, std::uint32_t block, std::uint64_t at,
          const std::function<void(PlanOp&)>& bend) {
  auto program = std::make_shared<ListProgram>();
  for (std::uint64_t i = 0; i < plan.blocks[block].program->size(); ++i) {
    PlanOp op = plan.blocks[block].program->At(i);
    if (i == at) bend(op);
    program->Append(op);
  }
  plan.blocks[block].program = program;
  return plan;
}

TEST(FunctionalTest, NamesTheMissingPeerOfADeadlock) {
  const CollectiveRequest request{.rank_count = 4, .count = 400};
  const Plan plan = Bent(RingPlan(request), 2, 3, [](PlanOp& op) { op.send_to = {}; });
  RankBuffers buffers = MakeBuffers(request);
  try {
    RunFunctional(plan, buffers);
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("deadlock in Ring all_reduce"));
    EXPECT_THAT(error.what(), HasSubstr("rank 3"));
    EXPECT_THAT(error.what(), HasSubstr("rank 2 -> rank 3"));
  }
}

TEST(FunctionalTest, NamesBothEndsOfAConnectionThatDoNotMatch) {
  const CollectiveRequest request{.rank_count = 4, .count = 400};
  const Plan plan = Bent(RingPlan(request), 1, 0, [](PlanOp& op) { op.count -= 1; });
  RankBuffers buffers = MakeBuffers(request);
  try {
    RunFunctional(plan, buffers);
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 -> rank 2"));
    EXPECT_THAT(error.what(), HasSubstr("99 elements"));
  }
}

TEST(ProveTest, NamesRankChunkAndStepOfALostContribution) {
  const CollectiveRequest request{.rank_count = 4, .count = 400};
  // Rank 1 forgets to add its own part in its third op.
  const Plan plan = Bent(RingPlan(request), 1, 2, [](PlanOp& op) { op.has_source = false; });
  const std::string fault = ProveCorrect(plan, 100);
  EXPECT_THAT(fault, HasSubstr("lacks rank 1"));
  EXPECT_THAT(fault, HasSubstr("chunk 2"));
  EXPECT_THAT(fault, HasSubstr("step"));
}

TEST(ProveTest, NamesTheOpThatAddsAContributionTwice) {
  const CollectiveRequest request{.rank_count = 4, .count = 400};
  // Rank 1 adds its part once more when the finished sum passes.
  const Plan plan = Bent(RingPlan(request), 1, 4, [](PlanOp& op) { op.has_source = true; });
  const std::string fault = ProveCorrect(plan, 100);
  EXPECT_THAT(fault, HasSubstr("holds rank 1 2 times"));
  EXPECT_THAT(fault, HasSubstr("added by rank 1, block 'ring' of channel 0, op 5"));
}

TEST(ProveTest, NamesAPlaceThatTakesDataFromTheWrongElements) {
  const CollectiveRequest request{.rank_count = 4, .count = 400};
  const Plan plan = Bent(RingPlan(request), 1, 0,
                         [](PlanOp& op) { op.source.offset = (op.source.offset + 1) % 300; });
  EXPECT_THAT(ProveCorrect(plan, 100), HasSubstr("1 places behind the right one"));
}

}  // namespace
}  // namespace windtunnel
