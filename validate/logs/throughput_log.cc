// examples/sec and its relatives.

#include <regex>

#include "validate/logs/log_text.h"
#include "validate/logs/other_logs.h"

namespace windtunnel::validate {

ThroughputLog ReadThroughput(std::string_view text) {
  ThroughputLog log;
  // Estimators print a message and log it again; both lines carry the same words.
  std::string last_examples, last_steps;
  for (const std::string& line : Lines(text)) {
    std::smatch match;
    static const std::regex iteration(R"(Iter #\d+: ([\d.]+) (?:img|images)/sec per (?:GPU|CPU))");
    static const std::regex mean(R"(Img/sec per (?:GPU|CPU): ([\d.]+))");
    static const std::regex total(R"(Total img/sec on (\d+) (?:GPU|CPU)\(s\): ([\d.]+))");
    static const std::regex examples(R"(examples/sec: ([\d.]+))");
    static const std::regex steps(R"(global_step/sec: ([\d.]+))");
    static const std::regex tutorial(R"(\(([\d.]+) examples/sec; ([\d.]+) sec/batch\))");
    const bool logged_again =
        Contains(line, "estimator.py") || Contains(line, "basic_session_run_hooks.py");
    if (std::regex_search(line, match, iteration)) {
      log.per_gpu.push_back(std::stod(match[1]));
    } else if (std::regex_search(line, match, total)) {
      log.gpus = static_cast<std::uint32_t>(std::stoul(match[1]));
      log.total = std::stod(match[2]);
    } else if (std::regex_search(line, match, mean)) {
      log.mean_per_gpu = std::stod(match[1]);
    } else if (std::regex_search(line, match, tutorial)) {
      log.examples_per_second.push_back(std::stod(match[1]));
      log.steps_per_second.push_back(1 / std::stod(match[2]));
    } else if (std::regex_search(line, match, examples)) {
      if (!logged_again || match[1] != last_examples)
        log.examples_per_second.push_back(std::stod(match[1]));
      last_examples = match[1];
    } else if (std::regex_search(line, match, steps)) {
      if (!logged_again || match[1] != last_steps)
        log.steps_per_second.push_back(std::stod(match[1]));
      last_steps = match[1];
    }
  }
  return log;
}

}  // namespace windtunnel::validate
