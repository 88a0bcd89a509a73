#pragma once

#include "validate/decision_source.h"

namespace windtunnel::validate {

/// NCCL's rules of choice on the usual graph of a board: ring, tree and NVLS channels and rates as
/// the search finds them on undisturbed machines of the class, tuning tables by version, channel
/// and thread reduction, work split and chunk sizes. For runs without a topology file. Not
/// modelled: search on the real topology (missing NICs, flattened VMs), CollNet, tuner plugins,
/// groups of calls, fp8. Honours NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE, NCCL_TREE_THRESHOLD.
class BoardDecisions final : public DecisionSource {
 public:
  std::string name() const override {
    return "NCCL's rules on the usual graph of the board (no topology search)";
  }
  Decision Decide(const Platform& platform, const MeasuredRun& run, Bytes size) const override;
};

}  // namespace windtunnel::validate
