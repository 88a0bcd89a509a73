#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel::nccl {

/// NCCL's variables as one job sees them: an explicit value object, so that nothing below apps/
/// reads the process environment.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {}
  /// All NCCL_* variables of this process.
  static Environment FromProcess();

  void Set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }
  std::optional<std::string> Get(const std::string& name) const;
  /// As NCCL reads integers: base taken from the text, nothing when unset or empty. @throws
  /// ConfigError naming the variable when it is no integer.
  std::optional<std::int64_t> GetInt(const std::string& name) const;
  std::int64_t GetInt(const std::string& name, std::int64_t otherwise) const {
    return GetInt(name).value_or(otherwise);
  }
  const std::map<std::string, std::string>& variables() const { return variables_; }
  /// Variables that are set and that no part of the model reads: each is worth a warning.
  std::vector<std::string> NotModelled() const;

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace windtunnel::nccl
