#include "interconnect/nccl/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

using ::testing::HasSubstr;

/// The message of the ConfigError that reading `text` gives; "" when it is read.
std::string Refusal(std::string_view text, const XmlLimits& limits = {}) {
  try {
    ParseXml(text, "file.xml", limits);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(NcclXml, KeepsOrderAndContentOfAttributesAndChildren) {
  const XmlDocument document =
      ParseXml("<a x=\"1\" y='2'>\n<b/><!-- c --><c z=\"\"></c>\n</a>\n", "f");
  EXPECT_EQ(document.root.name, "a");
  EXPECT_EQ(*document.root.Find("y"), "2");
  ASSERT_EQ(document.root.children.size(), 2u);
  EXPECT_EQ(document.root.children[1].line, 2u);
  EXPECT_EQ(WriteXml(document.root), "<a x=\"1\" y=\"2\">\n  <b/>\n  <c z=\"\"/>\n</a>\n");
  EXPECT_TRUE(document.warnings.empty());
}

TEST(NcclXml, TakesWhatNcclRefusesAndSaysSo) {
  const XmlDocument document =
      ParseXml("<?xml version=\"1.0\"?>\n<a\n  x = \"1\">\n\t<b/>\n</a>", "f");
  EXPECT_EQ(document.root.children.size(), 1u);
  EXPECT_EQ(document.warnings.size(), 3u) << "prologue, tag over lines, tab";
}

TEST(NcclXml, RefusesDocumentTypesAndEntities) {
  EXPECT_THAT(Refusal("<!DOCTYPE lolz [ <!ENTITY lol \"lol\"> ]>\n<a/>"), HasSubstr("entities"));
  EXPECT_EQ(*ParseXml("<a x=\"&lol;&amp;\"/>", "f").root.Find("x"), "&lol;&amp;")
      << "nothing is expanded";
}

TEST(NcclXml, RefusesDeepNestingWithoutRecursion) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  EXPECT_THAT(Refusal(deep), HasSubstr("depth"));
}

TEST(NcclXml, NamesTheLimitThatIsExceeded) {
  std::string wide = "<a>";
  for (int i = 0; i < 641; ++i) wide += "<b/>";
  wide += "</a>";
  EXPECT_EQ(ParseXml(wide, "f").root.children.size(), 641u) << "nothing is lost";
  EXPECT_THAT(Refusal(wide, {.children = 640}), HasSubstr("at most 640 children"));
  EXPECT_THAT(Refusal(wide, {.elements = 100}), HasSubstr("at most 100 elements"));
  EXPECT_THAT(Refusal(wide, {.bytes = 100}), HasSubstr("at most 100 bytes"));

  std::string many = "<a";
  for (int i = 0; i < 17; ++i) many += " k" + std::to_string(i) + "=\"v\"";
  many += "/>";
  const XmlDocument seventeen = ParseXml(many, "f");
  EXPECT_EQ(seventeen.root.attributes.size(), 17u);
  EXPECT_THAT(seventeen.warnings, ::testing::ElementsAre(HasSubstr("17 attributes")));
  EXPECT_THAT(Refusal(many, {.attributes = 16}), HasSubstr("at most 16 attributes"));

  const std::string long_name = "<" + std::string(256, 'n') + "/>";
  EXPECT_EQ(ParseXml(long_name, "f").root.name.size(), 256u);
  EXPECT_THAT(Refusal("<" + std::string(5'000, 'n') + "/>"), HasSubstr("at most 4096 characters"));
}

TEST(NcclXml, SaysWhereAFileIsBroken) {
  EXPECT_THAT(Refusal("<a>\n<b>\n</a>"), HasSubstr("file.xml:3"));
  EXPECT_THAT(Refusal("<a>\n<b/>\n"), HasSubstr("never closed"));
  EXPECT_THAT(Refusal("<a x=1/>"), HasSubstr("quotes"));
  EXPECT_THAT(Refusal("<a x/>"), HasSubstr("without a value"));
  EXPECT_THAT(Refusal("<a>text</a>"), HasSubstr("text"));
  EXPECT_THAT(Refusal("<a/><b/>"), HasSubstr("second top element"));
  EXPECT_THAT(Refusal(""), HasSubstr("no element"));
  EXPECT_THAT(Refusal("<a x=\"1"), HasSubstr("not closed"));
  EXPECT_THAT(Refusal("<a><![CDATA[x]]></a>"), HasSubstr("only elements"));
  EXPECT_THROW(ReadXmlFile("no/such/file.xml"), ConfigError);
}

TEST(NcclXml, WritesRealDumpsByteForByte) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto folder = reference / "facts" / "topofiles";
  for (const char* name : {"simllm-hgx-h200-8gpu", "simllm-hgx-b200-8gpu-vm",
                           "simllm-hpe-cray-a100-4gpu-nvlink-mesh"}) {
    for (const char* kind : {"-topo.xml", "-graph.xml"}) {
      const auto path = folder / (std::string(name) + kind);
      std::ifstream in(path, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      EXPECT_EQ(WriteXml(ReadXmlFile(path).root), text) << path;
    }
  }
}

}  // namespace
}  // namespace windtunnel::nccl
