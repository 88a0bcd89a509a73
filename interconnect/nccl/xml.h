#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace windtunnel::nccl {

/// One element of a topology or graph file: a plain tree that keeps the order of attributes and
/// children and whatever it does not know.
struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  std::uint64_t line = 0;  ///< 1-based line of the start tag; 0 when made by the program.

  /// The text of an attribute (the first, should a file repeat it), or nullptr.
  const std::string* Find(std::string_view attribute) const;
  /// Sets an attribute in place, or appends it.
  void Set(std::string_view attribute, std::string value);
  void Erase(std::string_view attribute);
  /// The first child of that name, or nullptr.
  const XmlElement* Child(std::string_view child_name) const;
  /// Number of elements of the tree, itself included.
  std::size_t CountElements() const;
  /// Equality of content: lines do not count.
  friend bool operator==(const XmlElement& a, const XmlElement& b) {
    return a.name == b.name && a.attributes == b.attributes && a.children == b.children;
  }
};

struct XmlDocument {
  XmlElement root;
  std::string file;  ///< As the user named it; part of every message.
  /// What NCCL's own reader would not take or would drop (tabs, prologue, tags over several lines,
  /// a 17th attribute, ...), one sentence each with file and line.
  std::vector<std::string> warnings;
};

/// Bounds of the reader, so that a hostile file cannot take the memory or the stack.
struct XmlLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  std::size_t elements = 262'144;
  std::size_t children = 65'536;
  std::size_t attributes = 64;
  std::size_t text = 4'096;  ///< Characters of one name or value.
};

/// Bounds of NCCL's own reader: exceeding them is worth a warning on reading and writing. Source:
/// NVIDIA/nccl src/graph/xml.h and topo.h, v2.28.9 (640 children from 2.30).
constexpr std::size_t kNcclMaxAttributes = 16;
constexpr std::size_t kNcclMaxChildren = 128;
constexpr std::size_t kNcclMaxText = 254;
constexpr std::size_t kNcclMaxTopologyElements = 256;
constexpr std::size_t kNcclMaxGraphElements = 4'096;

/// Reads more than NCCL does: tabs, a prologue, tags over several lines, blanks around `=`, both
/// quotes, comments. No text content, no CDATA, no DOCTYPE, no entity is expanded (`&amp;` stays
/// as it is written). Works without recursion.
/// @throws ConfigError with file and line; a bound of `limits` is named in the message.
XmlDocument ParseXml(std::string_view text, std::string file, const XmlLimits& limits = {});
/// @throws ConfigError also when the file is missing, a folder, or larger than `limits.bytes`.
XmlDocument ReadXmlFile(const std::filesystem::path& path, const XmlLimits& limits = {});

/// The text NCCL's writer produces: two blanks per level, one line per tag, childless elements
/// closed in place. Parsing it again gives an equal tree.
std::string WriteXml(const XmlElement& root);

}  // namespace windtunnel::nccl
