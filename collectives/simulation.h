#pragma once
// A job on a simulated cluster: topology, ranks, NCCL's decisions, one network. Runs calls and says
// why they take as long as they do.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/functional.h"
#include "collectives/msccl/schedule_file.h"
#include "collectives/plan.h"
#include "collectives/timed_executor.h"
#include "interconnect/cluster.h"
#include "interconnect/link_load_report.h"
#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/nccl_version.h"
#include "interconnect/network.h"
#include "interconnect/packet_engine.h"
#include "interconnect/route_choice.h"

namespace windtunnel {

enum class Fidelity : std::uint8_t { kPacket, kFlow, kAnalytic };
inline constexpr std::string_view kFidelityNames[] = {"packet", "flow", "analytic"};
std::string_view Name(Fidelity fidelity);

struct SimulationOptions {
  Fidelity fidelity = Fidelity::kPacket;
  std::vector<std::uint32_t> gpus;  ///< GPU numbers of the cluster, rank 0 first; empty = all.
  std::string algorithm;            ///< "ring", "tree", ...; empty = what NCCL chooses.
  std::string protocol;             ///< "LL", "LL128", "Simple"; empty = what NCCL chooses.
  /// A schedule brought by the user, in place of any algorithm.
  std::shared_ptr<const ScheduleFile> schedule;
  std::uint32_t channels = 0;  ///< 0 = what NCCL uses.
  std::uint32_t gpus_per_thread =
      1;                         ///< GPUs that one host thread launches in turn (nccl-tests -g).
  bool ideal_endpoints = false;  ///< Launch, blocks and software cost nothing: only links count.
  /// Ranks as a torus, first side fastest, for the algorithm of that name; empty: as the network is
  /// joined.
  std::vector<std::uint32_t> sides;
  /// Flow level: simulate one rank for all where they are proved to be alike.
  bool fold_symmetry = true;
  /// Flow level: rates change at once however many flows share (FlowNetwork::Options::many_flows).
  bool exact_rates = false;
  std::uint64_t seed = 1;
  /// Which of equally good routes a connection takes.
  RoutePolicy routing = RoutePolicy::kAdaptive;
  /// Packet level: KEY=VALUE,... as interconnect/packet_options.h reads them.
  std::string network;
  nccl::NcclVersion version = nccl::kDefaultNcclVersion;
  nccl::Environment environment;
};

/// A share of a call's time.
struct TimeShare {
  std::string cause;  ///< "launch", "hop latency", "block work", "link", ...
  Picoseconds time;
};

struct CallOutcome {
  Picoseconds time;       ///< One call, in steady state of back-to-back calls.
  std::string algorithm;  ///< As NCCL prints it.
  Protocol protocol = Protocol::kSimple;
  std::uint32_t channels = 0;  ///< Used by this call.
  Bytes chunk;
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  /// Where the time of the last rank went; adds up to `time` up to rounding.
  std::vector<TimeShare> shares;
  std::string bound;        ///< What limits: "link node0/gpu0 -> node0/nvswitch0", "hop latency",
                            ///< "launch", "reduction rate", ...
  Picoseconds ideal;        ///< Lower bound over links: max of payload bytes / raw rate.
  LinkLoadReport links;     ///< Those that carried bytes, busiest first; wire time over `time`.
  std::string symmetry;     ///< Not empty when equal ranks were simulated once.
  std::string no_symmetry;  ///< Why not, where it was tried.
  std::string notice;       ///< "ring taken: NVLS does not apply to int8 sums"
};

/// A connection and the way it took.
struct FlowUse {
  ConnectionUse use;
  std::optional<DeviceId> nic_out, nic_in;  ///< Nothing inside a node.
};

/// Who watches a run, packet and flow level.
struct RunObservers {
  /// Every slice of every block.
  std::function<void(const Plan&, const TimedSpan&)> on_span;
  /// Every occupation of a wire; packet level only.
  WireObserver* wires = nullptr;
  /// Filled with what each connection carried; every rank is then simulated.
  std::vector<FlowUse>* flows = nullptr;
};

class Simulation {
 public:
  /// @throws ConfigError: unknown ranks, two ranks on one GPU, disconnected parts (components
  /// listed), unknown algorithm...
  Simulation(Cluster cluster, SimulationOptions options);
  ~Simulation();

  std::uint32_t rank_count() const;
  const Cluster& cluster() const;
  /// GPU of each rank.
  const std::vector<DeviceId>& gpus() const;
  /// Lines worth telling once: NCCL version and tables used, completed defaults, variables not
  /// modelled.
  const std::vector<std::string>& notes() const;

  /// What NCCL would log of this job: rings, trees, channels, tuning table. Empty when NCCL does
  /// not decide.
  std::vector<std::string> DecisionLines() const;

  /// The plan that a call would run.
  Plan PlanOf(const CollectiveRequest& request) const;
  /// Simulates one call.
  CallOutcome Run(const CollectiveRequest& request, const RunObservers& observers = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windtunnel
