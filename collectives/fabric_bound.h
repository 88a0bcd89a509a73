#pragma once
// What the network between nodes adds to a closed form: the forms know a NIC's rate and nothing
// behind it.

#include <functional>
#include <map>
#include <tuple>

#include "collectives/decision.h"
#include "collectives/paths_of_job.h"
#include "collectives/plan.h"
#include "interconnect/even_load.h"

namespace windtunnel {

/// Time that the busiest link of the network needs for the data that a call moves from node to
/// node, spread evenly over all equal routes: no run takes less, and none with good balance much
/// more. Data by algorithm, S bytes of the call (LogicalBytes), n ranks, channels of equal shares:
/// ring 2 (n-1)/n S per hop for all_reduce, (n-1)/n S for all_gather and reduce_scatter, S else;
/// trees (NVLSTree, CollNet alike) S up and S down each edge; PAT the parts of its rounds; messages
/// between peers as they are. Rounds of a hypercube follow each other.
class FabricBound {
 public:
  using NicsFor = std::function<JobPaths::NicPair(Rank from, Rank to, std::uint32_t channel)>;
  struct Result {
    double us = 0;  ///< 0: the call does not use the network.
    LinkId busiest = 0;
  };
  FabricBound(const Cluster& cluster, const JobPaths& paths) : paths_(paths), load_(cluster) {}

  /// The answer for one function, algorithm and number of channels is kept, per byte: loads are
  /// proportional to the size.
  Result Of(const CollectiveRequest& request, const CallDecision& decision,
            const NicsFor& nics_for);

 private:
  Result PerByte(const CollectiveRequest& request, const CallDecision& decision,
                 const NicsFor& nics_for);
  void AddRings(const CollectiveRequest& request, const CallDecision& decision,
                const NicsFor& nics_for);
  void AddTrees(const CallDecision& decision, const NicsFor& nics_for);
  void AddAllPairs(const CallDecision& decision, const NicsFor& nics_for);
  void Add(Rank from, Rank to, std::uint32_t channel, double share, const NicsFor& nics_for);
  Result Take();

  const JobPaths& paths_;
  EvenLoad load_;
  std::map<std::tuple<Function, std::string, std::uint32_t, Rank>, Result> known_;
};

}  // namespace windtunnel
