#pragma once

#include <vector>

#include "interconnect/cluster.h"

namespace windtunnel {

/// Devices that hang on one switch of the network by one link each way, and on nothing else that
/// leads to the network: NICs, and endpoints without one. Routes between two of them are routes
/// between their switches.
class NetworkPorts {
 public:
  struct Port {
    LinkId up = 0;    ///< Into the network.
    LinkId down = 0;  ///< Back.
    DeviceId hub = 0;
    bool single = false;  ///< False: the device is no such port, and nothing else is said.
  };
  explicit NetworkPorts(const Cluster& cluster);
  const Port& operator[](DeviceId device) const { return ports_[device]; }
  /// Devices in the order of their ports, switch by switch, counted from 0; then all other devices.
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }

 private:
  void NumberPorts(const Cluster& cluster);

  std::vector<Port> ports_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace windtunnel
