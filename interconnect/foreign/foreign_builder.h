#pragma once
// What the readers of foreign formats share: lines and words with their numbers, and a topology
// that grows by endpoints, switches and cables.

#include <string>
#include <string_view>
#include <vector>

#include "interconnect/topology.h"
#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel::foreign {

constexpr std::uint64_t kMostDevices = 1'000'000;
constexpr std::uint64_t kMostLinks = 8'000'000;

struct Line {
  std::uint64_t number = 0;  ///< 1-based.
  std::string_view text;
  std::vector<std::string_view> words;
};
/// All lines, empty ones too, cut at blanks and tabs; "\r" is a blank.
std::vector<Line> SplitLines(std::string_view text);
/// Without the blanks around it.
std::string_view Trim(std::string_view text);

class Builder {
 public:
  Builder(std::string_view text, std::string_view file_name, std::string_view name);

  InputFault At(std::uint64_t line, std::string field, std::string_view value = {}) const;
  [[noreturn]] void Fail(std::uint64_t line, std::string field, std::string_view value,
                         std::string problem, std::string expected = {}) const;

  /// Refuses a network of too many devices or cables by its description, before any is built.
  /// Counts may be rounded: beyond 2^53 all are too many.
  void CheckSize(std::uint64_t line, std::string field, std::string_view value, double devices,
                 double cables) const;

  DeviceId AddEndpoint(std::string name, std::uint32_t node, std::uint32_t index, bool relay);
  DeviceId AddSwitch(std::string name, DeviceKind kind = DeviceKind::kNetworkSwitch);
  /// A link each way.
  void AddCable(DeviceId a, DeviceId b, BitsPerSecond rate, Picoseconds latency,
                LinkKind kind = LinkKind::kNetwork);
  void AddLink(DeviceId from, DeviceId to, BitsPerSecond rate, Picoseconds latency,
               LinkKind kind = LinkKind::kNetwork);
  void Note(std::string text) { topology_.notes.push_back(std::move(text)); }
  void Warn(std::string text) { topology_.warnings.push_back(std::move(text)); }
  Topology& topology() { return topology_; }
  /// Sets the node count. Contract: last call.
  Topology Finish();

 private:
  std::string file_;
  Topology topology_;
};

Topology ReadAstraSim(std::string_view text, std::string_view file_name);
Topology ReadNs3(std::string_view text, std::string_view file_name);
Topology ReadHtsim(std::string_view text, std::string_view file_name);
Topology ReadSimAi(std::string_view text, std::string_view file_name);
Topology ReadSimGrid(std::string_view text, std::string_view file_name);

}  // namespace windtunnel::foreign
