#pragma once

#include <string>
#include <vector>

#include "collectives/timing/call_facts.h"
#include "sim/units.h"
#include "validate/platform.h"
#include "validate/run.h"

namespace windtunnel::validate {

/// What NCCL decides for one call, and what its own table says the call takes.
struct Decision {
  timing::CallFacts facts;      ///< The platform's facts with size and decision filled in.
  double nccl_estimate_us = 0;  ///< 0: NCCL has no estimate (send, receive, all-to-all).
};

/// Who decides algorithm, protocol, channels and chunks of a call. Implementations are immutable
/// and may be shared by threads.
class DecisionSource {
 public:
  virtual ~DecisionSource() = default;
  /// For the head of a report: where the decisions come from.
  virtual std::string name() const = 0;
  /// What was decided otherwise than `name` says, one line each, sorted; known after the calls.
  virtual std::vector<std::string> notes() const { return {}; }
  /// @throws ConfigError when the platform is not known to the source.
  virtual Decision Decide(const Platform& platform, const MeasuredRun& run, Bytes size) const = 0;
};

}  // namespace windtunnel::validate
