#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace windtunnel::nccl {

/// How many recorded fields of one kind ("graphs", "paths", "rings", ...) a model gives equally.
struct FieldCount {
  /// Differences kept as text; `differ` counts all.
  static constexpr std::size_t kKept = 20;

  std::string kind;
  std::uint64_t agree = 0;
  std::uint64_t differ = 0;
  std::vector<std::string> first_differences;  ///< "CASE FIELD: expected E, got G"; at most kKept.

  void Agree(std::uint64_t count = 1) { agree += count; }
  void Differ(const std::string& where, const std::string& expected, const std::string& got) {
    ++differ;
    if (first_differences.size() < kKept) {
      first_differences.push_back(where + ": expected " + expected + ", got " + got);
    }
  }
};

}  // namespace windtunnel::nccl
