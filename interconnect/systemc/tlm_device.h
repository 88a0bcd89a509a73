#pragma once
// A TLM-2.0 socket at which a user's own model of a switch or NIC is bound: docs/own-model.md.

#include <tlm.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <systemc>

#include "interconnect/packet_engine.h"

namespace windtunnel {

/// Rides on the generic payload: what a burst is and where it goes.
struct PassageExtension : tlm::tlm_extension<PassageExtension> {
  PassageModel::Passage passage;
  tlm::tlm_extension_base* clone() const override { return new PassageExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    passage = static_cast<const PassageExtension&>(other).passage;
  }
};

/// Initiator for a loosely timed target: for each burst one `b_transport` of a write with the
/// payload's size as data length, no data, and a PassageExtension. The target adds the time the
/// burst spends in the device to `delay`. Contract: the target does not call wait(), and both
/// modules are constructed before the first run of the process.
class TlmDevice final : public sc_core::sc_module, public PassageModel {
 public:
  explicit TlmDevice(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    payload_.set_command(tlm::TLM_WRITE_COMMAND);
    payload_.set_extension(&extension_);
  }
  ~TlmDevice() override { payload_.clear_extension(&extension_); }

  /// @throws SimulationError when the target answers with an error.
  Picoseconds PassTime(const Passage& passage) override;

  tlm_utils::simple_initiator_socket<TlmDevice> socket;

 private:
  tlm::tlm_generic_payload payload_;  // One at a time, so one is enough.
  PassageExtension extension_;
};

}  // namespace windtunnel
