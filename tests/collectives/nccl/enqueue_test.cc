#include "collectives/nccl/enqueue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/collectives/nccl/machines.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

CallPlan AllReduce(const Communicator& comm, std::uint64_t bytes) {
  return comm.Plan({.function = Function::kAllReduce, .count = bytes / 4});
}

// "Ring LL; NVLS Simple 2048": the first size of each choice in KiB, powers of two from 8 B (all-
// gather: 4 B per rank) to 8 GiB.
std::string Sequence(const Communicator& comm, Function function = Function::kAllReduce) {
  std::string out, last;
  const std::uint64_t parts =
      function == Function::kAllGather ? static_cast<std::uint64_t>(comm.rank_count()) : 1;
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t{8} << 30; bytes *= 2) {
    if (bytes < 4 * parts) continue;
    const CallPlan plan = comm.Plan({.function = function, .count = bytes / 4 / parts});
    const std::string name = fmt::format("{} {}", Name(plan.algorithm), Name(plan.protocol));
    if (name == last) continue;
    out += last.empty() ? name : fmt::format("; {} {}", name, bytes >> 10);
    last = name;
  }
  return out;
}

TEST(Choice, OfAllReduceBySize) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto of = [&](const char* file, int nodes) {
    return Sequence(OnMachine(reference, file, nodes));
  };
  // Sizes in KiB. Source: 2.28.9 itself.
  EXPECT_EQ(of(kA100, 1), "Ring LL; Ring LL128 4096; Ring Simple 32768");
  EXPECT_EQ(of(kV100, 1), "Ring LL; Ring LL128 1024; Ring Simple 16384");
  EXPECT_EQ(of(kRtx3090, 1), "Ring LL; Ring Simple 512");
  EXPECT_EQ(of(kA100, 2), "Tree LL; Tree LL128 256; Ring LL128 16384; Ring Simple 131072");
  EXPECT_EQ(of(kA100, 4), "Tree LL; Tree LL128 256; Ring LL128 32768; Ring Simple 262144");
  EXPECT_EQ(of(kA100, 16), "Tree LL; Tree LL128 256; Ring LL128 262144; Ring Simple 1048576");
  EXPECT_EQ(of(kP4d, 2), "Tree LL; Tree LL128 256; Tree Simple 524288");
  EXPECT_EQ(of(kP4d, 4), "Tree LL; Tree LL128 128; Ring LL128 32768; Ring Simple 524288");
  EXPECT_EQ(of(kV100, 2), "Tree LL; Ring LL 64; Tree Simple 1024");
}

TEST(Choice, OfAllReduceBySizeWithSwitches) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto of = [&](const char* file, int nodes) {
    return Sequence(OnMachine(reference, file, nodes));
  };
  EXPECT_EQ(of(kH100, 1), "Ring LL; NVLS Simple 2048");
  EXPECT_EQ(of(kB200, 1), "Ring LL; NVLS Simple 4096");
  EXPECT_EQ(of(kH100, 2), "Tree LL; Tree LL128 256; NVLSTree Simple 2048");
  EXPECT_EQ(of(kH100, 4), "Tree LL; Tree LL128 256; NVLSTree Simple 8192; Ring Simple 1048576");
  EXPECT_EQ(of(kH100, 16), "Tree LL; Tree LL128 256; NVLSTree Simple 16384; Ring Simple 8388608");
}

// Sizes of the large buffer.
TEST(Choice, OfAllGatherBySize) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto of = [&](int nodes) {
    return Sequence(OnMachine(reference, kH100, nodes), Function::kAllGather);
  };
  EXPECT_EQ(of(1), "Ring LL; Ring LL128 8192; Ring Simple 32768");
  EXPECT_EQ(of(2), "Ring LL; Ring LL128 1024; Ring Simple 65536");
}

TEST(ChannelsAndThreads, OfSmallCalls) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto sizes = [&](const char* protocol, std::uint64_t bytes) {
    Environment environment;
    environment.Set("NCCL_ALGO", "Ring");
    environment.Set("NCCL_PROTO", protocol);
    const CallPlan plan = AllReduce(OnMachine(reference, kA100, 1, environment), bytes);
    return std::pair(plan.max_channels, plan.warps * 32);
  };
  const auto ll = [&](std::uint64_t bytes) { return sizes("LL", bytes); };
  EXPECT_EQ(ll(8), std::pair(1, 96));
  EXPECT_EQ(ll(16384), std::pair(1, 256));
  EXPECT_EQ(ll(65536), std::pair(2, 512));
  EXPECT_EQ(ll(262144), std::pair(8, 512));
  EXPECT_EQ(ll(1048576), std::pair(24, 512));
  EXPECT_EQ(sizes("Simple", 65536), std::pair(2, 544));
  EXPECT_EQ(sizes("LL128", 16384), std::pair(3, 640));
  EXPECT_EQ(sizes("LL128", 65536), std::pair(12, 640));
  EXPECT_EQ(sizes("LL128", 262144), std::pair(24, 640));
}

TEST(Shares, AddUpToTheCall) {
  WT_REFERENCE_OR_SKIP(reference);
  const Communicator comm = OnMachine(reference, kA100, 2);
  for (const std::uint64_t count : {1u, 7u, 1000u, 65537u, 1u << 20, (1u << 24) + 3}) {
    const CallPlan plan = comm.Plan({.function = Function::kAllReduce, .count = count});
    std::uint64_t sum = 0;
    for (const int c : plan.ChannelList()) sum += plan.ShareOf(c).count;
    EXPECT_EQ(sum, count);
  }
}

}  // namespace
}  // namespace windtunnel::nccl
