#pragma once
// From what a run says about its machine to what the models need to know.

#include <string>
#include <vector>

#include "collectives/timing/call_facts.h"
#include "collectives/timing/constants.h"
#include "validate/run.h"

namespace windtunnel::validate {

/// Groups whose goals differ.
enum class FabricGroup : std::uint8_t { kOneNode, kInfinibandRoce, kCloudTransport };

struct Platform {
  std::string topology;     ///< Name below topologies/ that fits the hardware.
  std::string name;         ///< Class and size, for tables: "h100 x 8", "a100 2 x 8 ib-hdr".
  timing::CallFacts facts;  ///< Ranks, nodes, classes, rates, launch; no decision, no size.
  FabricGroup group = FabricGroup::kOneNode;
  bool switched = true;          ///< NVSwitch; false: links between GPUs, or PCIe.
  bool nics_assumed = false;     ///< The run does not count its NICs: one per GPU or one per node.
  bool version_assumed = false;  ///< NCCL's version is not stated: the usual one of the date.
};

/// Maps a run by its hardware facts. A run that cannot be mapped gets a reason instead.
struct Mapping {
  bool mapped = false;
  std::string reason;
  Platform platform;
};
Mapping MapRun(const MeasuredRun& run,
               const timing::TimingConstants& constants = timing::TimingConstants::Shipped());

/// The board that `text` names, as its class lists it ("NVIDIA H200 141GB" is "H200"): the longest
/// entry of the class found in it; "" when none is.
std::string BoardOf(const std::string& text, const timing::GpuConstants& gpu);

/// The release that was usual at a date ("2021", "2024-03"): half a year old or less; the default
/// version without a date. Source: release dates of NCCL's tags.
nccl::NcclVersion UsualVersion(const std::string& date);

}  // namespace windtunnel::validate
