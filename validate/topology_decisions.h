#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

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
  /// Platforms that were decided on the usual graph of the board, with the reason.
  std::vector<std::string> notes() const override;

 protected:
  nccl::Job JobOf(const Platform& platform, const MeasuredRun& run,
                  const nccl::NcclVersion& version,
                  const nccl::Environment& environment) const override;

 private:
  nccl::Job OnBoard(const Platform& platform, const MeasuredRun& run,
                    const nccl::NcclVersion& version, const nccl::Environment& environment,
                    const std::string& why) const;

  mutable std::mutex mutex_;
  mutable std::set<std::string> notes_;
};

}  // namespace windtunnel::validate
