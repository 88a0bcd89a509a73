#include "apps/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "sim/error.h"

namespace windtunnel {

void WriteOutputFile(std::string_view flag, const std::string& path, std::string_view content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return;
  }
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    throw ConfigError(
        {.file = path, .field = std::string(flag), .problem = std::string(what) + ": " + reason});
  };
  std::error_code error;
  const std::filesystem::path target(path);
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  if (std::filesystem::is_directory(target, error)) {
    errno = EISDIR;
    fail("cannot be written");
  }
  const bool regular =
      !std::filesystem::exists(target, error) || std::filesystem::is_regular_file(target, error);
  const std::string temporary =
      regular ? path + ".partial" : path;  // A device or pipe is written directly.
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) fail("cannot be written");
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    const int reason = errno;
    if (regular) std::remove(temporary.c_str());
    errno = reason;
    fail("cannot be written");
  }
  if (regular && std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot be renamed into place");
}

}  // namespace windtunnel
