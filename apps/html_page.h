#pragma once
// The frame of pages that stand by themselves: style, title, nothing loaded from anywhere.

#include <string>
#include <string_view>

namespace windtunnel {

/// Everything up to the first section: head, style, the title as heading, a note below it.
std::string HtmlPageStart(std::string_view title, std::string_view note);
inline constexpr std::string_view kHtmlPageEnd = "</body>\n</html>\n";

}  // namespace windtunnel
