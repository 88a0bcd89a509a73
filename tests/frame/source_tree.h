#pragma once
// The checkout as the frame's tests see it: every text file that belongs to the project.

#include <filesystem>
#include <string>
#include <vector>

namespace windtunnel::testing {

struct SourceFile {
  std::string path;  ///< From the root, with forward slashes: "sim/units.h".
  std::vector<std::string> lines;
};

struct Include {
  int line = 0;         ///< 1-based.
  bool quoted = false;  ///< "..." and not <...>.
  std::string target;   ///< As written between the marks.
};

/// All text files below the root, sorted by path. Left out: version control, build trees (any
/// folder with a CMakeCache.txt and the folder "build"), "out", and files above 4 MiB or with NUL
/// bytes.
const std::vector<SourceFile>& SourceTree();
/// The #include lines of a C, C++ or CUDA file.
std::vector<Include> IncludesOf(const SourceFile& file);
/// First part of a path: "sim" of "sim/units.h"; "" for a file in the root.
std::string TopFolder(const std::string& path);
/// Whether `path` ends with one of the C++, CUDA endings (.h .cc .cu).
bool IsCode(const std::string& path);

}  // namespace windtunnel::testing
