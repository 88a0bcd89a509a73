#include "sim/number_table.h"

#include <gtest/gtest.h>

#include <set>

namespace windtunnel {
namespace {

struct Mixed {
  std::uint64_t operator()(std::uint64_t key) const { return MixHash(0, key); }
};
// All keys fall on a few places and share their tag.
struct Crowded {
  std::uint64_t operator()(std::uint64_t key) const { return key % 3; }
};

template <class Hash>
void ExpectNumbersInOrder() {
  NumberTable<std::uint64_t, Hash> table;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(table.NumberOf(i * i * 7), std::pair(static_cast<std::uint32_t>(i), true));
  }
  for (std::uint64_t i = 1000; i-- > 0;) {
    EXPECT_EQ(table.NumberOf(i * i * 7), std::pair(static_cast<std::uint32_t>(i), false));
    EXPECT_EQ(table.key(static_cast<std::uint32_t>(i)), i * i * 7);
  }
  EXPECT_EQ(table.size(), 1000u);
}

TEST(NumberTableTest, NumbersKeysInTheOrderOfTheirFirstComing) {
  ExpectNumbersInOrder<Mixed>();
  ExpectNumbersInOrder<Crowded>();
}

TEST(NumberTableTest, MixedHashesTellNeighboursApartInBothHalves) {
  NumberTable<std::uint64_t, Mixed> halves;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    halves.NumberOf(MixHash(0, i) >> 32);
    halves.NumberOf((MixHash(0, i) & 0xffffffff) | 1ULL << 40);
  }
  EXPECT_GE(halves.size(), 2u * 4096 - 8);
}

// Places side by side for neighbours, and nowhere near for the next eight.
TEST(NumberTableTest, NearHashesKeepNeighboursTogetherAndTheRestApart) {
  for (std::uint64_t i = 0; i < 512; i += 8) {
    for (std::uint64_t k = 1; k < 8; ++k) {
      EXPECT_EQ(static_cast<std::uint32_t>(NearHash(7, i + k)),
                static_cast<std::uint32_t>(NearHash(7, i)) + k);
      EXPECT_NE(NearHash(7, i + k) >> 32, NearHash(7, i) >> 32);
    }
  }
  std::set<std::uint64_t> halves;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    halves.insert(NearHash(7, 8 * i) >> 32);
    halves.insert((NearHash(7, 8 * i) & 0xffffffff) | 1ULL << 40);
    halves.insert((NearHash(i, 3) & 0xffffffff) | 1ULL << 41);
  }
  EXPECT_GE(halves.size(), 3u * 4096 - 8);
}

}  // namespace
}  // namespace windtunnel
