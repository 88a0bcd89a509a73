#include "interconnect/wire_format.h"

#include <algorithm>
#include <optional>

#include "sim/error.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

// NVLink: flits of 16 bytes, up to 256 bytes of data per packet behind one header flit and one
// address-extension flit. Source: Foley and Danskin, "Ultra-Performance Pascal GPU and NVLink
// Interconnect", IEEE Micro 37(2), 2017. Later generations keep the packet (ASSUMED).
constexpr WireFormat kNvlink{.max_payload = 256, .overhead = 32};
// PCIe 1-5: start framing 4 (gen 1, 2: 1 + 1 with sequence 2), TLP header with 64-bit address 16,
// LCRC 4. Source: PCI Express Base Specification 5.0, sections 2.2 and 3.6, 4.2.2. Payload 256
// bytes: the usual setting of server root ports.
constexpr WireFormat kPcie{.max_payload = 256, .overhead = 24};
// PCIe 6: flits of 256 bytes carry 236 bytes of TLP; header 16 as before. (256 + 16) x 256 / 236 -
// 256 = 39. Source: PCI Express Base Specification 6.0, section 4.2.3.
constexpr WireFormat kPcie6{.max_payload = 256, .overhead = 39};
// InfiniBand, middle packet of a reliable connection: LRH 8, BTH 12, ICRC 4, VCRC 2. Source:
// InfiniBand Architecture Specification volume 1, sections 5.2, 7.7, 9.2. Delimiters and FEC are
// part of the line encoding.
constexpr WireFormat kInfiniband{.max_payload = 4096, .overhead = 26};
// RoCEv2: preamble and SFD 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12. Source:
// IEEE 802.3 clause 4; InfiniBand Architecture Specification annex A17.
constexpr WireFormat kRoce{.max_payload = 4096, .overhead = 82};
// TCP over IPv4 with time stamps in a 1,500-byte MTU: preamble and SFD 8, Ethernet 14, IPv4 20, TCP
// 32, FCS 4, gap 12. Source: IEEE 802.3 clause 4, RFC 791, RFC 9293, RFC 7323.
constexpr WireFormat kEthernet{.max_payload = 1448, .overhead = 90};
// EFA's SRD packets fit the 9,001-byte MTU of a VPC; the header bytes are not published: ASSUMED to
// be those of RoCEv2.
constexpr WireFormat kEfa{.max_payload = 8192, .overhead = 82};
// Slingshot runs Ethernet frames with shortened gap and preamble at its own links; frames of 2 KiB
// of payload. Header bytes ASSUMED as 8 less than RoCEv2. Source: De Sensi et al., "An In-Depth
// Analysis of the Slingshot Interconnect", SC 2020.
constexpr WireFormat kSlingshot{.max_payload = 2048, .overhead = 74};
// NUMA rates in our files are measured rates of payload (NCCL's topo.h), and ICI rates are rates of
// data in public system descriptions: no overhead on top.
constexpr WireFormat kNone{.max_payload = 4096, .overhead = 0};

struct NamedFormat {
  std::string_view name;
  WireFormat format;
};
constexpr NamedFormat kNetworkFormats[] = {{"infiniband", kInfiniband}, {"roce", kRoce},
                                           {"ethernet", kEthernet},     {"efa", kEfa},
                                           {"slingshot", kSlingshot},   {"ideal", kNone}};

// Which protocol a switch or NIC family speaks when nothing else is said.
struct ModelProtocol {
  std::string_view prefix;
  std::string_view protocol;
};
constexpr ModelProtocol kModelProtocols[] = {{"quantum", "infiniband"},
                                             {"spectrum", "roce"},
                                             {"tomahawk", "roce"},
                                             {"trident", "roce"},
                                             {"thor", "roce"},
                                             {"rosetta", "slingshot"},
                                             {"slingshot", "slingshot"},
                                             {"efa", "efa"},
                                             {"gvnic", "ethernet"},
                                             {"tcpx", "ethernet"},
                                             {"ethernet-switch", "roce"},
                                             {"ethernet", "ethernet"}};  // First match wins.

std::optional<std::string_view> ProtocolOf(const Device& device) {
  if (const auto it = device.attributes.find("protocol"); it != device.attributes.end()) {
    return it->second;
  }
  for (const ModelProtocol& model : kModelProtocols) {
    if (device.model.starts_with(model.prefix)) return model.protocol;
  }
  return std::nullopt;
}

bool SaysIdeal(const Device& device) {
  const auto it = device.attributes.find("protocol");
  return it != device.attributes.end() && it->second == "ideal";
}

const NamedFormat& FormatOf(std::string_view protocol, const Topology& topology,
                            const std::string& device) {
  for (const NamedFormat& entry : kNetworkFormats) {
    if (entry.name == protocol) return entry;
  }
  throw ConfigError({.file = topology.source,
                     .field = device + ".protocol",
                     .value = std::string(protocol),
                     .problem = "unknown network protocol",
                     .expected = JoinNames(NetworkProtocolNames()),
                     .nearest = NearestName(protocol, NetworkProtocolNames())});
}

const NamedFormat& NetworkFormat(const Topology& topology, const Link& link) {
  const Device& from = topology.devices[link.from];
  const Device& to = topology.devices[link.to];
  // A NIC knows what it speaks better than a switch that may carry several protocols.
  const Device& first = from.kind == DeviceKind::kNic ? from : to;
  const Device& second = from.kind == DeviceKind::kNic ? to : from;
  for (const Device* device : {&first, &second}) {
    if (const auto protocol = ProtocolOf(*device)) {
      return FormatOf(*protocol, topology, device->name);
    }
  }
  return kNetworkFormats[0];  // InfiniBand.
}

}  // namespace

std::string_view LinkProtocol(const Topology& topology, LinkId link_id) {
  const Link& link = topology.links[link_id];
  if (SaysIdeal(topology.devices[link.from]) || SaysIdeal(topology.devices[link.to])) {
    return "ideal";
  }
  return NetworkFormat(topology, link).name;
}

const std::vector<std::string>& NetworkProtocolNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const NamedFormat& entry : kNetworkFormats) result.emplace_back(entry.name);
    return result;
  }();
  return names;
}

WireFormat LinkWireFormat(const Topology& topology, LinkId link_id) {
  const Link& link = topology.links[link_id];
  const Device& from = topology.devices[link.from];
  const Device& to = topology.devices[link.to];
  if (SaysIdeal(from) || SaysIdeal(to)) return kNone;
  switch (link.kind) {
    case LinkKind::kNvlink:
    case LinkKind::kC2c:
      return kNvlink;
    case LinkKind::kPcie:
      return link.generation >= 6 ? kPcie6 : kPcie;
    case LinkKind::kNuma:
    case LinkKind::kIci:
      return kNone;
    case LinkKind::kNetwork:
      break;
  }
  WireFormat format = NetworkFormat(topology, link).format;
  std::uint32_t mtu = 0;
  for (const Device* device : {&from, &to}) {
    const auto it = device->attributes.find("mtu");
    if (it == device->attributes.end()) continue;
    const auto bytes = static_cast<std::uint32_t>(ParseCount(
        it->second, {.file = topology.source, .field = device->name + ".mtu"}, 64, 65536));
    mtu = mtu == 0 ? bytes : std::min(mtu, bytes);
  }
  if (mtu != 0) format.max_payload = mtu;
  return format;
}

}  // namespace windtunnel
