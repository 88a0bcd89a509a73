#include "sim/check.h"

#include <string_view>

#include "sim/error.h"

namespace windtunnel::internal {

CheckContext& CurrentCheckContext() {
  thread_local CheckContext context;
  return context;
}

CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  const std::string_view path(file);
  const auto cut =
      path.rfind('/', path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') - 1);
  text_ << (cut == std::string_view::npos ? path : path.substr(cut + 1)) << ':' << line
        << ": check failed: " << condition;
  const CheckContext& context = CurrentCheckContext();
  if (context.module_path != nullptr) {
    text_ << " [at " << context.now_ps << " ps in " << context.module_path << ']';
  }
  text_ << ' ';
}

CheckFailure::~CheckFailure() noexcept(false) { throw InternalError(text_.str()); }

}  // namespace windtunnel::internal
