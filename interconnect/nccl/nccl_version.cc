#include "interconnect/nccl/nccl_version.h"

#include <fmt/format.h>

#include "sim/parse_units.h"

namespace windtunnel::nccl {

NcclVersion ParseNcclVersion(std::string_view text, const InputFault& where) {
  NcclVersion version{0, 0, 0};
  int* const parts[] = {&version.major, &version.minor, &version.patch};
  std::size_t begin = 0;
  std::size_t count = 0;
  while (count < 3) {
    const std::size_t end = text.find('.', begin);
    *parts[count++] = static_cast<int>(
        ParseCount(text.substr(begin, end == text.npos ? text.npos : end - begin), where, 0, 9999));
    if (end == text.npos) return version;
    begin = end + 1;
  }
  InputFault fault = where;
  fault.value = text;
  fault.problem = "is not a version of NCCL:";
  fault.expected = "such as 2.28.9";
  throw ConfigError(fault);
}

std::string ToString(const NcclVersion& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace windtunnel::nccl
