#pragma once
// What gRPC adds to a message on its way over TCP. Source: RFC 9113 section 4.1 (9-byte frame
// header) and 6.5.2 (frames of 16,384 bytes unless negotiated); "gRPC over HTTP2"
// (Length-Prefixed-Message: 5 bytes).

#include <cstdint>

#include "sim/units.h"

namespace windtunnel {

struct GrpcOptions {
  bool enabled = false;
  /// Of each message: headers, dispatch to a completion queue, wake-up. ASSUMED; the round trip of
  /// an empty call on one host is 50 to 100 us in gRPC's own benchmarks, twice this.
  Picoseconds per_message = Microseconds(30);
  Bytes frame = KiB(16);
};

constexpr Bytes kHttp2FrameHeader(9);
constexpr Bytes kGrpcPrefix(5);

/// Bytes that TCP has to carry for a message of `payload` bytes.
constexpr Bytes GrpcBytes(const GrpcOptions& options, Bytes payload) {
  const Bytes content = payload + kGrpcPrefix;
  const std::uint64_t frames =
      (content.count() + options.frame.count() - 1) / options.frame.count();
  return content + frames * kHttp2FrameHeader;
}

}  // namespace windtunnel
