#pragma once
// Memory that is zero without being written: pages come when they are touched, large ones where the
// system has them.

#include <cstddef>
#include <span>

namespace windtunnel {

/// Owns `size` zero bytes, aligned for every type. @throws std::bad_alloc.
class ZeroedMemory {
 public:
  /// From this size on large pages are asked for.
  static constexpr std::size_t kLarge = std::size_t{4} << 20;

  explicit ZeroedMemory(std::size_t size);
  ~ZeroedMemory();
  ZeroedMemory(ZeroedMemory&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(ZeroedMemory&&) = delete;

  std::span<std::byte> bytes() { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace windtunnel
