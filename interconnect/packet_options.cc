#include "interconnect/packet_options.h"

#include <algorithm>
#include <vector>

#include "interconnect/wire_format.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

using Options = PacketNetwork::Options;

/// One KEY=VALUE and where it stands.
struct Setting {
  std::string_view value;
  InputFault where;
  const Topology* topology = nullptr;

  [[noreturn]] void Refuse(std::string problem, std::string expected,
                           std::string nearest = "") const {
    InputFault fault = where;
    fault.value = value;
    fault.problem = std::move(problem);
    fault.expected = std::move(expected);
    fault.nearest = std::move(nearest);
    throw ConfigError(std::move(fault));
  }
  bool Switch() const {
    if (value == "on") return true;
    if (value != "off") Refuse("is neither on nor off", "on or off");
    return false;
  }
  Bytes Size() const {
    const Bytes size = ParseSize(value, where);
    if (size.count() == 0) Refuse("is nothing", "a size above zero");
    return size;
  }
  Bytes SizeOr(std::string_view none) const { return value == none ? Bytes(0) : Size(); }
  Picoseconds Time() const { return ParseTime(value, where); }
  Picoseconds TimeAboveZero() const {
    const Picoseconds time = Time();
    if (time.count() == 0) Refuse("is nothing", "a time above zero");
    return time;
  }
  Picoseconds TimeOr(std::string_view none) const {
    return value == none ? Picoseconds(0) : TimeAboveZero();
  }
  BitsPerSecond RateOr(std::string_view none) const {
    return value == none ? BitsPerSecond(0) : ParseRate(value, where);
  }
  double Number(double above, double most, const char* expected) const {
    const double number = ParseNumber(value, where);
    if (!(number > above && number <= most)) Refuse("is out of range", expected);
    return number;
  }
  std::uint32_t Count(std::uint64_t lowest, std::uint64_t highest) const {
    return static_cast<std::uint32_t>(ParseCount(value, where, lowest, highest));
  }

  /// "A->B": the links from A to B.
  std::vector<LinkId> Links(std::string_view text) const {
    const std::size_t arrow = text.find("->");
    if (arrow == std::string_view::npos) Refuse("names no link", "FROM->TO");
    const DeviceId from = Device(text.substr(0, arrow));
    const DeviceId to = Device(text.substr(arrow + 2));
    std::vector<LinkId> found;
    for (LinkId id = 0; id < topology->links.size(); ++id) {
      if (topology->links[id].from == from && topology->links[id].to == to) found.push_back(id);
    }
    if (found.empty()) Refuse("names two devices without a link", "neighbours");
    return found;
  }
  DeviceId Device(std::string_view name) const {
    if (const auto id = topology->Find(name)) return *id;
    std::vector<std::string> known;
    for (const auto& device : topology->devices) known.push_back(device.name);
    Refuse("names an unknown device", "a device of " + topology->name, NearestName(name, known));
  }
  std::vector<LinkId> NetworkLinks() const {
    std::vector<LinkId> found;
    for (LinkId id = 0; id < topology->links.size(); ++id) {
      if (topology->links[id].kind == LinkKind::kNetwork) found.push_back(id);
    }
    return found;
  }
};

void SetWindow(const Setting& s, Options& o) {
  o.window = Bytes(0);
  o.window_paths = 0;
  if (s.value == "off") return;
  if (!s.value.empty() && s.value.back() == 'x') {
    Setting number = s;
    number.value.remove_suffix(1);
    o.window_paths = number.Number(0, 1000, "above 0, at most 1000, before the x");
  } else {
    o.window = s.Size();
  }
}

void SetDcqcn(const Setting& s, Options& o) {
  o.dcqcn_below = BitsPerSecond(UINT64_MAX);
  if (s.value == "connectx") {
    o.dcqcn = DcqcnOptions::ConnectX();
  } else if (s.value == "auto") {
    o.dcqcn.enabled = true;
    o.dcqcn_below = Options().dcqcn_below;
  } else if (s.value == "on" || s.value == "off") {
    o.dcqcn.enabled = s.value == "on";
  } else {
    s.Refuse("is no setting", "auto, on, off or connectx");
  }
}

