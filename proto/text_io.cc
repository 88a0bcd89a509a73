#include "proto/text_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "proto/text_tree.h"
#include "proto/wire_check.h"
#include "sim/parse_units.h"

namespace windtunnel::proto {
namespace {

namespace pb = google::protobuf;

std::vector<std::string> FieldNames(const pb::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

std::vector<std::string> EnumNames(const pb::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return names;
}

// Fills a message from a tree. The tree's depth is bounded, so recursion is too.
class Filler {
 public:
  Filler(std::string_view file, FieldLines* lines) : file_(file), lines_(lines) {}

  void FillMessage(const TextNode& node, const std::string& path, pb::Message* message) {
    Remember(path, node);
    if (node.kind != TextNode::Kind::kMap) Wrong(node, path, "a map of fields");
    const pb::Descriptor& type = *message->GetDescriptor();
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& key = node.keys[i];
      const pb::FieldDescriptor* field = type.FindFieldByName(key);
      if (field == nullptr) {
        const std::vector<std::string> known = FieldNames(type);
        throw ConfigError({.file = file_,
                           .line = node.children[i].line,
                           .field = path,
                           .value = key,
                           .problem = "unknown key",
                           .expected = "one of " + JoinNames(known),
                           .nearest = NearestName(key, known)});
      }
      FillField(node.children[i], path.empty() ? key : path + "." + key, *field, message);
    }
  }

 private:
  void Remember(const std::string& path, const TextNode& node) {
    if (lines_ != nullptr) lines_->Set(path, node.line);
  }
  InputFault Where(const TextNode& node, const std::string& path) const {
    return {.file = file_, .line = node.line, .field = path};
  }
  [[noreturn]] void Wrong(const TextNode& node, const std::string& path, std::string expected) {
    constexpr const char* kFound[] = {"is empty", "is one value:", "is a list", "is a map"};
    InputFault fault = Where(node, path);
    fault.value = node.scalar;
    fault.problem = kFound[static_cast<std::size_t>(node.kind)];
    fault.expected = std::move(expected);
    throw ConfigError(std::move(fault));
  }

  void FillField(const TextNode& node, const std::string& path, const pb::FieldDescriptor& field,
                 pb::Message* message) {
    Remember(path, node);
    if (field.is_map()) {
      if (node.kind != TextNode::Kind::kMap) Wrong(node, path, "a map");
      const pb::FieldDescriptor& value = *field.message_type()->map_value();
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        pb::Message* entry = message->GetReflection()->AddMessage(message, &field);
        entry->GetReflection()->SetString(entry, field.message_type()->map_key(), node.keys[i]);
        FillSingle(node.children[i], path + "." + node.keys[i], value, entry, false);
      }
      return;
    }
    if (!field.is_repeated()) {
      FillSingle(node, path, field, message, false);
      return;
    }
    if (node.kind != TextNode::Kind::kList) Wrong(node, path, "a list");
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      FillSingle(node.children[i], fmt::format("{}[{}]", path, i), field, message, true);
    }
  }

