#include "sim/parse_units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace windtunnel {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

[[noreturn]] void Refuse(InputFault fault, std::string_view value, std::string problem,
                         std::string expected) {
  fault.value = value;
  fault.problem = std::move(problem);
  fault.expected = std::move(expected);
  throw ConfigError(std::move(fault));
}

struct NumberAndRest {
  double number;
  std::string_view rest;
};

// Reads the number at the front. Hex, NaN and inf never match: from_chars in general format wants a
// digit or a point.
NumberAndRest SplitNumber(std::string_view whole, const InputFault& where, std::string_view kind) {
  const std::string expected = fmt::format("{} such as {}", kind,
                                           kind == "a rate"   ? "'50 GB/s' or '400 Gb/s'"
                                           : kind == "a time" ? "'300 ns' or '1.5 us'"
                                           : kind == "a size" ? "'4096', '64 KiB' or '1 MB'"
                                                              : "'12' or '0.5'");
  const std::string_view text = Trim(whole);
  if (text.empty()) Refuse(where, whole, "is empty", expected);
  std::string_view digits = text;
  bool negative = false;
  if (digits.front() == '+' || digits.front() == '-') {
    negative = digits.front() == '-';
    digits.remove_prefix(1);
  }
  if (digits.empty() ||
      !(std::isdigit(static_cast<unsigned char>(digits.front())) || digits.front() == '.')) {
    Refuse(where, text, "is not a number:", expected);
  }
  if (digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    Refuse(where, text, "hexadecimal is not read here:", expected);
  }
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::result_out_of_range) Refuse(where, text, "is out of range:", expected);
  if (error != std::errc()) Refuse(where, text, "is not a number:", expected);
  std::string_view rest = digits.substr(static_cast<std::size_t>(end - digits.data()));
  if (!rest.empty() && rest.front() == ',') {
    Refuse(where, text, "has a comma (the decimal mark is a point):", expected);
  }
  if (number != 0 && number < 1e-300) Refuse(where, text, "is too small to be meant:", expected);
  if (negative && number != 0) Refuse(where, text, "is negative:", expected);
  return {number, Trim(rest)};
}

struct Prefix {
  std::string_view text;
  double factor;
};
constexpr std::array<Prefix, 10> kPrefixes{{{"Ki", 1024.0},
                                            {"Mi", 1048576.0},
                                            {"Gi", 1073741824.0},
                                            {"Ti", 1099511627776.0},
                                            {"k", 1e3},
                                            {"K", 1e3},
                                            {"M", 1e6},
                                            {"G", 1e9},
                                            {"T", 1e12},
                                            {"", 1.0}}};

std::uint64_t Rounded(double value, std::string_view text, const InputFault& where, double limit,
                      const char* kind) {
  const double whole = std::floor(value + 0.5);
  if (!(whole <= limit))
    Refuse(where, text, "is out of range:", fmt::format("{} below {:g}", kind, limit));
  if (value > 0 && whole == 0)
    Refuse(where, text, "is too small to be meant:", fmt::format("{} of at least one unit", kind));
  return static_cast<std::uint64_t>(whole);
}

}  // namespace

double ParseNumber(std::string_view text, const InputFault& where) {
  const NumberAndRest parts = SplitNumber(text, where, "a number");
  if (!parts.rest.empty()) Refuse(where, text, "has text behind the number:", "a plain number");
  return parts.number;
}

std::uint64_t ParseCount(std::string_view whole, const InputFault& where, std::uint64_t lowest,
                         std::uint64_t highest) {
  const std::string expected = highest == UINT64_MAX
                                   ? fmt::format("a whole number from {}", lowest)
                                   : fmt::format("a whole number from {} to {}", lowest, highest);
  const std::string_view text = Trim(whole);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty()) Refuse(where, whole, "is empty", expected);
  if (error == std::errc::result_out_of_range) Refuse(where, text, "is out of range:", expected);
  if (error != std::errc() || end != text.data() + text.size()) {
    Refuse(where, text, "is not a whole number:", expected);
  }
  if (value < lowest || value > highest) Refuse(where, text, "is out of range:", expected);
  return value;
}

