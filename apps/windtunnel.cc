// The program. SystemC wants its entry named sc_main when its library provides main; ours comes
// first.
#include <string>
#include <vector>

#include "apps/command.h"

int sc_main(int argc, char* argv[]) {
  return windtunnel::RunWindtunnel(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}

int main(int argc, char* argv[]) { return sc_main(argc, argv); }
