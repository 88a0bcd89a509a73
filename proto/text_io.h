#pragma once
// Reads and writes protobuf messages as YAML, JSON, protobuf text and protobuf binary, strictly:
// every key must be a field, every number must be one, and every fault names file, line and field.

#include <google/protobuf/message.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "sim/error.h"

namespace windtunnel::proto {

enum class Spelling : std::uint8_t { kYaml, kJson, kText, kBinary };

/// Bounds on what a reader takes, so that a hostile file cannot take the memory or the stack.
struct ReadLimits {
  std::size_t bytes = std::size_t{64} << 20;  ///< Of the file.
  std::size_t depth = 64;                     ///< Of nested lists and maps.
  std::size_t values = 4'000'000;             ///< Scalars, lists and maps together.
};

/// Line of each field that the file holds, by path ("links[3].rate"). Empty for binary files.
class FieldLines {
 public:
  void Set(const std::string& path, std::uint64_t line) { lines_.emplace(path, line); }
  /// Line of `path`, else of the nearest enclosing field that is known, else 0.
  std::uint64_t Line(std::string_view path) const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> lines_;
};

/// Fills `message` (cleared first) from `text`. YAML anchors, aliases and merge keys are refused.
/// @throws ConfigError: syntax, unknown key (with the nearest known one), repeated key, wrong kind
/// of value, limits; binary: "truncated at byte k".
void ReadMessage(std::string_view text, Spelling spelling, std::string_view file_name,
                 google::protobuf::Message* message, FieldLines* lines = nullptr,
                 const ReadLimits& limits = {});

/// Fields in the order of the schema; absent ones are left out; map keys sorted. Ends with a
/// newline except for binary.
std::string WriteMessage(const google::protobuf::Message& message, Spelling spelling);

/// By extension: .yaml .yml, .json, .textproto .txtpb .pbtxt, .binpb .pb. Others count as YAML.
Spelling SpellingFromName(const std::filesystem::path& path);

/// Reads a regular file. @throws ConfigError when it is not there, is a folder, a device or a FIFO,
/// is too large, or its name holds a NUL.
std::string ReadRegularFile(const std::filesystem::path& path,
                            std::size_t limit = std::size_t{64} << 20);

/// Path of `included` as named in `from`. Only a regular file below the folder of `from`, after all
/// links are resolved, is allowed; the message never shows content. @throws ConfigError.
std::filesystem::path ResolveInclude(const std::filesystem::path& from, std::string_view included,
                                     const InputFault& where);

}  // namespace windtunnel::proto
