// Chakra traces: every kind of record, every cut, cycles, holes, and collectives of one file a
// rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <sstream>

#include "collectives/algorithm.h"
#include "collectives/chakra/custom_collective.h"
#include "collectives/chakra/trace_reader.h"
#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::chakra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string Number(std::uint64_t field, std::uint64_t value) {
  return Varint(field << 3) + Varint(value);
}
std::string Text(std::uint64_t field, const std::string& text) {
  return Varint(field << 3 | 2) + Varint(text.size()) + text;
}
std::string Record(const std::string& message) { return Varint(message.size()) + message; }
std::string Metadata() { return Record(Text(1, "0.0.4")); }
std::string Integer(const std::string& name, std::uint64_t value, std::uint64_t kind = 9) {
  return Text(10, Text(1, name) + Number(kind, value));
}
std::string NodeText(std::uint64_t id, const std::string& name, NodeType type,
                     const std::vector<std::uint64_t>& parents,
                     const std::string& attributes = "") {
  std::string message = Number(1, id) + Text(2, name) + Number(3, static_cast<std::uint64_t>(type));
  for (const std::uint64_t parent : parents) message += Number(5, parent);
  return Record(message + attributes);
}
std::string Collective(std::uint64_t id, std::uint64_t kind, std::uint64_t bytes,
                       const std::vector<std::uint64_t>& parents = {}) {
  return NodeText(id, "", NodeType::kCollective, parents,
                  Integer("comm_type", kind) + Integer("comm_size", bytes, 13));
}

Trace Read(const std::string& text, const TraceOptions& options = {}) {
  TraceReader reader(std::make_unique<std::istringstream>(text), "t.et");
  return ReadTrace(reader, "t.et", options);
}
std::string FaultOf(const std::string& text) {
  try {
    Read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ChakraTraceTest, ReadsTheReferenceFileOf81Bytes) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto folder = reference / "facts" / "topofiles" / "astrasim";
  for (int rank = 0; rank < 4; ++rank) {
    const Trace trace =
        ReadTrace(folder / ("all_reduce_4npus_1MB." + std::to_string(rank) + ".et"));
    EXPECT_EQ(trace.version, "0.0.4");
    ASSERT_EQ(trace.nodes.size(), 1u);
    EXPECT_EQ(trace.nodes[0].id, static_cast<std::uint64_t>(rank));
    EXPECT_EQ(trace.nodes[0].type, NodeType::kCollective);
    EXPECT_EQ(trace.nodes[0].collective, 0);
    EXPECT_EQ(trace.nodes[0].bytes, 1u << 20);
    EXPECT_FALSE(trace.nodes[0].is_cpu_op);
  }
  const Trace ring = ReadTrace(folder / "custom_ring_allreduce_8npus_1MB.0.et");
  EXPECT_EQ(ring.nodes.size(), 35u);
  EXPECT_THAT(ring.input_file, HasSubstr("<algo name="));
}

TEST(ChakraTraceTest, EveryCutSaysTruncatedAtItsByteOrEndsBetweenRecords) {
  const std::vector<std::string> records = {
      Metadata(), NodeText(0, "a", NodeType::kCompute, {}), Collective(1, 0, 4096, {0}),
      NodeText(2, std::string(200, 'x'), NodeType::kCompute, {1})};
  std::string whole;
  std::map<std::size_t, std::size_t> nodes_at;  // Ends of records.
  for (std::size_t i = 0; i < records.size(); ++i) {
    whole += records[i];
    nodes_at[whole.size()] = i;
  }
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    SCOPED_TRACE(cut);
    const auto end = nodes_at.find(cut);
    if (end != nodes_at.end()) {
      EXPECT_EQ(Read(whole.substr(0, cut)).nodes.size(), end->second);
    } else {
      EXPECT_THAT(FaultOf(whole.substr(0, cut)),
                  HasSubstr("truncated at byte " + std::to_string(cut) + ":"));
    }
  }
}

TEST(ChakraTraceTest, EveryChangedByteIsReadOrRefusedAndNeverCrashes) {
  const std::string whole =
      Metadata() + NodeText(0, "a", NodeType::kCompute, {}) + Collective(1, 0, 4096, {0});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bent = whole;
      bent[at] = static_cast<char>(value);
      FaultOf(bent);  // Any other exception fails the test.
    }
  }
}

