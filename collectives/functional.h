#pragma once
// Runs a plan without a clock: moves real elements, or symbols that say which ranks' contributions
// an element holds.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan.h"

namespace windtunnel {

/// The buffers of all ranks as raw bytes of the request's type. Input and output of a rank may be
/// one memory (in place).
struct RankBuffers {
  std::vector<std::vector<std::byte>> input;
  std::vector<std::vector<std::byte>> output;
};

struct FunctionalResult {
  std::uint64_t elements_sent = 0;  ///< Over all connections.
  std::vector<std::uint64_t> sent_per_rank;
  std::uint32_t steps = 0;  ///< Highest step + 1.
};

/// Moves the data. Additions happen in the type of the buffer, in the plan's order (switch
/// reduction: wider, rounded once).
/// @throws SimulationError with ranks, op, connection when the plan deadlocks or connections do not
/// match.
FunctionalResult RunFunctional(const Plan& plan, RankBuffers& buffers);

/// Proof by symbols: every output element holds exactly the contributions its collective defines,
/// each once. Returns empty when proved, else what is wrong first: step, chunk, rank.
std::string ProveCorrect(const Plan& plan);

/// Fills inputs with the deterministic pattern the check of `-c 1` uses (small integers, exact in
/// every type) and returns the number of wrong elements of outputs.
void FillInputs(const CollectiveRequest& request, RankBuffers& buffers);
std::uint64_t CountWrong(const CollectiveRequest& request, const RankBuffers& buffers);

}  // namespace windtunnel
