#include "sim/error.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "sim/units.h"

namespace windtunnel {
namespace {

std::string Printable(std::string_view text) {
  constexpr std::size_t kLimit = 80;
  std::string out;
  for (const char c : text.substr(0, kLimit)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (text.size() > kLimit) out += "...";
  return out;
}

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string FormatFault(const InputFault& fault) {
  std::string out;
  if (!fault.file.empty()) {
    out += Printable(fault.file);
    if (fault.line != 0) out += ":" + std::to_string(fault.line);
    out += ": ";
  } else if (fault.line != 0) {
    out += "line " + std::to_string(fault.line) + ": ";
  }
  if (!fault.field.empty()) out += Printable(fault.field) + ": ";
  out += fault.problem;
  if (!fault.value.empty()) out += " '" + Printable(fault.value) + "'";
  if (!fault.expected.empty()) out += "; expected " + fault.expected;
  if (!fault.nearest.empty()) out += "; did you mean '" + fault.nearest + "'?";
  return out;
}

std::string NearestName(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 128;  // Longer names are no typing slips; bounds the work.
  if (name.empty() || name.size() > kLongest) return "";
  const std::size_t limit = std::clamp<std::size_t>(name.size() / 3, 1, 4);
  std::size_t best = limit + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = EditDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string NearestName(std::string_view name, const std::vector<std::string>& known) {
  return NearestName(name, std::span<const std::string>(known));
}

std::string JoinNames(std::span<const std::string> names, std::string_view separator) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

void SimTime::ThrowTimeOverflow() {
  throw SimulationError(
      "simulated time would pass 2^63 - 1 ps (106.75 days), the range of the clock");
}

}  // namespace windtunnel
