#include "tests/support/network_contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "sim/random.h"

namespace windtunnel::testing {
namespace {

class Traffic final : public NetworkClient {
 public:
  Traffic(Network& network, const Topology& star, std::uint32_t count, std::uint32_t messages,
          std::uint64_t seed)
      : network_(network),
        star_(star),
        count_(count),
        left_(messages),
        random_(seed, "network_contract"),
        payload_(star.links.size()) {}

  ContractTrace Run() {
    network_.set_client(this);
    const std::uint32_t at_start = std::min(left_, 2 * count_);
    for (std::uint32_t i = 0; i < at_start; ++i) SendOne();
    network_.RunToIdle();
    EXPECT_EQ(left_, 0u);
    EXPECT_EQ(delivered_, messages_.size()) << "messages lost";
    EXPECT_EQ(network_.open_messages(), 0u);
    EXPECT_EQ(network_.DescribeStall(), "");
    EXPECT_TRUE(network_.queue().empty());
    trace_.end = network_.queue().now().since_start();
    const auto use = network_.link_use();
    for (std::size_t i = 0; i < star_.links.size(); ++i) {
      EXPECT_EQ(use[i].payload, payload_[i]) << "link " << i;
      EXPECT_GE(use[i].wire, use[i].payload) << "link " << i;
      EXPECT_LE(use[i].busy, trace_.end) << "link " << i;
      EXPECT_EQ(use[i].drops, 0u) << "link " << i;
    }
    network_.Reset();
    EXPECT_EQ(network_.queue().now(), SimTime());
    for (const LinkUse& one : network_.link_use()) EXPECT_EQ(one.payload, Bytes(0));
    return std::move(trace_);
  }

  void OnInjected(SimTime now, std::uint64_t token) override {
    Message& message = messages_[token];
    EXPECT_FALSE(message.injected) << "injected twice";
    message.injected = true;
    Note(now, "injected", token);
  }

  void OnDelivered(SimTime now, std::uint64_t token) override {
    Message& message = messages_[token];
    EXPECT_TRUE(message.injected) << "delivered before it was injected";
    EXPECT_FALSE(message.delivered) << "delivered twice";
    message.delivered = true;
    ++delivered_;
    std::deque<std::uint64_t>& expected = order_[message.route];
    EXPECT_EQ(expected.front(), token) << "out of order on route " << message.route;
    std::erase(expected, token);
    const Link& link = star_.links.front();  // All links are alike.
    EXPECT_GE(now, message.sent + SerializationTime(message.size, link.rate) + 2 * link.latency);
    Note(now, "delivered", token);
    if (left_ > 0) SendOne();
  }

 private:
  struct Message {
    RouteId route = 0;
    Bytes size;
    SimTime sent;
    bool injected = false;
    bool delivered = false;
  };

  void SendOne() {
    --left_;
    const auto from = static_cast<std::uint32_t>(random_.Below(count_));
    const auto to = static_cast<std::uint32_t>((from + 1 + random_.Below(count_ - 1)) % count_);
    // Small, odd and empty ones as often as large ones.
    const Bytes size(random_.Below(std::uint64_t{1} << random_.Below(21)));
    const Route links = {2 * from, 2 * to + 1};
    const RouteId route = network_.AddRoute(links);
    for (const LinkId link : links) payload_[link] += size;
    const std::uint64_t token = messages_.size();
    messages_.push_back({.route = route, .size = size, .sent = network_.queue().now()});
    order_[route].push_back(token);
    network_.Send(route, size, token);
  }

  void Note(SimTime now, const char* what, std::uint64_t token) {
    trace_.lines.push_back(std::to_string(now.since_start().count()) + " " + what + " " +
                           std::to_string(token));
  }

  Network& network_;
  const Topology& star_;
  std::uint32_t count_;
  std::uint32_t left_;
  RandomStream random_;
  std::vector<Bytes> payload_;
  std::vector<Message> messages_;
  std::map<RouteId, std::deque<std::uint64_t>> order_;
  std::uint64_t delivered_ = 0;
  ContractTrace trace_;
};

}  // namespace

Topology StarTopology(std::uint32_t count, LinkKind kind, BitsPerSecond rate, Picoseconds latency) {
  Topology topology;
  topology.name = "star";
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.devices.push_back({.name = "gpu" + std::to_string(i), .index = i});
  }
  const DeviceKind hub =
      kind == LinkKind::kNvlink ? DeviceKind::kNvSwitch : DeviceKind::kNetworkSwitch;
  topology.devices.push_back({.name = "switch", .kind = hub});
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.links.push_back({i, count, kind, 0, 1, rate, latency});
    topology.links.push_back({count, i, kind, 0, 1, rate, latency});
  }
  return topology;
}

ContractTrace RunNetworkContract(Network& network, const Topology& star, std::uint32_t count,
                                 std::uint32_t messages, std::uint64_t seed) {
  // All routes first: the contract of AddRoute.
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from != to) network.AddRoute({2 * from, 2 * to + 1});
    }
  }
  return Traffic(network, star, count, messages, seed).Run();
}

}  // namespace windtunnel::testing
