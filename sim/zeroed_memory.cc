#include "sim/zeroed_memory.h"

#include <sys/mman.h>

#include <new>

namespace windtunnel {

ZeroedMemory::ZeroedMemory(std::size_t size) : size_(size) {
  if (size == 0) return;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  // One fault for 2 MiB in place of 512; a system without large pages may refuse.
  if (size >= kLarge) static_cast<void>(madvise(data, size, MADV_HUGEPAGE));
  data_ = static_cast<std::byte*>(data);
}

ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace windtunnel
