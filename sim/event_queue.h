#pragma once
// The pending events of one simulation, ordered by (time, order of scheduling). Events of one
// instant stand in one row: schedules in lockstep cost one entry of the heap per instant, not per
// event. No allocation per event once the rows have grown. A plain loop drains it at flow level; at
// packet level one SystemC process does (systemc_bridge.h).

#include <array>
#include <cstdint>
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace windtunnel {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// `payload` is what was scheduled: an index the handler understands.
  virtual void OnEvent(SimTime now, std::uint64_t payload) = 0;
};

class EventQueue {
 public:
  /// Contract: `at` >= now(); `handler` outlives the event. Events of equal time run in the order
  /// of scheduling.
  void Schedule(SimTime at, EventHandler& handler, std::uint64_t payload) {
    WT_CHECK(at >= now_) << "event in the past";
    ++size_;
    Slot& slot = slots_[SlotOf(at)];
    if (slot.row != kNone && slot.at == at) {
      rows_[slot.row].rest.push_back({&handler, payload});
      return;
    }
    std::uint32_t row;
    if (free_rows_.empty()) {
      row = static_cast<std::uint32_t>(rows_.size());
      rows_.emplace_back();
    } else {
      row = free_rows_.back();
      free_rows_.pop_back();
    }
    rows_[row].first = {&handler, payload};
    slot = {at, row};
    heap_.push_back({at, sequence_++, row});
    SiftUp(heap_.size() - 1);
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  SimTime now() const { return now_; }
  /// Contract: not empty.
  SimTime next_time() const { return next_ < running_.size() ? now_ : heap_.front().at; }
  /// Runs the first event. Contract: not empty.
  void RunNext() {
    const Event event = next_ == running_.size() ? TakeFirstRow() : running_[next_++];
    --size_;
    ++executed_;
    event.handler->OnEvent(now_, event.payload);
  }
  /// Runs everything that is due at or before `limit`.
  void RunUntil(SimTime limit) {
    while (!empty() && next_time() <= limit) RunNext();
  }
  /// Drains the queue in a plain loop.
  void Run() {
    while (!empty()) RunNext();
  }
  std::uint64_t executed() const { return executed_; }
  /// Back to time zero for the next run. Contract: empty.
  void Reset() {
    WT_CHECK(empty()) << size_ << " events pending";
    now_ = SimTime();
    sequence_ = 0;
    slots_.fill({});
  }

 private:
  struct Event {
    EventHandler* handler = nullptr;
    std::uint64_t payload = 0;
  };
  // Mostly one event, or very many.
  struct Row {
    Event first;
    std::vector<Event> rest;
  };
  struct Entry {
    SimTime at;
    std::uint64_t sequence;  // Of rows: two of one time keep their order.
    std::uint32_t row;
    bool Before(const Entry& other) const {
      return at != other.at ? at < other.at : sequence < other.sequence;
    }
  };
  // The row that events of this time go to. One that lost its slot to another time gets no more
  // events, so all of its events are older than those of the row that follows it.
  struct Slot {
    SimTime at;
    std::uint32_t row = kNone;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kSlots = 1024;

  static std::size_t SlotOf(SimTime at) {
    return static_cast<std::size_t>((at.since_start().count() * 0x9e3779b97f4a7c15ULL) >> 54);
  }
  // Returns its first event; the others move to `running_`. What is scheduled for this very instant
  // starts another row.
  Event TakeFirstRow() {
    const Entry first = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) SiftDown(0);
    now_ = first.at;
    Slot& slot = slots_[SlotOf(first.at)];
    if (slot.row == first.row) slot.row = kNone;
    Row& row = rows_[first.row];
    if (!row.rest.empty()) {
      running_.clear();
      running_.swap(row.rest);
      next_ = 0;
    }
    free_rows_.push_back(first.row);
    return row.first;
  }
  void SiftUp(std::size_t i) {
    const Entry entry = heap_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!entry.Before(heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = entry;
  }
  void SiftDown(std::size_t i) {
    const Entry entry = heap_[i];
    const std::size_t size = heap_.size();
    for (;;) {
      const std::size_t first = 4 * i + 1;
      if (first >= size) break;
      std::size_t best = first;
      const std::size_t last = first + 4 < size ? first + 4 : size;
      for (std::size_t child = first + 1; child < last; ++child) {
        if (heap_[child].Before(heap_[best])) best = child;
      }
      if (!heap_[best].Before(entry)) break;
      heap_[i] = heap_[best];
      i = best;
    }
    heap_[i] = entry;
  }

  std::vector<Entry> heap_;  // 4-ary.
  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_rows_;
  std::array<Slot, kSlots> slots_{};
  std::vector<Event> running_;  // What was scheduled behind the first event of now().
  std::size_t next_ = 0;        // In `running_`.
  std::size_t size_ = 0;
  SimTime now_;
  std::uint64_t sequence_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace windtunnel
