#pragma once
// Independent pieces of work over threads, with the same result for any number of them.

#include <cstddef>
#include <functional>

namespace windtunnel::validate {

/// Calls `work(i)` for 0 <= i < count, on `threads` threads (0: one per core, at most 16). Each
/// call must write only what belongs to its index; then the result does not depend on `threads`.
/// `progress(done)` is called on the calling thread alone, now and then and at the end. The first
/// exception by index is thrown again after all threads have ended.
void ForEachIndex(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t)>& progress = {});

}  // namespace windtunnel::validate
