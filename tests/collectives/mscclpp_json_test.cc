// MSCCL++ execution plans: read, proved, run; what has no counterpart refused with its place.

#include "collectives/msccl/mscclpp_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/functional.h"
#include "collectives/msccl/msccl_xml.h"
#include "sim/error.h"
#include "tests/support/test_support.h"

namespace windtunnel::mscclpp {
namespace {

using ::testing::HasSubstr;

TEST(MscclppJsonTest, EveryReferenceFileIsReadAndProvedOrRefusedWithTheReason) {
  WT_REFERENCE_OR_SKIP(reference);
  std::size_t files = 0, proved = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(reference / "facts" / "topofiles" / "msccl")) {
    SCOPED_TRACE(entry.path().filename().string());
    ++files;
    const bool json = entry.path().extension() == ".json";
    const std::string fault =
        json ? Prove(ReadJson(entry.path())) : msccl::Prove(msccl::ReadXml(entry.path()));
    if (fault.empty()) {
      ++proved;
      continue;
    }
    EXPECT_FALSE(json) << fault;
    EXPECT_THAT(fault, HasSubstr("rank"));
    std::printf("refused %s: %s\n", entry.path().filename().c_str(), fault.c_str());
  }
  EXPECT_EQ(files, 9u);
  EXPECT_GE(proved, 7u);
}

TEST(MscclppJsonTest, ReferencePlansComputeOnRealElementsInBothOrders) {
  WT_REFERENCE_OR_SKIP(reference);
  for (const char* name : {"mscclpp-allreduce_packet.json", "mscclpp-reduce_nvls.json"}) {
    SCOPED_TRACE(name);
    const ExecutionPlan read = ReadJson(reference / "facts" / "topofiles" / "msccl" / name);
    const Plan plan = MakePlan(read, 4096, DataType::kFloat);
    for (const BlockOrder order : {BlockOrder::kOldestFirst, BlockOrder::kNewestFirst}) {
      RankBuffers buffers = MakeBuffers(plan.request);
      FillInputs(plan.request, buffers);
      RunFunctional(plan, buffers, {.order = order});
      EXPECT_EQ(CountWrong(plan.request, buffers), 0u);
    }
  }
}

// Two ranks; what differs between them, and the ops of each, come from the test.
std::string PlanText(const std::string& collective, int in, int out, int scratch,
                     const std::vector<std::vector<std::string>>& ops_of_rank,
                     const std::string& remote = "o") {
  std::string text = R"({"name":"t","collective":")" + collective +
                     R"(","protocol":"Simple","inplace":false,"gpus":[)";
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    text += (rank == 0 ? "" : ",") + std::string(R"({"id":)") + std::to_string(rank) +
            R"(,"input_chunks":)" + std::to_string(in) + R"(,"output_chunks":)" +
            std::to_string(out) + R"(,"scratch_chunks":)" + std::to_string(scratch) +
            R"(,"threadblocks":[)";
    for (std::size_t b = 0; b < ops_of_rank[rank].size(); ++b) {
      text += (b == 0 ? "" : ",") + std::string(R"({"id":)") + std::to_string(b) + R"(,"ops":[)" +
              ops_of_rank[rank][b] +
              R"(],"channels":[{"channel_type":"memory","channel_ids":[0]}],)"
              R"("remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}]})";
    }
    text += R"(],"channels":[{"channel_type":"memory","connected_to":[)" + peer +
            R"(]}],"remote_buffers":[{"rank":)" + peer + R"(,"type":")" + remote +
            R"(","access_channel_types":["memory"]}]})";
  }
  return text + "]}";
}

std::string Buffer(const std::string& type, int index, int size) {
  return R"([{"type":")" + type + R"(","index":)" + std::to_string(index) + R"(,"size":)" +
         std::to_string(size) + "}]";
}
std::string RemoteBuffer(int index, int size) {
  return R"([{"buffer_id":0,"index":)" + std::to_string(index) + R"(,"size":)" +
         std::to_string(size) + "}]";
}
std::string Op(const std::string& name, const std::string& from = "", const std::string& to = "") {
  std::string text = R"({"name":")" + name + R"(","channel_type":"memory","channel_ids":[0])";
  if (!from.empty()) text += R"(,"src_buff":)" + from;
  if (!to.empty()) text += R"(,"dst_buff":)" + to;
  return text + "}";
}

// All-gather of two: own part copied, put to the other, signalled, awaited.
std::string AllGather(const std::string& last_of_rank_1 = "wait") {
  std::vector<std::vector<std::string>> ops(2);
  for (int rank = 0; rank < 2; ++rank) {
    ops[static_cast<std::size_t>(rank)] = {Op("copy", Buffer("i", 0, 1), Buffer("o", rank, 1)) +
                                           "," +
                                           Op("pws", Buffer("i", 0, 1), RemoteBuffer(rank, 1)) +
                                           "," + Op(rank == 1 ? last_of_rank_1 : "wait")};
  }
  return PlanText("allgather", 1, 2, 0, ops);
}

TEST(MscclppJsonTest, ProvesPutSignalAndWait) {
  EXPECT_EQ(Prove(ParseJson(AllGather(), "g.json")), "");
}

