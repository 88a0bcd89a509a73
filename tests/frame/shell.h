#pragma once
// Runs a command line of sh, for tests of what a user types.

#include <filesystem>
#include <string>

namespace windtunnel::testing {

struct ShellResult {
  int exit_code = -1;  ///< 128 + signal when it was killed.
  std::string output;  ///< stdout and stderr together.
};

/// Runs `command` with sh, stdin empty.
ShellResult Shell(const std::string& command);
/// `path` as one word of a command line.
std::string Quoted(const std::filesystem::path& path);

}  // namespace windtunnel::testing
