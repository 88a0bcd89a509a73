#pragma once
// Independent pieces of work over processes, for work that may run once per process only (the
// SystemC kernel) or that keeps state of its own.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace windtunnel::validate {

/// What became of one piece.
struct PieceResult {
  bool done = false;
  std::string text;  ///< What `work` returned; why there is no answer when not done.
};

/// Calls `work(i)` for 0 <= i < count in up to `processes` children (0: one per core, at most 16)
/// and returns what it returned, in the order of i: the result does not depend on `processes`.
/// Pieces are handed out in order, so put long ones first. An exception in `work` or the end of a
/// child by a signal is told in the piece's text; other pieces go on. `progress(done)` is called in
/// the parent. Contract: POSIX; the caller has no other threads.
std::vector<PieceResult> RunInProcesses(std::size_t count, unsigned processes,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t)>& progress = {});

}  // namespace windtunnel::validate
