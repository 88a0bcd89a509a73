#pragma once
// Timing arithmetic of one direction of a link, without a kernel.

#include <string>

#include "sim/units.h"

namespace windtunnel {

/// One direction of a link: frames leave in order at a fixed rate, arrive after a fixed delay.
/// A burst is several frames of one message booked at once. Not modelled here: receiver space
/// (`CreditCounter`), the choice between waiting senders (`DeficitRoundRobin`), bit errors and
/// replay (they enter as a longer `Booking` through the caller), lane power states.
class LinkTiming {
 public:
  struct Options {
    BitsPerSecond rate;       ///< One direction, after line encoding.
    Picoseconds propagation;  ///< First bit out to first bit in.
    Bytes max_payload;        ///< Longer messages travel as several frames.
    Bytes frame_overhead;     ///< Header, CRC and framing of each frame.
    Bytes granule{1};         ///< Payload of a frame is padded up to this (NVLink: one flit).
    /// What must be in before the next device may send it on: a header with cut-through, 0 = the
    /// whole frame (store and forward).
    Bytes forward_after;
  };
  struct Booking {
    SimTime start;      ///< First bit out.
    SimTime wire_free;  ///< Earliest start of the next frame.
    SimTime last_out;   ///< Last bit out; later than `wire_free` when the frames came in slower.
    SimTime head_in;    ///< The first frame may be sent on by the receiver.
    SimTime last_in;    ///< Everything present at the receiver; never before `wire_free`.
  };

  /// @throws ConfigError if `rate`, `max_payload` or `granule` is zero.
  explicit LinkTiming(const Options& options);

  /// Books the wire for `payload` bytes (0 sends one bare frame) that are all there. Contract:
  /// `now` never goes back.
  Booking Send(SimTime now, Bytes payload) { return Send(now, now, payload); }
  /// The same for a burst whose first frame is there `now` and whose last frame is there at `tail`.
  /// The frames leave as they come, so a slower link before this one sets `last_in`; `wire_free`
  /// counts the time of the frames alone, since others may use the gaps between them.
  /// Error of doing so: another burst can be early by at most the length of this one.
  Booking Send(SimTime now, SimTime tail, Bytes payload);

  std::uint64_t Frames(Bytes payload) const;
  /// Payload with padding and the overhead of all its frames.
  Bytes WireSize(Bytes payload) const;
  /// Time of the wire for `payload` as frames.
  Picoseconds WireTime(Bytes payload) const {
    return SerializationTime(WireSize(payload), options_.rate);
  }
  SimTime wire_free() const { return wire_free_; }
  const Options& options() const { return options_; }
  /// Forgets bookings: the wire is free from time zero.
  void Reset() { wire_free_ = SimTime(); }
  /// "25.00 GB/s, 500.0 ns, 4096 B frames + 30 B"
  std::string Describe() const;

 private:
  /// What a burst of one size takes; bursts of a run are nearly all of one size.
  struct Shape {
    Bytes payload{UINT64_MAX};
    Picoseconds all;   ///< Every frame.
    Picoseconds head;  ///< Until the receiver may send the first on.
    Picoseconds last;  ///< The last frame.
  };
  const Shape& ShapeOf(Bytes payload) {
    if (shape_.payload != payload) FillShape(payload);
    return shape_;
  }
  void FillShape(Bytes payload);

  Options options_;
  SimTime wire_free_;
  Shape shape_;
};

inline LinkTiming::Booking LinkTiming::Send(SimTime now, SimTime tail, Bytes payload) {
  const Shape& shape = ShapeOf(payload);
  Booking booking;
  booking.start = now > wire_free_ ? now : wire_free_;
  booking.wire_free = booking.start + shape.all;
  // The last frame cannot leave before it is there in full, whatever this wire's rate.
  const SimTime starved = tail + shape.last;
  booking.last_out = starved > booking.wire_free ? starved : booking.wire_free;
  booking.head_in = booking.start + shape.head + options_.propagation;
  booking.last_in = booking.last_out + options_.propagation;
  wire_free_ = booking.wire_free;
  return booking;
}

}  // namespace windtunnel
