#include "proto/wire_check.h"

#include <fmt/format.h>

namespace windtunnel::proto {
namespace {

namespace pb = google::protobuf;

// Wire types of the protobuf encoding (protobuf.dev, "Encoding").
enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

unsigned WireTypeOf(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_DOUBLE:
    case pb::FieldDescriptor::TYPE_FIXED64:
    case pb::FieldDescriptor::TYPE_SFIXED64:
      return kFixed64;
    case pb::FieldDescriptor::TYPE_FLOAT:
    case pb::FieldDescriptor::TYPE_FIXED32:
    case pb::FieldDescriptor::TYPE_SFIXED32:
      return kFixed32;
    case pb::FieldDescriptor::TYPE_STRING:
    case pb::FieldDescriptor::TYPE_BYTES:
    case pb::FieldDescriptor::TYPE_MESSAGE:
    case pb::FieldDescriptor::TYPE_GROUP:
      return kLengthDelimited;
    default:
      return kVarint;
  }
}

class WireChecker {
 public:
  WireChecker(std::string_view bytes, std::string_view file, const ReadLimits& limits)
      : bytes_(bytes), file_(file), limits_(limits) {}

  // Recursion is bounded by `limits_.depth`.
  void Message(std::size_t at, std::size_t end, const pb::Descriptor& type, std::size_t depth) {
    if (depth > limits_.depth)
      Fail(at, fmt::format("nests deeper than the limit of {}", limits_.depth));
    while (at < end) {
      const std::size_t start = at;
      const std::uint64_t tag = Varint(&at, end);
      const pb::FieldDescriptor* field = tag >> 3 > pb::FieldDescriptor::kMaxNumber
                                             ? nullptr
                                             : type.FindFieldByNumber(static_cast<int>(tag >> 3));
      if (field == nullptr)
        Fail(start, fmt::format("field number {} is not known in {}", tag >> 3, type.name()));
      const auto wire = static_cast<unsigned>(tag & 7);
      const unsigned single = WireTypeOf(*field);
      const bool packed =
          field->is_repeated() && single != kLengthDelimited && wire == kLengthDelimited;
      if (wire != single && !packed) {
        Fail(start, fmt::format("field {} has wire type {}, not {}", field->name(), wire, single));
      }
      if (wire == kVarint) {
        Varint(&at, end);
      } else if (wire == kFixed64) {
        Skip(&at, end, 8);
      } else if (wire == kFixed32) {
        Skip(&at, end, 4);
      } else {
        const std::size_t length_at = at;
        const std::uint64_t length = Varint(&at, end);
        if (length > end - at) {
          Fail(end == bytes_.size() ? end : length_at,
               end == bytes_.size()
                   ? fmt::format("truncated at byte {}: field {} declares {} bytes, {} are left",
                                 end, field->name(), length, end - at)
                   : fmt::format("field {} at byte {} declares {} bytes, {} are left",
                                 field->name(), length_at, length, end - at));
        }
        const std::size_t inner_end = at + static_cast<std::size_t>(length);
        if (field->message_type() != nullptr) {
          Message(at, inner_end, *field->message_type(), depth + 1);
        } else if (packed) {
          for (std::size_t inner = at; inner < inner_end;) {
            if (single == kVarint) {
              Varint(&inner, inner_end);
            } else {
              Skip(&inner, inner_end, single == kFixed64 ? 8 : 4);
            }
          }
        }
        at = inner_end;
      }
    }
  }

 private:
  [[noreturn]] void Fail(std::size_t at, std::string problem) {
    throw ConfigError({.file = file_,
                       .field = fmt::format("byte {}", at),
                       .problem = "is not a valid protobuf message: " + std::move(problem)});
  }
  std::uint64_t Varint(std::size_t* at, std::size_t end) {
    const std::size_t start = *at;
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 10; ++i) {
      if (*at >= end) Truncated(end);
      const auto byte = static_cast<unsigned char>(bytes_[(*at)++]);
      value |= std::uint64_t{byte & 0x7Fu} << (7 * i);
      if (byte < 0x80) return value;
    }
    Fail(start, "a varint of more than 10 bytes");
  }
  void Skip(std::size_t* at, std::size_t end, std::size_t count) {
    if (count > end - *at) Truncated(end);
    *at += count;
  }
  [[noreturn]] void Truncated(std::size_t end) {
    Fail(end, fmt::format("truncated at byte {}", end));
  }

  std::string_view bytes_;
  std::string file_;
  ReadLimits limits_;
};

}  // namespace

void CheckWire(std::string_view bytes, const pb::Descriptor& type, std::string_view file_name,
               const ReadLimits& limits) {
  WireChecker(bytes, file_name, limits).Message(0, bytes.size(), type, 0);
}

}  // namespace windtunnel::proto
