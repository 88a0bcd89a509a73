#pragma once
// Who sends next on a wire that several queues want.

#include <algorithm>
#include <cstdint>
#include <span>

#include "sim/check.h"

namespace windtunnel {

/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): equal shares in bytes, or shares by
/// weight, however the queues cut their traffic into bursts; plain round robin when all bursts are
/// of one size. Deterministic: order of activation, then turns. Cost per pick: constant.
class DeficitRoundRobin {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Place of one queue in the round. The engine keeps these in one array, indexed by queue.
  struct Member {
    std::uint32_t next = kNone;
    bool active = false;
    bool turn_begun = false;
    std::uint16_t weight = 0;   ///< Its share of the wire among the others; 0: as 1.
    std::uint64_t deficit = 0;  ///< Bytes it may still send in this turn.
  };

  bool empty() const { return first_ == kNone; }

  /// Appends queue `id`. No effect when it is in the round already.
  void Activate(std::span<Member> members, std::uint32_t id) {
    Member& member = members[id];
    if (member.active) return;
    Clear(member);
    member.active = true;
    heaviest_ = std::max(heaviest_, member.weight);
    if (first_ == kNone) {
      first_ = last_ = id;
    } else {
      members[last_].next = id;
      last_ = id;
    }
  }

  /// The queue whose turn it is; it stands first in the round until `Charge` or `DropFirst`.
  /// `size_of(id)` is its next burst in bytes, at most `quantum`. Contract: not empty.
  template <class SizeOf>
  std::uint32_t Pick(std::span<Member> members, std::uint64_t quantum, SizeOf&& size_of) {
    while (first_ != last_) {  // Alone there are no turns to count.
      Member& member = members[first_];
      if (!member.turn_begun) {
        member.turn_begun = true;
        member.deficit += member.weight == 0 ? quantum : Turn(quantum, member.weight);
      }
      if (member.deficit >= size_of(first_)) break;
      Rotate(members);
    }
    return first_;
  }

  /// The picked queue sent `size` bytes and has more.
  void Charge(std::span<Member> members, std::uint64_t size) {
    std::uint64_t& deficit = members[first_].deficit;
    deficit = deficit > size ? deficit - size : 0;
  }

  /// The first queue has nothing left. Contract: not empty.
  void DropFirst(std::span<Member> members) {
    Member& member = members[first_];
    first_ = member.next;
    if (first_ == kNone) last_ = kNone;
    Clear(member);
  }

  /// The queue at the head of the round. Contract: not empty.
  std::uint32_t first() const { return first_; }

  /// Calls `visit(id)` for each queue in the round, in order.
  template <class Visit>
  void ForEach(std::span<const Member> members, Visit&& visit) const {
    for (std::uint32_t id = first_; id != kNone; id = members[id].next) visit(id);
  }

 private:
  /// The heaviest has whole turns, others short ones: long turns would fill the next buffer.
  std::uint64_t Turn(std::uint64_t quantum, std::uint16_t weight) const {
    constexpr std::uint64_t kMostTurns = 64;  // Until the lightest may send.
    return std::max({quantum * weight / heaviest_, quantum / kMostTurns, std::uint64_t{1}});
  }
  static void Clear(Member& member) { member = {.weight = member.weight}; }
  void Rotate(std::span<Member> members) {
    const std::uint32_t id = first_;
    members[id].turn_begun = false;
    first_ = members[id].next;
    members[id].next = kNone;
    members[last_].next = id;
    last_ = id;
  }

  std::uint32_t first_ = kNone;
  std::uint32_t last_ = kNone;
  std::uint16_t heaviest_ = 1;
};

/// The queues of one wire: the incoming links take turns, and what starts at the device itself is
/// one more of them however many connections it has, as a switch gives its own port one place among
/// the others. Within it the connections take turns. (With a place for each, a router with many
/// connections of its own would leave next to nothing to what passes through.)
class PortArbiter {
 public:
  static constexpr std::uint32_t kNone = DeficitRoundRobin::kNone;
  using Member = DeficitRoundRobin::Member;

  bool empty() const { return ports_.empty(); }
  /// Place of the device's own sources among `members`; kNone: it has none yet.
  std::uint32_t own() const { return own_; }
  void set_own(std::uint32_t own) { own_ = own; }

  void Activate(std::span<Member> members, std::uint32_t id) { ports_.Activate(members, id); }
  /// Contract: `set_own` was called.
  void ActivateSource(std::span<Member> members, std::uint32_t id) {
    sources_.Activate(members, id);
    ports_.Activate(members, own_);
  }
  /// As `DeficitRoundRobin::Pick`: the same queue until `Charge` or `Drop`.
  template <class SizeOf>
  std::uint32_t Pick(std::span<Member> members, std::uint64_t quantum, SizeOf&& size_of) {
    const std::uint32_t port = ports_.Pick(members, quantum, [&](std::uint32_t id) {
      return size_of(id == own_ ? sources_.Pick(members, quantum, size_of) : id);
    });
    return port == own_ ? sources_.Pick(members, quantum, size_of) : port;
  }
  /// The picked queue sent `size` bytes and has more.
  void Charge(std::span<Member> members, std::uint64_t size) {
    if (ports_.first() == own_) sources_.Charge(members, size);
    ports_.Charge(members, size);
  }
  /// The picked queue sent `size` bytes and has nothing left, or may not send now (0).
  void Drop(std::span<Member> members, std::uint64_t size) {
    if (ports_.first() == own_) {
      sources_.DropFirst(members);
      if (!sources_.empty()) {
        ports_.Charge(members, size);
        return;
      }
    }
    ports_.DropFirst(members);
  }
  /// Calls `visit(id)` for each queue that waits.
  template <class Visit>
  void ForEach(std::span<const Member> members, Visit&& visit) const {
    ports_.ForEach(members, [&](std::uint32_t id) {
      if (id != own_) return visit(id);
      sources_.ForEach(members, visit);
    });
  }

 private:
  DeficitRoundRobin ports_;
  DeficitRoundRobin sources_;
  std::uint32_t own_ = kNone;
};

}  // namespace windtunnel
