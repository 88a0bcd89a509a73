// All options of the packet level in random company: whatever is switched on, messages arrive once,
// in order, and a run repeats to the bit.

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "interconnect/packet_network.h"
#include "sim/random.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

constexpr std::uint32_t kHosts = 6;

/// Hosts around one switch, or on two leaves below two spines. Links 2 i and 2 i + 1 are those of
/// host i, up and down.
class Fabric {
 public:
  Fabric(bool spines, const char* protocol) : spines_(spines) {
    if (!spines) {
      topology_ = testing::StarTopology(kHosts, LinkKind::kNetwork, kRate, kLatency);
      topology_.devices.back().attributes["protocol"] = protocol;
      return;
    }
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      topology_.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
    }
    for (const char* name : {"leaf0", "leaf1", "spine0", "spine1"}) {
      topology_.devices.push_back({.name = name, .kind = DeviceKind::kNetworkSwitch});
      topology_.devices.back().attributes["protocol"] = protocol;
    }
    for (DeviceId host = 0; host < kHosts; ++host) Join(host, kHosts + host / (kHosts / 2));
    for (DeviceId leaf = 0; leaf < 2; ++leaf) {
      for (DeviceId spine = 2; spine < 4; ++spine) Join(kHosts + leaf, kHosts + spine);
    }
  }
  Route Between(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t up = from / (kHosts / 2);
    const std::uint32_t down = to / (kHosts / 2);
    if (!spines_ || up == down) return {2 * from, 2 * to + 1};
    const std::uint32_t spine = (from + to) % 2;
    return {2 * from, 2 * kHosts + 4 * up + 2 * spine, 2 * kHosts + 4 * down + 2 * spine + 1,
            2 * to + 1};
  }
  const Topology& topology() const { return topology_; }

 private:
  static constexpr BitsPerSecond kRate = GigabitsPerSecond(100);
  static constexpr Picoseconds kLatency = Nanoseconds(500);
  void Join(DeviceId a, DeviceId b) {
    topology_.links.push_back({a, b, LinkKind::kNetwork, 0, 1, kRate, kLatency});
    topology_.links.push_back({b, a, LinkKind::kNetwork, 0, 1, kRate, kLatency});
  }
  bool spines_;
  Topology topology_;
};

class Traffic final : public NetworkClient {
 public:
  Traffic(PacketNetwork& network, const Fabric& fabric, std::uint64_t seed)
      : network_(network), fabric_(fabric), random_(seed, "mix") {
    const PacketNetwork::Options& options = network.options();
    const std::string& protocol =
        fabric.topology().devices.back().attributes.find("protocol")->second;
    lossless_ = options.error_rates.empty() && options.outages.empty() &&
                (protocol == "infiniband" || (protocol == "roce" && options.pfc.enabled) ||
                 (protocol == "ethernet" && !options.tcp.enabled));
  }

  std::vector<std::uint64_t> Run() {
    network_.set_client(this);
    for (int i = 0; i < 20; ++i) SendOne();
    network_.RunToIdle();
    EXPECT_EQ(left_, 0);
    EXPECT_EQ(delivered_, messages_.size());
    EXPECT_EQ(network_.open_messages(), 0u);
    for (const Message& message : messages_) EXPECT_TRUE(message.injected && message.delivered);
    std::uint64_t drops = 0;
    for (const LinkUse& use : network_.link_use()) drops += use.drops;
    if (lossless_) {
      EXPECT_EQ(drops, 0u);
    }
    network_.Reset();
    return std::move(trace_);
  }
  void OnInjected(SimTime now, std::uint64_t token) override {
    EXPECT_FALSE(messages_[token].injected) << "injected twice";
    messages_[token].injected = true;
    trace_.push_back(now.since_start().count());
  }
  void OnDelivered(SimTime now, std::uint64_t token) override {
    Message& message = messages_[token];
    EXPECT_FALSE(message.delivered) << "delivered twice";
    message.delivered = true;
    ++delivered_;
    EXPECT_EQ(order_[message.route].front(), token) << "out of order";
    order_[message.route].pop_front();
    trace_.push_back(now.since_start().count());
    if (left_ > 0) SendOne();
  }

