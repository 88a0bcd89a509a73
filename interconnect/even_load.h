#pragma once
// What traffic puts on the links of a network that spreads it evenly over all equal routes: no
// choice of single routes loads the busiest link less.

#include <map>
#include <span>
#include <vector>

#include "interconnect/network_ports.h"

namespace windtunnel {

class EvenLoad {
 public:
  /// `cluster` must outlive it.
  explicit EvenLoad(const Cluster& cluster);

  /// `bytes` of payload from one device on the network to another. Pairs without a way count
  /// nothing.
  void Add(DeviceId from, DeviceId to, double bytes);
  /// `bytes` from every device to every device of the other nodes (a device as often as it is
  /// named).
  void AddBetweenNodes(std::span<const std::vector<DeviceId>> nodes, double bytes);

  struct Busiest {
    LinkId link = 0;
    double seconds = 0;  ///< All its bytes, frames included, at its rate. 0: no link is loaded.
  };
  /// Of all that was added; forgets it.
  Busiest TakeBusiest();

 private:
  struct Place {
    DeviceId device;  // Switch of a port, or the device itself.
    bool port;
  };
  Place Enter(DeviceId device, double bytes);
  Place Leave(DeviceId device, double bytes);
  void Between(DeviceId from, DeviceId to, double bytes);
  void SpreadAll();

  const Cluster& cluster_;
  NetworkPorts ports_;
  SwitchRoutes routes_;
  std::vector<double> loads_;                              // Payload bytes per link.
  std::map<std::pair<DeviceId, DeviceId>, double> pairs_;  // Still to be spread.
  std::vector<double> seconds_per_byte_;
};

}  // namespace windtunnel
