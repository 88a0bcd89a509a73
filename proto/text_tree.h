#pragma once
// YAML and JSON as one plain tree with line numbers; what text_io.cc fills messages from.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/text_io.h"

namespace windtunnel::proto {

struct TextNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::uint64_t line = 0;
  std::string scalar;
  std::vector<std::string> keys;   ///< Of a map, beside `children`.
  std::vector<TextNode> children;  ///< Of a list or a map.
};

/// @throws ConfigError on bad syntax, a repeated key, an anchor or alias, or a limit passed.
TextNode ParseYaml(std::string_view text, std::string_view file_name, const ReadLimits& limits);
TextNode ParseJson(std::string_view text, std::string_view file_name, const ReadLimits& limits);

}  // namespace windtunnel::proto
