#pragma once
// Runs a plan without a clock: moves real elements, or symbols that say which ranks' contributions
// an element holds.
//
// Order of addition: an op forms ((own + arrival 0) + arrival 1) + ..., each sum rounded in the
// type of the buffer (half and bfloat16: added in single precision, rounded to nearest even). A
// switch adds in the order of its members in double precision (integers: exactly) and rounds once.
// Products, minima and maxima likewise. A minimum of zeros of both signs is -0, a maximum +0; of a
// number and a NaN both give the number. Averages: floating types scale each own input by 1/n
// rounded to the type before it is added, as NCCL's pre-multiplied sum does; integers are added
// first and divided at the end, towards zero.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/plan.h"
#include "sim/zeroed_memory.h"

namespace windtunnel {

/// The buffers of all ranks as raw bytes of the request's type: `InputCount` and `OutputCount`
/// elements. Input and output of a rank may be one memory where the call allows it (in place).
struct RankBuffers {
  std::vector<ZeroedMemory> memory;  ///< What the spans point into, when we own it.
  std::vector<std::span<std::byte>> input;
  std::vector<std::span<std::byte>> output;
};

/// Allocates buffers, for an in-place request with NCCL's offsets: all_gather and gather read at
/// output + rank * count, reduce_scatter and scatter write at input + rank * count, others have
/// input = output.
/// @throws ConfigError when the type is not supported (fp8), or the call has no in-place form
/// (alltoall, alltoallv, sendrecv).
RankBuffers MakeBuffers(const CollectiveRequest& request);

/// @throws ConfigError naming the rank when a buffer has the wrong size or input and output overlap
/// in another way than the in-place form of the call.
void CheckBuffers(const CollectiveRequest& request, const RankBuffers& buffers);

/// In which order ready blocks run. Results of a correct plan do not depend on it.
enum class BlockOrder : std::uint8_t { kOldestFirst, kNewestFirst };

struct FunctionalOptions {
  /// Messages a sender may be ahead of the receiver on one connection. NCCL: 8 steps.
  std::uint32_t slots = 8;
  BlockOrder order = BlockOrder::kOldestFirst;
};

struct FunctionalResult {
  std::uint64_t elements_sent = 0;  ///< Over all connections; switch groups count per member.
  std::vector<std::uint64_t> sent_per_rank;
  std::uint64_t ops = 0;
  std::uint32_t steps = 0;  ///< Highest step + 1.
};

/// Moves the data.
/// @throws SimulationError with ranks, op, connection when the plan deadlocks or the ends of a
/// connection do not match; ConfigError as CheckBuffers.
FunctionalResult RunFunctional(const Plan& plan, RankBuffers& buffers,
                               const FunctionalOptions& options = {});

/// Only counts: bytes, ops, steps, and that the plan ends. Errors as RunFunctional.
FunctionalResult RunCounting(const Plan& plan, const FunctionalOptions& options = {});

/// Proof by symbols: every output element holds exactly the contributions its collective defines,
/// each once. Returns empty when proved, else what is wrong first: step, chunk, rank. `chunk_count`
/// elements are named as one chunk. A plan that deadlocks or reads what nobody wrote is answered
/// with that.
std::string ProveCorrect(const Plan& plan, std::uint64_t chunk_count = 1);

/// Fills inputs with the deterministic pattern the check of `-c 1` uses (small integers whose sums
/// and products are exact in every type). In place the pattern lies where the call reads.
void FillInputs(const CollectiveRequest& request, RankBuffers& buffers);
/// The number of wrong elements of the outputs after FillInputs and the call. Exact, except for
/// averages of floating types: within n units in the last place.
std::uint64_t CountWrong(const CollectiveRequest& request, const RankBuffers& buffers);

}  // namespace windtunnel