TEST(ChakraTraceTest, RefusesDamagedRecordsWithTheByte) {
  const std::string head = Metadata();
  EXPECT_THAT(FaultOf(head + Varint(std::uint64_t{1} << 31)), HasSubstr("2147483648"));
  EXPECT_THAT(FaultOf(head + Varint(std::uint64_t{1} << 31)), HasSubstr("above the limit"));
  EXPECT_THAT(FaultOf(head + std::string(11, '\xff')), HasSubstr("64 bits"));
  EXPECT_THAT(FaultOf(head + Record(Varint(8) + std::string(10, '\xff') + "\x01")),
              HasSubstr("byte 9: a number has more than 64 bits"));
  EXPECT_THAT(FaultOf(head + Record(Varint(2 << 3 | 2) + Varint(50) + "ab")),
              HasSubstr("byte 9: a field ends behind its record"));
  EXPECT_THAT(FaultOf(head + Record(Varint(2 << 3 | 6))), HasSubstr("wire type 6"));
  EXPECT_THAT(FaultOf(head + Record(Text(1, "id"))), HasSubstr("field 1 is not a number"));
  EXPECT_THAT(FaultOf(head + Record(Number(0, 1))), HasSubstr("no field number"));
  EXPECT_THAT(FaultOf(head + Record("")), HasSubstr("unknown node type"));
  EXPECT_THAT(FaultOf(std::string("\x1f\x8b\x08", 3)), HasSubstr("gzip"));
  EXPECT_THAT(FaultOf(NodeText(1, "a", NodeType::kCompute, {})), HasSubstr("byte 1"));
}

TEST(ChakraTraceTest, NamesACycleInOrder) {
  const auto node = [](std::uint64_t id, const char* name, std::uint64_t parent) {
    return NodeText(id, name, NodeType::kCompute, {parent});
  };
  EXPECT_THAT(FaultOf(Metadata() + node(1, "a", 3) + node(2, "b", 1) + node(3, "c", 2)),
              HasSubstr("cycle: a, b, c"));
  EXPECT_THAT(FaultOf(Metadata() + node(1, "", 1)), HasSubstr("cycle: node 1"));
  // Only what is in the cycle, not what waits behind it.
  const std::string fault =
      FaultOf(Metadata() + node(7, "behind", 2) + node(1, "a", 2) + node(2, "b", 1));
  EXPECT_THAT(fault, HasSubstr("cycle: a, b"));
  EXPECT_THAT(fault, ::testing::Not(HasSubstr("behind")));
}

TEST(ChakraTraceTest, AChainOfAMillionNodesNeedsNoRecursion) {
  std::string text = Metadata();
  constexpr std::uint64_t kNodes = 1'000'000;
  // Children first, so that the order is the reverse of the file.
  for (std::uint64_t id = 0; id < kNodes; ++id) {
    std::string message = Number(1, id) + Number(3, 4);
    if (id + 1 < kNodes) message += Number(5, id + 1);
    text += Record(message);
  }
  const auto begin = std::chrono::steady_clock::now();
  const Trace trace = Read(text);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(trace.order.size(), kNodes);
  EXPECT_EQ(trace.order.front(), kNodes - 1);
  EXPECT_EQ(trace.order.back(), 0u);
  std::printf("%.2f s for %zu bytes\n", taken.count(), text.size());
  // The same as one large cycle.
  EXPECT_THAT(FaultOf(text + NodeText(kNodes, "last", NodeType::kCompute, {kNodes})),
              HasSubstr("cycle: last"));
}

TEST(ChakraTraceTest, CountsParentsThatAreNotInTheFile) {
  const std::string text = Metadata() + NodeText(1, "a", NodeType::kCompute, {98, 99}) +
                           NodeText(2, "b", NodeType::kCompute, {99});
  EXPECT_THAT(FaultOf(text), HasSubstr("2 parents that are not in the file, named by 2 nodes"));
  const Trace trace = Read(text, {.allow_holes = true});
  EXPECT_EQ(trace.missing_parents, 2u);
  EXPECT_EQ(trace.missing_parent_uses, 2u);
  EXPECT_EQ(trace.warnings.size(), 1u);
}

TEST(ChakraTraceTest, RefusesCollectivesOfUnknownKindUnlessAllowed) {
  EXPECT_THAT(FaultOf(Metadata() + Collective(1, 42, 64)), HasSubstr("unknown collective '42'"));
  EXPECT_EQ(Read(Metadata() + Collective(1, 42, 64), {.allow_unknown_collectives = true})
                .nodes[0]
                .collective,
            42);
  EXPECT_THAT(
      FaultOf(Metadata() + NodeText(1, "c", NodeType::kCollective, {}, Integer("comm_type", 0))),
      HasSubstr("comm_size: is missing"));
}