void SetRetry(const Setting& s, Options& o) {
  if (s.value != "selective" && s.value != "go-back-n") {
    s.Refuse("is no way to send again", "selective or go-back-n");
  }
  o.retry.go_back_n = s.value == "go-back-n";
}

void SetErrorRate(const Setting& s, Options& o) {
  const std::size_t at = s.value.find('@');
  Setting share = s;
  share.value = s.value.substr(0, at);
  const double rate = ParseNumber(share.value, s.where);
  if (!(rate >= 0 && rate <= 1)) share.Refuse("is no share", "0 to 1");
  const std::vector<LinkId> links =
      at == std::string_view::npos ? s.NetworkLinks() : s.Links(s.value.substr(at + 1));
  for (const LinkId link : links) o.error_rates[link] = rate;
}

void SetDown(const Setting& s, Options& o) {
  constexpr const char* kForm = "FROM->TO@TIME..TIME or FROM->TO@TIME..";
  const std::size_t at = s.value.find('@');
  const std::size_t dots = s.value.find("..", at == std::string_view::npos ? 0 : at);
  if (at == std::string_view::npos || dots == std::string_view::npos) {
    s.Refuse("is no outage", kForm);
  }
  const std::string_view up = s.value.substr(dots + 2);
  Outage outage{.down = SimTime(ParseTime(s.value.substr(at + 1, dots - at - 1), s.where)),
                .up = CreditCounter::kUnknown};
  if (!up.empty()) outage.up = SimTime(ParseTime(up, s.where));
  if (outage.up <= outage.down) s.Refuse("ends before it begins", kForm);
  for (const LinkId link : s.Links(s.value.substr(0, at))) {
    std::vector<Outage>& all = o.outages[link];
    if (!all.empty() && outage.down < all.back().up) {
      s.Refuse("begins before the link's last outage ends", "outages in order of time");
    }
    all.push_back(outage);
  }
}

void SetArbitration(const Setting& s, Options& o) {
  if (s.value != "ports" && s.value != "routes") {
    s.Refuse("is no arbitration", "ports or routes");
  }
  o.arbitration = s.value == "ports" ? Arbitration::kPorts : Arbitration::kRoutes;
}

void SetQueuePairPaths(const Setting& s, Options& o) {
  using Paths = PacketNetwork::QueuePairPaths;
  if (s.value == "auto") {
    o.queue_pair_paths = Paths::kAuto;
  } else if (s.value == "same") {
    o.queue_pair_paths = Paths::kSame;
  } else if (s.value == "hash") {
    o.queue_pair_paths = Paths::kHash;
  } else if (s.value == "even") {
    o.queue_pair_paths = Paths::kEven;
  } else {
    s.Refuse("is no choice of ways", "auto, same, hash or even");
  }
}

void SetBackground(const Setting& s, Options& o) {
  constexpr const char* kForm = "FROM->TO@SHARE or FROM->TO@SHARE/SIZE";
  const std::size_t at = s.value.find('@');
  const std::size_t arrow = s.value.find("->");
  if (at == std::string_view::npos || arrow == std::string_view::npos || arrow > at) {
    s.Refuse("is no traffic", kForm);
  }
  BackgroundFlow flow{.from = s.Device(s.value.substr(0, arrow)),
                      .to = s.Device(s.value.substr(arrow + 2, at - arrow - 2))};
  if (flow.from == flow.to) s.Refuse("goes nowhere", "two devices");
  Setting part = s;
  const std::size_t slash = s.value.find('/', at);
  part.value = s.value.substr(at + 1, slash == std::string_view::npos ? slash : slash - at - 1);
  flow.share = part.Number(0, 1, "a share above 0, at most 1");
  if (slash != std::string_view::npos) {
    part.value = s.value.substr(slash + 1);
    flow.message = part.Size();
  }
  o.background.push_back(flow);
}

