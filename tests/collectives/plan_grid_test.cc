// The property grid: every algorithm x function x ranks x sizes, exact sums, every contribution
// once, the same bits on all ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "collectives/algorithm.h"
#include "collectives/functional.h"

namespace windtunnel {
namespace {

constexpr Function kAllFunctions[] = {
    Function::kAllReduce, Function::kAllGather, Function::kReduceScatter, Function::kBroadcast,
    Function::kReduce,    Function::kAllToAll,  Function::kAllToAllV,     Function::kGather,
    Function::kScatter,   Function::kSendRecv,  Function::kHypercube};

constexpr std::uint32_t kRankCounts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                         11, 12, 13, 14, 15, 16, 17, 24, 32, 33};

std::string Describe(const CollectiveRequest& request, std::string_view algorithm) {
  return std::string(algorithm) + " " + std::string(Name(request.function)) + " of " +
         std::to_string(request.count) + " " + std::string(Name(request.type)) + " " +
         std::string(Name(request.op)) + " on " + std::to_string(request.rank_count) + " ranks" +
         (request.in_place ? " in place" : "") + " root " + std::to_string(request.root);
}

void ExpectCorrect(const Algorithm& algorithm, const CollectiveRequest& request,
                   const ChannelLayout& layout) {
  SCOPED_TRACE(Describe(request, algorithm.name()));
  const Plan plan = algorithm.MakePlan(request, layout);
  EXPECT_EQ(plan.algorithm, algorithm.name());
  RankBuffers buffers = MakeBuffers(request);
  FillInputs(request, buffers);
  ASSERT_NO_THROW(RunFunctional(plan, buffers));
  EXPECT_EQ(CountWrong(request, buffers), 0);
  if (request.function == Function::kAllReduce) {
    for (Rank rank = 1; rank < request.rank_count; ++rank) {
      EXPECT_EQ(std::memcmp(buffers.output[0].data(), buffers.output[rank].data(),
                            buffers.output[0].size()),
                0)
          << "rank " << rank << " holds other bits than rank 0";
    }
  }
}

// The plain layout, its ranks spread over the number of nodes that algorithms between nodes need.
ChannelLayout LayoutFor(const Algorithm& algorithm, const CollectiveRequest& request,
                        std::uint32_t channels, std::uint64_t chunk_bytes, std::uint32_t slices,
                        std::uint32_t turn) {
  ChannelLayout layout = PlainLayout(request, channels, chunk_bytes, slices);
  if (algorithm.name() == "NVLS") return layout;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t g = 1; g <= request.rank_count; ++g) {
    if (request.rank_count % g == 0) sizes.push_back(g);
  }
  const std::uint32_t g = sizes[turn % sizes.size()];
  layout.nodes.assign(request.rank_count / g, {});
  for (Rank r = 0; r < request.rank_count; ++r) layout.nodes[r / g].push_back(r);
  layout.sides = {g, request.rank_count / g};
  if (layout.sides[1] % 2 == 0) layout.sides = {g, layout.sides[1] / 2, 2};
  return layout;
}

class PlanGridTest : public testing::TestWithParam<const Algorithm*> {};

