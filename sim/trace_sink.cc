#include "sim/trace_sink.h"

#include <fmt/format.h>

#include "sim/check.h"
#include "sim/error.h"

namespace windtunnel {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Microseconds with all digits of a picosecond.
std::string Microseconds(Picoseconds span) {
  return fmt::format("{}.{:06}", span.count() / 1'000'000, span.count() % 1'000'000);
}

constexpr std::string_view kTraceTail = "\n]}\n";
/// Room kept for the falls and the end time of a dump.
constexpr std::size_t kVcdReserve = 64;

}  // namespace

bool BoundedText::Write(std::string_view text, std::size_t reserve) {
  if (written_.count() + text.size() + reserve > limit_.count()) {
    ++left_out_;
    return false;
  }
  out_ << text;
  if (!out_) throw ConfigError({.problem = "cannot be written: no room on the disk?"});
  written_ += Bytes(text.size());
  return true;
}

TraceSink::TraceSink(std::ostream& out, Bytes limit) : text_(out, limit) {
  text_.Write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", kTraceTail.size());
}

TraceSink::~TraceSink() {
  try {
    Finish();
  } catch (const ConfigError&) {
  }
}

void TraceSink::Add(std::string entry) {
  WT_CHECK(!finished_) << "entry after the end of a trace";
  if (!first_) entry.insert(0, ",\n");
  if (text_.Write(entry, kTraceTail.size())) first_ = false;
}

void TraceSink::NameProcess(std::uint32_t process, std::string_view name) {
  Add(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process,
                  Quoted(name)));
}

void TraceSink::NameThread(std::uint32_t process, std::uint32_t thread, std::string_view name) {
  Add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                  process, thread, Quoted(name)));
}

void TraceSink::AddSpan(std::uint32_t process, std::uint32_t thread, std::string_view name,
                        SimTime begin, SimTime end, std::string_view detail) {
  std::string entry =
      fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{})", process, thread,
                  Quoted(name), Microseconds(begin.since_start()), Microseconds(end - begin));
  if (!detail.empty()) entry += fmt::format(R"(,"args":{{"detail":{}}})", Quoted(detail));
  Add(entry + "}");
}

void TraceSink::AddCounter(std::uint32_t process, std::string_view name, SimTime at, double value) {
  Add(fmt::format(R"({{"ph":"C","pid":{},"name":{},"ts":{},"args":{{"value":{:.6g}}}}})", process,
                  Quoted(name), Microseconds(at.since_start()), value));
}

void TraceSink::Finish() {
  if (finished_) return;
  finished_ = true;
  text_.Write(kTraceTail, 0);
}

VcdSink::VcdSink(std::ostream& out, Bytes limit, const std::vector<std::string>& names)
    : text_(out, limit), high_until_(names.size()), high_(names.size()) {
  std::string head = "$timescale 1ps $end\n$scope module links $end\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string code;
    std::size_t rest = i;
    do {  // Printable codes, base 94, as the standard asks.
      code += static_cast<char>('!' + rest % 94);
      rest /= 94;
    } while (rest != 0);
    std::string name = names[i];
    for (char& c : name) {
      if (c == ' ' || c == '$' || static_cast<unsigned char>(c) < 0x21) c = '_';
    }
    head += "$var wire 1 " + code + " " + name + " $end\n";
    codes_.push_back(std::move(code));
  }
  head += "$upscope $end\n$enddefinitions $end\n#0\n";
  for (const std::string& code : codes_) head += "0" + code + "\n";
  if (!text_.Write(head, kVcdReserve)) {
    throw ConfigError({.field = "limit of the VCD file",
                       .value = fmt::to_string(limit.count()),
                       .problem = "has no room for the names of the signals:",
                       .expected = fmt::format("at least {} bytes", head.size() + kVcdReserve)});
  }
}

void VcdSink::Change(SimTime at, std::uint32_t index, bool high) {
  std::string line;
  if (at != written_time_) line = fmt::format("#{}\n", at.since_start().count());
  line += high ? '1' : '0';
  line += codes_[index];
  line += '\n';
  if (!text_.Write(line, kVcdReserve)) return;
  written_time_ = at;
  high_[index] = high;
}

void VcdSink::FallUntil(SimTime now) {
  while (!falls_.empty() && falls_.top().at <= now) {
    const Fall fall = falls_.top();
    falls_.pop();
    // A later span may have taken over where this one ended.
    if (high_until_[fall.index] == fall.at && high_[fall.index]) {
      Change(fall.at, fall.index, false);
    }
  }
}

void VcdSink::AddHigh(std::uint32_t index, SimTime begin, SimTime end) {
  if (begin == end) return;
  // A span that touches is taken over before the fall at `begin` is looked at, so it stays one.
  const bool touches = high_[index] && high_until_[index] == begin;
  if (touches) high_until_[index] = end;
  FallUntil(begin);
  high_until_[index] = end;
  falls_.push({end, index});
  if (!touches) Change(begin, index, true);
}

void VcdSink::Finish(SimTime end) {
  FallUntil(end);
  if (end > written_time_) text_.Write(fmt::format("#{}\n", end.since_start().count()), 0);
}

}  // namespace windtunnel
