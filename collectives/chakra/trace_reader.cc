#include "collectives/chakra/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "collectives/chakra/wire.h"
#include "sim/error.h"

namespace windtunnel::chakra {
namespace {

struct Attribute {
  enum class Kind : std::uint8_t { kNone, kInteger, kText, kOther };
  std::string_view name;
  Kind kind = Kind::kNone;
  bool negative = false;
  std::uint64_t bits = 0;
  std::string_view text;
};

// Numbers of the value fields: et_def.proto. Writers differ in the kind of an integer.
Attribute ReadAttribute(WireReader message) {
  Attribute attribute;
  WireField field;
  while (message.Next(field)) {
    if (field.number == 1) {
      attribute.name = message.Text(field);
    } else if (field.number >= 3 && field.number <= 32) {
      attribute.kind = Attribute::Kind::kInteger;
      attribute.bits = field.value;
      attribute.negative = false;
      const bool is_integer = field.number % 2 == 1 && field.number >= 7 && field.number <= 27;
      if (is_integer && field.type == 2) message.Fail(field, "a number is written as bytes");
      switch (field.number) {
        case 7:   // int32
        case 9:   // int64
        case 25:  // sfixed64
          attribute.negative = field.value >> 63 != 0;
          break;
        case 15:  // sint32
        case 17:  // sint64
          attribute.negative = (field.value & 1) != 0;
          attribute.bits = attribute.negative ? ~(field.value >> 1) : field.value >> 1;
          break;
        case 23:  // sfixed32
          attribute.negative = (field.value >> 31 & 1) != 0;
          if (attribute.negative) attribute.bits |= 0xffffffff00000000ULL;
          break;
        case 11:  // uint32
        case 13:  // uint64
        case 19:  // fixed32
        case 21:  // fixed64
        case 27:  // bool
          break;
        case 29:  // string
          attribute.kind = Attribute::Kind::kText;
          attribute.text = message.Text(field);
          break;
        default:  // Floating point numbers, bytes and lists.
          attribute.kind = Attribute::Kind::kOther;
          break;
      }
    }
  }
  return attribute;
}

class NodeReader {
 public:
  NodeReader(WireReader message, const std::string& file, Node& node)
      : message_(std::move(message)), file_(file), node_(node) {}

  void Read() {
    WireField field;
    while (message_.Next(field)) {
      switch (field.number) {
        case 1:
          node_.id = message_.Number(field);
          break;
        case 2:
          node_.name = message_.Text(field);
          break;
        case 3:
          type_ = message_.Number(field);
          break;
        case 4:
          message_.Numbers(field, node_.ctrl_deps);
          break;
        case 5:
          message_.Numbers(field, node_.data_deps);
          break;
        case 7:
          node_.duration_us = message_.Number(field);
          break;
        case 10:
          Take(ReadAttribute(message_.Message(field)));
          break;
        default:
          break;
      }
    }
    if (type_ == 0 || type_ > 7) Fail("type", std::to_string(type_), "unknown node type", "1 to 7");
    node_.type = static_cast<NodeType>(type_);
    if (node_.duration_us >> 63 != 0)
      Fail("duration_micros", std::to_string(node_.duration_us), "is out of range", "below 2^63");
  }

