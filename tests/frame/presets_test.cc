// The presets that docs/development.md names: each configures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/frame/shell.h"
#include "tests/support/test_support.h"

namespace windtunnel::testing {
namespace {

class PresetTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PresetTest, Configures) {
  const ShellResult configure = Shell(
      Quoted(WINDTUNNEL_CMAKE) + " -S " + Quoted(SourceDir()) + " --preset " + GetParam() + " -B " +
      Quoted(TemporaryDir() / GetParam()) + " -DCMAKE_CXX_COMPILER=" + Quoted(WINDTUNNEL_CXX));
  EXPECT_EQ(configure.exit_code, 0) << configure.output;
}
INSTANTIATE_TEST_SUITE_P(All, PresetTest, ::testing::Values("release", "dev", "asan-ubsan", "tsan"),
                         [](const auto& preset) {
                           std::string name = preset.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace windtunnel::testing
