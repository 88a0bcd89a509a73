#pragma once
// One sub-command of the program. The table of all stands in commands.cc, in plain sight.

#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// Exit codes, the same for every command.
enum ExitCode : int { kExitDone = 0, kExitInputWrong = 1, kExitJobFailed = 2, kExitOurBug = 3 };

struct Command {
  std::string_view name;     ///< As typed: "collective".
  std::string_view summary;  ///< One line for the list of commands.
  /// Runs with the arguments behind the name. Results go to stdout, progress and notes to stderr.
  /// May throw ConfigError, SimulationError, InternalError: `RunWindtunnel` turns them into message
  /// and exit code.
  int (*run)(const std::vector<std::string>& arguments);
  /// Man-page text for `windtunnel help NAME`: NAME, SYNOPSIS, DESCRIPTION, OPTIONS, EXAMPLES, EXIT
  /// STATUS, SEE ALSO.
  std::string_view manual;
  /// What stands behind the manual because the code knows it best; may be null.
  std::string (*appendix)() = nullptr;
};
/// The whole help page of a command.
std::string HelpOf(const Command& command);

// Each in a file of its own, NAME_command.cc.
extern const Command kCollectiveCommand;
extern const Command kGoalCommand;
extern const Command kMeasureCommand;
extern const Command kTopoCommand;
extern const Command kValidateCommand;
extern const Command kReportCommand;
extern const Command kMscclCommand;
extern const Command kNcclCommand;

/// All commands, in the order of the help.
const std::vector<Command>& Commands();
/// The whole program: argv without its first word. Returns the exit code; catches everything once.
int RunWindtunnel(const std::vector<std::string>& arguments);
/// Text of `--version`: version, compiler, build type, library versions.
std::string VersionText();
/// Version alone, as results carry it.
std::string_view Version();

}  // namespace windtunnel
