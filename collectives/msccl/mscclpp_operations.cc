#include "collectives/msccl/mscclpp_operations.h"

#include <algorithm>
#include <array>

namespace windtunnel::mscclpp {
namespace {

using Kind = OperationKind;

// Source: getOpType in src/core/executor/execution_plan.cc and the handlers of
// src/include/execution_kernel.hpp, microsoft/mscclpp. A reduction on packets reads its first
// source plain and the further ones as packets; its first destination is plain.
constexpr std::array<OperationForm, 30> kForms = {{
    {.name = "nop"},
    {.name = "flush"},
    {.name = "barrier", .kind = Kind::kBarrier},
    {.name = "signal", .kind = Kind::kSignal, .needs_channels = true, .signals = true},
    {.name = "rlxsignal", .kind = Kind::kSignal, .needs_channels = true, .signals = true},
    {.name = "wait", .kind = Kind::kWait, .needs_channels = true},
    {.name = "rlxwait", .kind = Kind::kWait, .needs_channels = true},
    {.name = "put", .kind = Kind::kMove},
    {.name = "pws", .kind = Kind::kMove, .signals = true},
    {.name = "pwsf", .kind = Kind::kMove, .signals = true},
    {.name = "get", .kind = Kind::kMove},
    {.name = "copy", .kind = Kind::kMove},
    {.name = "ppkt", .kind = Kind::kMove, .all_packets = true},
    {.name = "rppkt", .kind = Kind::kMove, .first_is_packets = true, .all_packets = true},
    {.name = "cpkt", .kind = Kind::kMove, .all_packets = true},
    {.name = "upkt", .kind = Kind::kMove, .first_is_packets = true},
    {.name = "re", .kind = Kind::kCombine},
    {.name = "res", .kind = Kind::kCombine},
    {.name = "rre", .kind = Kind::kCombine},
    {.name = "rres", .kind = Kind::kCombine},
    {.name = "repkt", .kind = Kind::kCombine, .others_are_packets = true},
    {.name = "respkt", .kind = Kind::kCombine, .others_are_packets = true, .sends_packets = true},
    {.name = "recpkt", .kind = Kind::kCombine, .others_are_packets = true, .sends_packets = true},
    {.name = "recspkt", .kind = Kind::kCombine, .others_are_packets = true, .sends_packets = true},
    {.name = "glres", .kind = Kind::kSwitchReduceStore},
    {.name = "gstore", .kind = Kind::kSwitchStore},
    {.name = "gstorepkt", .refusal = "packets do not pass the switch model"},
    {.name = "pipeline", .refusal = "it loops over units of bytes, and plans know only chunks"},
    {.name = "sem_acquire", .refusal = "semaphores order blocks by who comes first"},
    {.name = "sem_release", .refusal = "semaphores order blocks by who comes first"},
}};

}  // namespace

const OperationForm* FindForm(std::string_view name) {
  const auto* found = std::find_if(kForms.begin(), kForms.end(),
                                   [&](const OperationForm& form) { return form.name == name; });
  return found == kForms.end() ? nullptr : found;
}

const std::vector<std::string>& OperationNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OperationForm& form : kForms) all.emplace_back(form.name);
    return all;
  }();
  return names;
}

}  // namespace windtunnel::mscclpp