// Sizes 0, 1, odd, smaller and larger than the ranks, not divisible; one and three channels; every
// type and operator comes up in turn.
TEST_P(PlanGridTest, ComputesEveryFunctionThatItTakesOnAllRankCounts) {
  const Algorithm& algorithm = *GetParam();
  constexpr DataType kTypes[] = {DataType::kFloat,    DataType::kInt32,  DataType::kHalf,
                                 DataType::kBfloat16, DataType::kDouble, DataType::kInt8,
                                 DataType::kUint8,    DataType::kUint32, DataType::kInt64,
                                 DataType::kUint64};
  std::uint32_t turn = 0;
  std::uint32_t ran = 0;
  for (const Function function : kAllFunctions) {
    for (const std::uint32_t n : kRankCounts) {
      for (const std::uint64_t count : {0, 1, 5, 100, 1003}) {
        CollectiveRequest request{.function = function, .rank_count = n, .count = count};
        ++turn;
        request.type = kTypes[turn % 10];
        request.op = static_cast<ReduceOp>(turn / 10 % 5);
        request.root = turn % n;
        request.in_place = turn % 3 == 0 && function != Function::kAllToAll &&
                           function != Function::kAllToAllV && function != Function::kSendRecv;
        const std::uint32_t channels = turn % 2 == 0 ? 1 : 3;
        const ChannelLayout layout =
            LayoutFor(algorithm, request, channels, 64 + turn % 5 * 64, 2, turn);
        if (!algorithm.WhyNot(request, layout).empty()) continue;
        ++ran;
        ExpectCorrect(algorithm, request, layout);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(ran, 0) << "the algorithm took nothing of the grid";
}

TEST_P(PlanGridTest, ProvesThatEachContributionArrivesOnce) {
  const Algorithm& algorithm = *GetParam();
  for (const Function function : kAllFunctions) {
    for (const std::uint32_t n : {1U, 2U, 3U, 5U, 8U, 12U, 16U, 17U, 33U}) {
      for (const std::uint64_t count : {1ULL, 67ULL, 1'000'003ULL}) {
        for (const bool in_place : {false, true}) {
          CollectiveRequest request{.function = function,
                                    .rank_count = n,
                                    .count = count,
                                    .root = n / 2,
                                    .in_place = in_place};
          if (in_place && (function == Function::kAllToAll || function == Function::kAllToAllV ||
                           function == Function::kSendRecv))
            continue;
          const ChannelLayout layout =
              LayoutFor(algorithm, request, 2, count > 1000 ? 1 << 20 : 64, 2, n + in_place);
          if (!algorithm.WhyNot(request, layout).empty()) continue;
          EXPECT_EQ(ProveCorrect(algorithm.MakePlan(request, layout)), "")
              << Describe(request, algorithm.name());
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// A plan may not depend on which ready block runs first, nor on how far senders run ahead.
TEST_P(PlanGridTest, GivesTheSameBitsInEveryOrderOfBlocks) {
  const Algorithm& algorithm = *GetParam();
  for (const Function function : kAllFunctions) {
    for (const std::uint32_t n : {2U, 5U, 8U, 16U}) {
      const CollectiveRequest request{.function = function, .rank_count = n, .count = 333};
      const ChannelLayout layout = LayoutFor(algorithm, request, 2, 128, 1, n + 1);
      if (!algorithm.WhyNot(request, layout).empty()) continue;
      const Plan plan = algorithm.MakePlan(request, layout);
      std::vector<std::byte> first;
      for (const FunctionalOptions& options : {FunctionalOptions{8, BlockOrder::kOldestFirst},
                                               FunctionalOptions{8, BlockOrder::kNewestFirst},
                                               FunctionalOptions{2, BlockOrder::kOldestFirst},
                                               FunctionalOptions{1000, BlockOrder::kNewestFirst}}) {
        SCOPED_TRACE(Describe(request, algorithm.name()) + " with " +
                     std::to_string(options.slots) + " slots");
        RankBuffers buffers = MakeBuffers(request);
        std::uint32_t state = 12345;
        for (auto& input : buffers.input) {
          for (std::size_t i = 0; i + 4 <= input.size(); i += 4) {
            state = state * 1664525 + 1013904223;
            const float value = static_cast<float>(static_cast<std::int32_t>(state)) * 1.17e-5F;
            std::memcpy(input.data() + i, &value, 4);
          }
        }
        ASSERT_NO_THROW(RunFunctional(plan, buffers, options));
        std::vector<std::byte> all;
        for (const auto& output : buffers.output)
          all.insert(all.end(), output.begin(), output.end());
        if (first.empty()) first = all;
        EXPECT_TRUE(first == all);
        if (function == Function::kAllReduce) {
          for (Rank rank = 1; rank < n; ++rank) {
            EXPECT_EQ(std::memcmp(buffers.output[0].data(), buffers.output[rank].data(),
                                  buffers.output[0].size()),
                      0);
          }
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanGridTest, testing::ValuesIn(Algorithms()),
                         [](const auto& tested) { return std::string(tested.param->name()); });

TEST(AlgorithmTableTest, AnswersAnUnknownNameWithTheKnownOnes) {
  EXPECT_EQ(FindAlgorithm("ring").name(), "Ring");
  try {
    FindAlgorithm("rong");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'Ring'"));
  }
}

TEST(AllToAllVTest, RoundsEndWithTheLargerMessageAThirdLater) {
  // Two ranks, ten elements a peer: part 10, so 0 and 1 exchange 10 and keep 10. All equal.
  EXPECT_DOUBLE_EQ(AllToAllVUnevenness(2, 10), 1);
  // Three ranks, three elements a peer: to + from = 0, 1, 2 (mod 3) make 3, 2, 4. Rank 0 sends 3,
  // 2, 4 and receives 3, 4, 2; rank 1 sends 4, 3, 2 and receives 4, 2, 3; rank 2 sends 2, 4, 3 and
  // receives 2, 3, 4. The larger ones are 11, 10 and 10, of 9 each.
  EXPECT_DOUBLE_EQ(AllToAllVUnevenness(3, 3), 31.0 / 27);
  // The larger of two even draws is 4/3 of their mean; of 4,096 ranks a part is looked at.
  EXPECT_NEAR(AllToAllVUnevenness(64, 6400), 4.0 / 3, 0.03);
  EXPECT_NEAR(AllToAllVUnevenness(1024, 102400), 4.0 / 3, 0.01);
  EXPECT_NEAR(AllToAllVUnevenness(4096, 409600), 4.0 / 3, 0.01);
  // Below half an element a peer all goes to one peer, in other rounds than it comes from: twice,
  // but for the two ranks that keep it.
  EXPECT_NEAR(AllToAllVUnevenness(1024, 128), 2, 0.01);
  EXPECT_DOUBLE_EQ(AllToAllVUnevenness(8, 0), 1);
}

}  // namespace
}  // namespace windtunnel
