#pragma once
// The operations of MSCCL++ execution plans and how they move data.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel::mscclpp {

enum class OperationKind : std::uint8_t {
  kNothing,  ///< Orders threads of one block, or waits for sends to leave: no effect on data here.
  kSignal,
  kWait,
  kBarrier,
  kMove,     ///< Source i to destination i; one of both may be on another rank.
  kCombine,  ///< All sources added, the sum to all destinations.
  kSwitchReduceStore,
  kSwitchStore,
};

struct OperationForm {
  std::string_view name;
  OperationKind kind = OperationKind::kNothing;
  bool needs_channels = false;
  bool signals = false;             ///< Signals on its channels once the data are sent.
  bool first_is_packets = false;    ///< The first source is read as packets.
  bool others_are_packets = false;  ///< So are the further ones.
  bool sends_packets = false;       ///< Destinations beyond a first local one are packets.
  bool all_packets = false;         ///< Every destination is.
  std::string_view refusal;         ///< Why it has no counterpart; empty = it has one.
};

/// Null when the name is not known.
const OperationForm* FindForm(std::string_view name);
const std::vector<std::string>& OperationNames();

}  // namespace windtunnel::mscclpp
