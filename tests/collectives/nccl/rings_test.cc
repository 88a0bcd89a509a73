#include "collectives/nccl/rings.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Ranks = std::vector<std::int32_t>;

std::vector<std::span<const std::int32_t>> Views(const std::vector<Ranks>& nodes) {
  return {nodes.begin(), nodes.end()};
}

TEST(BuildRing, LastOfANodeSendsToTheFirstOfTheNext) {
  const std::vector<Ranks> nodes = {{2, 0, 1}, {5, 4, 3}};
  EXPECT_EQ(BuildRing(Views(nodes), 6), (Ranks{0, 1, 5, 4, 3, 2}));
  EXPECT_EQ(BuildRing(Views(nodes), 6, 4), (Ranks{4, 3, 2, 0, 1, 5}));
}

TEST(BuildRing, OneRankIsARing) { EXPECT_EQ(BuildRing(Views({{0}}), 1), (Ranks{0})); }

TEST(BuildRing, RefusesChainsThatAreNoRing) {
  EXPECT_THROW(BuildRing(Views({{0, 1}, {1, 2}}), 4), InternalError);
}

}  // namespace
}  // namespace windtunnel::nccl
