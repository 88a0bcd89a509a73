#include "proto/text_io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "proto/topology.pb.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel {
namespace {

using proto::Spelling;
using ::testing::HasSubstr;

std::string MessageOf(std::string_view text, Spelling spelling = Spelling::kYaml) {
  proto::TopologyFile file;
  try {
    proto::ReadMessage(text, spelling, "test", &file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr std::string_view kYaml = R"(name: box
devices:
  - {name: cpu0, kind: cpu}
  - {name: "gpu[0-1]", kind: gpu, sm: 80, attributes: {a: "1", b: "two words"}}
links:
  - {from: cpu0, to: "gpu[0-1]", kind: pcie, generation: 4, p2p: false}
)";

TEST(TextIo, AllSpellingsCarryTheSameMessage) {
  proto::TopologyFile file;
  proto::ReadMessage(kYaml, Spelling::kYaml, "test", &file);
  for (const Spelling spelling :
       {Spelling::kYaml, Spelling::kJson, Spelling::kText, Spelling::kBinary}) {
    const std::string text = proto::WriteMessage(file, spelling);
    proto::TopologyFile back;
    proto::ReadMessage(text, spelling, "test", &back);
    EXPECT_EQ(proto::WriteMessage(back, Spelling::kText),
              proto::WriteMessage(file, Spelling::kText));
    EXPECT_EQ(proto::WriteMessage(back, spelling), text);
  }
}

TEST(TextIo, LinesOfFieldsAreKnown) {
  proto::TopologyFile file;
  proto::FieldLines lines;
  proto::ReadMessage(kYaml, Spelling::kYaml, "test", &file, &lines);
  EXPECT_EQ(lines.Line("links[0].generation"), 6u);
  EXPECT_EQ(lines.Line("links[0].width"), 6u) << "the enclosing field";
  EXPECT_EQ(lines.Line("devices[1].attributes.b"), 4u);
}

// H21.
TEST(TextIo, UnknownKeysAreErrorsWithTheNearestKnownOne) {
  const std::string yaml = MessageOf("name: a\nlinks:\n  - {from: a, to: b, latncy: 1 ns}\n");
  EXPECT_THAT(yaml, HasSubstr("test:3"));
  EXPECT_THAT(yaml, HasSubstr("links[0]"));
  EXPECT_THAT(yaml, HasSubstr("did you mean 'latency'"));
  EXPECT_THAT(MessageOf("{\n\"links\": [\n{\"latncy\": \"1 ns\"}]}", Spelling::kJson),
              HasSubstr("did you mean 'latency'"));
  EXPECT_THAT(MessageOf("links {\n  latncy: \"1 ns\" }", Spelling::kText),
              HasSubstr("did you mean 'latency'"));
}

TEST(TextIo, RepeatedKeysAreErrors) {
  EXPECT_THAT(MessageOf("name: a\nname: b\n"), HasSubstr("repeated key"));
  EXPECT_THAT(MessageOf(R"({"name": "a", "name": "b"})", Spelling::kJson),
              HasSubstr("repeated key"));
}

// H03.
TEST(TextIo, DeepNestingMeetsALimitAndNoStackOverflow) {
  const std::string deep(100'000, '[');
  EXPECT_THAT(MessageOf(deep), HasSubstr("nests deeper than the limit of 64"));
  EXPECT_THAT(MessageOf(deep, Spelling::kJson), HasSubstr("nests deeper than the limit of 64"));
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "links {";
  EXPECT_NE(MessageOf(text, Spelling::kText), "accepted");
}

// H04.
TEST(TextIo, YamlAnchorsAndAliasesAreRefused) {
  EXPECT_THAT(MessageOf("&x [*x]"), HasSubstr("anchors and aliases"));
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c)
    bomb += fmt::format("{0}: &{0} [*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1}]\n", c,
                        static_cast<char>(c - 1));
  EXPECT_THAT(MessageOf(bomb), HasSubstr("anchors and aliases"));
  EXPECT_THAT(MessageOf("name: !!python/object x"), HasSubstr("tags"));
}

// H06.
TEST(TextIo, BinaryCutAtAnyByteSaysWhere) {
  proto::TopologyFile file;
  proto::ReadMessage(kYaml, Spelling::kYaml, "test", &file);
  const std::string whole = proto::WriteMessage(file, Spelling::kBinary);
  int refused = 0;
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    const std::string message = MessageOf(whole.substr(0, cut), Spelling::kBinary);
    // A cut between two fields leaves a shorter message that is valid.
    if (message == "accepted") continue;
    EXPECT_THAT(message, HasSubstr(fmt::format("truncated at byte {}", cut)));
    ++refused;
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) / 2);
}

TEST(TextIo, BinaryFaultsAreNamed) {
  EXPECT_THAT(MessageOf(std::string(11, '\x88'), Spelling::kBinary),
              HasSubstr("more than 10 bytes"));
  EXPECT_THAT(MessageOf("\x0A\x7F"
                        "abc",
                        Spelling::kBinary),
              HasSubstr("declares 127 bytes"));
  EXPECT_THAT(MessageOf(std::string("\x08\x01", 2), Spelling::kBinary), HasSubstr("wire type"));
  EXPECT_THAT(MessageOf("\xFA\x3F\x01x", Spelling::kBinary), HasSubstr("not known"));
  // H07: a declared length of 2^31.
  EXPECT_THAT(MessageOf("\x0A\x80\x80\x80\x80\x08", Spelling::kBinary), HasSubstr("truncated"));
}

// H10.
TEST(TextIo, CountsAreWholeNumbersInRange) {
  for (const char* bad : {"NaN", "inf", "-1", "1e400", "0x10", "12abc", "\"1,5\"", "\"\"",
                          "99999999999999999999", "4294967296"}) {
    EXPECT_NE(MessageOf(fmt::format("nodes: {}\n", bad)), "accepted") << bad;
  }
  EXPECT_EQ(MessageOf("nodes: 4\n"), "accepted");
}

TEST(TextIo, LargeFilesAreRefusedByTheirSize) {
  proto::TopologyFile file;
  EXPECT_THROW(
      proto::ReadMessage("name: abcdefgh", Spelling::kYaml, "test", &file, nullptr, {.bytes = 10}),
      ConfigError);
}

// H15.
TEST(TextIo, IncludesStayBelowTheFolderOfTheFile) {
  const auto folder = testing::TemporaryDir();
  std::filesystem::create_directories(folder / "in" / "sub");
  std::ofstream(folder / "secret.yaml") << "name: secret\n";
  std::ofstream(folder / "in" / "sub" / "good.yaml") << "name: good\n";
  std::filesystem::create_symlink(folder / "secret.yaml", folder / "in" / "link.yaml");
  ASSERT_EQ(::mkfifo((folder / "in" / "fifo").c_str(), 0600), 0);
  const auto from = folder / "in" / "main.yaml";
  const auto resolve = [&](std::string_view name) -> std::string {
    try {
      return proto::ResolveInclude(from, name, {.field = "include[0]"}).string();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("secret\n")));
      return error.what();
    }
  };
  EXPECT_THAT(resolve("sub/good.yaml"), ::testing::EndsWith("in/sub/good.yaml"));
  EXPECT_THAT(resolve("../secret.yaml"), HasSubstr("climbs out"));
  EXPECT_THAT(resolve("sub/../../secret.yaml"), HasSubstr("climbs out"));
  EXPECT_THAT(resolve((folder / "secret.yaml").string()), HasSubstr("absolute"));
  EXPECT_THAT(resolve("link.yaml"), HasSubstr("leads out"));
  EXPECT_THAT(resolve(std::string_view("a\0b", 3)), HasSubstr("NUL"));
  EXPECT_THAT(resolve("fifo"), HasSubstr("not a regular file"));
  EXPECT_THAT(resolve("sub"), HasSubstr("not a regular file"));
  EXPECT_THAT(resolve("none.yaml"), HasSubstr("not there"));
}

TEST(TextIo, OnlyRegularFilesAreRead) {
  EXPECT_THROW(proto::ReadRegularFile("/dev/zero"), ConfigError);
  EXPECT_THROW(proto::ReadRegularFile(testing::TemporaryDir()), ConfigError);
  EXPECT_THROW(proto::ReadRegularFile("no such file"), ConfigError);
}

}  // namespace
}  // namespace windtunnel
