#pragma once
// The wire format of protobuf, as far as traces use it. Source: protobuf.dev, "Encoding".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel::chakra {

struct WireField {
  std::uint64_t number = 0;
  std::uint32_t type = 0;      ///< 0 varint, 1 eight bytes, 2 bytes with a length, 5 four bytes.
  std::uint64_t value = 0;     ///< Of types 0, 1, 5.
  std::string_view bytes;      ///< Of type 2.
  std::uint64_t offset = 0;    ///< Byte of the file where the field begins.
  std::uint64_t contents = 0;  ///< Byte of the file where `bytes` begin.
};

/// The fields of one message. The text must outlive the reader.
class WireReader {
 public:
  /// `offset`: byte of the file where `text` begins, for messages.
  WireReader(std::string_view text, std::uint64_t offset, const std::string& file)
      : text_(text), offset_(offset), file_(&file) {}

  /// False at the end. @throws ConfigError with the byte: field number 0, wire types 3, 4, 6, 7,
  /// numbers of more than 64 bits, fields that end behind the message.
  bool Next(WireField& field);

  /// What a field of the schema holds. @throws ConfigError when its wire type is another one.
  std::uint64_t Number(const WireField& field) const;
  std::string_view Text(const WireField& field) const;  ///< Refused too when it is not UTF-8.
  WireReader Message(const WireField& field) const;
  /// Repeated numbers, packed or one by one: appends.
  void Numbers(const WireField& field, std::vector<std::uint64_t>& out) const;

  [[noreturn]] void Fail(const WireField& field, const std::string& problem) const;

 private:
  std::uint64_t Varint(std::uint64_t field_offset);
  [[noreturn]] void FailAt(std::uint64_t offset, const std::string& problem) const;

  std::string_view text_;
  std::uint64_t offset_;
  const std::string* file_;
  std::size_t at_ = 0;
};

}  // namespace windtunnel::chakra
