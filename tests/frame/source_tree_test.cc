// The order of the folders, and what must not lie in the tree.
#include "tests/frame/source_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/support/test_support.h"

namespace windtunnel::testing {
namespace {

namespace fs = std::filesystem;

// What each folder may include besides itself and what those may include. Left to right as in
// docs/index.md; folders that stand in one column do not know each other.
const std::map<std::string, std::vector<std::string>>& DirectNeighbours() {
  static const std::map<std::string, std::vector<std::string>> neighbours = {
      {"sim", {}},
      {"proto", {"sim"}},
      {"interconnect", {"proto", "sim"}},
      {"devices", {"interconnect"}},
      {"collectives", {"devices"}},
      {"workloads", {"collectives"}},
      {"planning", {"workloads"}},
      {"validate", {"workloads"}},
      {"emulator", {"workloads"}},
      {"apps", {"planning", "validate", "emulator"}},
      {"bench", {"apps"}},
      {"examples", {"planning", "validate"}},
      {"tests", {"apps"}},
  };
  return neighbours;
}

std::set<std::string> AllowedTargets(const std::string& folder) {
  std::set<std::string> allowed = {folder};
  for (const std::string& neighbour : DirectNeighbours().at(folder))
    allowed.merge(AllowedTargets(neighbour));
  return allowed;
}

/// Why `include` in `path` is against the order of the folders, or "" when it is not.
std::string WrongArrow(const std::string& path, const Include& include) {
  const std::string from = TopFolder(path);
  const std::string to = TopFolder(include.target);
  if (!DirectNeighbours().contains(from)) return "code outside the known folders";
  if (!include.quoted || !DirectNeighbours().contains(to)) return "";
  if (AllowedTargets(from).contains(to)) return "";
  return from + " must not know " + to;
}

/// Headers of CUDA, NCCL and their libraries: only where a machine with GPUs is addressed.
std::string WrongPlaceForGpuHeader(const std::string& path, const Include& include) {
  static const std::regex gpu_header(
      R"((cuda\w*|cublas\w*|curand\w*|nccl\w*|nvml|driver_types)\.h|cuda/.*|cub/.*)");
  if (include.quoted || !std::regex_match(include.target, gpu_header)) return "";
  if (path.starts_with("validate/nccl/") || path.starts_with("emulator/")) return "";
  return "CUDA and NCCL headers belong below validate/nccl/ and emulator/ only";
}

using Rule = std::function<std::string(const std::string& path, const Include& include)>;

std::vector<std::string> Violations(const Rule& rule) {
  std::vector<std::string> found;
  for (const SourceFile& file : SourceTree()) {
    if (!IsCode(file.path)) continue;
    for (const Include& include : IncludesOf(file)) {
      const std::string why = rule(file.path, include);
      if (!why.empty())
        found.push_back(file.path + ":" + std::to_string(include.line) + ": " + include.target +
                        ": " + why);
    }
  }
  return found;
}

TEST(SourceTreeTest, HoldsTheFilesOfThisTest) {
  std::vector<std::string> paths;
  for (const SourceFile& file : SourceTree()) paths.push_back(file.path);
  EXPECT_THAT(paths, ::testing::Contains("tests/frame/source_tree_test.cc"));
  EXPECT_THAT(paths, ::testing::Contains("CMakeLists.txt"));
}

TEST(SourceTreeTest, EveryIncludePointsAgainstTheOrderOfTheFolders) {
  EXPECT_THAT(Violations(WrongArrow), ::testing::IsEmpty());
}

TEST(SourceTreeTest, TheRuleOfTheOrderObjectsToAWrongArrow) {
  const auto quoted = [](std::string target) {
    return Include{.line = 1, .quoted = true, .target = std::move(target)};
  };
  EXPECT_EQ(WrongArrow("sim/units.h", quoted("interconnect/topology.h")),
            "sim must not know interconnect");
  EXPECT_EQ(WrongArrow("sim/units.h", quoted("proto/result.pb.h")), "sim must not know proto");
  EXPECT_EQ(WrongArrow("validate/band.cc", quoted("planning/sweep.h")),
            "validate must not know planning");
  EXPECT_EQ(WrongArrow("devices/gpu.cc", quoted("tests/support/test_support.h")),
            "devices must not know tests");
  EXPECT_EQ(WrongArrow("collectives/plan.h", quoted("sim/units.h")), "");
  EXPECT_EQ(WrongArrow("apps/main.cc", quoted("emulator/library.h")), "");
  EXPECT_EQ(WrongArrow("elsewhere/a.cc", quoted("sim/units.h")), "code outside the known folders");
}

TEST(SourceTreeTest, CudaAndNcclHeadersStayBelowTheirFolders) {
  EXPECT_THAT(Violations(WrongPlaceForGpuHeader), ::testing::IsEmpty());
  const Include nccl{.line = 1, .quoted = false, .target = "nccl.h"};
  EXPECT_NE(WrongPlaceForGpuHeader("collectives/tree.cc", nccl), "");
  EXPECT_NE(WrongPlaceForGpuHeader("validate/reader.cc", nccl), "");
  EXPECT_EQ(WrongPlaceForGpuHeader("validate/nccl/run.cc", nccl), "");
}

TEST(SourceTreeTest, QuotedIncludesAreWrittenFromTheRoot) {
  EXPECT_THAT(Violations([](const std::string&, const Include& include) -> std::string {
                if (!include.quoted) return "";
                const fs::path target = SourceDir() / include.target;
                if (fs::exists(target)) return "";
                if (include.target.ends_with(".pb.h")) {
                  fs::path schema = target;
                  schema.replace_extension().replace_extension(".proto");
                  if (fs::exists(schema)) return "";
                }
                return "no such file below the root";
              }),
              ::testing::IsEmpty());
}

TEST(SourceTreeTest, NoHeaderIncludesItselfAroundACircle) {
  std::map<std::string, std::vector<std::string>> edges;
  for (const SourceFile& file : SourceTree()) {
    if (!file.path.ends_with(".h")) continue;
    for (const Include& include : IncludesOf(file))
      if (include.quoted) edges[file.path].push_back(include.target);
  }
  enum class Mark { kOpen, kDone };
  std::map<std::string, Mark> marks;
  std::string circle;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    marks[path] = Mark::kOpen;
    for (const std::string& next : edges[path]) {
      const auto mark = marks.find(next);
      if (mark == marks.end())
        visit(next);
      else if (mark->second == Mark::kOpen)
        circle += next + " is reached again from " + path + "; ";
    }
    marks[path] = Mark::kDone;
  };
  for (const auto& [path, unused] : std::map(edges))
    if (!marks.contains(path)) visit(path);
  EXPECT_EQ(circle, "");
}

TEST(SourceTreeTest, EverySourceIsBuiltByATarget) {
  std::ifstream in(fs::path(WINDTUNNEL_BUILD_DIR) / "compile_commands.json");
  ASSERT_TRUE(in) << "the build writes compile_commands.json (CMAKE_EXPORT_COMPILE_COMMANDS)";
  std::set<std::string> built;
  for (const auto& command : nlohmann::json::parse(in))
    built.insert(fs::relative(command.at("file").get<std::string>(), SourceDir()).generic_string());
  std::vector<std::string> orphans;
  for (const SourceFile& file : SourceTree()) {
    if (!file.path.ends_with(".cc") && !file.path.ends_with(".cu")) continue;
    if (built.contains(file.path)) continue;
    // Both are switched off by an option or a missing library, and built by CI where they are on.
    if (file.path.starts_with("bench/") && file.path.ends_with("_bench.cc")) continue;
    if (file.path.starts_with("validate/nccl/")) continue;
    // Built against an installed windtunnel by install_test.cc.
    if (file.path.starts_with("examples/")) continue;
    orphans.push_back(file.path);
  }
  EXPECT_THAT(orphans, ::testing::IsEmpty());
}

TEST(SourceTreeTest, EveryHeaderIsIncludedBySomeone) {
  std::set<std::string> included;
  std::vector<std::string> headers;
  for (const SourceFile& file : SourceTree()) {
    if (!IsCode(file.path)) continue;
    if (file.path.ends_with(".h")) headers.push_back(file.path);
    for (const Include& include : IncludesOf(file)) included.insert(include.target);
  }
  std::erase_if(headers, [&](const std::string& path) { return included.contains(path); });
  EXPECT_THAT(headers, ::testing::IsEmpty());
}

std::vector<std::string> LinesMatching(const std::regex& pattern) {
  std::vector<std::string> found;
  for (const SourceFile& file : SourceTree())
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      // Longer lines are data; the pattern engine recurses per character.
      if (file.lines[i].size() < 4000 && std::regex_search(file.lines[i], pattern))
        found.push_back(file.path + ":" + std::to_string(i + 1) + ": " +
                        file.lines[i].substr(0, 120));
  return found;
}

TEST(SourceTreeTest, NoWordForUnfinishedWorkIsLeft) {
  // Written in halves, so that this file does not find itself.
  const std::regex leftover(
      "\\b(TO"
      "DO|FIX"
      "ME|X"
      "XX|HA"
      "CK|not imple"
      "mented|unimple"
      "mented|place"
      "holder|for n"
      "ow)\\b");
  EXPECT_TRUE(std::regex_search(std::string("// FIX") + "ME later", leftover));
  EXPECT_THAT(LinesMatching(leftover), ::testing::IsEmpty());
}

TEST(SourceTreeTest, NoPathOfAMachineIsWrittenDown) {
  const std::regex machine_path(
      "(^|[^a-zA-Z0-9_.])/(wo"
      "rk|ro"
      "ot|fa"
      "rm|ho"
      "me|t"
      "mp)/");
  EXPECT_TRUE(std::regex_search(std::string("open(\"/ho") + "me/someone\")", machine_path));
  EXPECT_THAT(LinesMatching(machine_path), ::testing::IsEmpty());
}

TEST(SourceTreeTest, EveryLinkOfADocumentLeadsToAFile) {
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");  // Addresses with a colon lie elsewhere.
  std::vector<std::string> broken;
  for (const SourceFile& file : SourceTree()) {
    if (!file.path.ends_with(".md")) continue;
    for (const std::string& line : file.lines) {
      for (std::sregex_iterator it(line.begin(), line.end(), link), none; it != none; ++it) {
        const fs::path target = (SourceDir() / file.path).parent_path() / (*it)[1].str();
        if (!fs::exists(target)) broken.push_back(file.path + " links to " + (*it)[1].str());
      }
    }
  }
  EXPECT_THAT(broken, ::testing::IsEmpty());
}

TEST(SourceTreeTest, NoCodeFileHasGrownBeyondOneIdea) {
  constexpr std::size_t kMostLines = 850;
  std::vector<std::string> long_files;
  for (const SourceFile& file : SourceTree())
    if (IsCode(file.path) && file.lines.size() > kMostLines)
      long_files.push_back(file.path + " has " + std::to_string(file.lines.size()) + " lines");
  EXPECT_THAT(long_files, ::testing::IsEmpty());
}

TEST(SourceTreeTest, EveryFolderOfTheFrameIsALibraryInTheBuild) {
  const std::string build = ReadFile(SourceDir() / "CMakeLists.txt");
  for (const auto& [folder, unused] : DirectNeighbours()) {
    if (folder == "apps" || folder == "bench" || folder == "examples" || folder == "tests")
      continue;
    EXPECT_THAT(build, ::testing::HasSubstr("windtunnel_library(" + folder + " "));
  }
}

}  // namespace
}  // namespace windtunnel::testing
