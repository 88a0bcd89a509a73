#include "apps/collective_result.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/error.h"

namespace windtunnel {
namespace {

using Json = nlohmann::json;

std::string TextOf(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  // A folder opens but cannot be read; an empty file leaves the target stream failed.
  if (in && in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad() || text.str().empty()) {
    throw ConfigError({.file = path,
                       .problem = errno != 0
                                      ? std::string("cannot be read: ") + std::strerror(errno)
                                      : "is empty",
                       .expected = "a result that `windtunnel collective --json FILE` wrote"});
  }
  return text.str();
}

/// One object of the file, with the path that messages name.
class Reader {
 public:
  Reader(const std::string& file, const Json& object, std::string path)
      : file_(file), object_(object), path_(std::move(path)) {
    if (!object_.is_object()) Fail("", "is not an object", "{...}");
  }

  std::string Text(const char* key) const {
    const Json& value = Value(key);
    if (!value.is_string()) Fail(key, "is not a text", "\"...\"");
    return value.get<std::string>();
  }
  std::string TextOr(const char* key, std::string otherwise) const {
    return object_.contains(key) ? Text(key) : otherwise;
  }
  double Number(const char* key) const {
    const Json& value = Value(key);
    if (!value.is_number()) Fail(key, "is not a number", "a number");
    const double number = value.get<double>();
    if (!std::isfinite(number) || number < 0)
      Fail(key, "is out of range", "a finite number of at least 0");
    return number;
  }
  double NumberOr(const char* key, double otherwise) const {
    return object_.contains(key) ? Number(key) : otherwise;
  }
  std::uint64_t Count(const char* key) const {
    const Json& value = Value(key);
    if (!value.is_number_unsigned()) Fail(key, "is not a count", "a whole number of at least 0");
    return value.get<std::uint64_t>();
  }
  std::int64_t Whole(const char* key) const {
    const Json& value = Value(key);
    if (!value.is_number_integer()) Fail(key, "is not a whole number", "a whole number");
    return value.get<std::int64_t>();
  }
  std::optional<std::uint64_t> MaybeCount(const char* key) const {
    if (!object_.contains(key) || object_.at(key).is_null()) return std::nullopt;
    return Count(key);
  }
  Reader Object(const char* key) const { return Reader(file_, Value(key), PathOf(key)); }
  std::vector<Reader> Objects(const char* key) const {
    std::vector<Reader> readers;
    if (!object_.contains(key)) return readers;
    if (!object_.at(key).is_array()) Fail(key, "is not a list", "[...]");
    for (const Json& entry : object_.at(key))
      readers.emplace_back(file_, entry, PathOf(key) + "[" + std::to_string(readers.size()) + "]");
    return readers;
  }
  std::vector<std::string> Texts(const char* key) const {
    std::vector<std::string> texts;
    if (!object_.contains(key)) return texts;
    for (const Json& entry : object_.at(key)) {
      if (!entry.is_string()) Fail(key, "holds something that is not a text", "[\"...\"]");
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }
  bool Has(const char* key) const { return object_.contains(key); }

 private:
  const Json& Value(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) Fail(key, "is missing", "");
    return *found;
  }
  std::string PathOf(const std::string& key) const {
    if (path_.empty() || key.empty()) return path_ + key;
    return path_ + "." + key;
  }
  [[noreturn]] void Fail(const std::string& key, std::string problem, std::string expected) const {
    std::string shown;
    if (!key.empty() && object_.contains(key)) shown = object_.at(key).dump();
    throw ConfigError({.file = file_,
                       .field = PathOf(key),
                       .value = shown,
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }

  const std::string& file_;
  const Json& object_;
  std::string path_;
};

PlaceFigures ReadPlace(const Reader& place) {
  return {.time_us = place.Number("time_us"),
          .algbw = place.Number("algbw_gbps"),
          .busbw = place.Number("busbw_gbps"),
          .wrong = place.MaybeCount("wrong")};
}

ResultRow ReadRow(const Reader& row) {
  ResultRow out{.size = row.Count("size"),
                .count = row.Count("count"),
                .type = row.Text("type"),
                .redop = row.Text("redop"),
                .root = row.Whole("root"),
                .out_of_place = ReadPlace(row.Object("out_of_place")),
                .in_place = ReadPlace(row.Object("in_place")),
                .algorithm = row.Text("algorithm"),
                .protocol = row.Text("protocol"),
                .channels = row.Count("channels"),
                .bound = row.TextOr("bound", ""),
                .link_bound_us = row.NumberOr("link_bound_us", 0),
                .symmetry = row.TextOr("symmetry", ""),
                .notice = row.TextOr("notice", ""),
                .shares = {},
                .links = {}};
  for (const Reader& share : row.Objects("shares"))
    out.shares.push_back({.cause = share.Text("cause"), .time_us = share.Number("time_us")});
  for (const Reader& link : row.Objects("links"))
    out.links.push_back({.name = link.Text("name"),
                         .utilisation = link.Number("utilisation"),
                         .payload_bytes = link.Count("payload_bytes"),
                         .wire_bytes = link.Count("wire_bytes")});
  return out;
}

}  // namespace

CollectiveResult ReadCollectiveResult(const std::string& path) {
  const std::string text = TextOf(path);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    throw ConfigError({.file = path,
                       .line = 1 + static_cast<std::uint64_t>(std::count(text.begin(), end, '\n')),
                       .problem = "is not JSON",
                       .expected = "a result that `windtunnel collective --json FILE` wrote"});
  }
  const Reader root(path, json, "");
  if (!root.Has("collective") || !root.Has("rows")) {
    throw ConfigError({.file = path,
                       .problem = "is not the result of a collective",
                       .expected = "a file that `windtunnel collective --json FILE` wrote"});
  }
  const Reader topology = root.Object("topology");
  CollectiveResult out{.file = path,
                       .version = root.Text("version"),
                       .seed = root.Count("seed"),
                       .input_digest = root.Text("input_digest"),
                       .nccl_version = root.TextOr("nccl_version", ""),
                       .fidelity = root.TextOr("fidelity", ""),
                       .topology_name = topology.Text("name"),
                       .topology_source = topology.TextOr("source", ""),
                       .collective = root.Text("collective"),
                       .ranks = root.Has("ranks") ? root.Count("ranks") : 0,
                       .average_busbw = root.NumberOr("average_busbw_gbps", 0),
                       .notes = root.Texts("notes"),
                       .rows = {}};
  if (root.Has("bound")) {
    const Reader bound = root.Object("bound");
    out.bound_busbw = bound.NumberOr("busbw_gbps", 0);
    out.bound_link = bound.TextOr("link", "");
  }
  for (const Reader& row : root.Objects("rows")) out.rows.push_back(ReadRow(row));
  return out;
}

}  // namespace windtunnel
