#pragma once
// How one call will run: algorithm, protocol, channels, chunks, laid over the ranks. Made by NCCL's
// own rules, or by the flags of the user.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/paths_of_job.h"
#include "sim/units.h"

namespace windtunnel {

struct CallDecision {
  std::string algorithm;  ///< Of the registry: "Ring", "NVLS", "RecursiveDoubling".
  ChannelLayout layout;
  std::uint32_t threads = 512;  ///< Per block.
  std::uint32_t channels = 1;   ///< Really used.
  Bytes chunk;                  ///< What one hop moves at most per loop.
  Bytes channel_bytes;  ///< Of the fullest channel; all_gather, reduce_scatter: of one rank's part.
  std::uint32_t peer_parts = 1;  ///< Point-to-point: channels towards one peer.
  double estimate_us = 0;        ///< The decision maker's own estimate; 0 = it has none.
  /// NICs (number on their node) of a call over several nodes, [channel of the layout][node of the
  /// layout]; empty = the nearest of each GPU.
  std::vector<std::vector<JobPaths::NicPair>> nics;
  std::string notice;  ///< Why it is not what was asked for.
};

class DecisionMaker {
 public:
  virtual ~DecisionMaker() = default;
  virtual CallDecision Decide(const CollectiveRequest& request) = 0;
};

/// Decides without NCCL: the named algorithm on rings and trees in rank order. For algorithms that
/// NCCL does not have and for clusters it does not know.
class PlainDecisions final : public DecisionMaker {
 public:
  struct Options {
    std::string algorithm = "Ring";
    Protocol protocol = Protocol::kSimple;
    std::uint32_t channels = 1;
    Bytes chunk;  ///< 0 = the whole part of a step: no pipelining inside it.
    std::vector<std::vector<Rank>> nodes;
    std::vector<std::uint32_t> sides;  ///< As in ChannelLayout.
  };
  explicit PlainDecisions(Options options) : options_(std::move(options)) {}
  CallDecision Decide(const CollectiveRequest& request) override;

 private:
  Options options_;
};

}  // namespace windtunnel
