#pragma once
// What tests share: where the sources, the built program and the reference data lie.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel::testing {

std::filesystem::path SourceDir();
/// The folder of reference data beside the checkout ("../shared"), or nothing where it is not
/// there. Tests that need it skip with a message.
std::optional<std::filesystem::path> ReferenceDir();
std::string ReadFile(const std::filesystem::path& path);

struct ProgramResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};
/// Runs the built `windtunnel` with `args` in `directory`.
ProgramResult RunProgram(const std::vector<std::string>& args,
                         const std::filesystem::path& directory = {});
/// A fresh folder of this test, removed at the end of the process.
std::filesystem::path TemporaryDir();

}  // namespace windtunnel::testing

/// First line of a test that reads the reference data.
#define WT_REFERENCE_OR_SKIP(variable)                                                        \
  const auto variable##_optional = ::windtunnel::testing::ReferenceDir();                     \
  if (!variable##_optional) GTEST_SKIP() << "skipped: no reference data beside the checkout"; \
  const std::filesystem::path& variable = *variable##_optional
