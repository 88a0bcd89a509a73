#pragma once
// A schedule that a user brings: an MSCCL algorithm (XML) or an MSCCL++ execution plan (JSON), told
// apart by the first character.

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include "collectives/msccl/msccl_xml.h"
#include "collectives/msccl/mscclpp_json.h"
#include "collectives/plan.h"

namespace windtunnel {

/// Immutable.
class ScheduleFile {
 public:
  /// @throws ConfigError as the readers of the two formats.
  explicit ScheduleFile(const std::filesystem::path& file);

  const std::string& file() const { return file_; }
  /// Elements (NCCL's meaning of count) must be a multiple of this: one element per chunk.
  std::uint64_t smallest_count() const;
  /// @throws ConfigError when `count` is no multiple of `smallest_count`; `op` counts for MSCCL
  /// only.
  Plan MakePlan(std::uint64_t count, DataType type = DataType::kFloat,
                ReduceOp op = ReduceOp::kSum) const;
  /// Empty when the schedule computes its collective, else what is wrong first.
  std::string Prove() const;

 private:
  std::string file_;
  std::variant<msccl::Program, mscclpp::ExecutionPlan> content_;
};

}  // namespace windtunnel
