#include "validate/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace windtunnel::validate {

void ForEachIndex(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t)>& progress) {
  constexpr unsigned kMostThreads = 16;
  if (threads == 0) threads = std::min(kMostThreads, std::thread::hardware_concurrency());
  threads =
      static_cast<unsigned>(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(1, count)));
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::vector<std::exception_ptr> faults(count);
  const auto serve = [&](bool report) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        faults[i] = std::current_exception();
      }
      const std::size_t finished = ++done;
      if (report && progress) progress(finished);
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back([&] { serve(false); });
    serve(true);
  }
  if (progress) progress(count);
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
}

}  // namespace windtunnel::validate
