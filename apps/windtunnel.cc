// The program.
#include <string>
#include <vector>

#include "apps/command.h"

int main(int argc, char* argv[]) {
  return windtunnel::RunWindtunnel(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
