#include "collectives/nccl/p2p.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/error.h"
#include "tests/collectives/nccl/machines.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

Connections Grid(int nodes, int ranks_per_node) {
  Connections out;
  out.max_local_ranks = ranks_per_node;
  for (int n = 0; n < nodes; ++n) {
    auto& ranks = out.node_ranks.emplace_back();
    for (int l = 0; l < ranks_per_node; ++l) {
      ranks.push_back(n * ranks_per_node + l);
      out.rank_to_node.push_back(n);
      out.rank_to_local.push_back(l);
    }
  }
  return out;
}

TEST(P2pSchedule, OneNodeOfEight) {
  const auto rounds = P2pScheduleOf(Grid(1, 8), 0, kDefaultNcclVersion);
  const std::vector<P2pRound> expected = {{0, 0}, {1, 7}, {2, 6}, {3, 5},
                                          {4, 4}, {5, 3}, {6, 2}, {7, 1}};
  EXPECT_EQ(rounds, expected);
}

TEST(P2pSchedule, FourNodesOfEight) {
  std::vector<int> sends;
  for (const P2pRound& round : P2pScheduleOf(Grid(4, 8), 9, kDefaultNcclVersion))
    sends.push_back(round.send_to);
  EXPECT_EQ(sends,
            (std::vector<int>{9, 10, 11, 12, 13, 14, 15, 8, 17, 18, 19, 20, 21, 22, 23, 16,
                              1, 2,  3,  4,  5,  6,  7,  0, 25, 26, 27, 28, 29, 30, 31, 24}));
}

TEST(P2pSchedule, SendersAndReceiversMeetInEveryRound) {
  for (const NcclVersion version :
       {NcclVersion{2, 18, 5}, NcclVersion{2, 22, 3}, NcclVersion{2, 28, 9}, NcclVersion{2, 30, 7}})
    for (const auto& [nodes, locals] : {std::pair(1, 6), std::pair(3, 4), std::pair(5, 8)}) {
      const Connections grid = Grid(nodes, locals);
      const auto ranks = static_cast<Rank>(nodes * locals);
      std::vector<std::vector<P2pRound>> all;
      for (Rank r = 0; r < ranks; ++r) all.push_back(P2pScheduleOf(grid, r, version));
      for (Rank r = 0; r < ranks; ++r) {
        std::set<int> peers;
        for (std::size_t k = 0; k < all[r].size(); ++k) {
          if (all[r][k].send_to < 0) continue;
          peers.insert(all[r][k].send_to);
          EXPECT_EQ(all[static_cast<std::size_t>(all[r][k].send_to)][k].receive_from,
                    static_cast<int>(r));
        }
        EXPECT_EQ(peers.size(), ranks);
      }
    }
}

// LL has no buffer on connections over the network.
TEST(P2pPlan, SmallMessagesInsideANodeGoByLl) {
  WT_REFERENCE_OR_SKIP(reference);
  const Communicator comm = OnMachine(reference, kH100, 2);
  const auto first = [&](std::uint64_t bytes) {
    const std::vector<P2pCall> calls = {{true, 1, bytes}, {false, 1, bytes}};
    const P2pPlan plan = comm.PlanP2p(0, calls);
    for (const P2pItem& item : plan.items)
      if (item.send_to == 1 && item.send.present) return item.send;
    ADD_FAILURE() << "no message to rank 1";
    return P2pMessage{};
  };
  EXPECT_TRUE(first(1024).ll);
  EXPECT_FALSE(first(64 << 20).ll);
  EXPECT_GE(first(64 << 20).channels, first(1024).channels);
}

TEST(P2pPlan, RefusesAPeerThatDoesNotExist) {
  WT_REFERENCE_OR_SKIP(reference);
  const Communicator comm = OnMachine(reference, kA100, 1);
  const std::vector<P2pCall> calls = {{true, 8, 16}};
  EXPECT_THROW(comm.PlanP2p(0, calls), ConfigError);
}

}  // namespace
}  // namespace windtunnel::nccl
