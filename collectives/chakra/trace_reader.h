#pragma once
// Chakra execution traces (.et) of one rank: a sequence of records, each a length and a protobuf
// message; the first is metadata, the others are nodes. Sources: mlcommons/chakra,
// schema/protobuf/et_def.proto; protobuf.dev, "Encoding".
//
// Nodes are ordered by their data dependencies unless asked otherwise: Chakra's own feeder never
// looks at control dependencies, and in converted traces these name callers, not order. Not read:
// files compressed with gzip, tensors (inputs and outputs of a node), group-encoded fields.

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel::chakra {

enum class NodeType : std::uint8_t {
  kInvalid,
  kMetadata,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kReceive,
  kCollective
};  ///< Numbers of the schema.

struct Node {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::kInvalid;
  std::vector<std::uint64_t> data_deps;
  std::vector<std::uint64_t> ctrl_deps;
  std::uint64_t duration_us = 0;  ///< Microseconds.
  bool is_cpu_op = false;
  std::uint64_t num_ops = 0;                 ///< Floating point operations.
  std::optional<std::int64_t> collective;    ///< comm_type, 0 all-reduce to 9 barrier.
  std::optional<std::uint64_t> bytes;        ///< comm_size.
  std::optional<std::uint64_t> source;       ///< comm_src.
  std::optional<std::uint64_t> destination;  ///< comm_dst.
  std::uint64_t tag = 0;                     ///< comm_tag.
  std::string group;                         ///< pg_name.
  std::uint64_t offset = 0;                  ///< Byte of its record in the file.

  /// "name" or, without one, "node 7".
  std::string Label() const;
};

/// Reads record after record; holds one at a time.
class TraceReader {
 public:
  /// A record longer than this is refused before anything is set aside for it.
  static constexpr std::uint64_t kMaxRecordBytes = 64 << 20;

  /// @throws ConfigError: cannot be read, empty, compressed, no metadata, truncated.
  explicit TraceReader(const std::filesystem::path& file);
  TraceReader(std::unique_ptr<std::istream> in, std::string name);
  ~TraceReader();

  const std::string& version() const { return version_; }
  /// Attribute `input_file` of the metadata: the text a converter made the trace from, or "".
  const std::string& input_file() const { return input_file_; }
  /// False at the end. @throws ConfigError with "truncated at byte k" when the file ends inside a
  /// record (k = bytes there are), with the byte of the fault for what is no protobuf, and with the
  /// node for values out of range.
  bool Next(Node& node);

 private:
  bool ReadRecord();

  std::unique_ptr<std::istream> in_;
  std::string file_;
  std::string version_;
  std::string input_file_;
  std::string record_;
  std::uint64_t record_begin_ = 0;  // Of the bytes after the length.
  std::uint64_t at_ = 0;
};

enum class Dependencies : std::uint8_t { kData, kDataAndControl };

struct TraceOptions {
  Dependencies dependencies = Dependencies::kData;
  /// Count parents that are not in the file in place of refusing them.
  bool allow_holes = false;
  /// Keep collectives of unknown kind in place of refusing them.
  bool allow_unknown_collectives = false;
};

struct Trace {
  std::string file;
  std::string version;
  std::string input_file;
  std::vector<Node> nodes;                ///< As in the file.
  std::vector<std::uint32_t> order;       ///< Indices of nodes, parents first, else as in the file.
  std::uint64_t missing_parents = 0;      ///< Different ids; data dependencies.
  std::uint64_t missing_parent_uses = 0;  ///< Nodes that name one.
  std::uint64_t missing_ctrl_parents = 0;  ///< Different ids; control dependencies.
  std::vector<std::string> warnings;
};

/// Reads and checks a whole trace. @throws ConfigError as TraceReader, and: ids that occur twice,
/// node types and collectives that are not known, transfers without size or peer, parents that are
/// not in the file (with their number), "cycle: a, b, c". No recursion; time and memory grow with
/// nodes and dependencies.
Trace ReadTrace(const std::filesystem::path& file, const TraceOptions& options = {});
Trace ReadTrace(TraceReader& reader, const std::string& file, const TraceOptions& options = {});

}  // namespace windtunnel::chakra
