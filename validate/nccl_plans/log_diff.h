#pragma once
// Our decisions against what a real NCCL printed of its own with NCCL_DEBUG=INFO.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/nccl/communicator.h"
#include "interconnect/nccl/nccl_version.h"

namespace windtunnel::nccl {

/// What a log tells of the job before anything is compared.
struct LogSetting {
  std::optional<NcclVersion> version;            ///< "NCCL version 2.28.9+cuda13.0".
  std::map<std::string, std::string> variables;  ///< "NCCL_ALGO set by environment to Ring"; those
                                                 ///< that name files are left out.
  int ranks = 0;  ///< Of the largest communicator; 0 when none is announced.
  /// A plugin that reduces in the network is loaded: "Loaded coll plugin SHARP", or adapters marked
  /// "/SHARP". Whether it is used is for NCCL_COLLNET_ENABLE to say.
  bool collnet_plugin = false;
  bool multicast_off = false;  ///< A GPU reports that NVLS multicast is not available.
};
/// @throws ConfigError when the text holds no line of NCCL_DEBUG=INFO.
LogSetting ReadLogSetting(std::string_view log, const std::string& name);

struct LogDiff {
  struct Count {
    std::uint64_t agree = 0, differ = 0;
  };
  struct Difference {
    std::uint64_t line = 0;  ///< 1-based.
    std::string kind;        ///< As in `kinds`.
    std::string where;       ///< "channel 3 of rank 2", "AllReduce Ring LL".
    std::string log, ours;
  };
  /// By kind: "search", "rank", "ring", "neighbours", "tree", "NVLS head", "threshold",
  /// "channel count", "threads", "tuning", "choice". Kinds the log does not print are absent.
  std::map<std::string, Count> kinds;
  std::vector<Difference> differences;  ///< In the order of the log.
  /// Lines of communicators with another number of ranks: not compared.
  std::uint64_t other_communicators = 0;

  std::uint64_t agree() const;
  std::uint64_t differ() const { return differences.size(); }
  bool AllAgree() const { return differences.empty() && agree() > 0; }
  /// One line per difference, then the counts by kind.
  std::string ToText() const;
};

/// Reads every line that states a decision and holds it against `comm`. A line belongs to the
/// communicator that its thread announced last; threads that announced none belong to `comm`.
/// Call lines carry no element type and no group: each is planned as a call of floats (of bytes
/// where the size is no multiple of 4) on an idle communicator. Trees of releases before 2.8 have
/// another form and stay unread.
/// @throws ConfigError when no line can be compared, with the rank counts the log announces.
LogDiff DiffLog(std::string_view log, const std::string& name, const Communicator& comm);

}  // namespace windtunnel::nccl
