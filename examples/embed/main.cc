// How long does a message stay on a wire? Uses windtunnel's quantities; see docs/embedding.md for
// more.
#include <cstdio>
#include <string>

#include "sim/error.h"
#include "sim/parse_units.h"
#include "sim/units.h"

int main(int argc, char** argv) {
  using namespace windtunnel;
  if (argc != 3) {
    std::fputs("usage: embed SIZE RATE    for example: embed 64MiB 450GB/s\n", stderr);
    return 1;
  }
  try {
    const Bytes size = ParseSize(argv[1], {.field = "SIZE"});
    const BitsPerSecond rate = ParseRate(argv[2], {.field = "RATE"});
    std::printf("%llu ps\n",
                static_cast<unsigned long long>(SerializationTime(size, rate).count()));
    return 0;
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
