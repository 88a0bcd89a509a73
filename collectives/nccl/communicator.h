#pragma once
// A communicator as NCCL would set it up, and what it decides for each call: the facade of stages 5
// to 7. Immutable, pure, thread-safe for reading.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/nccl/connect.h"
#include "collectives/nccl/constants.h"
#include "collectives/nccl/enqueue.h"
#include "collectives/nccl/job.h"
#include "collectives/nccl/p2p.h"
#include "collectives/nccl/tuning.h"
#include "interconnect/nccl/environment.h"
#include "interconnect/nccl/nccl_version.h"

namespace windtunnel::nccl {

class Communicator {
 public:
  /// Runs exchange, connection and tuning. Channels, rings and trees of all ranks are built here;
  /// cost grows with channels x ranks (1,024 nodes of 8 GPUs: well under a second).
  /// @throws ConfigError when the job does not fit together, a variable does not read, or the
  /// version is older than the tables.
  Communicator(Job job, NcclVersion version, Environment environment);

  const Job& job() const { return state_->job; }
  const NcclVersion& version() const { return state_->constants->version; }
  const Environment& environment() const { return state_->environment; }
  const Constants& constants() const { return *state_->constants; }
  /// Rings, trees, NVLS heads, channel counts, buffers, flags.
  const Connections& connections() const { return state_->connections; }
  const TuningTable& tuning() const { return state_->tuning; }
  int rank_count() const { return connections().rank_count(); }
  int node_count() const { return connections().node_count(); }

  /// NCCL's decision for one call on an idle communicator. A call of 0 elements, or with one rank,
  /// is planned as ring Simple without channels.
  /// @throws ConfigError when NCCL_ALGO and NCCL_PROTO leave nothing (NCCL: invalid usage).
  CallPlan Plan(const CollectiveCall& call) const;
  /// The calls of one group, in the order they are laid over the channels.
  GroupPlan PlanGroup(std::span<const CollectiveCall> calls) const;

  /// How data of `from` reaches `to`.
  LocalTransport TransportBetween(Rank from, Rank to) const;
  /// Channels of `plan` on which `rank` has a network connection to serve, with its work there;
  /// PAT: steps of the last partner.
  struct NetworkWork {
    int channel = 0;
    ProxyWork work;
  };
  std::vector<NetworkWork> NetworkWorkOf(const CallPlan& plan, Rank rank) const;

  /// Send and receive.
  std::vector<P2pRound> P2pSchedule(Rank rank) const;
  P2pPlan PlanP2p(Rank rank, std::span<const P2pCall> calls) const;

  /// The latency and bandwidth table in the form of NCCL's log (NCCL_DEBUG_SUBSYS=TUNING).
  std::vector<std::string> TuningLines() const;
  /// Rings, trees, channels and thresholds in the form of NCCL's log as `rank` prints them (INIT,
  /// GRAPH).
  std::vector<std::string> InitLines(Rank rank = 0) const;

 private:
  struct State {
    Job job;
    Environment environment;
    const Constants* constants = nullptr;
    Connections connections;
    TuningTable tuning;
    std::optional<TunerPlugin> tuner;
  };
  PlanningContext Context() const;
  std::shared_ptr<const State> state_;
};

}  // namespace windtunnel::nccl
