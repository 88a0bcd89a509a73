#pragma once
// From NCCL's decision, as the planner gives it, to the facts that the closed forms of time read.

#include <vector>

#include "collectives/nccl/communicator.h"
#include "collectives/timing/call_facts.h"

namespace windtunnel::timing {

/// Sets algorithm, protocol, channels, threads, chunk, fullest channel and heads of `facts` from a
/// plan of `communicator`. CollNet counts as NVLSTree: both reduce in switches and are bound by
/// the NICs; no run of CollNet was available to tell them apart.
void ApplyPlan(const nccl::Communicator& communicator, const nccl::CallPlan& plan,
               CallFacts& facts);

/// The same for what IsPointToPoint names but a hypercube, of `facts.size` (nccl-tests' sizes):
/// plans the messages of one rank, of the root where there is one, at their mean size, and takes
/// those to its busiest kind of peer.
void ApplyPointToPoint(const nccl::Communicator& communicator, CallFacts& facts);

/// The rounds of a hypercube of `facts.size` (gathered) as sendrecv calls, one behind the other. A
/// round lies inside nodes where all its pairs do.
std::vector<CallFacts> RoundsOfHypercube(const nccl::Communicator& communicator,
                                         const CallFacts& facts);

}  // namespace windtunnel::timing
