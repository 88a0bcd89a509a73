#include "collectives/timing/call_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "sim/error.h"

namespace windtunnel::timing {
namespace {

constexpr std::array<std::pair<std::string_view, Function>, 15> kFunctionNames{{
    {"all_reduce", Function::kAllReduce},
    {"allreduce", Function::kAllReduce},
    {"all_gather", Function::kAllGather},
    {"allgather", Function::kAllGather},
    {"reduce_scatter", Function::kReduceScatter},
    {"reducescatter", Function::kReduceScatter},
    {"broadcast", Function::kBroadcast},
    {"bcast", Function::kBroadcast},
    {"reduce", Function::kReduce},
    {"alltoall", Function::kAllToAll},
    {"all_to_all", Function::kAllToAll},
    {"all-to-all", Function::kAllToAll},
    {"sendrecv", Function::kSendRecv},
    {"send_recv", Function::kSendRecv},
    {"permute", Function::kSendRecv},
}};

}  // namespace

std::string_view ToString(Algorithm algorithm) {
  constexpr std::array<std::string_view, 6> names{"Ring", "Tree", "NVLS", "NVLSTree", "PAT", "P2P"};
  return names[static_cast<std::size_t>(algorithm)];
}

Function ParseFunction(std::string_view text, const InputFault& where) {
  std::string folded;
  for (const char c : text)
    folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> known;
  for (const auto& [name, value] : kFunctionNames) {
    if (name == folded) return value;
    known.emplace_back(name);
  }
  InputFault fault = where;
  fault.value = std::string(text);
  fault.problem = "is no collective";
  fault.expected = "one of " + JoinNames(known);
  fault.nearest = NearestName(folded, known);
  throw ConfigError(std::move(fault));
}

std::string_view ToString(Cause cause) {
  constexpr std::array<std::string_view, 14> names{
      "host launch", "kernel",        "hops in the node", "thread blocks", "NVLink or PCIe",
      "NVLS",        "pipeline fill", "network hops",     "handshake",     "proxy",
      "NICs",        "fabric",        "peer set-up",      "own block"};
  return names[static_cast<std::size_t>(cause)];
}

void TimeBreakdown::Add(Cause cause, double us) {
  if (us == 0) return;
  for (Share& share : shares) {
    if (share.cause == cause) {
      share.us += us;
      return;
    }
  }
  shares.push_back({cause, us});
}

void TimeBreakdown::Add(const TimeBreakdown& next) {
  for (const Share& share : next.shares) Add(share.cause, share.us);
  extrapolated = extrapolated || next.extrapolated;
}

double TimeBreakdown::us() const {
  double sum = 0;
  for (const Share& share : shares) sum += share.us;
  return sum;
}

double TimeBreakdown::us(Cause cause) const {
  for (const Share& share : shares)
    if (share.cause == cause) return share.us;
  return 0;
}

Cause TimeBreakdown::bound() const {
  const auto largest = std::max_element(shares.begin(), shares.end(),
                                        [](const Share& a, const Share& b) { return a.us < b.us; });
  return largest == shares.end() ? Cause::kKernel : largest->cause;
}

bool IsPointToPoint(Function function) {
  switch (function) {
    case Function::kAllToAll:
    case Function::kAllToAllV:
    case Function::kGather:
    case Function::kScatter:
    case Function::kSendRecv:
    case Function::kHypercube:
      return true;
    default:
      return false;
  }
}

}  // namespace windtunnel::timing