struct Key {
  PacketOptionKey key;
  void (*apply)(const Setting&, Options&);
};

// The lambdas take what they need by name; a default in the text is that of the struct.
constexpr Key kKeys[] = {
    {{"pfc", "on|off", "RoCE: switches pause senders (on); off: they drop what finds no room"},
     [](const Setting& s, Options& o) { o.pfc.enabled = s.Switch(); }},
    {{"pfc-xoff", "SIZE|auto", "bytes of one port that make a switch pause it (auto: pfc-alpha)"},
     [](const Setting& s, Options& o) { o.pfc.xoff = s.SizeOr("auto"); }},
    {{"pfc-alpha", "SHARE", "that threshold as a share of the buffer still free (0.125)"},
     [](const Setting& s, Options& o) { o.pfc.alpha = s.Number(0, 8, "above 0, at most 8"); }},
    {{"pfc-headroom", "SIZE|auto", "kept per port for what is under way (auto: cable, response)"},
     [](const Setting& s, Options& o) { o.pfc.headroom = s.SizeOr("auto"); }},
    {{"pfc-response", "TIME|auto", "from pause frame to silence (auto: the bound of IEEE 802.3)"},
     [](const Setting& s, Options& o) { o.pfc.response = s.TimeOr("auto"); }},
    {{"switch-buffer", "SIZE|auto", "packet memory of each network switch (auto: its model's)"},
     [](const Setting& s, Options& o) { o.switch_buffer = s.SizeOr("auto"); }},
    {{"ecn", "on|off", "RoCE: switches mark frames of long queues (on)"},
     [](const Setting& s, Options& o) { o.ecn.enabled = s.Switch(); }},
    {{"ecn-kmin", "SIZE|auto", "queue above which some frames are marked (auto: by the rate)"},
     [](const Setting& s, Options& o) { o.ecn.kmin = s.SizeOr("auto"); }},
    {{"ecn-kmax", "SIZE|auto", "queue above which all are (auto: 4 x ecn-kmin)"},
     [](const Setting& s, Options& o) { o.ecn.kmax = s.SizeOr("auto"); }},
    {{"ecn-pmax", "SHARE", "share of marked frames just below ecn-kmax (0.2)"},
     [](const Setting& s, Options& o) { o.ecn.pmax = s.Number(0, 1, "above 0, at most 1"); }},
    {{"dcqcn", "auto|on|off|connectx",
      "RoCE: senders slow down on marks (auto: below 400 Gb/s); connectx: its way"},
     SetDcqcn},
    {{"dcqcn-cnp-interval", "TIME", "least time between notifications of a connection (50 us)"},
     [](const Setting& s, Options& o) { o.dcqcn.cnp_interval = s.Time(); }},
    {{"dcqcn-cnp-delay", "TIME", "of a notification beyond the way back (0)"},
     [](const Setting& s, Options& o) { o.dcqcn.cnp_delay = s.Time(); }},
    {{"dcqcn-initial-alpha", "SHARE", "alpha before the first notification (1)"},
     [](const Setting& s, Options& o) {
       o.dcqcn.initial_alpha = s.Number(0, 1, "above 0, at most 1");
     }},
    {{"dcqcn-gain", "SHARE", "weight of one answer: g (0.00390625)"},
     [](const Setting& s, Options& o) { o.dcqcn.gain = s.Number(0, 1, "above 0, at most 1"); }},
    {{"dcqcn-alpha-timer", "TIME", "alpha falls once per this time (55 us)"},
     [](const Setting& s, Options& o) { o.dcqcn.alpha_timer = s.TimeAboveZero(); }},
    {{"dcqcn-rate-timer", "TIME", "the rate rises once per this time (55 us)"},
     [](const Setting& s, Options& o) { o.dcqcn.rate_timer = s.TimeAboveZero(); }},
    {{"dcqcn-byte-counter", "SIZE", "and once per these bytes (10 MB)"},
     [](const Setting& s, Options& o) { o.dcqcn.byte_counter = s.Size(); }},
    {{"dcqcn-fast-recovery", "COUNT", "rises before the target grows (5)"},
     [](const Setting& s, Options& o) { o.dcqcn.fast_recovery = s.Count(0, 1000); }},
    {{"dcqcn-additive", "RATE|auto", "growth of the target (auto: 1/1000 of the line)"},
     [](const Setting& s, Options& o) { o.dcqcn.additive_increase = s.RateOr("auto"); }},
    {{"dcqcn-hyper", "RATE|auto", "its growth when timer and bytes agree (auto: 10 x additive)"},
     [](const Setting& s, Options& o) { o.dcqcn.hyper_increase = s.RateOr("auto"); }},
    {{"dcqcn-minimum", "RATE|auto", "lowest rate (auto: 1/1000 of the line)"},
     [](const Setting& s, Options& o) { o.dcqcn.minimum_rate = s.RateOr("auto"); }},
    {{"window", "SIZE|Nx|off", "most bytes of a connection under way; Nx: N times its path (off)"},
     SetWindow},
    {{"retry", "selective|go-back-n", "what is sent again after a loss (selective)"}, SetRetry},
    {{"timeout-exponent", "1..31", "retry time-out 4.096 us x 2^N, as NCCL_IB_TIMEOUT (20)"},
     [](const Setting& s, Options& o) { o.retry.timeout_exponent = s.Count(1, 31); }},
    {{"retry-count", "0..7", "losses in a row before a connection fails (7)"},
     [](const Setting& s, Options& o) { o.retry.retry_count = s.Count(0, 7); }},
    {{"error-rate", "SHARE[@FROM->TO]", "frames that arrive broken, on all network links or one"},
     SetErrorRate},
    {{"down", "FROM->TO@TIME..[TIME]", "a link carries nothing meanwhile; may stand repeatedly"},
     SetDown},
    {{"background", "FROM->TO@SHARE[/SIZE]", "others' messages (1 MiB) by chance; may stand again"},
     SetBackground},
    {{"nic-post", "TIME", "from the call to the NIC's start: doorbell, fetch (0)"},
     [](const Setting& s, Options& o) { o.nic.post = s.Time(); }},
    {{"nic-rate", "COUNT|off", "messages a NIC starts per second (off)"},
     [](const Setting& s, Options& o) {
       o.nic.message_rate =
           s.value == "off" ? 0 : ParseCount(s.value, s.where, 1, 1'000'000'000'000);
     }},
    {{"step", "TIME", "software time of a connection per message (0)"},
     [](const Setting& s, Options& o) { o.nic.step = s.Time(); }},
    {{"step-window", "COUNT|off", "messages of a connection under way (off)"},
     [](const Setting& s, Options& o) {
       o.nic.step_window = s.value == "off" ? 0 : s.Count(1, 1'000'000);
     }},
    {{"queue-pairs", "1..128", "queue pairs per connection, as NCCL_IB_QPS_PER_CONNECTION (1)"},
     [](const Setting& s, Options& o) { o.nic.queue_pairs = s.Count(1, 128); }},
    {{"split", "on|off", "cut each message over the queue pairs (on) or let whole ones take turns"},
     [](const Setting& s, Options& o) { o.nic.split_messages = s.Switch(); }},
    {{"qp-paths", "auto|same|hash|even",
      "ways of further queue pairs (auto: hash on RoCE, else same)"},
     SetQueuePairPaths},
    {{"tcp", "on|off", "Ethernet: windows, slow start, CPU, drops (off: warm, costs elsewhere)"},
     [](const Setting& s, Options& o) { o.tcp.enabled = s.Switch(); }},
    {{"tcp-initial", "COUNT", "segments of the first window (10)"},
     [](const Setting& s, Options& o) { o.tcp.initial_segments = s.Count(1, 1000); }},
    {{"tcp-window", "SIZE", "largest window (6 MiB)"},
     [](const Setting& s, Options& o) { o.tcp.largest_window = s.Size(); }},
    {{"tcp-idle-restart", "TIME|off", "pause after which a connection starts slowly (200 ms)"},
     [](const Setting& s, Options& o) { o.tcp.idle_restart = s.TimeOr("off"); }},
    {{"tcp-cpu-rate", "RATE|off", "what one core moves for one connection (42 Gb/s)"},
     [](const Setting& s, Options& o) { o.tcp.cpu_rate = s.RateOr("off"); }},
    {{"tcp-cpu-per-segment", "TIME", "and its time per 64 KiB (0)"},
     [](const Setting& s, Options& o) { o.tcp.cpu_per_segment = s.Time(); }},
    {{"tcp-timeout", "TIME", "smallest retransmission time-out (200 ms)"},
     [](const Setting& s, Options& o) { o.tcp.smallest_timeout = s.TimeAboveZero(); }},
    {{"grpc", "on|off", "Ethernet: messages travel as gRPC calls (off)"},
     [](const Setting& s, Options& o) { o.grpc.enabled = s.Switch(); }},
    {{"grpc-per-message", "TIME", "fixed cost of a call on the way there (30 us)"},
     [](const Setting& s, Options& o) { o.grpc.per_message = s.Time(); }},
    {{"jitter", "TIME", "largest further delay of a message over a network (0)"},
     [](const Setting& s, Options& o) { o.jitter = s.Time(); }},
    {{"virtual-channels", "1..16", "per link with credits; used where credits close a circle (8)"},
     [](const Setting& s, Options& o) { o.virtual_channels = s.Count(1, 16); }},
    {{"cut-through", "on|off", "network switches send on behind the header (on)"},
     [](const Setting& s, Options& o) { o.network_cut_through = s.Switch(); }},
    {{"link-buffer", "SIZE|auto",
      "credits of a link and channel (auto: 128 KiB, twice its own length)"},
     [](const Setting& s, Options& o) { o.link_buffer = s.SizeOr("auto"); }},
    {{"arbitration", "ports|routes", "ports of a switch share alike, or by routes (ports)"},
     SetArbitration},
    {{"reduce-latency", "TIME", "a switch's reduction unit (100 ns)"},
     [](const Setting& s, Options& o) { o.reduce_latency = s.Time(); }},
    {{"bursts", "COUNT|off", "events per message and link (32; off: one per frame)"},
     [](const Setting& s, Options& o) {
       o.burst.bursts_per_message = s.value == "off" ? 0 : s.Count(1, 1'000'000);
     }},
    {{"longest-burst", "SIZE|off", "and the most bytes of one (512 KiB)"},
     [](const Setting& s, Options& o) { o.burst.longest_burst = s.SizeOr("off"); }},
    {{"seed", "COUNT", "of losses, marks and jitter (1)"},
     [](const Setting& s, Options& o) { o.retry.seed = ParseCount(s.value, s.where); }},
};

