#pragma once
// Room at a receiver, counted by the sender. Returned credits are known ahead of time (the moment a
// burst is booked onward, its leaving is known), so they wait here as (time, bytes) and need no
// event of their own.

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace windtunnel {

class CreditCounter {
 public:
  explicit CreditCounter(Bytes capacity = Bytes(0)) : capacity_(capacity), available_(capacity) {}

  /// Takes in what has come back by `now`; then says whether `size` may be sent.
  [[nodiscard]] bool Fits(SimTime now, Bytes size) {
    if (available_ >= size) return true;  // The common case looks at no list.
    Collect(now);
    return available_ >= size;
  }
  /// Contract: `Fits(now, size)`.
  void Take(Bytes size) {
    WT_CHECK(available_ >= size) << "credits taken twice";
    available_ = available_ - size;
    held_ += size;
  }
  /// The receiver frees `size` bytes; the sender knows at `at`. Times need not be in order.
  void Return(SimTime at, Bytes size) {
    WT_CHECK(held_ >= size) << "credits returned twice";
    held_ = held_ - size;
    if (first_ > 64 && first_ * 2 > returns_.size()) Compact();
    returns_.push_back({at, size});
    // Nearly sorted as it comes: one step at most, as a rule.
    for (std::size_t i = returns_.size() - 1; i > first_ && returns_[i].at < returns_[i - 1].at;
         --i) {
      std::swap(returns_[i], returns_[i - 1]);
    }
  }
  /// When `size` bytes will be free by what is known now; SimTime of the far future
  /// (`kUnknown`) when that depends on bursts that still sit at the receiver.
  SimTime FreeAt(Bytes size) const {
    Bytes sum = available_;
    for (std::size_t i = first_; i < returns_.size(); ++i) {
      sum += returns_[i].size;
      if (sum >= size) return returns_[i].at;
    }
    return kUnknown;
  }
  void Collect(SimTime now) {
    while (first_ < returns_.size() && returns_[first_].at <= now) {
      available_ += returns_[first_++].size;
    }
    if (first_ == returns_.size()) {
      returns_.clear();
      first_ = 0;
    }
  }
  /// Everything on its way back is back; the counter stands as at the start. Contract: none held.
  void Reset() {
    WT_CHECK(held_.count() == 0) << held_.count() << " bytes of credit never came back";
    returns_.clear();
    first_ = 0;
    available_ = capacity_;
  }

  Bytes capacity() const { return capacity_; }
  Bytes available() const { return available_; }
  /// At the receiver or on the wire.
  Bytes held() const { return held_; }
  /// On the way back.
  Bytes returning() const { return capacity_ - available_ - held_; }

  static constexpr SimTime kUnknown{Picoseconds(SimTime::kMaxPicoseconds)};

 private:
  struct Entry {
    SimTime at;
    Bytes size;
  };
  void Compact() {
    returns_.erase(returns_.begin(), returns_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  Bytes capacity_;
  Bytes available_;
  Bytes held_;
  std::vector<Entry> returns_;
  std::size_t first_ = 0;
};

}  // namespace windtunnel
