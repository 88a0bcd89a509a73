#pragma once
// A vector that grows without moving what it holds: millions of elements at the cost of one more
// load per access.

#include <cstddef>
#include <memory>
#include <vector>

namespace windtunnel {

/// Addresses stay valid until the container ends. `T` is default-constructible.
template <class T, unsigned kPageBits = 10>
class PagedVector {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return pages_[i >> kPageBits][i & kMask]; }
  const T& operator[](std::size_t i) const { return pages_[i >> kPageBits][i & kMask]; }
  void push_back(const T& value) {
    if (size_ == pages_.size() << kPageBits) {
      pages_.push_back(std::make_unique<T[]>(std::size_t{1} << kPageBits));
    }
    (*this)[size_++] = value;
  }

 private:
  static constexpr std::size_t kMask = (std::size_t{1} << kPageBits) - 1;
  std::vector<std::unique_ptr<T[]>> pages_;
  std::size_t size_ = 0;
};

}  // namespace windtunnel
