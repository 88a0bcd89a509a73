#pragma once
// Reads numbers with units as people and foreign files write them. Always the point as decimal
// mark, whatever the locale. All throw ConfigError; `where` fills file, line and field of the
// fault.

#include <cstdint>
#include <string_view>

#include "sim/error.h"
#include "sim/units.h"

namespace windtunnel {

/// A plain decimal number, digits with an optional fraction and exponent. Refused: empty, NaN, inf,
/// hex, trailing text, a decimal comma, values that are not zero but round to it, and values beyond
/// double. "-0" reads as 0.
double ParseNumber(std::string_view text, const InputFault& where);
/// A whole number from `lowest` to `highest`.
std::uint64_t ParseCount(std::string_view text, const InputFault& where, std::uint64_t lowest = 0,
                         std::uint64_t highest = UINT64_MAX);

/// "50 GB/s" (10^9 bytes), "50 GiB/s" (2^30 bytes), "400 Gb/s", "400 Gbit/s", "400 Gbps", "50e9
/// B/s"; prefixes none, k, M, G, T and Ki, Mi, Gi, Ti. "bps" and lower-case "b" read as bits. A
/// number without unit or without "/s" is refused. Zero is refused.
BitsPerSecond ParseRate(std::string_view text, const InputFault& where);
/// "64 KiB", "1 MB", "4096 B", "4096": bytes. A bare number is bytes.
Bytes ParseSize(std::string_view text, const InputFault& where);
/// "300 ns", "1.5 us", "2 ms", "10 s", "500 ps". A bare number is refused, except 0.
Picoseconds ParseTime(std::string_view text, const InputFault& where);
/// A size as nccl-tests reads it: one optional letter K, M, G (either case) after the number,
/// binary; text behind that letter is ignored there (so "1GB" is 1 GiB). Refused: empty, negative,
/// other letters.
Bytes ParseNcclTestsSize(std::string_view text, const InputFault& where);

/// "50.00 GB/s", "1.250 GB/s"; "1.5 us", "20.0 ms"; "64 MiB", "1000003 B".
std::string FormatRate(BitsPerSecond rate);
std::string FormatTime(Picoseconds time);
std::string FormatSize(Bytes size);

}  // namespace windtunnel
