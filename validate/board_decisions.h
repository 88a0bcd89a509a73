#pragma once

#include <memory>
#include <string>

#include "collectives/nccl/job.h"
#include "collectives/types.h"
#include "interconnect/nccl/environment.h"
#include "validate/decision_source.h"

namespace windtunnel::validate {

/// The element type of a run, by the spellings of nccl-tests, run files and XLA; float when
/// unknown.
DataType DataTypeOf(const std::string& dtype);
/// The NCCL variables of a run, and those its platform ships with.
nccl::Environment EnvironmentOf(const Platform& platform, const MeasuredRun& run);

/// NCCL's own planning (tuning, choice, work split, by version) on the usual graph of a board:
/// channels and rates of ring, tree and NVLS as the search finds them on undisturbed machines of
/// the class. For runs without a topology file. Not modelled: what the search makes of the real
/// topology (missing NICs, flattened VMs, odd GPU orders), tuner plugins, groups of calls. Releases
/// before 2.10.3 are taken as 2.10.3, NCCL 1 as one ring.
class BoardDecisions : public DecisionSource {
 public:
  BoardDecisions();
  ~BoardDecisions() override;
  std::string name() const override {
    return "NCCL's planner on the usual graph of the board (no topology search)";
  }
  /// @throws ConfigError when NCCL_ALGO and NCCL_PROTO leave nothing to choose.
  Decision Decide(const Platform& platform, const MeasuredRun& run, Bytes size) const override;

 protected:
  /// The job of a run; asked once per platform, version and variables.
  virtual nccl::Job JobOf(const Platform& platform, const MeasuredRun& run,
                          const nccl::NcclVersion& version,
                          const nccl::Environment& environment) const;

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace windtunnel::validate
