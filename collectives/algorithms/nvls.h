#pragma once

#include "collectives/algorithm.h"

namespace windtunnel {

/// NCCL's NVLink SHARP on one node, for all_reduce, all_gather, reduce_scatter. Three blocks a rank
/// and channel: scatter copies own data into memory that the switch reaches, the head block lets
/// the switch add (or takes its own part) and multicasts, gather copies out. Staging is as large as
/// the message, so blocks run ahead further than NCCL's 8 steps allow. Registered user buffers,
/// which need no scatter and gather, are not modelled. Steps: one per loop of `heads` chunks. Bytes
/// per rank: all_reduce S up to the switch and 1/heads S more for the multicast. Order: ranks as
/// the switch sees them, ascending, in double precision, rounded once. Source: NVIDIA/nccl,
/// src/device/all_reduce.h, class RunWorkColl of NVLS.
class NvlsAlgorithm final : public Algorithm {
 public:
  std::string_view name() const override { return "NVLS"; }
  std::string WhyNot(const CollectiveRequest& request, const ChannelLayout& layout) const override;
  Plan MakePlan(const CollectiveRequest& request, const ChannelLayout& layout) const override;
};

}  // namespace windtunnel
