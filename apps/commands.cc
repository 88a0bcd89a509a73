#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "apps/command.h"
#include "sim/error.h"

namespace windtunnel {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      kCollectiveCommand, kValidateCommand, kMeasureCommand, kReportCommand,
      kNcclCommand,       kTopoCommand,     kMscclCommand,   kGoalCommand,
  };
  return commands;
}

std::string HelpOf(const Command& command) {
  std::string text(command.manual);
  if (command.appendix != nullptr) text += command.appendix();
  return text;
}

namespace {

std::string Overview() {
  std::string out =
      "windtunnel: rehearses a training cluster before anyone buys it\n\n"
      "usage: windtunnel COMMAND [OPTIONS]\n       windtunnel help COMMAND\n       windtunnel "
      "--version\n\ncommands:\n";
  for (const Command& command : Commands())
    out += fmt::format("  {:<12} {}\n", command.name, command.summary);
  out +=
      "\nexit status: 0 done, 1 the input is wrong, 2 the simulated job failed, 3 a fault of "
      "windtunnel itself\n";
  return out;
}

const Command& FindCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (command.name == name) return command;
    names.emplace_back(command.name);
  }
  throw ConfigError({.field = "command",
                     .value = name,
                     .problem = "unknown command",
                     .expected = "one of " + JoinNames(names),
                     .nearest = NearestName(name, names)});
}

int Dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(Overview().c_str(), stderr);
    return kExitInputWrong;
  }
  const std::string& first = arguments.front();
  if (first == "--version" || first == "version") {
    std::fputs(VersionText().c_str(), stdout);
    return kExitDone;
  }
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    std::fputs(Overview().c_str(), stdout);
    return kExitDone;
  }
  if (first == "help") {
    std::fputs(HelpOf(FindCommand(arguments[1])).c_str(), stdout);
    return kExitDone;
  }
  const Command& command = FindCommand(first);
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (const std::string& argument : rest) {
    if (argument == "--") break;
    if (argument == "--help") {
      std::fputs(HelpOf(command).c_str(), stdout);
      return kExitDone;
    }
  }
  return command.run(rest);
}

}  // namespace

int RunWindtunnel(const std::vector<std::string>& arguments) {
  try {
    const int code = Dispatch(arguments);
    if (std::fflush(stdout) != 0) {
      throw ConfigError({.field = "stdout", .problem = "cannot be written (is the disk full?)"});
    }
    return code;
  } catch (const ConfigError& error) {
    fmt::print(stderr, "windtunnel: error: {}\n", error.what());
    return kExitInputWrong;
  } catch (const SimulationError& error) {
    fmt::print(stderr, "windtunnel: the simulated job failed: {}\n", error.what());
    return kExitJobFailed;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "windtunnel: error: out of memory on this machine\n");
    return kExitInputWrong;
  } catch (const std::exception& error) {
    fmt::print(stderr, "windtunnel: fault of windtunnel itself, please report: {}\n", error.what());
    return kExitOurBug;
  }
}

}  // namespace windtunnel