/// A link whose buffer holds no full frame never carries one.
void CheckLinkBuffer(Bytes buffer, const InputFault& where, const Topology& topology) {
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    if (link.down) continue;
    const WireFormat format = LinkWireFormat(topology, id);
    const Bytes frame = format.Wire(Bytes(format.max_payload));
    if (frame <= buffer) continue;
    InputFault fault = where;
    fault.field += " link-buffer";
    fault.value = FormatSize(buffer);
    fault.problem = "holds no frame of " + topology.devices[link.from].name + " -> " +
                    topology.devices[link.to].name + ":";
    fault.expected = "at least " + FormatSize(frame);
    throw ConfigError(std::move(fault));
  }
}

const std::vector<std::string>& KeyNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Key& key : kKeys) result.emplace_back(key.key.key);
    return result;
  }();
  return names;
}

}  // namespace

std::span<const PacketOptionKey> PacketOptionKeys() {
  static const std::vector<PacketOptionKey> keys = [] {
    std::vector<PacketOptionKey> result;
    for (const Key& key : kKeys) result.push_back(key.key);
    return result;
  }();
  return keys;
}

std::string PacketOptionHelp() {
  std::size_t widest = 0;
  for (const PacketOptionKey& key : PacketOptionKeys()) {
    widest = std::max(widest, key.key.size() + 1 + key.value.size());
  }
  std::string text;
  for (const PacketOptionKey& key : PacketOptionKeys()) {
    std::string line = "  " + std::string(key.key) + "=" + std::string(key.value);
    line.resize(widest + 4, ' ');
    text += line + std::string(key.help) + "\n";
  }
  return text;
}

