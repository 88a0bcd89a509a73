#pragma once
// NCCL's own decisions, laid out for plans.

#include <memory>

#include "collectives/decision.h"
#include "collectives/nccl/communicator.h"

namespace windtunnel {

class NcclDecisions final : public DecisionMaker {
 public:
  explicit NcclDecisions(nccl::Communicator communicator)
      : communicator_(std::move(communicator)) {}
  CallDecision Decide(const CollectiveRequest& request) override;
  const nccl::Communicator& communicator() const { return communicator_; }

 private:
  CallDecision DecideCollective(const CollectiveRequest& request);
  CallDecision DecidePointToPoint(const CollectiveRequest& request);
  struct Messages {
    std::uint32_t channels = 1;  ///< Towards one peer.
    bool ll = true;              ///< All of them.
    std::int64_t chunk = 0;      ///< Bytes.
  };
  Messages PlanMessages(std::span<const nccl::P2pCall> calls) const;
  ChannelLayout::Channel Channel(int channel, bool with_tree) const;
  std::vector<JobPaths::NicPair> NicsOfChannel(nccl::GraphId graph, int channel) const;

  nccl::Communicator communicator_;
};

}  // namespace windtunnel
