#pragma once
// Which fault explains a measured curve: every fault of validate/faults.h predicts its curve, the
// curves are compared with the measured one, the causes ranked.

#include <functional>
#include <string>
#include <vector>

#include "collectives/timing/constants.h"
#include "validate/decision_source.h"
#include "validate/run.h"

namespace windtunnel::validate {

/// One cause at the setting that fits best.
struct Explanation {
  std::string fault, setting, meaning, check;
  /// By row of the run; for stalls the healthy prediction, of which some sizes are late.
  std::vector<double> predicted_us;
  double median_error = 0;  ///< Median of |predicted/measured - 1|.
  double score = 0;         ///< Nats per run, larger is better: fit plus plausibility.
  double weight = 0;        ///< Share among all causes, adds up to 1. No probability: see Diagnose.
  bool statistical = false;
  /// Other causes whose curves are within 5 % of this one everywhere: no timing tells them apart.
  std::vector<std::string> same_curve;
};

/// Where the measured curve leaves the healthy one.
struct Evidence {
  double latency_factor = 1;  ///< Measured over healthy, median up to 4 KiB (or smallest size).
  double plateau_factor = 1;  ///< The same at the three largest sizes.
  double worst_factor = 1;
  std::uint64_t worst_bytes = 0;
  double scatter = 1;  ///< Typical factor between a row and the line between its neighbours.
  std::uint64_t break_bytes = 0;   ///< First size from which the rest is off by 1.5; 0: none.
  bool break_at_protocol = false;  ///< The decision changes at that size.
  bool has_small = false;          ///< There are rows up to 4 KiB.
  std::string text;                ///< In words: "transport: latency x 2.1 and plateau x 4.3".
};

struct Diagnosis {
  std::string run;
  std::string label;    ///< Fault label of the run file.
  std::string why_not;  ///< Not mapped: nothing else is filled.
  std::string platform;
  std::vector<std::uint64_t> bytes;
  std::vector<double> measured_us, healthy_us;
  Evidence evidence;
  std::vector<Explanation> causes;  ///< Best first; "healthy" is among them.
  /// Place of the labelled cause, 1 first; 0: no label, or not among the causes.
  std::size_t place_of_label() const;
};

/// Each error e = ln(measured / predicted) has the density of a Laplace distribution as wide as the
/// model's own error (0.10 within a node, 0.18 over InfiniBand and RoCE, 0.25 over others), with
/// 3 % of rows anything. Rows of one run are not independent: together they count as at most 8.
/// Plausibility and one half ln 8 per chosen setting are added, best setting per fault kept.
/// Stalls are judged by scatter: at both ends the error is the model's own, between them any delay
/// up to a factor of 100 is as likely as another.
Diagnosis Diagnose(const MeasuredRun& run, const DecisionSource& decisions,
                   const timing::TimingConstants& constants);

/// All of `runs`, over threads (0: one per core); the order is that of `runs`.
std::vector<Diagnosis> DiagnoseAll(const std::vector<MeasuredRun>& runs,
                                   const DecisionSource& decisions,
                                   const timing::TimingConstants& constants, unsigned threads,
                                   const std::function<void(std::size_t)>& progress = {});

/// For people, one run: evidence, ranking, curve, what to check.
std::string TextDiagnosis(const Diagnosis& diagnosis);
/// For people, a set: a line per faulty run with the place of its label, counts, false alarms of
/// the healthy ones.
std::string TextDiagnoses(const std::vector<Diagnosis>& diagnoses,
                          const std::vector<MeasuredRun>& runs);
/// For machines: everything, every cause with its curve.
std::string JsonDiagnoses(const std::vector<Diagnosis>& diagnoses);

}  // namespace windtunnel::validate
