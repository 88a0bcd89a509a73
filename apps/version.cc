// Version and build facts. They name what can change a result: compiler, build type and libraries.
#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <sysc/kernel/sc_ver.h>

#include <boost/version.hpp>

#include "apps/command.h"

namespace windtunnel {

std::string_view Version() { return WINDTUNNEL_VERSION; }

std::string VersionText() {
  std::string text = fmt::format("windtunnel {}\n", Version());
  // The revision is that of the last time CMake ran; a tree without version control has none.
  if constexpr (sizeof(WINDTUNNEL_REVISION) > 1)
    text += fmt::format("configured from revision {}\n", WINDTUNNEL_REVISION);
#ifdef __clang__
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("gcc {}", __VERSION__);
#endif
  text += fmt::format("build: {}, {}, C++ {}{}\n", WINDTUNNEL_BUILD_TYPE, compiler, __cplusplus,
                      sizeof(WINDTUNNEL_SANITIZERS) > 1
                          ? fmt::format(", sanitizers {}", WINDTUNNEL_SANITIZERS)
                          : "");
  text += fmt::format("SystemC {}.{}.{}, Boost {}.{}.{}, protobuf {}, fmt {}.{}.{}\n",
                      SC_VERSION_MAJOR, SC_VERSION_MINOR, SC_VERSION_PATCH, BOOST_VERSION / 100000,
                      BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100,
                      google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION),
                      FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  text += fmt::format("measuring on GPUs: {}\n", WINDTUNNEL_MEASURE_FACTS);
  return text;
}

}  // namespace windtunnel
