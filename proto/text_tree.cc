#include "proto/text_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

namespace windtunnel::proto {
namespace {

[[noreturn]] void Fail(std::string_view file, std::uint64_t line, std::string problem,
                       std::string value = {}, std::string expected = {}) {
  throw ConfigError({.file = std::string(file),
                     .line = line,
                     .value = std::move(value),
                     .problem = std::move(problem),
                     .expected = std::move(expected)});
}

// Builds the tree from events in document order. Containers are built on a stack, so the depth is
// known, and bounded, before anything recurses.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view file, const ReadLimits& limits) : file_(file), limits_(limits) {}

  void Open(TextNode::Kind kind, std::uint64_t line) {
    if (stack_.size() >= limits_.depth) {
      Fail(file_, line,
           fmt::format("nests deeper than the limit of {} lists and maps", limits_.depth));
    }
    Count(line);
    stack_.push_back(
        {.node = {.kind = kind, .line = line}, .keys = {}, .key = {}, .has_key = false});
  }
  void Close() {
    TextNode done = std::move(stack_.back().node);
    stack_.pop_back();
    Place(std::move(done));
  }
  void Key(std::string key, std::uint64_t line) {
    Frame& top = stack_.back();
    if (!top.keys.insert(key).second) Fail(file_, line, "repeated key", key);
    top.key = std::move(key);
    top.has_key = true;
  }
  void Value(TextNode node) {
    Count(node.line);
    if (ExpectsKey()) {
      if (node.kind != TextNode::Kind::kScalar) Fail(file_, node.line, "a key must be a name");
      Key(std::move(node.scalar), node.line);
      return;
    }
    Place(std::move(node));
  }
  bool ExpectsKey() const {
    return !stack_.empty() && stack_.back().node.kind == TextNode::Kind::kMap &&
           !stack_.back().has_key;
  }
  std::string_view file() const { return file_; }
  TextNode Take() { return std::move(root_); }

 private:
  struct Frame {
    TextNode node;
    std::set<std::string> keys;
    std::string key;
    bool has_key;
  };
  void Count(std::uint64_t line) {
    if (++values_ > limits_.values) {
      Fail(file_, line, fmt::format("holds more than the limit of {} values", limits_.values));
    }
  }
  void Place(TextNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& top = stack_.back();
    if (top.node.kind == TextNode::Kind::kMap) {
      if (!top.has_key) Fail(file_, node.line, "a key must be a name, not a list or map");
      top.node.keys.push_back(std::move(top.key));
      top.has_key = false;
    }
    top.node.children.push_back(std::move(node));
  }

  std::string file_;
  ReadLimits limits_;
  std::vector<Frame> stack_;
  TextNode root_;
  std::size_t values_ = 0;
};

std::uint64_t LineOf(const YAML::Mark& mark) {
  return mark.line < 0 ? 0 : static_cast<std::uint64_t>(mark.line) + 1;
}

class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(TreeBuilder* builder) : builder_(builder) {}
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    builder_->Value({.kind = TextNode::Kind::kNull, .line = LineOf(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { RefuseAnchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    // "~" and "null" unquoted are null; a quoted scalar carries the tag "!".
    const bool null = tag != "!" && (value == "~" || value == "null");
    builder_->Value({.kind = null ? TextNode::Kind::kNull : TextNode::Kind::kScalar,
                     .line = LineOf(mark),
                     .scalar = null ? std::string() : value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    builder_->Open(TextNode::Kind::kList, LineOf(mark));
  }
  void OnSequenceEnd() override { builder_->Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    builder_->Open(TextNode::Kind::kMap, LineOf(mark));
  }
  void OnMapEnd() override { builder_->Close(); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { RefuseAnchor(mark, 1); }

 private:
  // An alias can stand for itself or double at each level; templates and ranges do its work here.
  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    Fail(builder_->file(), LineOf(mark), "YAML anchors and aliases are not read", {},
         "plain values; repetition is written with templates and ranges");
  }
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    Fail(builder_->file(), LineOf(mark), "YAML tags are not read", tag);
  }

  TreeBuilder* builder_;
};

// The reader of nlohmann-json takes characters one at a time; this iterator counts the lines it has
// gone past.
class LineCountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  LineCountingIterator(const char* at, std::uint64_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCountingIterator operator++(int) {
    LineCountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const LineCountingIterator& a, const LineCountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const LineCountingIterator& a, const LineCountingIterator& b) {
    return !(a == b);
  }

 private:
  const char* at_;
  std::uint64_t* line_;
};

class JsonEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(TreeBuilder* builder, const std::uint64_t* line) : builder_(builder), line_(line) {}
  bool null() override {
    builder_->Value({.kind = TextNode::Kind::kNull, .line = *line_});
    return true;
  }
  bool boolean(bool value) override { return Scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Scalar(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return Scalar(fmt::format("{}", value));
  }
  // The text, not the rounded number: whole numbers beyond 64 bits arrive here too.
  bool number_float(number_float_t, const string_t& text) override { return Scalar(text); }
  bool string(string_t& value) override { return Scalar(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    builder_->Open(TextNode::Kind::kMap, *line_);
    return true;
  }
  bool key(string_t& value) override {
    builder_->Key(value, *line_);
    return true;
  }
  bool end_object() override {
    builder_->Close();
    return true;
  }
  bool start_array(std::size_t) override {
    builder_->Open(TextNode::Kind::kList, *line_);
    return true;
  }
  bool end_array() override {
    builder_->Close();
    return true;
  }
  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    std::string problem = error.what();
    if (const auto colon = problem.find(": "); colon != std::string::npos)
      problem = problem.substr(colon + 2);
    Fail(builder_->file(), *line_, "is not JSON: " + problem, token);
  }

 private:
  bool Scalar(std::string text) {
    builder_->Value({.kind = TextNode::Kind::kScalar, .line = *line_, .scalar = std::move(text)});
    return true;
  }

  TreeBuilder* builder_;
  const std::uint64_t* line_;
};

}  // namespace

TextNode ParseYaml(std::string_view text, std::string_view file_name, const ReadLimits& limits) {
  TreeBuilder builder(file_name, limits);
  YamlEvents events(&builder);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(events)) return {};
    TextNode root = builder.Take();
    TreeBuilder second(file_name, limits);
    YamlEvents more(&second);
    if (parser.HandleNextDocument(more)) {
      const TextNode extra = second.Take();
      if (extra.kind != TextNode::Kind::kNull)
        Fail(file_name, extra.line, "holds a second YAML document; one is read");
    }
    return root;
  } catch (const YAML::Exception& error) {
    Fail(file_name, LineOf(error.mark), "is not YAML: " + error.msg);
  }
}

TextNode ParseJson(std::string_view text, std::string_view file_name, const ReadLimits& limits) {
  TreeBuilder builder(file_name, limits);
  std::uint64_t line = 1;
  JsonEvents events(&builder, &line);
  const bool done = nlohmann::json::sax_parse(
      LineCountingIterator(text.data(), &line),
      LineCountingIterator(text.data() + text.size(), &line), &events,
      nlohmann::json::input_format_t::json, /*strict=*/true, /*ignore_comments=*/false);
  if (!done) Fail(file_name, line, "is not JSON");
  return builder.Take();
}

}  // namespace windtunnel::proto
