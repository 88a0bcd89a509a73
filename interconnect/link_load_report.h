#pragma once
// The busiest links of a run, for people and for machines.

#include <span>
#include <string>
#include <vector>

#include "interconnect/network.h"

namespace windtunnel {

struct LinkLoadReport {
  struct Row {
    LinkId link = 0;
    std::string name;  ///< "node0/nic3 -> leaf2"
    LinkKind kind = LinkKind::kNetwork;
    LinkUse use;
    double utilisation = 0;  ///< Busy share of the span, 0..1.
  };
  Picoseconds span;             ///< The time that utilisation refers to.
  std::vector<Row> rows;        ///< Busiest first; equal ones in link order.
  std::uint64_t carrying = 0;   ///< Links that carried anything.
  std::uint64_t links = 0;      ///< Links of the topology that are up.
  double mean_utilisation = 0;  ///< Over the links that carried anything.
};

/// The `most` busiest links of `use`, one entry per link of the topology.
/// Contract: no link was busy for longer than `span` (that would be our bug).
LinkLoadReport BusiestLinks(const Topology& topology, std::span<const LinkUse> use,
                            Picoseconds span, std::size_t most = 10);

/// A table: link, utilisation, payload and wire bytes, queue, and pauses, marks and drops where any
/// link has some.
std::string FormatLinkLoadReport(const LinkLoadReport& report);

}  // namespace windtunnel
