#include "apps/flags.h"

#include <algorithm>

#include "sim/parse_units.h"

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

std::vector<std::uint32_t> ParseGpuList(std::string_view flag, const std::string& text) {
  std::vector<std::uint32_t> numbers;
  if (text.empty()) return numbers;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    numbers.push_back(static_cast<std::uint32_t>(
        ParseCount(text.substr(at, comma - at), {.field = std::string(flag)}, 0, 1u << 24)));
    at = comma + 1;
  }
  return numbers;
}

Bytes ParseSizeFlag(std::string_view flag, std::string_view text) {
  const InputFault where{.field = std::string(flag)};
  const bool letter =
      !text.empty() && std::string_view("kKmMgG").find(text.back()) != std::string_view::npos;
  return letter ? ParseNcclTestsSize(text, where) : ParseSize(text, where);
}

std::string JoinSettings(const std::vector<std::string>& settings) {
  std::string joined;
  for (const std::string& setting : settings) {
    if (!joined.empty()) joined += ",";
    joined += setting;
  }
  return joined;
}

ConfigError NetworkNeedsPackets(const std::string& settings) {
  return ConfigError({.field = "--network",
                      .value = settings,
                      .problem = "sets the packet level, and this run is at another:",
                      .expected = "--fidelity packet"});
}

}  // namespace windtunnel
