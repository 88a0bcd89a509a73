#include "interconnect/systemc/tlm_device.h"

#include <algorithm>
#include <limits>

#include "sim/error.h"

namespace windtunnel {

Picoseconds TlmDevice::PassTime(const Passage& passage) {
  extension_.passage = passage;
  payload_.set_address(passage.out_link);
  payload_.set_data_length(static_cast<unsigned>(
      std::min<std::uint64_t>(passage.payload.count(), std::numeric_limits<unsigned>::max())));
  payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(payload_, delay);
  if (payload_.is_response_error()) {
    throw SimulationError(std::string(name()) + ": the bound model answered " +
                          payload_.get_response_string());
  }
  return Picoseconds(delay.value());
}

}  // namespace windtunnel
