#include "interconnect/nccl/xml.h"

#include <fstream>
#include <optional>
#include <system_error>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// A cursor over the text with the state machine of one tag at a time; open elements wait on an
/// explicit stack.
class Reader {
 public:
  Reader(std::string_view text, std::string file, const XmlLimits& limits)
      : text_(text), limits_(limits) {
    document_.file = std::move(file);
  }

  XmlDocument Read() {
    if (text_.size() > limits_.bytes)
      Fail("the text is too long", std::to_string(text_.size()) + " bytes",
           Limit("bytes", limits_.bytes));
    SkipPrologue();
    while (SkipToTag()) ReadTag();
    if (!open_.empty()) {
      line_ = open_.back().line;
      Fail("element is never closed:", "<" + open_.back().name + ">",
           "</" + open_.back().name + ">");
    }
    if (!root_) Fail("no element in the file", "", "<system ...> or <graphs ...>");
    document_.root = std::move(*root_);
    return std::move(document_);
  }

 private:
  [[noreturn]] void Fail(std::string problem, std::string value, std::string expected) const {
    throw ConfigError({.file = document_.file,
                       .line = line_,
                       .value = std::move(value),
                       .problem = std::move(problem),
                       .expected = std::move(expected)});
  }
  static std::string Limit(std::string_view what, std::size_t limit) {
    return "at most " + std::to_string(limit) + " " + std::string(what);
  }
  void Warn(const std::string& what) {
    document_.warnings.push_back(document_.file + ":" + std::to_string(line_) + ": " + what);
  }
  void WarnOnce(bool& said, const std::string& what) {
    if (!said) Warn(what);
    said = true;
  }

  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return text_[at_]; }
  bool Next(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  void Advance(std::size_t count = 1) {
    for (; count > 0; --count, ++at_) {
      if (text_[at_] == '\n') ++line_;
    }
  }
  void AdvancePast(std::string_view end, std::string_view what) {
    const auto found = text_.find(end, at_);
    if (found == text_.npos) Fail("unterminated " + std::string(what), "", std::string(end));
    Advance(found + end.size() - at_);
  }

  void SkipPrologue() {
    if (Next("\xEF\xBB\xBF")) {
      Advance(3);
      Warn("a byte order mark stands before the first tag; NCCL's reader refuses it");
    }
    while (!AtEnd() && IsBlank(Peek())) Advance();
    if (Next("<?")) {
      Warn("an XML prologue; NCCL's reader refuses it");
      AdvancePast("?>", "prologue");
    }
  }

  /// Skips blanks and comments. False at the end of the text.
  bool SkipToTag() {
    while (!AtEnd()) {
      if (IsBlank(Peek())) {
        if (Peek() == '\t') WarnOnce(tab_said_, "a tab between elements; NCCL's reader refuses it");
        Advance();
      } else if (Next("<!--")) {
        AdvancePast("-->", "comment");
      } else if (Next("<!DOCTYPE") || Next("<!ENTITY")) {
        Fail("document types and entities are not read", std::string(text_.substr(at_, 9)),
             "elements only");
      } else if (Next("<!") || Next("<?")) {
        Fail("only elements and comments are read", std::string(text_.substr(at_, 9)),
             "elements only");
      } else if (Peek() == '<') {
        return true;
      } else {
        Fail("text between elements", std::string(text_.substr(at_, 20)), "'<'");
      }
    }
    return false;
  }

  void ReadTag() {
    const std::uint64_t first_line = line_;
    Advance();  // '<'
    if (!AtEnd() && Peek() == '/') {
      Advance();
      CloseElement(ReadName("closing tag"));
      return;
    }
    XmlElement element;
    element.line = first_line;
    element.name = ReadName("element");
    if (++count_ > limits_.elements)
      Fail("too many elements", std::to_string(count_), Limit("elements", limits_.elements));
    const bool empty = ReadAttributes(element);
    if (line_ != first_line)
      WarnOnce(lines_said_, "a tag over several lines; NCCL's reader refuses it");
    if (root_) Fail("a second top element", "<" + element.name + ">", "one top element");
    if (element.attributes.size() > kNcclMaxAttributes) {
      Warn("<" + element.name + "> has " + std::to_string(element.attributes.size()) +
           " attributes; NCCL keeps the first " + std::to_string(kNcclMaxAttributes));
    }
    if (empty) {
      Attach(std::move(element));
      return;
    }
    if (open_.size() >= limits_.depth)
      Fail("elements nested too deeply:", "<" + element.name + ">",
           Limit("levels (depth)", limits_.depth));
    open_.push_back(std::move(element));
  }

  std::string ReadName(std::string_view what) {
    const std::size_t begin = at_;
    while (!AtEnd() && !IsBlank(Peek()) && Peek() != '>' && Peek() != '/' && Peek() != '=' &&
           Peek() != '<' && Peek() != '"' && Peek() != '\'') {
      Advance();
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    CheckText(name, "name");
    if (name.empty())
      Fail(std::string(what) + " without a name", std::string(text_.substr(at_, 20)), "a name");
    return std::string(name);
  }

  void CheckText(std::string_view text, std::string_view what) {
    if (text.size() > limits_.text)
      Fail(std::string(what) + " too long:", std::string(text.substr(0, 60)),
           Limit("characters", limits_.text));
    if (text.find('\0') != text.npos) Fail(std::string(what) + " holds a zero byte", "", "text");
    if (text.size() > kNcclMaxText) {
      Warn("a " + std::string(what) + " of " + std::to_string(text.size()) +
           " characters; NCCL refuses more than " + std::to_string(kNcclMaxText));
    }
  }

  /// Reads up to and with '>' or '/>'. True when the element closes itself.
  bool ReadAttributes(XmlElement& element) {
    while (true) {
      const bool blank = SkipBlanks();
      if (AtEnd()) Fail("the file ends inside a tag:", "<" + element.name, "'>'");
      if (Peek() == '>') {
        Advance();
        return false;
      }
      if (Peek() == '/') {
        Advance();
        if (AtEnd() || Peek() != '>') Fail("'/' inside a tag:", "<" + element.name, "'/>'");
        Advance();
        return true;
      }
      if (!blank) Fail("no blank before an attribute of", "<" + element.name, "a blank");
      std::string name = ReadName("attribute");
      SkipBlanks();
      if (AtEnd() || Peek() != '=') Fail("attribute without a value:", name, name + "=\"...\"");
      Advance();
      SkipBlanks();
      std::string value = ReadValue(name);
      if (element.Find(name) != nullptr)
        Warn("attribute " + name + " of <" + element.name + "> is repeated; the first counts");
      element.attributes.emplace_back(std::move(name), std::move(value));
      if (element.attributes.size() > limits_.attributes)
        Fail("too many attributes in", "<" + element.name + ">",
             Limit("attributes", limits_.attributes));
    }
  }

  std::string ReadValue(const std::string& name) {
    if (AtEnd() || (Peek() != '"' && Peek() != '\''))
      Fail("value of " + name + " is not quoted", AtEnd() ? "" : std::string(text_.substr(at_, 20)),
           "single or double quotes");
    const char quote = Peek();
    Advance();
    const auto end = text_.find(quote, at_);
    if (end == text_.npos)
      Fail("value of " + name + " is not closed", std::string(text_.substr(at_, 20)),
           std::string(1, quote));
    const std::string_view value = text_.substr(at_, end - at_);
    CheckText(value, "value");
    Advance(value.size() + 1);
    return std::string(value);
  }

  bool SkipBlanks() {
    const std::size_t begin = at_;
    while (!AtEnd() && IsBlank(Peek())) Advance();
    return at_ != begin;
  }

  void CloseElement(const std::string& name) {
    SkipBlanks();
    if (AtEnd() || Peek() != '>') Fail("closing tag is not closed:", "</" + name, "'>'");
    Advance();
    if (open_.empty())
      Fail("closing tag without an open element:", "</" + name + ">", "an element");
    if (open_.back().name != name) {
      Fail("closing tag does not match:", "</" + name + ">",
           "</" + open_.back().name + "> for line " + std::to_string(open_.back().line));
    }
    XmlElement element = std::move(open_.back());
    open_.pop_back();
    Attach(std::move(element));
  }

  void Attach(XmlElement element) {
    if (open_.empty()) {
      root_ = std::move(element);
      return;
    }
    XmlElement& parent = open_.back();
    parent.children.push_back(std::move(element));
    if (parent.children.size() > limits_.children)
      Fail("too many children in", "<" + parent.name + ">", Limit("children", limits_.children));
    if (parent.children.size() == kNcclMaxChildren + 1) {
      Warn("<" + parent.name + "> has more than " + std::to_string(kNcclMaxChildren) +
           " children; NCCL 2.21 to 2.29 refuses it");
    }
  }

  std::string_view text_;
  XmlLimits limits_;
  XmlDocument document_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  std::size_t count_ = 0;
  std::vector<XmlElement> open_;
  std::optional<XmlElement> root_;
  bool tab_said_ = false;
  bool lines_said_ = false;
};

void Write(const XmlElement& element, std::size_t indent, std::string& out) {
  out.append(indent, ' ');
  out += "<" + element.name;
  for (const auto& [name, value] : element.attributes) {
    const char quote = value.find('"') == value.npos ? '"' : '\'';
    out += " " + name + "=" + quote + value + quote;
  }
  if (element.children.empty()) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  for (const XmlElement& child : element.children) Write(child, indent + 2, out);
  out.append(indent, ' ');
  out += "</" + element.name + ">\n";
}

}  // namespace