TEST(ChakraTraceTest, TransfersOfNoBytesAreLegalWithOneWarningAFile) {
  const Trace trace = Read(Metadata() + Collective(1, 0, 0) + Collective(2, 0, 0, {1}) +
                           Collective(3, 0, 4096, {2}));
  EXPECT_THAT(trace.order, ElementsAre(0, 1, 2));
  ASSERT_EQ(trace.warnings.size(), 1u);
  EXPECT_THAT(trace.warnings[0], HasSubstr("2 transfers of 0 bytes, the first is node 1"));
}

TEST(ChakraTraceTest, AcceptsAndRefusesTheDefectiveFilesAsTheirNamesSay) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto folder = reference / "data" / "frameworks" / "traces" / "defective";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: no damaged traces";
  // Sound for one rank, or only worth a warning.
  const std::vector<std::string> sound = {"missing_parent_ctrl", "cycle_data_and_ctrl",
                                          "comm_size_sum_overflow", "duration_sum_overflow"};
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".et") continue;
    SCOPED_TRACE(name);
    ++files;
    std::string fault;
    try {
      ReadTrace(entry.path());
    } catch (const ConfigError& error) {
      fault = error.what();
    }
    if (testing::ReadFile(entry.path()).starts_with("\x1f\x8b")) {
      EXPECT_THAT(fault, HasSubstr("gzip"));
    } else if (name.starts_with("good_") || name.starts_with("job_") ||
               std::find(sound.begin(), sound.end(), name) != sound.end()) {
      EXPECT_THAT(fault, IsEmpty());
    } else {
      EXPECT_NE(fault, "");
    }
  }
  std::printf("%zu files\n", files);
}

TEST(ChakraTraceTest, ReadsEveryRealTraceButTransfersWithoutAPeer) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto folder = reference / "data" / "frameworks" / "traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: no traces";
  std::size_t read = 0, without_peer = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".et" || entry.path().parent_path().filename() == "defective")
      continue;
    SCOPED_TRACE(entry.path().string());
    try {
      ReadTrace(entry.path());
      ++read;
    } catch (const ConfigError& error) {
      // Chakra's generator writes lone sends and receives of nobody.
      EXPECT_THAT(error.what(), HasSubstr("expected a rank"));
      ++without_peer;
    }
  }
  std::printf("%zu traces read, %zu refused for want of a peer\n", read, without_peer);
  EXPECT_GT(read, 10 * without_peer);
}

// The traces of a program as converters write them: a receive that adds is followed by a
// computation.
void WriteTraces(const msccl::Program& program, const std::filesystem::path& prefix,
                 std::uint64_t chunk_bytes, bool with_program) {
  for (std::size_t rank = 0; rank < program.gpus.size(); ++rank) {
    std::ofstream out(prefix.string() + "." + std::to_string(rank) + ".et", std::ios::binary);
    out << (with_program ? Record(Text(2, Text(1, "schema") + Text(29, "1.0.2-chakra.0.0.4")) +
                                  Text(2, Text(1, "input_file") + Text(29, WriteXml(program))))
                         : Metadata());
    std::uint64_t id = 0;
    for (const msccl::ThreadBlock& block : program.gpus[rank].blocks) {
      std::vector<std::uint64_t> before;
      const auto add = [&](NodeType type, const std::string& attributes) {
        out << NodeText(id, "n" + std::to_string(id), type, before, attributes);
        before = {id++};
      };
      for (const msccl::Step& step : block.steps) {
        const std::string spelled(msccl::Name(step.type));
        const std::string size = Integer("comm_size", step.count * chunk_bytes);
        if (spelled.starts_with("r"))
          add(NodeType::kReceive,
              size + Integer("comm_src", static_cast<std::uint64_t>(block.receive), 7));
        if (spelled.starts_with("rr")) add(NodeType::kCompute, "");
        if (spelled.ends_with("s"))
          add(NodeType::kSend,
              size + Integer("comm_dst", static_cast<std::uint64_t>(block.send), 7));
      }
    }
  }
}

msccl::Program Ring() {
  const CollectiveRequest request{
      .rank_count = 4, .type = DataType::kInt64, .count = 8, .in_place = true};
  return msccl::FromPlan(FindAlgorithm("ring").MakePlan(request, PlainLayout(request, 1, 1 << 20)),
                         "ring of four");
}

