#include "validate/early_decisions.h"

#include <algorithm>

namespace windtunnel::validate {
namespace {

using nccl::NcclVersion;

constexpr std::uint64_t kBytesPerThreadBeforeMore = 8;
constexpr std::uint32_t kFewestThreads = 64, kMostThreads = 256;
constexpr std::uint64_t kBytesPerThread = 64, kBytesPerThreadPreVolta = 32;
constexpr Bytes kLlSlice = KiB(16);  // 8 lines of 8 data bytes for each of 256 threads.
constexpr Bytes kBuffer = MiB(4);

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

void DecideEarly(timing::CallFacts& facts, std::uint32_t most_channels, bool pre_volta) {
  const bool nccl1 = facts.version < NcclVersion{2, 0, 0};
  const bool chain = facts.function == Function::kBroadcast || facts.function == Function::kReduce;
  const bool of_one_rank =
      facts.function == Function::kAllGather || facts.function == Function::kReduceScatter;
  const std::uint64_t size = facts.size.count();
  facts.algorithm = timing::Algorithm::kRing;
  facts.protocol = Protocol::kSimple;
  facts.channels = nccl1 ? 1 : std::max(1u, most_channels);
  facts.threads = kMostThreads;
  facts.chunk = kBuffer / 2;
  if (nccl1) facts.chunk = kBuffer / 8;
  if (chain) {
    facts.chain_piece = nccl1 ? KiB(512) : facts.version < NcclVersion{2, 4, 0} ? MiB(1) : KiB(512);
    if (facts.function == Function::kBroadcast && facts.version < NcclVersion{2, 4, 0})
      facts.chain_piece = facts.chain_piece / 2;
  }
  if (!nccl1) {
    const std::uint64_t parts = chain ? 1 : facts.ranks;
    std::uint32_t threads = kFewestThreads;
    while (DivideUp(size, threads * parts) > kBytesPerThreadBeforeMore &&
           threads * 2 <= kMostThreads)
      threads *= 2;
    const std::uint64_t wanted = DivideUp(size, threads * parts * kBytesPerThreadBeforeMore);
    const auto channels = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(wanted, 1, std::max(1u, most_channels)));
    const std::uint64_t limit = std::uint64_t{channels} * threads * parts *
                                (pre_volta ? kBytesPerThreadPreVolta : kBytesPerThread);
    if (size <= limit) {
      facts.protocol = Protocol::kLl;
      facts.channels = channels;
      facts.threads = threads;
      facts.chunk = kLlSlice;
      facts.chain_piece = Bytes(0);
    }
  }
  const std::uint64_t own = of_one_rank ? DivideUp(size, facts.ranks) : size;
  facts.channel_bytes = Bytes(std::max<std::uint64_t>(1, DivideUp(own, facts.channels)));
}

}  // namespace windtunnel::validate
