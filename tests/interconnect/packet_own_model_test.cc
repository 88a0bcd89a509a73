// The example of docs/own-model.md: a switch with a queue of its own, bound over TLM-2.0.

#include <gtest/gtest.h>
#include <tlm_utils/simple_target_socket.h>

#include "interconnect/packet_network.h"
#include "interconnect/systemc/tlm_device.h"
#include "tests/support/network_contract.h"

namespace windtunnel {
namespace {

/// A switch whose lookup takes 250 ns per burst.
class SlowLookup final : public sc_core::sc_module {
 public:
  explicit SlowLookup(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &SlowLookup::Transport);
  }
  tlm_utils::simple_target_socket<SlowLookup> socket;
  std::uint64_t bytes = 0;

 private:
  void Transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    bytes += payload.get_data_length();
    delay += sc_core::sc_time(250, sc_core::SC_NS);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

class End final : public NetworkClient {
 public:
  void OnInjected(SimTime, std::uint64_t) override {}
  void OnDelivered(SimTime now, std::uint64_t) override { at = now; }
  SimTime at;
};

TEST(PacketOwnModelTest, ABoundSwitchAddsItsTimeAndSeesEveryByte) {
  TlmDevice port("port");
  SlowLookup lookup("lookup");
  port.socket.bind(lookup.socket);
  const Topology star =
      testing::StarTopology(2, LinkKind::kNetwork, GigabytesPerSecond(50), Nanoseconds(500));
  PacketNetwork network(star);
  End end;
  network.set_client(&end);
  const RouteId route = network.AddRoute({0, 3});
  network.BindModel(2, &port);
  network.Send(route, MiB(1), 0);
  network.RunToIdle();
  const SimTime with = end.at;
  EXPECT_EQ(lookup.bytes, MiB(1).count());
  network.Reset();
  network.BindModel(2, nullptr);
  network.Send(route, MiB(1), 0);
  network.RunToIdle();
  EXPECT_EQ(with, end.at + Nanoseconds(250));
}

}  // namespace
}  // namespace windtunnel
