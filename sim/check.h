#pragma once
// Checks that are on in every build. A failed check throws InternalError: our code is wrong, the
// program exits with 3.

#include <sstream>
#include <string>

namespace windtunnel::internal {

class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure() noexcept(false);
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
};

/// Where a failing check is in simulated time: set by the event loop and by modules around their
/// handlers.
struct CheckContext {
  unsigned long long now_ps = 0;
  const char* module_path = nullptr;
};
CheckContext& CurrentCheckContext();

}  // namespace windtunnel::internal

/// WT_CHECK(credits <= limit) << "port " << port;  One condition per check.
#define WT_CHECK(condition) \
  if (condition)            \
    [[likely]];             \
  else                      \
    ::windtunnel::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()