 private:
  struct Message {
    RouteId route = 0;
    bool injected = false;
    bool delivered = false;
  };
  void SendOne() {
    --left_;
    const auto from = static_cast<std::uint32_t>(random_.Below(kHosts));
    const auto to = static_cast<std::uint32_t>((from + 1 + random_.Below(kHosts - 1)) % kHosts);
    const RouteId route = network_.AddRoute(fabric_.Between(from, to));
    order_[route].push_back(messages_.size());
    messages_.push_back({.route = route});
    network_.Send(route, Bytes(random_.Below(std::uint64_t{1} << random_.Below(19))),
                  messages_.size() - 1);
  }

  PacketNetwork& network_;
  const Fabric& fabric_;
  RandomStream random_;
  bool lossless_ = false;
  int left_ = 150;
  std::vector<Message> messages_;
  std::map<RouteId, std::deque<std::uint64_t>> order_;
  std::size_t delivered_ = 0;
  std::vector<std::uint64_t> trace_;
};

/// Options drawn by `seed`; about half of each kind are on.
PacketNetwork::Options DrawOptions(RandomStream& random) {
  const auto heads = [&] { return random.Below(2) == 0; };
  PacketNetwork::Options options;
  options.retry.seed = random.Next();
  options.retry.timeout_exponent = 6 + static_cast<std::uint32_t>(random.Below(4));
  options.retry.go_back_n = heads();
  options.burst.bursts_per_message = heads() ? 0 : 8;
  options.network_cut_through = heads();
  options.pfc.enabled = random.Below(4) != 0;
  if (heads()) options.pfc.xoff = KiB(8 + random.Below(64));
  options.dcqcn.enabled = heads();
  if (heads()) options.dcqcn = DcqcnOptions::ConnectX();
  options.ecn.kmin = KiB(8 + random.Below(64));
  if (heads()) options.window = KiB(1 + random.Below(64));
  if (heads()) options.window_paths = 1.5;
  if (heads()) options.nic.message_rate = 1'000'000;
  if (heads()) options.nic.post = Nanoseconds(500);
  if (heads()) options.nic.step = Microseconds(3);
  if (heads()) options.nic.step_window = 1 + static_cast<std::uint32_t>(random.Below(3));
  if (heads()) options.nic.queue_pairs = 1 + static_cast<std::uint32_t>(random.Below(4));
  options.nic.split_messages = heads();
  options.tcp.enabled = heads();
  options.tcp.smallest_timeout = Milliseconds(1);
  options.grpc.enabled = heads();
  if (heads()) options.jitter = Microseconds(5);
  if (heads()) options.switch_buffer = MiB(1);
  for (LinkId link = 0; heads() && link < 2 * kHosts; ++link) options.error_rates[link] = 0.01;
  if (heads()) {
    options.outages[static_cast<LinkId>(random.Below(2 * kHosts))] = {
        {SimTime(Microseconds(20)), SimTime(Microseconds(40))},
        {SimTime(Microseconds(90)), SimTime(Microseconds(100))}};
  }
  if (heads()) options.background.push_back({.from = 0, .to = 1, .share = 0.3, .message = KiB(64)});
  return options;
}

class PacketMixTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PacketMixTest, MessagesArriveOnceInOrderAndRunsRepeatWhateverIsOn) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(std::string(GetParam()) + ", seed " + std::to_string(seed));
    RandomStream random(seed, GetParam());
    const Fabric fabric(seed % 2 == 0, GetParam());
    const PacketNetwork::Options options = DrawOptions(random);
    PacketNetwork network(fabric.topology(), options);
    PacketNetwork other(fabric.topology(), options);
    for (PacketNetwork* one : {&network, &other}) {
      for (std::uint32_t from = 0; from < kHosts; ++from) {
        for (std::uint32_t to = 0; to < kHosts; ++to) {
          if (from != to) one->AddRoute(fabric.Between(from, to));
        }
      }
    }
    const std::vector<std::uint64_t> once = Traffic(network, fabric, seed).Run();
    EXPECT_EQ(Traffic(network, fabric, seed).Run(), once) << "a second run";
    EXPECT_EQ(Traffic(other, fabric, seed).Run(), once) << "a second network";
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, PacketMixTest,
                         ::testing::Values("infiniband", "roce", "ethernet"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace windtunnel
