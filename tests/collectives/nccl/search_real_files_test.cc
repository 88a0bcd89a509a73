#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "collectives/nccl/graph_xml.h"
#include "collectives/nccl/node_search.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::nccl {
namespace {

namespace fs = std::filesystem;

NodeSearchResult Search(const fs::path& file, int nodes) {
  NodeSearchRequest request;
  request.nodes = nodes;
  return SearchNode(ReadXmlFile(file), request);
}

/// "channels x intra/inter TYPE" of a graph, as the reference table writes it.
std::string Summary(const NodeSearchResult& result, GraphId id) {
  const SearchGraph& graph = GraphOf(result.graphs, id);
  std::ostringstream out;
  out << graph.channel_count << "x" << graph.bw_intra;
  if (graph.bw_inter != graph.bw_intra) out << "/" << graph.bw_inter;
  return out.str();
}

struct Row {
  const char* file;
  int nodes;
  const char* ring;
  const char* tree;
  const char* nvls;
};

/// Source: decisions of NCCL 2.28.9 on these files, facts/nccl-model.md 16.1 and 19.
constexpr Row kRows[] = {
    {"simllm-hgx-h200-8gpu-topo.xml", 1, "12x30", "12x30", "8x40/60"},
    {"simllm-hgx-b200-8gpu-vm-topo.xml", 1, "16x45", "16x40", "8x80/90"},
    {"simllm-hpe-cray-a100-4gpu-nvlink-mesh-topo.xml", 1, "12x20", "12x20", ""},
    {"derived-azure-ndv5-h100-8x400g-full-topo.xml", 1, "12x30", "12x30", "8x40/60"},
    {"derived-azure-ndv5-h100-8x400g-full-topo.xml", 64, "8x48", "8x48", "8x40/48"},
    {"derived-azure-ndv4-a100-8x200g-full-topo.xml", 1, "12x20", "12x20", ""},
    {"derived-azure-ndv4-a100-8x200g-full-topo.xml", 2, "8x24", "8x30/24", ""},
    {"derived-aws-p4d-a100-4x100g-full-topo.xml", 2, "4x12", "4x24/12", ""},
    {"derived-azure-ndv2-v100-cubemesh-1x100g-full-topo.xml", 1, "6x20", "6x20", ""},
    {"derived-azure-ndv2-v100-cubemesh-1x100g-full-topo.xml", 2, "1x12", "1x24/12", ""},
    {"modal-gvisor-hgx-b200-8gpu-8x400g-flattened-vm-topo.xml", 2, "3x12", "3x12/6", "8x2.4"},
    {"panlichen-8xrtx3090-pcie-topo.xml", 1, "1x10", "1x10", ""},
    {"mynccl-2xa100-direct-nvlink-topo.xml", 1, "12x20", "12x40", ""},
    {"azure-ncv4-topo.xml", 1, "1x12", "", ""},
};

TEST(SearchOfRealFiles, FindsTheChannelsAndRatesOfNccl) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path folder = reference / "facts" / "topofiles";
  if (!fs::exists(folder)) GTEST_SKIP() << "skipped: no topology files";
  for (const Row& row : kRows) {
    SCOPED_TRACE(std::string(row.file) + " N=" + std::to_string(row.nodes));
    const NodeSearchResult result = Search(folder / row.file, row.nodes);
    EXPECT_EQ(Summary(result, GraphId::kRing), row.ring);
    if (*row.tree != '\0') {
      EXPECT_EQ(Summary(result, GraphId::kTree), row.tree);
    }
    if (*row.nvls != '\0') {
      EXPECT_EQ(Summary(result, GraphId::kNvls), row.nvls);
    }
  }
}

TEST(SearchOfRealFiles, OrdersGpusAsNcclDoes) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path file =
      reference / "facts" / "topofiles" / "derived-azure-ndv5-h100-8x400g-full-topo.xml";
  if (!fs::exists(file)) GTEST_SKIP() << "skipped: no topology files";
  const NodeSearchResult result = Search(file, 2);
  const SearchGraph& ring = GraphOf(result.graphs, GraphId::kRing);
  const auto devs = [&](std::size_t channel) {
    std::vector<std::uint32_t> out;
    for (const HostDevice& gpu : ring.channels.at(channel).gpus) out.push_back(gpu.dev);
    return out;
  };
  EXPECT_EQ(ring.cross_nic, 2);
  EXPECT_THAT(devs(0), ::testing::ElementsAre(0, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(devs(1), ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 0));
  EXPECT_EQ(ring.channels[0].nets[1].dev, 1u);
}

TEST(SearchOfRealFiles, WritesAndReadsTheRealGraphDumps) {
  WT_REFERENCE_OR_SKIP(reference);
  const fs::path folder = reference / "facts" / "topofiles";
  if (!fs::exists(folder)) GTEST_SKIP() << "skipped: no topology files";
  for (const char* name : {"simllm-hgx-h200-8gpu", "simllm-hgx-b200-8gpu-vm",
                           "simllm-hpe-cray-a100-4gpu-nvlink-mesh"}) {
    SCOPED_TRACE(name);
    const NodeSearchResult result = Search(folder / (std::string(name) + "-topo.xml"), 1);
    const XmlDocument dump = ReadXmlFile(folder / (std::string(name) + "-graph.xml"));
    const auto read = ReadGraphXml(dump, result.view.system(), kDefaultNcclVersion);
    // The dumps are of other releases, which may leave out graphs without channels.
    for (const SearchGraph& graph : read) {
      if (graph.channel_count == 0) continue;
      const SearchGraph& own = GraphOf(result.graphs, graph.id);
      EXPECT_EQ(own.channel_count, graph.channel_count);
      EXPECT_FLOAT_EQ(own.bw_intra, graph.bw_intra);
      for (std::size_t c = 0; c < graph.channels.size(); ++c) {
        EXPECT_EQ(own.channels.at(c).gpus, graph.channels[c].gpus);
      }
    }
    const std::string text =
        WriteGraphXml(result.graphs, kDefaultNcclVersion, result.view.system());
    const auto again =
        ReadGraphXml(ParseXml(text, "own"), result.view.system(), kDefaultNcclVersion);
    EXPECT_EQ(WriteGraphXml(again, kDefaultNcclVersion, result.view.system()), text);
  }
}

TEST(SearchOfRealFiles, RefusesTheGraphOfAnotherMachine) {
  const std::string one_gpu =
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\"><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci></cpu></system>";
  const NodeSearchResult result = SearchNode(ParseXml(one_gpu, "one.xml"), {});
  const XmlDocument graph = ParseXml(
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" "
      "speedintra=\"12\" speedinter=\"12\" typeintra=\"SYS\" typeinter=\"PIX\" "
      "samechannels=\"1\"><channel><gpu dev=\"0x1\"/></channel></graph></graphs>",
      "graph.xml");
  try {
    ReadGraphXml(graph, result.view.system(), kDefaultNcclVersion);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("graph.xml"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("dev 1 not found"));
  }
}

}  // namespace
}  // namespace windtunnel::nccl
