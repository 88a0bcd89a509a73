#pragma once
// The pending events of one simulation: a 4-ary heap ordered by (time, order of scheduling). No
// allocation per event once the heap has grown. A plain loop drains it at flow level; at packet
// level one SystemC process does (systemc_bridge.h).

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
    heap_.push_back({at, sequence_++, &handler, payload});
    SiftUp(heap_.size() - 1);
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  SimTime now() const { return now_; }
  /// Contract: not empty.
  SimTime next_time() const { return heap_.front().at; }
  /// Runs the first event. Contract: not empty.
  void RunNext() {
    const Entry entry = heap_.front();
    heap_.front() = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) SiftDown(0);
    now_ = entry.at;
    ++executed_;
    entry.handler->OnEvent(now_, entry.payload);
  }
  /// Runs everything that is due at or before `limit`.
  void RunUntil(SimTime limit) {
    while (!heap_.empty() && heap_.front().at <= limit) RunNext();
  }
  /// Drains the queue in a plain loop.
  void Run() {
    while (!heap_.empty()) RunNext();
  }
  std::uint64_t executed() const { return executed_; }
  void Reserve(std::size_t entries) { heap_.reserve(entries); }
  /// Back to time zero for the next run. Contract: empty.
  void Reset() {
    WT_CHECK(heap_.empty()) << heap_.size() << " events pending";
    now_ = SimTime();
    sequence_ = 0;
  }

 private:
  struct Entry {
    SimTime at;
    std::uint64_t sequence;
    EventHandler* handler;
    std::uint64_t payload;
    bool Before(const Entry& other) const {
      return at != other.at ? at < other.at : sequence < other.sequence;
    }
  };
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

  std::vector<Entry> heap_;
  SimTime now_;
  std::uint64_t sequence_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace windtunnel
