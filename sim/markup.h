#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// Text with the five characters that HTML and XML give a meaning replaced.
std::string EscapeMarkup(std::string_view text);

}  // namespace windtunnel
