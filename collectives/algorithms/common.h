#pragma once
// What the algorithms share: plans of the trivial cases and short forms of ops.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "collectives/algorithm.h"

namespace windtunnel {

/// A plan without blocks for `request`.
Plan EmptyPlan(const CollectiveRequest& request, std::string_view algorithm,
               const ChannelLayout& layout);
/// True for the cases in which no algorithm runs: no elements (NCCL returns at once), or one rank
/// (a local copy).
bool IsTrivial(const CollectiveRequest& request);
/// Contract: IsTrivial(request). One rank out of place: one block that copies input to output.
Plan TrivialPlan(const CollectiveRequest& request, std::string_view algorithm,
                 const ChannelLayout& layout);

/// "does all_reduce only", or "" when `request` is one of `allowed`.
std::string OnlyFor(const CollectiveRequest& request, std::initializer_list<Function> allowed);

/// Why the channels of `layout` do not cover the message of `request` with chunks ("" when they
/// do).
std::string WhyNoChannels(const CollectiveRequest& request, const ChannelLayout& layout);
/// The same, and every channel has a ring with each rank once.
std::string WhyNoRing(const CollectiveRequest& request, const ChannelLayout& layout);

/// Pipelined parts of an op of `count` elements in pieces of at most `chunk` (both 1 or more).
std::uint32_t SlicesOf(std::uint64_t count, std::uint64_t chunk);

/// The k-th of `parts` near-equal parts of `count` elements: the first count mod parts are one
/// longer.
struct Part {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};
constexpr Part PartOf(std::uint64_t count, std::uint64_t parts, std::uint64_t k) {
  const std::uint64_t base = count / parts;
  const std::uint64_t rest = count % parts;
  return {base * k + (k < rest ? k : rest), base + (k < rest ? 1 : 0)};
}

constexpr bool IsPowerOfTwo(std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace windtunnel
