#include "tests/frame/shell.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

namespace windtunnel::testing {

ShellResult Shell(const std::string& command) {
  ShellResult result;
  FILE* pipe = popen(("( " + command + " ) 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string Quoted(const std::filesystem::path& path) {
  std::string quoted = "'";
  for (const char c : path.string()) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace windtunnel::testing