void ApplyPacketOptions(std::string_view text, const InputFault& where, const Topology& topology,
                        PacketNetwork::Options* options) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    Setting setting{.where = where, .topology = &topology};
    setting.value = item;
    const auto* const key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                         [&](const Key& entry) { return entry.key.key == name; });
    if (equals == std::string_view::npos) {
      if (key != std::end(kKeys)) {
        setting.Refuse("has no value",
                       std::string(key->key.key) + "=" + std::string(key->key.value));
      }
      setting.Refuse("has no value", "KEY=VALUE[,KEY=VALUE...]", NearestName(name, KeyNames()));
    }
    if (key == std::end(kKeys)) {
      setting.value = name;
      setting.Refuse("unknown key", "one of " + JoinNames(KeyNames()),
                     NearestName(name, KeyNames()));
    }
    setting.where.field += " " + std::string(name);
    setting.value = item.substr(equals + 1);
    key->apply(setting, *options);
  }
  if (options->link_buffer.count() != 0) CheckLinkBuffer(options->link_buffer, where, topology);
  const EcnOptions& ecn = options->ecn;
  if (ecn.kmin.count() != 0 && ecn.kmax.count() != 0 && ecn.kmax <= ecn.kmin) {
    InputFault fault = where;
    fault.field += " ecn-kmax";
    fault.value = FormatSize(ecn.kmax);
    fault.problem = "is not above ecn-kmin";
    fault.expected = "more than " + FormatSize(ecn.kmin);
    throw ConfigError(std::move(fault));
  }
}