  void FillSingle(const TextNode& node, const std::string& path, const pb::FieldDescriptor& field,
                  pb::Message* message, bool add) {
    const pb::Reflection& reflection = *message->GetReflection();
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      FillMessage(node, path,
                  add ? reflection.AddMessage(message, &field)
                      : reflection.MutableMessage(message, &field));
      return;
    }
    Remember(path, node);
    if (node.kind != TextNode::Kind::kScalar) Wrong(node, path, "one value");
    const std::string& text = node.scalar;
    const InputFault where = Where(node, path);
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_STRING:
        // An empty text would read as a field left out; only the values of a map may be empty.
        if (text.empty() && !field.containing_type()->options().map_entry()) {
          InputFault fault = where;
          fault.problem = "is empty";
          fault.expected = "a value, or the key left out";
          throw ConfigError(std::move(fault));
        }
        if (add) {
          reflection.AddString(message, &field, text);
        } else {
          reflection.SetString(message, &field, text);
        }
        return;
      case pb::FieldDescriptor::CPPTYPE_BOOL: {
        if (text != "true" && text != "false") Wrong(node, path, "true or false");
        const bool value = text == "true";
        add ? reflection.AddBool(message, &field, value)
            : reflection.SetBool(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<std::uint32_t>(ParseCount(text, where, 0, UINT32_MAX));
        add ? reflection.AddUInt32(message, &field, value)
            : reflection.SetUInt32(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_UINT64: {
        const std::uint64_t value = ParseCount(text, where);
        add ? reflection.AddUInt64(message, &field, value)
            : reflection.SetUInt64(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<std::int32_t>(ParseSigned(text, where, INT32_MAX));
        add ? reflection.AddInt32(message, &field, value)
            : reflection.SetInt32(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_INT64: {
        const std::int64_t value = ParseSigned(text, where, INT64_MAX);
        add ? reflection.AddInt64(message, &field, value)
            : reflection.SetInt64(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_DOUBLE: {
        const double value = ParseReal(text, where);
        add ? reflection.AddDouble(message, &field, value)
            : reflection.SetDouble(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_FLOAT: {
        const auto value = static_cast<float>(ParseReal(text, where));
        add ? reflection.AddFloat(message, &field, value)
            : reflection.SetFloat(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_ENUM: {
        const pb::EnumValueDescriptor* value = field.enum_type()->FindValueByName(text);
        if (value == nullptr) {
          const std::vector<std::string> known = EnumNames(*field.enum_type());
          throw ConfigError({.file = file_,
                             .line = node.line,
                             .field = path,
                             .value = text,
                             .problem = "unknown name",
                             .expected = "one of " + JoinNames(known),
                             .nearest = NearestName(text, known)});
        }
        add ? reflection.AddEnum(message, &field, value)
            : reflection.SetEnum(message, &field, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return;  // Handled above.
    }
  }

  static std::int64_t ParseSigned(std::string_view text, const InputFault& where,
                                  std::int64_t highest) {
    if (text.starts_with('-')) {
      return -static_cast<std::int64_t>(
          ParseCount(text.substr(1), where, 0, static_cast<std::uint64_t>(highest)));
    }
    return static_cast<std::int64_t>(
        ParseCount(text, where, 0, static_cast<std::uint64_t>(highest)));
  }
  static double ParseReal(std::string_view text, const InputFault& where) {
    if (text.starts_with('-')) return -ParseNumber(text.substr(1), where);
    return ParseNumber(text, where);
  }

  std::string file_;
  FieldLines* lines_;
};

// protobuf's own text reader, with its faults turned into ours.
class TextErrors final : public pb::io::ErrorCollector {
 public:
  TextErrors(std::string_view file, const pb::Descriptor& root) : file_(file), root_(root) {}
  void AddError(int line, int, const std::string& message) override {
    if (failed_) return;
    failed_ = true;
    fault_ = {.file = file_,
              .line = line < 0 ? 0 : static_cast<std::uint64_t>(line) + 1,
              .problem = "is not protobuf text: " + message};
    // Message type "a.B" has no field named "c".
    const auto quoted = [&message](std::size_t from) -> std::string {
      const auto open = message.find('"', from);
      if (open == std::string::npos) return {};
      const auto close = message.find('"', open + 1);
      return close == std::string::npos ? std::string()
                                        : message.substr(open + 1, close - open - 1);
    };
    const auto named = message.find("has no field named");
    if (named == std::string::npos) return;
    const pb::Descriptor* type = root_.file()->pool()->FindMessageTypeByName(quoted(0));
    fault_.value = quoted(named);
    fault_.problem = "unknown key";
    if (type == nullptr) return;
    const std::vector<std::string> known = FieldNames(*type);
    fault_.expected = "one of " + JoinNames(known);
    fault_.nearest = NearestName(fault_.value, known);
  }
  const InputFault& fault() const { return fault_; }

 private:
  std::string file_;
  const pb::Descriptor& root_;
  bool failed_ = false;
  InputFault fault_;
};

void RememberLines(const pb::TextFormat::ParseInfoTree& tree, const pb::Message& message,
                   const std::string& path, FieldLines* lines) {
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string name = path.empty() ? field->name() : path + "." + field->name();
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const std::string element = field->is_repeated() ? fmt::format("{}[{}]", name, i) : name;
      const auto location = tree.GetLocation(field, index);
      if (location.line >= 0) lines->Set(element, static_cast<std::uint64_t>(location.line) + 1);
      if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
      const auto* nested = tree.GetTreeForNested(field, index);
      if (nested == nullptr) continue;
      RememberLines(*nested,
                    field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                         : reflection.GetMessage(message, field),
                    element, lines);
    }
  }
}

void ReadText(std::string_view text, std::string_view file, const ReadLimits& limits,
              pb::Message* message, FieldLines* lines) {
  pb::TextFormat::Parser parser;
  pb::TextFormat::ParseInfoTree locations;
  TextErrors errors(file, *message->GetDescriptor());
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(static_cast<int>(limits.depth));
  parser.WriteLocationsTo(&locations);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, message)) throw ConfigError(errors.fault());
  if (lines != nullptr) RememberLines(locations, *message, "", lines);
}

void AppendYamlScalar(std::string_view text, std::string* out) {
  // Plain only where no reader could see anything but a string or number of these characters.
  const bool plain = !text.empty() && text != "true" && text != "false" && text != "null" &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) {
                                   return std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                                          c == '_' || c == '-' || c == '/' || c == ' ';
                                 }) &&
                     std::isalnum(static_cast<unsigned char>(text.front())) && text.back() != ' ';
  if (plain) {
    *out += text;
    return;
  }
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void AppendJsonScalar(std::string_view text, std::string* out) {
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      *out += c;
    }
  }
  *out += '"';
}

// Writes YAML and JSON from one walk over the message.
class Writer {
 public:
  explicit Writer(bool json) : json_(json) {}

  void Message(const pb::Message& message, std::size_t indent, bool flow) {
    std::vector<const pb::FieldDescriptor*> fields = Fields(message);
    if (fields.empty()) {
      out_ += "{}";
      return;
    }
    const bool inline_map = flow || json_;
    if (inline_map) out_ += '{';
    bool first = true;
    for (const pb::FieldDescriptor* field : fields) {
      if (!first) out_ += inline_map ? "," : "";
      if (json_ && !flow) {
        NewLine(indent + 1);
      } else if (inline_map) {
        if (!first) out_ += ' ';
      } else if (!first || indent > 0) {
        NewLine(indent);
      }
      first = false;
      Name(field->name());
      Field(message, *field, indent + 1, flow);
    }
    if (json_ && !flow) NewLine(indent);
    if (inline_map) out_ += '}';
  }
  std::string Take() { return std::move(out_); }

 private:
  static std::vector<const pb::FieldDescriptor*> Fields(const pb::Message& message) {
    std::vector<const pb::FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    std::sort(fields.begin(), fields.end(),
              [](const auto* a, const auto* b) { return a->index() < b->index(); });
    return fields;
  }
  void NewLine(std::size_t indent) {
    out_ += '\n';
    out_.append(2 * indent, ' ');
  }
  void Name(std::string_view name) {
    json_ ? AppendJsonScalar(name, &out_) : AppendYamlScalar(name, &out_);
    out_ += ':';
  }
  void Text(std::string_view text) {
    json_ ? AppendJsonScalar(text, &out_) : AppendYamlScalar(text, &out_);
  }
  // List elements and map values that hold no messages of their own stand on one line.
  static bool IsFlat(const pb::Descriptor& type) {
    for (int i = 0; i < type.field_count(); ++i) {
      const pb::FieldDescriptor* field = type.field(i);
      const bool message = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
      if (message && (!field->is_map() || field->message_type()->map_value()->message_type()))
        return false;
    }
    return true;
  }
  void Field(const pb::Message& message, const pb::FieldDescriptor& field, std::size_t indent,
             bool flow) {
    const pb::Reflection& reflection = *message.GetReflection();
    if (field.is_map()) {
      Map(message, field, indent, flow);
      return;
    }
    if (field.is_repeated()) {
      const int count = reflection.FieldSize(message, &field);
      out_ += json_ || flow ? " [" : "";
      for (int i = 0; i < count; ++i) {
        if (i > 0 && (json_ || flow)) out_ += ',';
        if (flow) {
          if (i > 0) out_ += ' ';
        } else {
          NewLine(indent);
          if (!json_) out_ += "- ";
        }
        if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
          const pb::Message& element = reflection.GetRepeatedMessage(message, &field, i);
          Message(element, indent, flow || IsFlat(*element.GetDescriptor()) || !json_);
        } else {
          Scalar(message, field, i);
        }
      }
      if (json_ && !flow) NewLine(indent - 1);
      out_ += json_ || flow ? "]" : "";
      return;
    }
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      out_ += ' ';
      Message(reflection.GetMessage(message, &field), indent, true);
      return;
    }
    out_ += ' ';
    Scalar(message, field, -1);
  }
  void Map(const pb::Message& message, const pb::FieldDescriptor& field, std::size_t indent,
           bool flow) {
    const pb::Reflection& reflection = *message.GetReflection();
    const pb::FieldDescriptor* key = field.message_type()->map_key();
    const pb::FieldDescriptor* value = field.message_type()->map_value();
    std::vector<std::pair<std::string, const pb::Message*>> entries;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const pb::Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      entries.emplace_back(entry.GetReflection()->GetString(entry, key), &entry);
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    const bool braces = json_ || flow;
    if (braces) out_ += " {";
    bool first = true;
    for (const auto& [name, entry] : entries) {
      if (braces && !first) out_ += ',';
      if (flow) {
        if (!first) out_ += ' ';
      } else {
        NewLine(indent);
      }
      first = false;
      Name(name);
      Field(*entry, *value, indent + 1, flow);
    }
    if (json_ && !flow) NewLine(indent - 1);
    if (braces) out_ += '}';
  }
  void Scalar(const pb::Message& message, const pb::FieldDescriptor& field, int index) {
    const pb::Reflection& reflection = *message.GetReflection();
    const bool at = index >= 0;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_STRING:
        Text(at ? reflection.GetRepeatedString(message, &field, index)
                : reflection.GetString(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        out_ += (at ? reflection.GetRepeatedBool(message, &field, index)
                    : reflection.GetBool(message, &field))
                    ? "true"
                    : "false";
        return;
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        Number(at ? reflection.GetRepeatedUInt32(message, &field, index)
                  : reflection.GetUInt32(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        Number(at ? reflection.GetRepeatedUInt64(message, &field, index)
                  : reflection.GetUInt64(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_INT32:
        Number(at ? reflection.GetRepeatedInt32(message, &field, index)
                  : reflection.GetInt32(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_INT64:
        Number(at ? reflection.GetRepeatedInt64(message, &field, index)
                  : reflection.GetInt64(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        Number(at ? reflection.GetRepeatedDouble(message, &field, index)
                  : reflection.GetDouble(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        Number(at ? reflection.GetRepeatedFloat(message, &field, index)
                  : reflection.GetFloat(message, &field));
        return;
      case pb::FieldDescriptor::CPPTYPE_ENUM:
        Text((at ? reflection.GetRepeatedEnum(message, &field, index)
                 : reflection.GetEnum(message, &field))
                 ->name());
        return;
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return;  // Never asked for.
    }
  }
  template <class T>
  void Number(T value) {
    out_ +=
        fmt::format("{}", value);  // Shortest text that reads back equal; never a locale's comma.
  }

  bool json_;
  std::string out_;
};

}  // namespace

std::uint64_t FieldLines::Line(std::string_view path) const {
  while (true) {
    if (const auto found = lines_.find(path); found != lines_.end()) return found->second;
    const auto cut = path.find_last_of(".[");
    if (cut == std::string_view::npos) return 0;
    path = path.substr(0, cut);
  }
}

void ReadMessage(std::string_view text, Spelling spelling, std::string_view file_name,
                 pb::Message* message, FieldLines* lines, const ReadLimits& limits) {
  if (text.size() > limits.bytes || text.size() > std::numeric_limits<int>::max()) {
    throw ConfigError({.file = std::string(file_name),
                       .problem = fmt::format("is {} bytes long", text.size()),
                       .expected = fmt::format("at most {} bytes", limits.bytes)});
  }
  message->Clear();
  switch (spelling) {
    case Spelling::kYaml:
    case Spelling::kJson: {
      const TextNode tree = spelling == Spelling::kYaml ? ParseYaml(text, file_name, limits)
                                                        : ParseJson(text, file_name, limits);
      Filler(file_name, lines).FillMessage(tree, "", message);
      return;
    }
    case Spelling::kText:
      ReadText(text, file_name, limits, message, lines);
      return;
    case Spelling::kBinary:
      CheckWire(text, *message->GetDescriptor(), file_name, limits);
      if (!message->ParseFromArray(text.data(), static_cast<int>(text.size()))) {
        throw ConfigError({.file = std::string(file_name),
                           .problem = "is not a protobuf message of this kind (bad UTF-8?)"});
      }
      return;
  }
}

std::string WriteMessage(const pb::Message& message, Spelling spelling) {
  std::string out;
  switch (spelling) {
    case Spelling::kYaml:
    case Spelling::kJson: {
      Writer writer(spelling == Spelling::kJson);
      writer.Message(message, 0, false);
      return writer.Take() + "\n";
    }
    case Spelling::kText:
      pb::TextFormat::PrintToString(message, &out);
      return out;
    case Spelling::kBinary: {
      pb::io::StringOutputStream stream(&out);
      pb::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      message.SerializeToCodedStream(&coded);
      coded.Trim();
      return out;
    }
  }
  return out;
}

Spelling SpellingFromName(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".json") return Spelling::kJson;
  if (extension == ".textproto" || extension == ".txtpb" || extension == ".pbtxt")
    return Spelling::kText;
  if (extension == ".binpb" || extension == ".pb") return Spelling::kBinary;
  return Spelling::kYaml;
}

std::string ReadRegularFile(const std::filesystem::path& path, std::size_t limit) {
  const std::string name = path.string();
  const auto fail = [&name](std::string problem, std::string expected = {}) {
    throw ConfigError(
        {.file = name, .problem = std::move(problem), .expected = std::move(expected)});
  };
  if (name.find('\0') != std::string::npos) fail("has a NUL in its name");
  // Non-blocking: opening a FIFO must not wait for a writer that never comes.
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)), "a file");
  struct stat status = {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    fail(S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file", "a file");
  }
  if (static_cast<std::uint64_t>(status.st_size) > limit) {
    ::close(file);
    fail(fmt::format("is {} bytes long", status.st_size), fmt::format("at most {} bytes", limit));
  }
  std::string content;
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = ::read(file, buffer, sizeof buffer)) > 0) {
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > limit) break;
  }
  ::close(file);
  if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  if (content.size() > limit)
    fail("grew while it was read", fmt::format("at most {} bytes", limit));
  return content;
}

std::filesystem::path ResolveInclude(const std::filesystem::path& from, std::string_view included,
                                     const InputFault& where) {
  const auto refuse = [&](std::string problem) {
    InputFault fault = where;
    fault.value = included;
    fault.problem = std::move(problem);
    fault.expected = "a file below the folder of the including file";
    throw ConfigError(std::move(fault));
  };
  if (included.empty()) refuse("is an empty file name");
  if (included.find('\0') != std::string_view::npos) refuse("has a NUL in its name");
  const std::filesystem::path relative(included);
  if (relative.is_absolute()) refuse("is an absolute path");
  for (const auto& part : relative) {
    if (part == "..") refuse("climbs out of the folder with '..'");
  }
  std::error_code error;
  const auto folder = std::filesystem::canonical(
      from.has_parent_path() ? from.parent_path() : std::filesystem::path("."), error);
  if (error) refuse("cannot be resolved: the including file has no folder");
  const auto resolved = std::filesystem::canonical(folder / relative, error);
  if (error) refuse("is not there");
  const auto [folder_end, ignored] =
      std::mismatch(folder.begin(), folder.end(), resolved.begin(), resolved.end());
  if (folder_end != folder.end()) refuse("is a link that leads out of the folder");
  if (!std::filesystem::is_regular_file(resolved, error)) refuse("is not a regular file");
  return resolved;
}

}  // namespace windtunnel::proto