const std::string* XmlElement::Find(std::string_view attribute) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute) return &value;
  }
  return nullptr;
}

void XmlElement::Set(std::string_view attribute, std::string value) {
  for (auto& [key, old] : attributes) {
    if (key == attribute) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(std::string(attribute), std::move(value));
}

void XmlElement::Erase(std::string_view attribute) {
  std::erase_if(attributes, [&](const auto& entry) { return entry.first == attribute; });
}

const XmlElement* XmlElement::Child(std::string_view child_name) const {
  for (const XmlElement& child : children) {
    if (child.name == child_name) return &child;
  }
  return nullptr;
}

std::size_t XmlElement::CountElements() const {
  std::size_t count = 1;
  for (const XmlElement& child : children) count += child.CountElements();
  return count;
}

XmlDocument ParseXml(std::string_view text, std::string file, const XmlLimits& limits) {
  return Reader(text, std::move(file), limits).Read();
}

XmlDocument ReadXmlFile(const std::filesystem::path& path, const XmlLimits& limits) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) {
    throw ConfigError({.file = path.string(),
                       .problem = "the file does not exist",
                       .expected = "an NCCL XML file"});
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw ConfigError(
        {.file = path.string(), .problem = "is not a file", .expected = "an NCCL XML file"});
  }
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > limits.bytes) {
    throw ConfigError({.file = path.string(),
                       .value = std::to_string(size) + " bytes",
                       .problem = "the file is too long:",
                       .expected = "at most " + std::to_string(limits.bytes) + " bytes"});
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in)
    throw ConfigError(
        {.file = path.string(), .problem = "cannot be read", .expected = "a readable file"});
  return ParseXml(text, path.string(), limits);
}

std::string WriteXml(const XmlElement& root) {
  std::string out;
  Write(root, 0, out);
  return out;
}

}  // namespace windtunnel::nccl