std::vector<std::string> SettingsWithoutEffect(std::string_view text, const Topology& topology) {
  bool network = false;
  bool roce = false;
  bool ethernet = false;
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    if (topology.links[id].kind != LinkKind::kNetwork || topology.links[id].down) continue;
    const std::string_view protocol = LinkProtocol(topology, id);
    network = true;
    roce = roce || protocol == "roce";
    ethernet = ethernet || protocol == "ethernet";
  }
  constexpr std::string_view kAnyNetwork[] = {
      "window", "nic-post",    "nic-rate", "step",   "step-window",
      "split",  "queue-pairs", "qp-paths", "jitter", "cut-through"};
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::string_view name = item.substr(0, item.find('='));
    const auto of = [&](std::string_view family) {
      return name == family || (name.starts_with(family) && name[family.size()] == '-');
    };
    const char* needed = nullptr;
    if ((of("pfc") || of("ecn") || of("dcqcn")) && !roce) needed = "RoCE";
    if ((of("tcp") || of("grpc")) && !ethernet) needed = "Ethernet (TCP)";
    if (name == "switch-buffer" && !roce && !ethernet) needed = "RoCE or Ethernet";
    if (std::find(std::begin(kAnyNetwork), std::end(kAnyNetwork), name) != std::end(kAnyNetwork) &&
        !network) {
      needed = "network";
    }
    if (needed == nullptr) continue;
    found.push_back("--network " + std::string(item) + " has no effect: the cluster has no " +
                    needed + " links");
  }
  return found;
}

PacketNetwork::Options PacketOptionsOf(const Topology& topology) {
  PacketNetwork::Options options;
  std::vector<std::string_view> applied;
  for (const Device& device : topology.devices) {
    const auto network = device.attributes.find("network");
    if (network == device.attributes.end()) continue;
    if (std::find(applied.begin(), applied.end(), network->second) != applied.end()) continue;
    applied.push_back(network->second);
    ApplyPacketOptions(network->second,
                       {.file = topology.source, .field = device.name + ".network"}, topology,
                       &options);
  }
  return options;
}

}  // namespace windtunnel
