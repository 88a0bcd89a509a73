#pragma once
// What is commonly wrong with a machine or a job, each as a change of the facts that NCCL's rules
// and the closed forms of time read. A fault has no curve of its own: its curve is what the model
// makes of the changed facts.

#include <functional>
#include <string>
#include <vector>

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"
#include "validate/platform.h"
#include "validate/run.h"

namespace windtunnel::validate {

/// One fault at one setting ("NIC slot: PCIe 4.0 x4").
struct Fault {
  std::string name;     ///< "tcp-fallback"; "healthy" is one of them.
  std::string setting;  ///< What was chosen, for people; empty when there is nothing to choose.
  std::string meaning;  ///< One line: what is wrong.
  std::string check;    ///< What to look at next.
  /// Plausibility before the curve is seen, in nats: 0 for healthy, negative for the rest, a little
  /// less so where the run's own text speaks for it (a NIC picked by hand).
  double prior = 0;
  /// true: no curve is predicted for sizes between the ends; the scatter is judged (stalls).
  bool statistical = false;
  /// Changes the machine before NCCL decides: NICs, fabric, links, variables, launch.
  std::function<void(Platform&, MeasuredRun&)> machine;
  /// Changes one decided call and the constants of its fabric (unused within a node) before its
  /// time is computed.
  std::function<void(timing::CallFacts&, timing::FabricConstants&)> call;
};

/// All faults that could befall this machine and collective, all settings, healthy first. A fault
/// that cannot apply (network faults on one node, NVLS off where it never runs) is not in the list.
/// `healthy`: the decided calls of the run on the undisturbed machine.
std::vector<Fault> FaultsOf(const Platform& platform, const MeasuredRun& run,
                            const std::vector<timing::CallFacts>& healthy,
                            const timing::TimingConstants& constants);

/// The faults that a label of the run files stands for ("far-nic" is also told by a NIC in a slow
/// slot: no curve tells the two apart).
/// Empty for an unknown label.
std::vector<std::string> FaultsOfLabel(const std::string& label);

}  // namespace windtunnel::validate
