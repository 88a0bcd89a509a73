#include "collectives/chakra/wire.h"

#include <fmt/format.h>

#include "sim/error.h"

namespace windtunnel::chakra {
namespace {

// RFC 3629: shortest forms only, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const std::uint32_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < more) return false;
    std::uint32_t code = first & (0x3fU >> more);
    for (std::uint32_t m = 0; m < more; ++m) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fU);
    }
    constexpr std::uint32_t kLowest[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLowest[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

}  // namespace

void WireReader::FailAt(std::uint64_t offset, const std::string& problem) const {
  throw ConfigError({.file = *file_, .field = fmt::format("byte {}", offset), .problem = problem});
}
void WireReader::Fail(const WireField& field, const std::string& problem) const {
  FailAt(field.offset, problem);
}

std::uint64_t WireReader::Varint(std::uint64_t field_offset) {
  std::uint64_t value = 0;
  for (std::uint32_t shift = 0;; shift += 7) {
    if (at_ == text_.size()) FailAt(field_offset, "a number ends behind its record");
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (shift == 63 && byte > 1) FailAt(field_offset, "a number has more than 64 bits");
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

bool WireReader::Next(WireField& field) {
  if (at_ == text_.size()) return false;
  field = {};
  field.offset = offset_ + at_;
  const std::uint64_t key = Varint(field.offset);
  field.number = key >> 3;
  field.type = static_cast<std::uint32_t>(key & 7);
  if (field.number == 0 || field.number > 0x1fffffff)
    Fail(field, fmt::format("{} is no field number", field.number));
  switch (field.type) {
    case 0:
      field.value = Varint(field.offset);
      return true;
    case 1:
    case 5: {
      const std::size_t size = field.type == 1 ? 8 : 4;
      if (text_.size() - at_ < size) Fail(field, "a field ends behind its record");
      for (std::size_t i = 0; i < size; ++i)
        field.value |= std::uint64_t{static_cast<unsigned char>(text_[at_ + i])} << (8 * i);
      at_ += size;
      return true;
    }
    case 2: {
      const std::uint64_t size = Varint(field.offset);
      if (text_.size() - at_ < size) Fail(field, "a field ends behind its record");
      field.contents = offset_ + at_;
      field.bytes = text_.substr(at_, size);
      at_ += size;
      return true;
    }
    default:
      Fail(field, fmt::format("wire type {} is not read", field.type));
  }
}

std::uint64_t WireReader::Number(const WireField& field) const {
  if (field.type != 0) Fail(field, fmt::format("field {} is not a number", field.number));
  return field.value;
}

std::string_view WireReader::Text(const WireField& field) const {
  if (field.type != 2) Fail(field, fmt::format("field {} is not a text", field.number));
  if (!IsUtf8(field.bytes)) Fail(field, fmt::format("field {} is not UTF-8", field.number));
  return field.bytes;
}

WireReader WireReader::Message(const WireField& field) const {
  if (field.type != 2) Fail(field, fmt::format("field {} is not a message", field.number));
  return {field.bytes, field.contents, *file_};
}

void WireReader::Numbers(const WireField& field, std::vector<std::uint64_t>& out) const {
  if (field.type == 0) {
    out.push_back(field.value);
    return;
  }
  WireReader packed = Message(field);
  while (packed.at_ < packed.text_.size()) out.push_back(packed.Varint(field.offset));
}

}  // namespace windtunnel::chakra
