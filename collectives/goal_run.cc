#include "collectives/goal_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "collectives/paths_of_job.h"
#include "collectives/timed_executor.h"
#include "interconnect/flow_network.h"
#include "interconnect/packet_network.h"
#include "interconnect/packet_options.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

/// No software but what the schedule says: `calc` as overhead of its block, `overhead` per message.
class GoalSetting final : public ExecutionSetting {
 public:
  GoalSetting(const GoalSchedule& schedule, const Cluster& cluster, std::vector<DeviceId> gpus,
              Network& network, const GoalRunOptions& options)
      : schedule_(schedule),
        network_(network),
        paths_(cluster, std::move(gpus), {.routing = options.routing, .seed = options.seed}),
        cluster_(cluster),
        overhead_(options.overhead) {
    times_.reserve(schedule.work.size());
    for (std::size_t b = 0; b < schedule.work.size(); ++b) {
      const PlanOp op = schedule.plan.blocks[b].program->At(0);
      BlockTimes& times = times_.emplace_back();
      times.empty_slice_overhead = schedule.work[b];
      if (!op.receive_from.empty())
        times.slice_overhead = times.empty_slice_overhead = options.overhead;
    }
  }
  ConnectionPath PathOf(const Block& sender, const Peer& to) override {
    ConnectionPath path;
    if (sender.rank == to.rank) {
      path.local = true;
      return path;
    }
    const std::span<const LinkId> route = paths_.RouteOf(paths_.Between(sender.rank, to.rank, {}));
    path.route = network_.AddRoute({route.begin(), route.end()});
    path.flight = cluster_.Latency(route);
    path.post = overhead_;  // Before the wire sees the message.
    return path;
  }
  GroupPath GroupOf(GroupKind, Rank, std::span<const Peer>, std::uint32_t) override { return {}; }
  const BlockTimes& TimesOf(Rank, const Block& block) override {
    return times_[static_cast<std::size_t>(&block - schedule_.plan.blocks.data())];
  }
  SimTime StartOf(Rank) override { return SimTime(); }
  Picoseconds EndOf(Rank) override { return Picoseconds(0); }

 private:
  const GoalSchedule& schedule_;
  Network& network_;
  JobPaths paths_;
  const Cluster& cluster_;
  Picoseconds overhead_;
  std::vector<BlockTimes> times_;
};

std::vector<DeviceId> GpusOf(const GoalSchedule& schedule, const Cluster& cluster,
                             const std::vector<std::uint32_t>& numbers) {
  const auto all = cluster.gpus();
  std::vector<DeviceId> gpus;
  if (numbers.empty()) {
    gpus.assign(all.begin(), all.end());
  } else {
    for (const std::uint32_t number : numbers) {
      if (number >= all.size()) {
        throw ConfigError({.file = cluster.topology().source,
                           .field = "--ranks",
                           .value = fmt::to_string(number),
                           .problem = "there is no such GPU:",
                           .expected = fmt::format("GPU numbers 0 to {}", all.size() - 1)});
      }
      gpus.push_back(all[number]);
    }
  }
  const std::uint32_t ranks = schedule.plan.request.rank_count;
  if (gpus.size() != ranks) {
    throw ConfigError({.file = cluster.topology().source,
                       .field = "num_ranks",
                       .value = fmt::to_string(ranks),
                       .problem = fmt::format("the schedule's ranks are not the {} GPUs{}:",
                                              gpus.size(), numbers.empty() ? "" : " of --ranks"),
                       .expected = "as many GPUs as ranks; --ranks chooses among them"});
  }
  return gpus;
}

}  // namespace

GoalOutcome RunGoal(const GoalSchedule& schedule, const Cluster& cluster,
                    const GoalRunOptions& options) {
  std::vector<DeviceId> gpus = GpusOf(schedule, cluster, options.gpus);
  std::unique_ptr<Network> network;
  if (options.fidelity == Fidelity::kPacket) {
    PacketNetwork::Options packets = PacketOptionsOf(cluster.topology());
    packets.retry.seed = options.seed;
    ApplyPacketOptions(options.network, "--network", cluster.topology(), &packets);
    network = std::make_unique<PacketNetwork>(cluster.topology(), packets);
  } else {
    network = std::make_unique<FlowNetwork>(
        cluster, FlowNetwork::Options{.contention = options.fidelity == Fidelity::kFlow});
  }
  GoalSetting setting(schedule, cluster, std::move(gpus), *network, options);
  ExecutionResult result = RunTimed(schedule.plan, *network, setting);
  GoalOutcome outcome;
  outcome.time = result.time;
  outcome.rank_end = std::move(result.rank_end);
  outcome.messages = result.messages;
  outcome.events = result.events;
  for (const Block& block : schedule.plan.blocks) {
    const PlanOp op = block.program->At(0);
    if (!op.send_to.empty()) outcome.payload += Bytes(op.count);
  }
  const std::span<const LinkUse> use = network->link_use();
  if (options.fidelity == Fidelity::kAnalytic) {
    for (const LinkUse& link : use) outcome.time = std::max(outcome.time, link.busy);
  }
  outcome.links = BusiestLinks(cluster.topology(), use, outcome.time, use.size());
  return outcome;
}

}  // namespace windtunnel
