#pragma once
// The example tuner plugin of NCCL: a CSV table that makes combinations free of cost and sets the
// channel count. Source: NVIDIA/nccl, ext-tuner/example.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/types.h"

namespace windtunnel::nccl {

class TunerPlugin {
 public:
  struct Rule {
    Function function = Function::kAllReduce;
    std::uint64_t min_bytes = 0;
    std::uint64_t max_bytes = 0;
    AlgorithmId algorithm = AlgorithmId::kRing;
    Protocol protocol = Protocol::kSimple;
    int channels = -1;  ///< -1 keeps NCCL's.
    int nodes = -1;     ///< -1 any; so are the following.
    int ranks = -1;
    int pipelined = -1;
    int registered = -1;
  };
  /// Columns: collective, minBytes, maxBytes, algorithm, protocol, channels, nodes, ranks
  /// [, pipelined [, registered]]; # starts a comment. @throws ConfigError with file, line, column.
  static TunerPlugin FromFile(const std::string& path);
  static TunerPlugin FromText(const std::string& text, const std::string& name);

  /// First rule that fits, in file order; null when none does. Buffers count as not registered.
  const Rule* Find(Function function, std::uint64_t bytes, int nodes, int ranks,
                   int pipelined) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
};

}  // namespace windtunnel::nccl