BitsPerSecond ParseRate(std::string_view text, const InputFault& where) {
  const std::string expected =
      "a rate with its unit: B/s, b/s, bit/s or bps with k, M, G, T or Ki, Mi, Gi, Ti before it";
  const NumberAndRest parts = SplitNumber(text, where, "a rate");
  std::string_view unit = parts.rest;
  if (unit.empty()) Refuse(where, text, "has no unit:", expected);
  double bits = 0;
  const auto ends_with = [&](std::string_view suffix) {
    if (!unit.ends_with(suffix)) return false;
    unit.remove_suffix(suffix.size());
    return true;
  };
  if (ends_with("bit/s") || ends_with("bits/s") || ends_with("b/s") || ends_with("bps")) {
    bits = 1;
  } else if (ends_with("B/s") || ends_with("Bps")) {
    bits = 8;
  } else if (unit.ends_with("b") || unit.ends_with("B") || unit.ends_with("bit")) {
    Refuse(where, text, "is a size, not a rate ('/s' is missing):", expected);
  } else {
    Refuse(where, text, "has an unknown unit:", expected);
  }
  // "50gbps" occurs in the field: with bits the case of the prefix cannot be mistaken, so it is
  // taken.
  const std::string folded =
      bits == 1 && unit.size() == 1 && unit != "k"
          ? std::string(1, static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))))
          : std::string(unit);
  for (const Prefix& prefix : kPrefixes) {
    if (folded != prefix.text) continue;
    const double value = parts.number * prefix.factor * bits;
    if (value == 0)
      Refuse(where, text, "is zero (a link without rate is marked 'down'):", expected);
    return BitsPerSecond(Rounded(value, text, where, 1e18, "a rate in bit/s"));
  }
  Refuse(where, text, "has an unknown unit:", expected);
}

Bytes ParseSize(std::string_view text, const InputFault& where) {
  const std::string expected =
      "a size: bytes, or a number with B, kB, MB, GB (10^3...) or KiB, MiB, GiB (2^10...)";
  const NumberAndRest parts = SplitNumber(text, where, "a size");
  std::string_view unit = parts.rest;
  if (!unit.empty()) {
    if (!unit.ends_with('B')) Refuse(where, text, "has an unknown unit:", expected);
    unit.remove_suffix(1);
  }
  for (const Prefix& prefix : kPrefixes) {
    if (unit != prefix.text) continue;
    return Bytes(Rounded(parts.number * prefix.factor, text, where, 9.2e18, "a size in bytes"));
  }
  Refuse(where, text, "has an unknown unit:", expected);
}

Picoseconds ParseTime(std::string_view text, const InputFault& where) {
  const std::string expected = "a time with its unit: ps, ns, us, ms or s";
  const NumberAndRest parts = SplitNumber(text, where, "a time");
  constexpr std::array<Prefix, 5> kUnits{
      {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}}};
  for (const Prefix& unit : kUnits) {
    if (parts.rest != unit.text) continue;
    return Picoseconds(Rounded(parts.number * unit.factor, text, where,
                               static_cast<double>(SimTime::kMaxPicoseconds), "a time in ps"));
  }
  if (parts.rest.empty() && parts.number == 0) return Picoseconds(0);
  Refuse(where, text, parts.rest.empty() ? "has no unit:" : "has an unknown unit:", expected);
}

Bytes ParseNcclTestsSize(std::string_view whole, const InputFault& where) {
  const std::string expected =
      "bytes, or a number with K, M or G (binary, as nccl-tests reads them)";
  const NumberAndRest parts = SplitNumber(whole, where, "a size");
  double factor = 1;
  if (!parts.rest.empty()) {
    switch (std::toupper(static_cast<unsigned char>(parts.rest.front()))) {
      case 'K':
        factor = 1024.0;
        break;
      case 'M':
        factor = 1048576.0;
        break;
      case 'G':
        factor = 1073741824.0;
        break;
      default:
        Refuse(where, whole, "has an unknown size letter:", expected);
    }
  }
  const double value = std::floor(parts.number * factor);
  if (!(value <= 9.2e18)) Refuse(where, whole, "is out of range:", expected);
  return Bytes(static_cast<std::uint64_t>(value));
}

std::string FormatRate(BitsPerSecond rate) {
  return fmt::format("{:.2f} GB/s", ToGigabytesPerSecond(rate));
}

std::string FormatTime(Picoseconds time) {
  const auto ps = static_cast<double>(time.count());
  if (ps < 1e6) return fmt::format("{:g} ns", ps / 1e3);
  if (ps < 1e9) return fmt::format("{:.2f} us", ps / 1e6);
  if (ps < 1e12) return fmt::format("{:.3f} ms", ps / 1e9);
  return fmt::format("{:.3f} s", ps / 1e12);
}

std::string FormatSize(Bytes size) {
  const std::uint64_t n = size.count();
  if (n != 0 && n % (1u << 30) == 0) return fmt::format("{} GiB", n >> 30);
  if (n != 0 && n % (1u << 20) == 0) return fmt::format("{} MiB", n >> 20);
  if (n != 0 && n % (1u << 10) == 0) return fmt::format("{} KiB", n >> 10);
  return fmt::format("{} B", n);
}

}  // namespace windtunnel
