#pragma once
// Priority flow control of lossless Ethernet: when a switch tells the sender of a link to pause.
// Source: IEEE 802.1Qbb (802.1Q clause 36), thresholds from a shared buffer as Broadcom's and
// Mellanox' switches have them (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, section 4; alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc).

#include <algorithm>
#include <cstdint>

#include "sim/check.h"
#include "sim/units.h"

namespace windtunnel {

struct PfcOptions {
  bool enabled = true;
  /// Bytes of one incoming link that may wait before it is paused; 0 = `alpha` times what is free
  /// of the switch's shared buffer (dynamic threshold).
  Bytes xoff;
  /// Source of 1/8: the default shift of 3 in HPCC's switch model; switches offer 1/128 to 8.
  double alpha = 0.125;
  /// The link resumes when this much below the threshold; 0 = three full frames (HPCC: 3 KB with
  /// frames of 1 KB).
  Bytes resume_gap;
  /// Kept for what is under way when a pause is sent; 0 = `PfcHeadroom`.
  Bytes headroom;
  /// From the pause frame at the sender to its last bit out; 0 = `PfcResponseTime`.
  Picoseconds response;
};

/// Upper bound of the time a sender may take to obey. Source: IEEE 802.3 annex 31B.3.7, in quanta
/// of 512 bit times: 60 up to 10 Gb/s, 80 at 25, 118 at 40, 394 at 100, 905 at 400 Gb/s. Between
/// and above those rates: the time of the next entry, above 400 Gb/s that of 400 Gb/s (ASSUMED).
constexpr Picoseconds PfcResponseTime(BitsPerSecond rate) {
  struct Entry {
    std::uint64_t gigabits;
    std::uint64_t quanta;
  };
  constexpr Entry kEntries[] = {{10, 60}, {25, 80}, {40, 118}, {100, 394}, {400, 905}};
  for (const Entry& entry : kEntries) {
    if (rate <= GigabitsPerSecond(entry.gigabits)) {
      return SerializationTime(Bytes(entry.quanta * 64), GigabitsPerSecond(entry.gigabits));
    }
  }
  return SerializationTime(Bytes(905 * 64), GigabitsPerSecond(400));
}

/// A pause frame with preamble and gap: 64 + 20 bytes. Source: IEEE 802.3 clause 31.
constexpr Bytes kPauseFrame(84);

/// What may still come in after a pause was decided: a full frame that is on the way back and holds
/// up the pause frame, one that the sender has begun, the wire both ways, the sender's response.
/// Source: 802.1Qbb annex O (head-room); `frame` is a full frame on the wire.
constexpr Bytes PfcHeadroom(BitsPerSecond rate, Picoseconds propagation, Picoseconds response,
                            Bytes frame) {
  __extension__ using Wide = unsigned __int128;
  const Wide under_way = Wide{(2 * propagation + response).count()} * rate.count() / 8;
  return Bytes(static_cast<std::uint64_t>(under_way / 1'000'000'000'000) + 1) + 2 * frame +
         kPauseFrame;
}

/// Memory that all incoming links of a switch share; head-room is set apart.
class SharedBuffer {
 public:
  /// `grows`: a stand-in for some product, never smaller than twice its head-room.
  explicit SharedBuffer(Bytes capacity = Bytes(0), bool grows = false)
      : capacity_(capacity), grows_(grows) {}
  void Reserve(Bytes headroom) {
    reserved_ += headroom;
    if (grows_) capacity_ = std::max(capacity_, 2 * reserved_);
  }
  void Add(Bytes size) { used_ += size; }
  /// Counts what is in it now towards the deepest level.
  void Note() { deepest_ = std::max(deepest_, used_); }
  /// Contract: it was added.
  void Remove(Bytes size) {
    WT_CHECK(used_ >= size) << "more taken out of a switch's buffer than came in";
    used_ = used_ - size;
  }
  /// `alpha` times what is free.
  Bytes Threshold(double alpha) const {
    const Bytes taken = reserved_ + used_;
    if (taken >= capacity_) return Bytes(0);
    return Bytes(
        static_cast<std::uint64_t>(alpha * static_cast<double>((capacity_ - taken).count())));
  }
  void Reset() {
    WT_CHECK(used_.count() == 0) << used_.count() << " bytes left in a switch's buffer";
    deepest_ = Bytes(0);
  }
  Bytes capacity() const { return capacity_; }
  Bytes reserved() const { return reserved_; }
  Bytes used() const { return used_; }
  Bytes deepest() const { return deepest_; }

 private:
  Bytes capacity_;
  bool grows_;
  Bytes reserved_;
  Bytes used_;
  Bytes deepest_;
};

/// The receiving end of one link: counts what waits, decides on pause and resume.
class PfcIngress {
 public:
  /// Bytes came in and wait.
  void Add(Bytes size) { waiting_ += size; }
  /// Bytes left. Contract: they came in.
  void Remove(Bytes size) {
    WT_CHECK(waiting_ >= size) << "more left a port than came in";
    waiting_ = waiting_ - size;
  }
  /// True: a pause frame leaves now. The threshold moves with the shared buffer.
  [[nodiscard]] bool ShouldPause(Bytes threshold) {
    if (paused_ || waiting_ <= threshold) return false;
    paused_ = true;
    return true;
  }
  /// True: a frame with pause time zero leaves now.
  [[nodiscard]] bool ShouldResume(Bytes threshold, Bytes gap) {
    if (!paused_ || (waiting_.count() != 0 && waiting_ + gap > threshold)) return false;
    paused_ = false;
    return true;
  }
  void Reset() {
    WT_CHECK(waiting_.count() == 0) << waiting_.count() << " bytes left at a port";
    paused_ = false;
  }
  Bytes waiting() const { return waiting_; }
  bool paused() const { return paused_; }

 private:
  Bytes waiting_;
  bool paused_ = false;
};

}  // namespace windtunnel
