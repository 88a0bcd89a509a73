#include "validate/nccl/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel::measure {
namespace {

/// "0,1,3"
std::vector<int> ParseList(const std::string& text) {
  std::vector<int> list;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    list.push_back(static_cast<int>(ParseCount(
        part, {.field = "--gpus", .expected = "numbers of GPUs, as in 0,1,3"}, 0, 1023)));
  for (const int gpu : list)
    if (std::count(list.begin(), list.end(), gpu) > 1)
      throw ConfigError({.field = "--gpus",
                         .value = text,
                         .problem = "GPU " + std::to_string(gpu) + " is named twice"});
  return list;
}

}  // namespace

std::vector<std::uint64_t> SizesOf(const Options& options) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = options.smallest; size <= options.largest; size *= options.factor) {
    sizes.push_back(size);
    if (size > options.largest / options.factor) break;
  }
  return sizes;
}

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.empty())
    throw ConfigError({.field = "measure", .problem = "what to measure is not said"});
  options.kind = arguments.front();
  std::string smallest = "8";
  std::string largest = options.kind == "nccl" ? "128M" : "1G";
  std::string factor = "2";
  std::string gpus;
  bool no_check = false;
  CLI::App app;
  app.set_help_flag();
  app.add_option("-o,--output", options.folder);
  app.add_option("--op", options.op);
  app.add_option("-d,--type", options.type);
  app.add_option("-b", smallest);
  app.add_option("-e", largest);
  app.add_option("-f", factor);
  app.add_option("-n", options.repeats)->check(CLI::Range(1, 1'000'000));
  app.add_option("-w", options.warmups)->check(CLI::Range(0, 1'000'000));
  app.add_option("--gpus", gpus);
  app.add_flag("--single-process", options.single_process);
  app.add_flag("--grid", options.grid);
  app.add_flag("--no-check", no_check);
  app.add_option("--join", options.join);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend() - 1);
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw ConfigError({.field = "measure",
                       .problem = error.what(),
                       .expected = "the flags of `windtunnel help measure`"});
  }
  options.smallest =
      std::max<std::uint64_t>(1, ParseNcclTestsSize(smallest, {.field = "-b"}).count());
  options.largest = ParseNcclTestsSize(largest, {.field = "-e"}).count();
  options.factor = ParseCount(factor, {.field = "-f"}, 2, 1024);
  if (options.largest < options.smallest)
    throw ConfigError({.field = "-e",
                       .value = largest,
                       .problem = "is smaller than the smallest size",
                       .expected = "at least -b " + smallest});
  if (!gpus.empty()) options.gpus = ParseList(gpus);
  options.check = !no_check;
  if (!options.join.empty() && (options.single_process || options.grid || !gpus.empty()))
    throw ConfigError({.field = "--join",
                       .value = options.join,
                       .problem = "does not go with --single-process, --grid or --gpus:",
                       .expected = "one process per GPU; NCCL_ALGO and NCCL_PROTO force a run"});
  return options;
}

}  // namespace windtunnel::measure
