#include "apps/flags.h"

namespace windtunnel {

void ParseFlags(CLI::App& app, std::string_view command,
                const std::vector<std::string>& arguments) {
  app.set_help_flag();
  app.allow_extras(false);
  std::vector<std::string> reversed(arguments.rbegin(),
                                    arguments.rend());  // CLI11 takes the last argument first.
  try {
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    // Parse again with extras allowed, to name the first unknown one and what it is near to.
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    std::string unknown;
    for (const std::string& argument : arguments) {
      const std::string name = argument.substr(0, argument.find('='));
      if (name.starts_with("-") && std::find(known.begin(), known.end(), name) == known.end()) {
        unknown = name;
        break;
      }
    }
    throw ConfigError({.field = std::string(command),
                       .value = unknown.empty() && !arguments.empty() ? arguments.back() : unknown,
                       .problem = unknown.empty() ? "unexpected argument" : "unknown flag",
                       .expected = "the flags of `windtunnel help " + std::string(command) + "`",
                       .nearest = NearestName(unknown, known)});
  } catch (const CLI::ParseError& error) {
    throw ConfigError({.field = std::string(command),
                       .problem = error.what(),
                       .expected = "the flags of `windtunnel help " + std::string(command) + "`"});
  }
}

}  // namespace windtunnel
