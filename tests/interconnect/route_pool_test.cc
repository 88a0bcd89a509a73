#include "interconnect/route_pool.h"

#include <gtest/gtest.h>

namespace windtunnel {
namespace {

TEST(RoutePoolTest, EqualRoutesHaveOneNumberAndKeepTheirLinks) {
  RoutePool pool;
  std::vector<Route> routes = {{}, {3}, {3, 4}, {4, 3}, {3, 4, 5}, {4}};
  for (LinkId i = 0; i < 1000; ++i) routes.push_back({7, i, i + 1, 2 * i});
  for (std::uint32_t i = 0; i < routes.size(); ++i) {
    EXPECT_EQ(pool.NumberOf(routes[i]), std::pair(i, true));
  }
  for (std::uint32_t i = 0; i < routes.size(); ++i) {
    EXPECT_EQ(pool.NumberOf(routes[i]), std::pair(i, false));
    EXPECT_TRUE(std::ranges::equal(pool.key(i), routes[i])) << i;
  }
}

}  // namespace
}  // namespace windtunnel
