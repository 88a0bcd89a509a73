#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/timing/constants.h"
#include "validate/decision_source.h"
#include "validate/fidelity.h"
#include "validate/report.h"

namespace windtunnel {

/// The flags of `windtunnel validate`, checked.
struct ValidateOptions {
  std::string set;                        ///< A shipped set; empty: all.
  std::string data;                       ///< Folder of run files; empty: shipped.
  std::string log;                        ///< One log; empty: a set.
  std::string topology;                   ///< -t, with --log.
  std::string collective;                 ///< --op, with --log.
  std::string version;                    ///< --nccl, with --log.
  std::string json, csv, html;            ///< Files; "-" is stdout, empty: none.
  std::string baseline;                   ///< File to compare with.
  std::string write_baseline;             ///< File to write.
  double tolerance = 0.03;                ///< Of --baseline, fraction.
  std::optional<double> require_plateau;  ///< Fraction.
  double ulp = 4;                         ///< Of sums in a switch, for values of a log.
  /// "--fidelity": flow and packet run the plans; without a value the closed forms alone.
  std::optional<validate::FidelityOptions> levels;
  bool diagnose = false;
  bool leave_out = false;  ///< On by default for the whole shipped set.
  bool markdown = false;
  bool require_goals = false;
  bool search_topology = false;
  unsigned threads = 0;  ///< 0: one per core.
  std::string gpu_constants, fabric_constants;
  validate::ReportOptions report;

  /// stdout belongs to a file for machines.
  bool stdout_taken() const {
    return json == "-" || csv == "-" || html == "-" || write_baseline == "-";
  }
};

/// @throws ConfigError for unknown flags and for flags that exclude each other.
ValidateOptions ParseValidateOptions(const std::vector<std::string>& arguments);

/// The shipped constants, or those of the files that the options name.
class ChosenConstants {
 public:
  explicit ChosenConstants(const ValidateOptions& options);
  const timing::TimingConstants& get() const {
    return own_ ? *own_ : timing::TimingConstants::Shipped();
  }

 private:
  std::optional<timing::TimingConstants> own_;
};

std::unique_ptr<validate::DecisionSource> ChosenDecisions(const ValidateOptions& options);

}  // namespace windtunnel
