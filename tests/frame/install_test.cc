// The installed prefix: a program of someone else's finds, links and runs the libraries, and the
// installed program finds its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frame/shell.h"
#include "tests/support/test_support.h"

namespace windtunnel::testing {
namespace {

TEST(InstallTest, AProgramOfItsOwnBuildsAgainstTheInstalledPrefix) {
  const std::filesystem::path prefix = TemporaryDir() / "prefix";
  const std::filesystem::path build = TemporaryDir() / "embed";
  const std::string cmake = Quoted(WINDTUNNEL_CMAKE);

  const ShellResult install =
      Shell(cmake + " --install " + Quoted(WINDTUNNEL_BUILD_DIR) + " --prefix " + Quoted(prefix));
  ASSERT_EQ(install.exit_code, 0) << install.output;

  const ShellResult configure =
      Shell(cmake + " -S " + Quoted(SourceDir() / "examples" / "embed") + " -B " + Quoted(build) +
            " -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=" + Quoted(prefix) +
            " -DCMAKE_CXX_COMPILER=" + Quoted(WINDTUNNEL_CXX) +
            " -DCMAKE_CXX_FLAGS=" + Quoted(WINDTUNNEL_SANITIZE_FLAGS));
  ASSERT_EQ(configure.exit_code, 0) << configure.output;
  EXPECT_THAT(configure.output, ::testing::Not(::testing::HasSubstr("Warning")));
  const ShellResult compile = Shell(cmake + " --build " + Quoted(build));
  ASSERT_EQ(compile.exit_code, 0) << compile.output;

  // 450 bytes at 450 GB/s stay on the wire for one nanosecond.
  const ShellResult run = Shell(Quoted(build / "embed") + " 450 450GB/s");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "1000 ps\n");
  EXPECT_EQ(Shell(Quoted(build / "embed") + " 450 fast").exit_code, 1);

  const ShellResult version = Shell(Quoted(prefix / "bin" / "windtunnel") + " --version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.output, RunProgram({"--version"}).out);
  EXPECT_TRUE(std::filesystem::exists(prefix / "share/bash-completion/completions/windtunnel"));
}

}  // namespace
}  // namespace windtunnel::testing