TEST(ChakraCollectiveTest, ProvesTheProgramItsTransfersBelongTo) {
  const auto prefix = testing::TemporaryDir() / "with_program";
  WriteTraces(Ring(), prefix, 4096, true);
  const CustomCollective collective = ReadCollective(prefix);
  EXPECT_TRUE(collective.has_program);
  EXPECT_EQ(Prove(collective), "");
  RankBuffers buffers = MakeBuffers(collective.plan.request);
  FillInputs(collective.plan.request, buffers);
  RunFunctional(collective.plan, buffers);
  EXPECT_EQ(CountWrong(collective.plan.request, buffers), 0u);
  std::filesystem::remove(prefix.string() + ".3.et");
  EXPECT_THROW(ReadCollective(prefix), ConfigError);
}

TEST(ChakraCollectiveTest, ProvesTheReferenceRingWithItsOtherRanksWritten) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto folder = reference / "facts" / "topofiles";
  const std::string name = "custom_ring_allreduce_8npus_1MB";
  const auto prefix = testing::TemporaryDir() / name;
  WriteTraces(msccl::ReadXml(folder / "msccl" / "astrasim-ring-allreduce-8npus-v1-attrs.xml"),
              prefix, 131072, true);
  // Two of the eight files are the reference's own.
  for (const char* rank : {".0.et", ".1.et"}) {
    std::ofstream(prefix.string() + rank, std::ios::binary)
        << testing::ReadFile(folder / "astrasim" / (name + rank));
  }
  const CustomCollective collective = ReadCollective(prefix);
  EXPECT_TRUE(collective.has_program);
  EXPECT_EQ(Prove(collective), "");
  EXPECT_EQ(LogicalBytes(collective.plan.request), 1u << 20);
  // 2 (n - 1) / n of the message, by n ranks, as sends and receives.
  EXPECT_EQ(collective.transfers, 2u * 14u * 8u);
}

TEST(ChakraCollectiveTest, ProvesAstraSimsRingFromItsOwnEightFiles) {
  WT_REFERENCE_OR_SKIP(reference);
  const auto prefix = reference / "data" / "frameworks" / "traces" / "chakra_astra_sim" /
                      "custom_ring_allreduce_8npus_1MB";
  if (!IsPrefix(prefix)) GTEST_SKIP() << "skipped: no such traces";
  const CustomCollective collective = ReadCollective(prefix);
  EXPECT_TRUE(collective.has_program);
  EXPECT_EQ(Prove(collective), "");
  EXPECT_EQ(RunCounting(collective.plan).elements_sent * SizeOf(collective.plan.request.type),
            (1u << 20) * 2 * 7);
}

TEST(ChakraCollectiveTest, WithoutAProgramTheSameBytesTravel) {
  const auto folder = testing::TemporaryDir();
  WriteTraces(Ring(), folder / "known", 4096, true);
  WriteTraces(Ring(), folder / "bare", 4096, false);
  const CustomCollective known = ReadCollective(folder / "known");
  const CustomCollective bare = ReadCollective(folder / "bare");
  EXPECT_FALSE(bare.has_program);
  EXPECT_EQ(Prove(bare), "");
  EXPECT_EQ(RunCounting(bare.plan).elements_sent * SizeOf(bare.plan.request.type),
            RunCounting(known.plan).elements_sent * SizeOf(known.plan.request.type));
}

TEST(ChakraCollectiveTest, NamesTheSendThatNoReceiveMeets) {
  const auto prefix = testing::TemporaryDir() / "unmet";
  const auto write = [&](int rank, const std::string& text) {
    std::ofstream(prefix.string() + "." + std::to_string(rank) + ".et", std::ios::binary)
        << Metadata() << text;
  };
  write(0,
        NodeText(1, "s", NodeType::kSend, {}, Integer("comm_size", 64) + Integer("comm_dst", 1)));
  write(1, "");
  try {
    ReadCollective(prefix);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 -> rank 1, tag 0"));
  }
}

TEST(ChakraCollectiveTest, AsksForTheRanksTheReferenceFolderLacks) {
  WT_REFERENCE_OR_SKIP(reference);
  try {
    ReadCollective(reference / "facts" / "topofiles" / "astrasim" /
                   "custom_ring_allreduce_8npus_1MB");
    FAIL();
  } catch (const ConfigError& error) {
    // Two of eight files are there.
    EXPECT_THAT(error.what(), HasSubstr("ranks are missing"));
  }
}

}  // namespace
}  // namespace windtunnel::chakra
