#pragma once
// What the algorithms share: plans of the trivial cases and short forms of ops.

#include <cstdint>
#include <functional>
#include <initializer_list>
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

/// A program computed op by op. `at` must be pure and keep alive what the spans of its ops point
/// to.
class ComputedProgram final : public Program {
 public:
  ComputedProgram(std::uint64_t size, std::function<PlanOp(std::uint64_t)> at)
      : size_(size), at_(std::move(at)) {}
  std::uint64_t size() const override { return size_; }
  PlanOp At(std::uint64_t index) const override { return at_(index); }

 private:
  std::uint64_t size_;
  std::function<PlanOp(std::uint64_t)> at_;
};

/// Blocks under construction whose ops name each other. Numbers of blocks are final at once.
class PlanBuilder {
 public:
  explicit PlanBuilder(Plan& plan) : plan_(plan) {}
  /// Adds a block kept as a list and returns its number.
  std::uint32_t Add(Rank rank, std::uint32_t channel, std::string_view role) {
    auto program = std::make_shared<ListProgram>();
    lists_.push_back(program.get());
    plan_.blocks.push_back({rank, channel, role, std::move(program)});
    return static_cast<std::uint32_t>(plan_.blocks.size() - 1);
  }
  void Append(std::uint32_t block, const PlanOp& op) { lists_[block]->Append(op); }
  std::uint64_t SizeOf(std::uint32_t block) const { return lists_[block]->size(); }

 private:
  Plan& plan_;
  std::vector<ListProgram*> lists_;
};

/// Why the nodes of `layout` do not hold every rank once ("" when they do).
std::string WhyNoNodes(const CollectiveRequest& request, const ChannelLayout& layout);
/// The same, and all nodes have the same number of ranks.
std::string WhyNoEqualNodes(const CollectiveRequest& request, const ChannelLayout& layout);
/// Why a switch of NVLink or of the network cannot reduce this ("" when it can): it adds types of 2
/// bytes and more, takes minima and maxima of integers and of 2-byte floats, and does not multiply;
/// reduce_scatter has no average.
/// Source: NVIDIA/nccl, src/include/nvls and src/device, the table of NVLS kernels.
std::string WhyNoSwitchReduction(const CollectiveRequest& request);

/// The power-of-two core of an algorithm for any rank count: the first 2 * rest ranks pair up, of
/// each pair the odd one takes part (its id: half its rank).
struct Fold {
  std::uint32_t core = 1;  ///< Largest power of two not above the rank count.
  std::uint32_t rest = 0;
  explicit Fold(std::uint32_t rank_count);
  bool TakesPart(Rank rank) const { return rank >= 2 * rest || rank % 2 == 1; }
  bool HasPartner(Rank rank) const { return rank < 2 * rest; }
  std::uint32_t IdOf(Rank rank) const { return rank < 2 * rest ? rank / 2 : rank - rest; }
  Rank RankOf(std::uint32_t id) const { return id < rest ? 2 * id + 1 : id + rest; }
};

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
