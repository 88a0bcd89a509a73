#pragma once
// What all readers of logs share: lines, words, and the detection of the kind of a log.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel::validate {

/// Lines without their ends; a carriage return inside a line (progress bars) stays, one at the end
/// does not.
std::vector<std::string> Lines(std::string_view text);
/// Words between blanks and tabs.
std::vector<std::string> Words(std::string_view line);
/// The whole word as a number, or nothing: "1.0e+07", "N/A" is nothing.
std::optional<double> NumberOf(std::string_view word);
std::optional<std::uint64_t> CountOf(std::string_view word);
bool Contains(std::string_view text, std::string_view part);

enum class LogKind : std::uint8_t {
  kUnknown,
  kNcclTests,       ///< Tables of nccl-tests and rccl-tests.
  kNcclTestsJson,   ///< The JSON file of nccl-tests.
  kNcclInfo,        ///< NCCL_DEBUG=INFO without a table.
  kTopologyMatrix,  ///< nvidia-smi topo -m.
  kCopyMatrix,      ///< p2pBandwidthLatencyTest, nvbandwidth.
  kPerftest,        ///< ib_write_bw, ib_write_lat and kin.
  kOsu,             ///< OSU micro-benchmarks.
  kXlaCollectives,  ///< Pipe tables of JAX and XLA collective benchmarks.
  kThroughput,      ///< examples/sec of TensorFlow, Keras, Horovod.
  kTfConfig         ///< One TF_CONFIG text.
};
std::string_view ToString(LogKind kind);
/// By what stands in the text, not by its name. Texts that hold several kinds are the first in the
/// order above that fits: a table within an INFO log is a table.
LogKind DetectLogKind(std::string_view text);

}  // namespace windtunnel::validate
