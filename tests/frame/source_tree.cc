#include "tests/frame/source_tree.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/support/test_support.h"

namespace windtunnel::testing {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargestText = 4u << 20;

std::vector<SourceFile> ReadTree() {
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(SourceDir());
       it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory()) {
      const bool top = it.depth() == 0;
      if (name == ".git" || (top && (name == "build" || name == "out")) ||
          fs::exists(it->path() / "CMakeCache.txt"))
        it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file() || it->file_size() > kLargestText || name == ".git") continue;
    const std::string text = ReadFile(it->path());
    if (text.find('\0') != std::string::npos) continue;
    SourceFile file{.path = it->path().lexically_relative(SourceDir()).generic_string(),
                    .lines = {}};
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) file.lines.push_back(std::move(line));
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

}  // namespace

const std::vector<SourceFile>& SourceTree() {
  static const std::vector<SourceFile> tree = ReadTree();
  return tree;
}

std::vector<Include> IncludesOf(const SourceFile& file) {
  static const std::regex include_line(R"re(\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  std::vector<Include> includes;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    // A cheap look first: regex over every line of the tree would take seconds.
    if (file.lines[i].find("include") == std::string::npos ||
        file.lines[i].find('#') == std::string::npos)
      continue;
    std::smatch match;
    if (std::regex_match(file.lines[i], match, include_line))
      includes.push_back(
          {.line = static_cast<int>(i + 1), .quoted = match[1] == "\"", .target = match[2]});
  }
  return includes;
}

std::string TopFolder(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool IsCode(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cc") || path.ends_with(".cu");
}

}  // namespace windtunnel::testing
