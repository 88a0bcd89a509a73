#pragma once

#include <memory>
#include <string>

#include "validate/board_decisions.h"

namespace windtunnel::validate {

/// NCCL's planner on what its search finds on the real topology, where the run's topology can be
/// loaded and its ranks fit; else on the usual graph of the board.
class TopologyDecisions final : public BoardDecisions {
 public:
  TopologyDecisions();
  ~TopologyDecisions() override;
  std::string name() const override {
    return "NCCL's search and planner on the topology; without a topology that fits, on the usual "
           "graph of the board";
  }

 protected:
  nccl::Job JobOf(const Platform& platform, const MeasuredRun& run,
                  const nccl::NcclVersion& version,
                  const nccl::Environment& environment) const override;
};

}  // namespace windtunnel::validate
