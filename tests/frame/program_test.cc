// The program as a whole: its help, its version, its completion in the shell, and the surroundings
// that it must bear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "apps/command.h"
#include "tests/frame/shell.h"
#include "tests/support/test_support.h"

namespace windtunnel::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  return names;
}

std::vector<std::string> SortedWords(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::ranges::sort(words);
  return words;
}

/// What bash offers behind `line`; the last word is the one being typed.
std::vector<std::string> Completions(const std::vector<std::string>& line) {
  std::string words;
  for (const std::string& word : line) words += " " + Quoted(word);
  const std::string script = "source " + Quoted(SourceDir() / "apps" / "completion.bash") +
                             "; COMP_WORDS=(" + Quoted(WINDTUNNEL_PROGRAM) + words +
                             "); COMP_CWORD=" + std::to_string(line.size()) +
                             "; _windtunnel; printf \"%s\\n\" \"${COMPREPLY[@]}\"";
  const ShellResult result = Shell("bash -c " + Quoted(script));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return SortedWords(result.output);
}

TEST(ProgramTest, VersionNamesWhatTheProgramWasBuiltFrom) {
  const ProgramResult result = RunProgram({"--version"});
  EXPECT_EQ(result.exit_code, kExitDone);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(std::regex_search(result.out, std::regex("^windtunnel [0-9]+\\.[0-9]+\\.[0-9]+\n")));
  EXPECT_TRUE(std::regex_search(
      result.out, std::regex("SystemC [0-9.]+, Boost [0-9.]+, protobuf [0-9.]+, fmt [0-9.]+\n")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("build: "), HasSubstr("measuring on GPUs: ")));
}

TEST(ProgramTest, EveryCommandHasAManualOfTheUsualSections) {
  for (const std::string& name : CommandNames()) {
    const ProgramResult result = RunProgram({"help", name});
    EXPECT_EQ(result.exit_code, kExitDone) << name;
    std::size_t at = 0;
    for (const char* section :
         {"NAME\n", "SYNOPSIS\n", "DESCRIPTION\n", "OPTIONS", "EXAMPLES\n", "EXIT STATUS\n"}) {
      const std::size_t found = result.out.find(section, at);
      EXPECT_NE(found, std::string::npos) << name << ": no section " << section << " in its place";
      if (found != std::string::npos) at = found;
    }
    EXPECT_EQ(RunProgram({name, "--help"}).out, result.out) << name;
  }
}

TEST(ProgramTest, TheListOfCommandsNamesEachWithItsSummary) {
  const ProgramResult result = RunProgram({"--help"});
  EXPECT_EQ(result.exit_code, kExitDone);
  for (const Command& command : Commands())
    EXPECT_THAT(result.out, AllOf(HasSubstr("  " + std::string(command.name) + " "),
                                  HasSubstr(std::string(command.summary))));
  EXPECT_EQ(RunProgram({}).exit_code, kExitInputWrong);
}

TEST(ProgramTest, AnUnknownCommandIsAnsweredWithTheNearest) {
  ASSERT_FALSE(Commands().empty());
  const std::string name(Commands().front().name);
  const ProgramResult result = RunProgram({name + "x"});
  EXPECT_EQ(result.exit_code, kExitInputWrong);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("did you mean '" + name + "'"));
}

TEST(CompletionTest, OffersTheCommandsOfTheHelp) {
  std::vector<std::string> expected = CommandNames();
  for (const char* word : {"help", "--help", "--version"}) expected.emplace_back(word);
  std::ranges::sort(expected);
  EXPECT_EQ(Completions({""}), expected);
  std::vector<std::string> topics = CommandNames();
  std::ranges::sort(topics);
  EXPECT_EQ(Completions({"help", ""}), topics);
  EXPECT_EQ(Completions({"nccl", "d"}), std::vector<std::string>{"diff"});
}

TEST(CompletionTest, OffersEveryLongFlagOfAManual) {
  for (const std::string& name : CommandNames()) {
    const std::string manual = RunProgram({"help", name}).out;
    const std::vector<std::string> offered = Completions({name, "--"});
    // Flags stand first on their line of the OPTIONS section, after an optional short form.
    const std::regex flag_line("\n +(-[a-zA-Z],? +)?(--[a-z][a-z_-]*)");
    const std::size_t options = manual.find("\nOPTIONS");
    const std::size_t end = manual.find("\nEXAMPLES\n");
    ASSERT_LT(options, end) << name;
    const std::string section = manual.substr(options, end - options);
    for (std::sregex_iterator it(section.begin(), section.end(), flag_line), none; it != none; ++it)
      EXPECT_THAT(offered, ::testing::Contains((*it)[2].str())) << name;
  }
}

TEST(SurroundingsTest, RunsWithoutAHomeAndWithAnUnwritableOne) {
  const std::string program = Quoted(WINDTUNNEL_PROGRAM);
  const std::string usual = RunProgram({"--help"}).out;
  EXPECT_EQ(Shell("env -i " + program + " --help").output, usual);
  const std::filesystem::path home = TemporaryDir() / "home";
  std::filesystem::create_directory(home);
  std::filesystem::permissions(home, std::filesystem::perms::owner_read);
  EXPECT_EQ(Shell("env HOME=" + Quoted(home) + " " + program + " --help").output, usual);
  std::filesystem::permissions(home, std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::is_empty(home));
}

}  // namespace
}  // namespace windtunnel::testing