 private:
  [[noreturn]] void Fail(std::string_view field, std::string value, std::string problem,
                         std::string expected) const {
    throw ConfigError({.file = file_,
                       .field = fmt::format("byte {}, node {}, {}", node_.offset, node_.id, field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }
  std::uint64_t Amount(const Attribute& attribute) const {
    if (attribute.kind != Attribute::Kind::kInteger)
      Fail(attribute.name, std::string(attribute.text), "is not a number", "an integer");
    if (attribute.bits >> 63 != 0) {
      Fail(attribute.name,
           attribute.negative ? std::to_string(static_cast<std::int64_t>(attribute.bits))
                              : std::to_string(attribute.bits),
           "is out of range", "0 to 2^63 - 1");
    }
    return attribute.bits;
  }
  void Take(const Attribute& attribute) {
    const std::string_view name = attribute.name;
    if (name == "is_cpu_op") {
      node_.is_cpu_op = attribute.bits != 0;
    } else if (name == "num_ops") {
      node_.num_ops = Amount(attribute);
    } else if (name == "comm_size") {
      node_.bytes = Amount(attribute);
    } else if (name == "comm_src") {
      node_.source = Amount(attribute);
    } else if (name == "comm_dst") {
      node_.destination = Amount(attribute);
    } else if (name == "comm_tag") {
      node_.tag = Amount(attribute);
    } else if (name == "comm_type") {
      if (attribute.kind != Attribute::Kind::kInteger)
        Fail(name, std::string(attribute.text), "is not a number", "0 to 9");
      node_.collective = static_cast<std::int64_t>(attribute.bits);
    } else if (name == "pg_name" && attribute.kind == Attribute::Kind::kText) {
      node_.group = attribute.text;
    }
  }

  WireReader message_;
  const std::string& file_;
  Node& node_;
  std::uint64_t type_ = 0;
};

}  // namespace

std::string Node::Label() const { return name.empty() ? fmt::format("node {}", id) : name; }

TraceReader::~TraceReader() = default;

TraceReader::TraceReader(const std::filesystem::path& file)
    : TraceReader(std::make_unique<std::ifstream>(file, std::ios::binary), file.string()) {}

TraceReader::TraceReader(std::unique_ptr<std::istream> in, std::string name)
    : in_(std::move(in)), file_(std::move(name)) {
  if (!*in_) throw ConfigError({.file = file_, .problem = "cannot be read"});
  constexpr int kGzip = 0x1f;  // First byte; as a length 31 it would be followed by a field key.
  if (in_->peek() == kGzip) {
    char magic[2] = {};
    in_->read(magic, 2);
    if (in_->gcount() == 2 && static_cast<unsigned char>(magic[1]) == 0x8b) {
      throw ConfigError({.file = file_,
                         .problem = "is compressed with gzip, which is not read",
                         .expected = "the trace unpacked: gzip -dc FILE > UNPACKED"});
    }
    in_->clear();
    in_->seekg(0);
  }
  if (!ReadRecord()) throw ConfigError({.file = file_, .problem = "truncated at byte 0: is empty"});
  WireReader message(record_, record_begin_, file_);
  WireField field;
  while (message.Next(field)) {
    if (field.number == 1) {
      version_ = message.Text(field);
    } else if (field.number == 2) {
      const Attribute attribute = ReadAttribute(message.Message(field));
      if (attribute.name == "schema" && version_.empty()) version_ = attribute.text;
      if (attribute.name == "input_file") input_file_ = attribute.text;
    } else if (field.number <= 10) {
      message.Fail(field, "the first record is no metadata");
    }
  }
}

bool TraceReader::ReadRecord() {
  std::uint64_t length = 0;
  const std::uint64_t start = at_;
  const auto truncated = [&](const std::string& what) {
    throw ConfigError(
        {.file = file_, .problem = fmt::format("truncated at byte {}: {}", at_, what)});
  };
  for (std::uint32_t shift = 0;; shift += 7) {
    const int byte = in_->get();
    if (byte == std::istream::traits_type::eof()) {
      if (at_ == start) return false;
      truncated(fmt::format("inside the length of the record at byte {}", start));
    }
    ++at_;
    if (shift == 63 && byte > 1) {
      throw ConfigError({.file = file_,
                         .field = fmt::format("byte {}", start),
                         .problem = "the length of a record has more than 64 bits"});
    }
    length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length > kMaxRecordBytes) {
    throw ConfigError({.file = file_,
                       .field = fmt::format("byte {}", start),
                       .value = std::to_string(length),
                       .problem = "length of a record is above the limit",
                       .expected = fmt::format("at most {} bytes", kMaxRecordBytes)});
  }
  record_begin_ = at_;
  record_.clear();
  // In pieces, so that memory grows with what is there, not with what is declared.
  constexpr std::uint64_t kPiece = 1 << 16;
  while (record_.size() < length) {
    const std::uint64_t have = record_.size();
    const std::uint64_t want = std::min(kPiece, length - have);
    record_.resize(have + want);
    in_->read(record_.data() + have, static_cast<std::streamsize>(want));
    const auto got = static_cast<std::uint64_t>(in_->gcount());
    at_ += got;
    if (got < want) truncated(fmt::format("the record at byte {} has {} bytes", start, length));
  }
  return true;
}

bool TraceReader::Next(Node& node) {
  const std::uint64_t offset = at_;
  if (!ReadRecord()) return false;
  node = {};
  node.offset = offset;
  NodeReader(WireReader(record_, record_begin_, file_), file_, node).Read();
  return true;
}

namespace {

// The checks that need every node.
class Checker {
 public:
  Checker(Trace& trace, const TraceOptions& options) : trace_(trace), options_(options) {}

  void Run() {
    const auto count = trace_.nodes.size();
    if (count > std::numeric_limits<std::uint32_t>::max())
      Fail("nodes", std::to_string(count), "too many", "below 2^32");
    index_.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Node& node = trace_.nodes[i];
      if (!index_.emplace(node.id, i).second)
        Fail(Where(node), std::to_string(node.id), "an id occurs twice", "one node per id");
      CheckTransfer(node);
    }
    if (zero_sized_ > 0) {
      trace_.warnings.push_back(fmt::format("{}: {} transfers of 0 bytes, the first is {}",
                                            trace_.file, zero_sized_, first_zero_));
    }
    Link();
    Order();
  }

 private:
  [[noreturn]] void Fail(std::string field, std::string value, std::string problem,
                         std::string expected) const {
    throw ConfigError({.file = trace_.file,
                       .field = std::move(field),
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }
  static std::string Where(const Node& node) {
    return fmt::format("byte {}, node {} '{}'", node.offset, node.id, node.name);
  }

  void CheckTransfer(const Node& node) {
    constexpr std::int64_t kBarrier = 9;
    switch (node.type) {
      case NodeType::kSend:
        if (!node.destination) Fail(Where(node) + " comm_dst", "", "is missing", "a rank");
        break;
      case NodeType::kReceive:
        if (!node.source) Fail(Where(node) + " comm_src", "", "is missing", "a rank");
        break;
      case NodeType::kCollective:
        // The operator on the host that launches one: no transfer.
        if (node.is_cpu_op && !node.collective && !node.bytes) return;
        if (!node.collective) Fail(Where(node) + " comm_type", "", "is missing", "0 to 9");
        if ((*node.collective < 0 || *node.collective > kBarrier) &&
            !options_.allow_unknown_collectives)
          Fail(Where(node) + " comm_type", std::to_string(*node.collective), "unknown collective",
               "0 to 9");
        if (*node.collective == kBarrier) return;
        break;
      default:
        return;
    }
    if (!node.bytes) Fail(Where(node) + " comm_size", "", "is missing", "bytes");
    if (*node.bytes == 0 && zero_sized_++ == 0) first_zero_ = node.Label();
  }

  // Children of every node, as one list with starts.
  void Link() {
    const std::size_t count = trace_.nodes.size();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // Parent, child.
    std::unordered_set<std::uint64_t> missing, missing_ctrl;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Node& node = trace_.nodes[i];
      bool misses = false;
      for (const std::uint64_t parent : node.data_deps) {
        const auto found = index_.find(parent);
        if (found == index_.end()) {
          missing.insert(parent);
          misses = true;
        } else {
          edges.emplace_back(found->second, i);
        }
      }
      trace_.missing_parent_uses += misses ? 1 : 0;
      for (const std::uint64_t parent : node.ctrl_deps) {
        const auto found = index_.find(parent);
        if (found == index_.end()) {
          missing_ctrl.insert(parent);
        } else if (options_.dependencies == Dependencies::kDataAndControl) {
          edges.emplace_back(found->second, i);
        }
      }
    }
    trace_.missing_parents = missing.size();
    trace_.missing_ctrl_parents = missing_ctrl.size();
    if (!missing.empty()) {
      const std::string text =
          fmt::format("{} parents that are not in the file, named by {} nodes, the lowest id is {}",
                      missing.size(), trace_.missing_parent_uses,
                      *std::min_element(missing.begin(), missing.end()));
      if (!options_.allow_holes) Fail("data_deps", "", text, "every parent in the file");
      trace_.warnings.push_back(fmt::format("{}: {}", trace_.file, text));
    }
    if (!missing_ctrl.empty()) {
      trace_.warnings.push_back(
          fmt::format("{}: {} parents of control dependencies are not in the file", trace_.file,
                      missing_ctrl.size()));
    }
    // The same dependency twice counts once.
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    starts_.assign(count + 1, 0);
    parents_open_.assign(count, 0);
    children_.reserve(edges.size());
    for (const auto& [parent, child] : edges) {
      ++starts_[parent + 1];
      ++parents_open_[child];
      children_.push_back(child);
    }
    for (std::size_t i = 0; i < count; ++i) starts_[i + 1] += starts_[i];
  }

  void Order() {
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < trace_.nodes.size(); ++i) {
      if (parents_open_[i] == 0) ready.push(i);
    }
    trace_.order.reserve(trace_.nodes.size());
    while (!ready.empty()) {
      const std::uint32_t node = ready.top();
      ready.pop();
      trace_.order.push_back(node);
      for (std::uint64_t c = starts_[node]; c < starts_[node + 1]; ++c) {
        if (--parents_open_[children_[c]] == 0) ready.push(children_[c]);
      }
    }
    if (trace_.order.size() != trace_.nodes.size()) FailCycle();
  }

  // Every node that is left has a parent that is left: going up comes round.
  [[noreturn]] void FailCycle() const {
    const std::size_t count = trace_.nodes.size();
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> up(count, kNone);
    for (std::uint32_t parent = 0; parent < count; ++parent) {
      if (parents_open_[parent] == 0) continue;
      for (std::uint64_t c = starts_[parent]; c < starts_[parent + 1]; ++c) {
        if (up[children_[c]] == kNone) up[children_[c]] = parent;
      }
    }
    std::uint32_t at = 0;
    while (parents_open_[at] == 0) ++at;
    std::vector<bool> seen(count);
    for (; !seen[at]; at = up[at]) seen[at] = true;
    std::vector<std::uint32_t> cycle;
    const std::uint32_t end = at;
    do {
      cycle.push_back(at);
      at = up[at];
    } while (at != end);
    std::reverse(cycle.begin(), cycle.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    constexpr std::size_t kShown = 16;
    std::string text = "cycle: ";
    for (std::size_t i = 0; i < std::min(kShown, cycle.size()); ++i)
      text += (i == 0 ? "" : ", ") + trace_.nodes[cycle[i]].Label();
    if (cycle.size() > kShown) text += fmt::format(" and {} more", cycle.size() - kShown);
    throw ConfigError({.file = trace_.file, .problem = text});
  }

  Trace& trace_;
  const TraceOptions& options_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint32_t> children_;
  std::vector<std::uint32_t> parents_open_;
  std::uint64_t zero_sized_ = 0;
  std::string first_zero_;
};

}  // namespace

Trace ReadTrace(TraceReader& reader, const std::string& file, const TraceOptions& options) {
  Trace trace;
  trace.file = file;
  trace.version = reader.version();
  trace.input_file = reader.input_file();
  Node node;
  while (reader.Next(node)) trace.nodes.push_back(std::move(node));
  Checker(trace, options).Run();
  return trace;
}

Trace ReadTrace(const std::filesystem::path& file, const TraceOptions& options) {
  TraceReader reader(file);
  return ReadTrace(reader, file.string(), options);
}

}  // namespace windtunnel::chakra
