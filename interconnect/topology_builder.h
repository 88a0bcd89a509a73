#pragma once
// From the parsed file (proto/topology.proto) to the plain Topology, and back.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interconnect/catalogue.h"
#include "interconnect/topology.h"
#include "proto/text_io.h"
#include "proto/topology.pb.h"
#include "sim/error.h"

namespace windtunnel {

/// Bounds that are checked before memory is taken.
constexpr std::uint64_t kMaxDevices = 2'000'000;
constexpr std::uint64_t kMaxLinks = 20'000'000;
constexpr std::uint64_t kMaxHosts = 1'000'000;

/// Gives the one-host topology behind a name of `of` that is no template of the file itself.
/// @throws ConfigError built on the fault when the name is unknown.
using HostSource = std::function<Topology(std::string_view name, const InputFault& where)>;

/// "gpu[0-3]" -> gpu0 gpu1 gpu2 gpu3; "n[0,2]/gpu[0-1]" -> four names, last range fastest.
/// @throws ConfigError on a bad range or more than kMaxDevices names.
std::vector<std::string> ExpandRange(std::string_view pattern, const InputFault& where);

/// @throws ConfigError naming the field.
Topology BuildTopology(const proto::TopologyFile& file, const proto::FieldLines& lines,
                       const std::string& file_name, const Catalogue& catalogue,
                       const HostSource& hosts);

/// The templates of a file as one-host topologies, by name, built when asked for.
Topology BuildTemplate(const proto::TemplateEntry& entry, const std::string& path,
                       const proto::FieldLines& lines, const std::string& file_name,
                       const Catalogue& catalogue);

/// Adds a copy of `host` from host number `node` on, its names behind "node<node>/". Several hosts
/// (an NVLink domain) keep their order; what stands outside them is named by its hosts:
/// "nodes18-35/nvswitch". Contract: `out->node_count` is counted by the caller.
void AppendHost(const Topology& host, std::uint32_t node, Topology* out);

/// `nodes` copies of a host or a domain of hosts. @throws ConfigError when it is on a network
/// already.
Topology MultiplyHosts(const Topology& host, std::uint32_t nodes, const InputFault& where);

/// Every device and link by name, nothing folded: reads back equal.
proto::TopologyFile ToProto(const Topology& topology);

}  // namespace windtunnel