TEST(MscclppJsonTest, AWaitThatNoSignalMeetsIsADeadlockNamed) {
  const std::string fault =
      Prove(ParseJson(AllGather("wait").replace(AllGather().find("pws"), 3, "put"), "g.json"));
  EXPECT_THAT(fault, HasSubstr("deadlock"));
  EXPECT_THAT(fault, HasSubstr("rank 1"));
}

TEST(MscclppJsonTest, ProvesReadsOfAnotherRank) {
  std::vector<std::vector<std::string>> ops;
  for (int rank = 0; rank < 2; ++rank) {
    ops.push_back({R"({"name":"rre","channel_type":"memory","reduce_op":"sum","src_buff":)"
                   R"([{"type":"i","index":0,"size":1},{"buffer_id":0,"index":0,"size":1}],)"
                   R"("dst_buff":)" +
                   Buffer("o", 0, 1) + "}"});
  }
  EXPECT_EQ(Prove(ParseJson(PlanText("allreduce", 1, 1, 0, ops, "i"), "r.json")), "");
}

TEST(MscclppJsonTest, ABarrierOrdersTheBlocksOfARank) {
  const std::string barrier = R"({"name":"barrier","barrier_id":0,"num_threadblocks":2})";
  std::vector<std::vector<std::string>> ops;
  for (int rank = 0; rank < 2; ++rank) {
    // Block 1 copies to the output what block 0 has received.
    ops.push_back(
        {Op("pws", Buffer("i", 0, 1), RemoteBuffer(0, 1)) + "," + Op("wait") + "," + barrier,
         barrier + "," +
             R"({"name":"re","src_buff":[{"type":"i","index":0,"size":1},)"
             R"({"type":"s","index":0,"size":1}],"dst_buff":)" +
             Buffer("o", 0, 1) + "}"});
  }
  EXPECT_EQ(Prove(ParseJson(PlanText("allreduce", 1, 1, 1, ops, "s"), "b.json")), "");
  // Without the barrier the sum may read what has not come yet.
  for (auto& blocks : ops) {
    for (std::string& text : blocks) {
      const std::size_t at = text.find(barrier);
      text.replace(at, barrier.size(), R"({"name":"nop"})");
    }
  }
  EXPECT_THAT(Prove(ParseJson(PlanText("allreduce", 1, 1, 1, ops, "s"), "b.json")),
              HasSubstr("which nobody has written"));
}

TEST(MscclppJsonTest, APutThatRacesWithItsTargetIsFoundByTheOtherOrder) {
  std::vector<std::vector<std::string>> ops;
  for (int rank = 0; rank < 2; ++rank) {
    ops.push_back({Op("put", Buffer("i", 0, 1), RemoteBuffer(rank, 1)) + "," +
                   Op("copy", Buffer("i", 0, 1), Buffer("o", rank, 1))});
  }
  // This copy of rank 0 may come before or after what rank 1 puts there.
  ops[0][0] += "," + Op("copy", Buffer("i", 0, 1), Buffer("o", 1, 1));
  const ExecutionPlan plan = ParseJson(PlanText("allgather", 1, 2, 0, ops), "race.json");
  EXPECT_EQ(ProveCorrect(MakePlan(plan, 1)), "");
  EXPECT_THAT(Prove(plan), HasSubstr("depend on the order"));
}

std::string FaultOf(const std::string& text) {
  try {
    Prove(ParseJson(text, "f.json"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MscclppJsonTest, RefusesWhatItCannotExpressWithBlockIndexAndName) {
  for (const char* name : {"pipeline", "gstorepkt", "sem_acquire", "sem_release"}) {
    const std::string fault = FaultOf(AllGather(name));
    EXPECT_THAT(fault, HasSubstr("gpus[1].threadblocks[0].ops[2]"));
    EXPECT_THAT(fault, HasSubstr(name));
    EXPECT_THAT(fault, HasSubstr("no counterpart"));
  }
  EXPECT_THAT(FaultOf(AllGather("sem_aquire")), HasSubstr("did you mean 'sem_acquire'"));
}

TEST(MscclppJsonTest, RefusesWrongInputWithTheField) {
  const auto bent = [](const std::string& from, const std::string& to) {
    std::string text = AllGather();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return FaultOf(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(FaultOf("{\n\"name\": }"), HasSubstr("f.json:2"));
  EXPECT_THAT(FaultOf("[]"), HasSubstr("not an object"));
  EXPECT_THAT(bent("allgather", "custom"), HasSubstr("not known"));
  EXPECT_THAT(bent("\"id\":1", "\"id\":2"), HasSubstr("gap"));
  EXPECT_THAT(bent("\"connected_to\":[1]", "\"connected_to\":[2]"), HasSubstr("0 to 1"));
  EXPECT_THAT(bent("\"buffer_id\":0", "\"buffer_id\":3"), HasSubstr("buffer_id"));
  EXPECT_THAT(bent("\"index\":0,\"size\":1", "\"index\":-1,\"size\":1"), HasSubstr("index"));
  EXPECT_THAT(bent("\"index\":0,\"size\":1", "\"index\":0,\"size\":2"), HasSubstr("size"));
  EXPECT_THAT(bent("\"inplace\":false,", ""), HasSubstr("inplace: is missing"));
}

}  // namespace
}  // namespace windtunnel::mscclpp
