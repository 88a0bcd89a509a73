#include "sim/data_files.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "sim/error.h"

namespace windtunnel {

std::filesystem::path ShippedFile(std::string_view relative) {
  std::vector<std::filesystem::path> roots;
  if (const char* chosen = std::getenv("WINDTUNNEL_DATA_DIR"); chosen != nullptr && *chosen != '\0')
    roots.emplace_back(chosen);
  roots.emplace_back(WINDTUNNEL_SOURCE_DATA_DIR);
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty())
    roots.push_back(program.parent_path().parent_path() / WINDTUNNEL_INSTALLED_DATA_DIR);
  std::vector<std::string> tried;
  for (const auto& root : roots) {
    const auto path = root / relative;
    if (std::filesystem::exists(path, ignored)) return path;
    tried.push_back(root.string());
  }
  throw ConfigError(
      {.file = std::string(relative),
       .problem = "a file that windtunnel ships is not there; looked below " + JoinNames(tried),
       .expected = "an installed windtunnel, or WINDTUNNEL_DATA_DIR set"});
}

}  // namespace windtunnel
