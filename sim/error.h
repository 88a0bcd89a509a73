#pragma once
// The three ways to fail: the user's input is wrong (ConfigError, exit 1), the simulated job failed
// (SimulationError, exit 2), our code is wrong (InternalError, exit 3).

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// What is wrong with an input, and where. Empty parts are left out of the message.
struct InputFault {
  std::string file;        ///< Path as the user gave it.
  std::uint64_t line = 0;  ///< 1-based; 0 = not known.
  std::string field;       ///< Path of the field: "links[3].rate", "--ranks", "<gpu dev=...>".
  std::string value;       ///< The offending text; cut to 80 characters when printed.
  std::string problem;     ///< What is wrong: "unknown key", "is not a rate".
  std::string expected;    ///< What is allowed: "a number with B/s, GB/s, GiB/s, Gb/s or Gbit/s".
  std::string nearest;     ///< Nearest known name, when there is one.
};

/// "file:line: field: problem 'value'; expected ...; did you mean '...'?"
std::string FormatFault(const InputFault& fault);

class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(InputFault fault)
      : std::runtime_error(FormatFault(fault)), fault_(std::move(fault)) {}
  const InputFault& fault() const { return fault_; }

 private:
  InputFault fault_;
};

/// The simulated job failed: deadlock, time-out, out of memory, lost worker. The text is the
/// diagnosis.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A check of ours did not hold.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The entry of `known` nearest to `name` by edit distance (case folded), or "" when none is near
/// enough (distance above a third of the length, at least 1, at most 4).
std::string NearestName(std::string_view name, std::span<const std::string> known);
std::string NearestName(std::string_view name, const std::vector<std::string>& known);
/// "a, b, c"
std::string JoinNames(std::span<const std::string> names, std::string_view separator = ", ");

}  // namespace windtunnel
