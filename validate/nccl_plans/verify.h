#pragma once
// Our decisions against recorded ones of NCCL, over all versions of a data folder.

#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interconnect/nccl/nccl_version.h"
#include "validate/nccl_plans/field_count.h"

namespace windtunnel::nccl {

struct VerifyOptions {
  std::filesystem::path data;  ///< Folder with nccl-VERSION/CASE.json and topo/.
  std::optional<NcclVersion> version;
  std::string kind;         ///< Report this kind only; empty: all.
  std::string case_filter;  ///< Only cases whose name contains this.
  /// Feed stages 5 to 7 with the recorded search in place of our own: tells where a difference
  /// begins.
  bool from_recorded_search = false;
};

struct VerifyReport {
  struct Version {
    NcclVersion version;
    std::size_t cases = 0;
    std::vector<FieldCount> kinds;
  };
  std::vector<Version> versions;
  std::vector<std::string> failures;  ///< Cases that did not run, with the reason.

  std::uint64_t agree() const;
  std::uint64_t differ() const;
  bool AllAgree() const { return differ() == 0 && failures.empty(); }
  /// {"versions": {VERSION: {"cases": n, KIND: {"agree", "differ", "first_differences"}}},
  /// "failures": [...]}
  std::string ToJson() const;
  /// Table per version and kind, totals, first differences.
  std::string ToText() const;
};

/// @throws ConfigError when the folder holds no cases.
VerifyReport Verify(const VerifyOptions& options);

}  // namespace windtunnel::nccl
