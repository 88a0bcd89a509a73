#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace windtunnel::measure {

/// Flags of `windtunnel measure KIND`; see `windtunnel help measure`.
struct Options {
  std::string kind;
  std::string folder = "out/measure";  ///< -o
  std::string op = "all_reduce";
  std::string type = "float";
  std::uint64_t smallest = 8;
  std::uint64_t largest = 128ull << 20;
  std::uint64_t factor = 2;
  int repeats = 20;
  int warmups = 5;
  std::vector<int> gpus;  ///< Empty = all.
  bool single_process = false;
  bool grid = false;
  bool check = true;
  std::string join;  ///< File through which ranks of a launcher meet; empty = processes of our own.
};

/// Sizes from smallest to largest.
std::vector<std::uint64_t> SizesOf(const Options& options);
/// @throws ConfigError naming the flag.
Options ParseOptions(const std::vector<std::string>& arguments);

}  // namespace windtunnel::measure
