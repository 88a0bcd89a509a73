#pragma once
// Traces of bounded size: spans and counters as a Chrome trace (Perfetto opens it), occupancy as a
// value change dump (GTKWave opens it). Both write as they go and keep nothing but what is open.

#include <cstdint>
#include <functional>
#include <ostream>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace windtunnel {

/// Text to a stream up to a limit. What would pass the limit is left out whole, so that the file
/// stays well formed; the number of entries left out is kept.
class BoundedText {
 public:
  /// `out` outlives this. `limit` counts from here on.
  BoundedText(std::ostream& out, Bytes limit) : out_(out), limit_(limit) {}
  /// Writes `text`, unless less than `reserve` bytes would then be left of the limit: false.
  /// @throws ConfigError, without a file name, when the stream fails (disk full).
  bool Write(std::string_view text, std::size_t reserve);
  Bytes written() const { return written_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  std::ostream& out_;
  Bytes limit_;
  Bytes written_;
  std::uint64_t left_out_ = 0;
};

/// Chrome trace event format, JSON object form. Source: "Trace Event Format", Chromium project
/// (complete events "X", counters "C", metadata "M"; times in microseconds).
class TraceSink {
 public:
  TraceSink(std::ostream& out, Bytes limit);
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  /// Calls `Finish`, and swallows its failure: call it yourself to hear of a full disk.
  ~TraceSink();

  /// Name of a process row ("rank 3") and of a thread row in it ("channel 0").
  void NameProcess(std::uint32_t process, std::string_view name);
  void NameThread(std::uint32_t process, std::uint32_t thread, std::string_view name);
  /// `detail` is shown with the span when clicked; may be empty.
  void AddSpan(std::uint32_t process, std::uint32_t thread, std::string_view name, SimTime begin,
               SimTime end, std::string_view detail = {});
  void AddCounter(std::uint32_t process, std::string_view name, SimTime at, double value);
  /// Closes the JSON. No entry may follow.
  void Finish();
  /// Entries that the limit kept out.
  std::uint64_t left_out() const { return text_.left_out(); }

 private:
  void Add(std::string entry);

  BoundedText text_;
  bool first_ = true;
  bool finished_ = false;
};

/// One-bit signals over time, time scale 1 ps. Source: IEEE Std 1364-2005, clause 18.
class VcdSink {
 public:
  /// One signal per name, all low at time zero. Names are cleaned of blanks.
  VcdSink(std::ostream& out, Bytes limit, const std::vector<std::string>& names);
  VcdSink(const VcdSink&) = delete;
  VcdSink& operator=(const VcdSink&) = delete;

  /// Signal `index` is high from `begin` to `end`. Contract: `begin` never goes back, over all
  /// signals; the spans of one signal do not overlap. Spans that touch stay one.
  void AddHigh(std::uint32_t index, SimTime begin, SimTime end);
  /// Writes the falls that are still open and the end time.
  void Finish(SimTime end);
  std::uint64_t left_out() const { return text_.left_out(); }

 private:
  struct Fall {
    SimTime at;
    std::uint32_t index;
    friend bool operator>(const Fall& a, const Fall& b) {
      return a.at != b.at ? a.at > b.at : a.index > b.index;
    }
  };
  void FallUntil(SimTime now);
  void Change(SimTime at, std::uint32_t index, bool high);

  BoundedText text_;
  std::vector<std::string> codes_;
  std::vector<SimTime> high_until_;
  std::vector<bool> high_;
  std::priority_queue<Fall, std::vector<Fall>, std::greater<>> falls_;
  SimTime written_time_;
};

}  // namespace windtunnel
