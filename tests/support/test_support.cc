#include "tests/support/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace windtunnel::testing {
namespace {
struct TemporaryTree {
  std::filesystem::path path;
  ~TemporaryTree() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};
}  // namespace

std::filesystem::path SourceDir() { return WINDTUNNEL_SOURCE_DIR; }

std::optional<std::filesystem::path> ReferenceDir() {
  const std::filesystem::path beside = SourceDir().parent_path() / "shared";
  if (std::filesystem::exists(beside / "data")) return beside;
  return std::nullopt;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::filesystem::path TemporaryDir() {
  static TemporaryTree tree;
  if (tree.path.empty()) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "windtunnel-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) tree.path = pattern;
  }
  return tree.path;
}

ProgramResult RunProgram(const std::vector<std::string>& args,
                         const std::filesystem::path& directory) {
  const std::filesystem::path out = TemporaryDir() / "stdout";
  const std::filesystem::path err = TemporaryDir() / "stderr";
  const pid_t child = fork();
  if (child == 0) {
    if (!directory.empty() && chdir(directory.c_str()) != 0) _exit(126);
    if (freopen(out.c_str(), "w", stdout) == nullptr ||
        freopen(err.c_str(), "w", stderr) == nullptr)
      _exit(126);
    std::vector<char*> argv;
    std::string program = WINDTUNNEL_PROGRAM;
    argv.push_back(program.data());
    std::vector<std::string> copy = args;
    for (std::string& arg : copy) argv.push_back(arg.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), ReadFile(out),
          ReadFile(err)};
}

}  // namespace windtunnel::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
