#include "validate/nccl_plans/verify_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/error.h"

namespace windtunnel::nccl {
namespace {

using Json = nlohmann::json;

enum Kind : std::size_t {
  kGraphs,
  kChannels,
  kRings,
  kTrees,
  kTables,
  kChoices,
  kChunks,
  kGroups,
  kP2p
};

// Single-precision values are recorded with 6 to 9 digits.
constexpr double kRelative = 1e-5;

bool Same(const Json& expected, const Json& got) {
  if (expected.is_number() && got.is_number()) {
    const auto e = expected.get<double>();
    const auto g = got.get<double>();
    return e == g || std::fabs(e - g) <= kRelative * std::max(std::fabs(e), std::fabs(g));
  }
  if (expected.is_array() && got.is_array()) {
    if (expected.size() != got.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!Same(expected[i], got[i])) return false;
    return true;
  }
  if (expected.is_boolean() != got.is_boolean() && expected.is_number() != got.is_number())
    return Same(expected.is_boolean() ? Json(expected.get<bool>() ? 1 : 0) : expected,
                got.is_boolean() ? Json(got.get<bool>() ? 1 : 0) : got);
  return expected == got;
}

std::string Short(const Json& value) {
  std::string text = value.dump();
  constexpr std::size_t kLongest = 160;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

const std::map<std::string, DataType>& Types() {
  static const std::map<std::string, DataType> types = {
      {"f32", DataType::kFloat},      {"bf16", DataType::kBfloat16},  {"f64", DataType::kDouble},
      {"u8", DataType::kUint8},       {"f8e4m3", DataType::kFp8E4m3}, {"f16", DataType::kHalf},
      {"f8e5m2", DataType::kFp8E5m2}, {"i8", DataType::kInt8},        {"i32", DataType::kInt32},
      {"u32", DataType::kUint32},     {"i64", DataType::kInt64},      {"u64", DataType::kUint64}};
  return types;
}

Function FunctionOf(const std::string& name) {
  for (std::size_t f = 0; f < kTunedFunctionCount; ++f)
    if (kTunedFunctionNames[f] == name) return static_cast<Function>(f);
  throw ConfigError({.field = "function", .value = name, .problem = "is not known"});
}

// 2.10 and 2.12 have one in-network algorithm, without a second name.
std::string NameOf(AlgorithmId algorithm, const NcclVersion& version) {
  if (algorithm == AlgorithmId::kCollNetDirect && version < NcclVersion{2, 14, 3}) return "CollNet";
  return std::string(Name(algorithm));
}

class Verifier {
 public:
  Verifier(const PlanCase& plan_case, const Communicator& communicator,
           std::vector<FieldCount>& counts)
      : case_(plan_case),
        json_(plan_case.document),
        comm_(communicator),
        connections_(communicator.connections()),
        version_(communicator.version()),
        counts_(counts) {}

  void Run() {
    Graphs();
    Channels();
    Rings();
    Trees();
    Tables();
    Choices();
    Groups();
    SendReceive();
  }

 private:
  void Compare(Kind kind, const std::string& field, const Json& expected, const Json& got) {
    if (Same(expected, got)) {
      counts_[kind].Agree();
    } else {
      counts_[kind].Differ(ToString(version_) + " " + case_.name + " " + field, Short(expected),
                           Short(got));
    }
  }
  // Compares the fields that the record has.
  void CompareObject(Kind kind, const std::string& name, const Json& expected, const Json& got) {
    for (const auto& [key, value] : got.items())
      if (expected.contains(key) && !expected.at(key).is_null())
        Compare(kind, name + "." + key, expected.at(key), value);
  }

  void Graphs() {
    const Json& graphs = json_.at("graphs_after_exchange");
    const std::map<std::string, GraphId> ids = {{"Tree", GraphId::kTree},
                                                {"Ring", GraphId::kRing},
                                                {"CollNetDirect", GraphId::kCollNetDirect},
                                                {"CollNetChain", GraphId::kCollNetChain},
                                                {"CollNet", GraphId::kCollNetChain},
                                                {"NVLS", GraphId::kNvls}};
    for (const auto& [name, expected] : graphs.items()) {
      const auto found = ids.find(name);
      if (found == ids.end()) continue;
      const GraphId id =
          found->second == GraphId::kCollNetDirect && version_ < NcclVersion{2, 22, 3}
              ? GraphId::kCollNetChain
              : found->second;
      const GraphSummary& sum = connections_.graph(id);
      Json got = {{"nChannels", sum.channel_count},
                  {"bwIntra", sum.bw_intra},
                  {"bwInter", sum.bw_inter},
                  {"latencyInter", sum.latency_inter},
                  {"typeIntra", Name(sum.type_intra)},
                  {"typeInter", Name(sum.type_inter)},
                  {"sameChannels", sum.same_channels ? 1 : 0},
                  {"crossNic", sum.cross_nic},
                  {"pattern", static_cast<int>(sum.pattern)}};
      if (sum.hops > 0) got["nHops"] = sum.hops;
      CompareObject(kGraphs, name, expected, got);
    }
    Compare(kGraphs, "nNodesSeen", json_.at("nNodesSeen"), comm_.node_count());
    Compare(kGraphs, "rankToNode", json_.at("rankToNode"), connections_.rank_to_node);
  }

  void Channels() {
    const ConnectionFlags& flags = connections_.flags;
    CompareObject(kChannels, "channels", json_.at("channels"),
                  {{"coll", connections_.channel_count},
                   {"nvls", connections_.nvls_channels},
                   {"p2p", connections_.p2p.count},
                   {"p2pPerPeer", connections_.p2p.per_peer},
                   {"collBeforeNvls", connections_.channel_count_before_nvls}});
    CompareObject(kChannels, "flags", json_.at("flags"),
                  {{"isAllNvlink", flags.all_nvlink ? 1 : 0},
                   {"isOneRPN", flags.one_rank_per_node ? 1 : 0},
                   {"nvlsSupport", flags.nvls ? 1 : 0},
                   {"collnet", flags.collnet ? 1 : 0},
                   {"maxTreePattern", static_cast<int>(flags.worst_tree_pattern)},
                   {"directMode", flags.direct_mode ? 1 : 0},
                   {"isAllDirectP2p", flags.all_direct_p2p ? 1 : 0},
                   {"pxnDisable", version_ < NcclVersion{2, 12, 7} ? -1
                                  : flags.pxn_disabled             ? 1
                                                                   : 0}});
    CompareObject(kChannels, "buffers", json_.at("buffers"),
                  {{"LL", connections_.buffer[0]},
                   {"LL128", connections_.buffer[1]},
                   {"Simple", connections_.buffer[2]},
                   {"p2pChunk", connections_.p2p_chunk},
                   {"nvlsChunk", connections_.nvls_chunk}});
    Json thresholds;
    Json threads;
    for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
      const auto name = NameOf(static_cast<AlgorithmId>(a), version_);
      thresholds[name] = comm_.tuning().thread_thresholds[a];
      threads[name] = comm_.tuning().max_threads[a];
    }
    CompareObject(kChannels, "threadThresholds", json_.at("threadThresholds"), thresholds);
    CompareObject(kChannels, "maxThreads", json_.at("maxThreads"), threads);
    Compare(kChannels, "minCompCap", json_.at("minCompCap"), connections_.min_compute_capability);
    Compare(kChannels, "maxCompCap", json_.at("maxCompCap"), connections_.max_compute_capability);
  }

  void Rings() {
    const Json& rings = json_.at("rings");
    Compare(kRings, "count", rings.size(), connections_.rings.size());
    for (std::size_t c = 0; c < rings.size(); ++c)
      Compare(kRings, fmt::format("rings[{}]", c), rings[c],
              c < connections_.rings.size() ? Json(connections_.rings[c]) : Json());
  }

  static Json DownOf(const std::vector<std::array<std::int32_t, 3>>& down) {
    Json out = Json::array();
    for (const auto& children : down) {
      Json row = Json::array();
      for (const std::int32_t child : children)
        if (child >= 0) row.push_back(child);
      out.push_back(row);
    }
    return out;
  }

  void Trees() {
    const Json& trees = json_.at("trees");
    for (std::size_t c = 0; c < trees.size(); ++c) {
      const bool have = c < connections_.channel_source.size();
      Compare(kTrees, fmt::format("trees[{}].up", c), trees[c].at("up"),
              have ? Json(connections_.tree(c).up) : Json());
      Compare(kTrees, fmt::format("trees[{}].down", c), trees[c].at("down"),
              have ? DownOf(connections_.tree(c).down) : Json());
    }
    if (json_.contains("nvls")) Nvls(json_.at("nvls"));
    if (json_.contains("collnet")) {
      Json got = {
          {"direct",
           {{"nHeads", connections_.collnet_heads}, {"depth", connections_.collnet_direct_depth}}},
          {"chain", {{"depth", connections_.collnet_chain_depth}}}};
      for (const char* part : {"direct", "chain"})
        if (json_.at("collnet").contains(part))
          CompareObject(kTrees, std::string("collnet.") + part, json_.at("collnet").at(part),
                        got.at(part));
    }
  }

  void Nvls(const Json& nvls) {
    Compare(kTrees, "nvls.nHeads", nvls.at("nHeads"), connections_.nvls.head_count);
    Compare(kTrees, "nvls.headRank", nvls.at("headRank"), connections_.nvls.head_of_rank);
    if (!nvls.contains("tree") || nvls.at("tree").is_null()) return;
    for (std::size_t c = 0; c < nvls.at("tree").size(); ++c) {
      const Json& tree = nvls.at("tree")[c];
      const bool have = connections_.nvls.trees.size() == 2;
      const auto& mine = have ? connections_.nvls.trees[c % 2] : NvlsLayout::Tree{};
      Compare(kTrees, fmt::format("nvls.tree[{}].up", c), tree.at("up"), mine.up);
      Compare(kTrees, fmt::format("nvls.tree[{}].down", c), tree.at("down"), mine.down);
    }
  }

  void Tables() {
    const Json& tuning = json_.at("tuning");
    for (std::size_t f = 0; f < kTunedFunctionCount; ++f) {
      const std::string function(kTunedFunctionNames[f]);
      const Json recorded = tuning.value(function, Json::object());
      for (std::size_t a = 0; a < kAlgorithmCount; ++a)
        for (std::size_t p = 0; p < kProtocolCount; ++p) {
          const std::string name =
              NameOf(static_cast<AlgorithmId>(a), version_) + "/" + std::string(kProtocolNames[p]);
          const auto& entry = comm_.tuning().entries[f][a][p];
          Json expected;
          if (recorded.contains(name)) expected = recorded.at(name);
          const Json got = entry.bandwidth > 0 ? Json{entry.latency, entry.bandwidth} : Json();
          if (!expected.is_null() || !got.is_null())
            Compare(kTables, function + " " + name, expected, got);
        }
    }
  }

  // Values on the first channel, the ones between (once), the last.
  template <class Get>
  static Json Ends(const CallPlan& plan, Get get) {
    Json out = Json::array();
    const auto& shares = plan.shares;
    out.push_back(get(shares.front()));
    if (shares.size() > 2) out.push_back(get(shares[1]));
    if (shares.size() > 1) out.push_back(get(shares.back()));
    return out;
  }

  Json ProxyOps(const CallPlan& plan) const {
    const auto row = [](const char* kind, const ProxyWork& work) {
      return Json{kind,
                  work.steps,
                  work.chunk_bytes,
                  work.slice_bytes,
                  work.chunk_steps,
                  work.slice_steps,
                  work.slot_bytes};
    };
    Json out = Json::array();
    if (version_ < NcclVersion{2, 14, 3}) {
      out.push_back(row("all", plan.shares[0].proxy));
      return out;
    }
    std::vector<ProxyWork> seen;
    for (const auto& [channel, work] : comm_.NetworkWorkOf(plan, 0)) {
      // Recorded are the first, the second and the last channel.
      if (channel > plan.channel_lo + 1 && channel != plan.channel_hi) continue;
      if (std::find(seen.begin(), seen.end(), work) != seen.end()) continue;
      seen.push_back(work);
      const char* kind = channel == plan.channel_lo   ? "lo"
                         : channel == plan.channel_hi ? "hi"
                                                      : "mid";
      out.push_back(row(kind, work));
    }
    return out;
  }

  CollectiveCall CallOf(const std::string& function, const Json& type, const Json& count,
                        const Json& op) const {
    CollectiveCall call;
    call.function = FunctionOf(function);
    call.type = Types().at(type.get<std::string>());
    call.count = count.get<std::uint64_t>();
    if (op == "avg") call.op = ReduceOp::kAvg;
    return call;
  }

  void Choices() {
    if (!json_.contains("choices")) return;
    std::map<std::string, std::size_t> column;
    for (std::size_t i = 0; i < json_.at("choicesColumns").size(); ++i)
      column[json_.at("choicesColumns")[i].get<std::string>()] = i;
    for (const auto& [function, rows] : json_.at("choices").items())
      for (const Json& row : rows) {
        const std::string where = fmt::format("{} {} {} {}", function, row[0].get<std::string>(),
                                              row[1].get<std::string>(), row[2].dump());
        const CollectiveCall call = CallOf(function, row[0], row[2], row[1]);
        std::optional<CallPlan> plan;
        try {
          plan = comm_.Plan(call);
        } catch (const ConfigError&) {
        }
        Choice(where, row, column, plan);
      }
  }

  void Choice(const std::string& where, const Json& row,
              const std::map<std::string, std::size_t>& column,
              const std::optional<CallPlan>& plan) {
    const std::size_t algorithm_at = column.at("algorithm");
    if (row[algorithm_at].is_null() || !plan) {
      Compare(kChoices, where + " algorithm", row[algorithm_at],
              plan ? Json(Name(plan->algorithm)) : Json());
      return;
    }
    const std::map<std::string, Json> choice = {
        {"bytes", plan->model_bytes},
        {"algorithm", NameOf(plan->algorithm, version_)},
        {"protocol", Name(plan->protocol)},
        {"timeUs", plan->time_us},
        {"maxChannels", plan->max_channels},
        {"warps", plan->warps},
        {"channelLo", plan->channel_lo},
        {"channelHi", plan->channel_hi},
        {"counts", Ends(*plan, [](const ChannelShare& share) { return share.count; })}};
    for (const auto& [name, got] : choice)
      if (column.contains(name) && column.at(name) < row.size())
        Compare(kChoices, where + " " + name, row[column.at(name)], got);
    Json times;
    for (const Candidate& candidate : plan->candidates)
      times[NameOf(candidate.algorithm, version_) + "/" + std::string(Name(candidate.protocol))] =
          candidate.time_us;
    if (const auto at = column.find("candidateTimesUs"); at != column.end()) {
      const Json recorded = at->second < row.size() ? row[at->second] : Json();
      if (recorded.is_object())
        for (const auto& [name, time] : recorded.items())
          Compare(kChoices, where + " candidate " + name, time, times.value(name, Json()));
    }
    // The chunk of in-network gathering is recorded too large by the element size; the one of the
    // network side is right.
    const bool known_wrong = plan->interleaved && plan->call.function == Function::kAllGather &&
                             version_ >= NcclVersion{2, 22, 3};
    if (!known_wrong)
      Compare(kChunks, where + " chunkBytes", row[column.at("chunkBytes")],
              Ends(*plan, [](const ChannelShare& share) { return share.chunk_bytes; }));
    // The record of 2.19 has no proxy operations, of no case.
    const bool lacks_proxy = version_ >= NcclVersion{2, 19, 1} && version_ < NcclVersion{2, 20, 3};
    if (!lacks_proxy)
      Compare(kChunks, where + " proxyOps", row[column.at("proxyOps")], ProxyOps(*plan));
    if (const auto at = column.find("lastChunkBytes");
        at != column.end() && at->second < row.size())
      Compare(kChunks, where + " lastChunkBytes", row[at->second],
              Ends(*plan, [](const ChannelShare& share) { return share.last_chunk_bytes; }));
  }

  void Groups() {
    if (!json_.contains("groups")) return;
    const bool lists_channels = version_ < NcclVersion{2, 22, 3};
    for (const Json& group : json_.at("groups")) {
      const auto name = group.at("group").get<std::string>();
      std::vector<CollectiveCall> calls;
      for (const Json& call : group.at("calls"))
        calls.push_back(CallOf(call[0].get<std::string>(), call[1], call[2], "sum"));
      const GroupPlan plan = comm_.PlanGroup(calls);
      Compare(kGroups, name + " plans", group.at("plans"), plan.launches);
      if (group.contains("estimatedTimeOfLastChoice"))
        Compare(kGroups, name + " estimate", group.at("estimatedTimeOfLastChoice"),
                plan.last_estimate_us);
      for (std::size_t i = 0; i < group.at("tasks").size(); ++i) {
        Json got;
        if (i < plan.tasks.size()) {
          const auto& task = plan.tasks[i];
          std::uint64_t count = task.plan.call.count;
          if (CountsBytes(task.plan.call.function) && !lists_channels)
            count *= SizeOf(task.plan.call.type);
          got = {task.launch,
                 kTunedFunctionNames[Index(task.plan.call.function)],
                 count,
                 NameOf(task.plan.algorithm, version_),
                 Name(task.plan.protocol),
                 task.plan.max_channels,
                 task.plan.warps};
          if (lists_channels) {
            got.push_back(task.plan.ChannelList());
          } else {
            got.push_back(task.plan.channel_lo);
            got.push_back(task.plan.channel_hi);
          }
          got.push_back(Ends(task.plan, [](const ChannelShare& share) { return share.count; }));
          // Up to 2.19 the chunk is recorded from the first work on the first channel of a call,
          // which may be that of an earlier call.
          const CallPlan* shown = &task.plan;
          for (std::size_t k = 0; version_ < NcclVersion{2, 20, 3} && k < i; ++k) {
            const auto channels = plan.tasks[k].plan.ChannelList();
            if (std::find(channels.begin(), channels.end(), task.plan.channel_lo) == channels.end())
              continue;
            shown = &plan.tasks[k].plan;
            break;
          }
          // The harness took that chunk as data of the later call's protocol: flags stay in it.
          const bool flags =
              shown->protocol == Protocol::kLl128 && task.plan.protocol == Protocol::kSimple;
          got.push_back(Ends(*shown, [&](const ChannelShare& share) {
            return flags ? share.chunk_bytes / 15 * 16 : share.chunk_bytes;
          }));
        }
        Compare(kGroups, fmt::format("{} tasks[{}]", name, i), group.at("tasks")[i], got);
      }
    }
  }

  void SendReceive() {
    if (json_.contains("p2pSchedule"))
      for (const auto& [rank, rounds] : json_.at("p2pSchedule").items()) {
        Json got = Json::array();
        for (const P2pRound& round : comm_.P2pSchedule(static_cast<Rank>(std::stoul(rank))))
          got.push_back({round.send_to, round.receive_from});
        Compare(kP2p, "p2pSchedule of rank " + rank, rounds, got);
      }
    if (!json_.contains("p2p")) return;
    for (const Json& row : json_.at("p2p")) {
      std::vector<P2pCall> calls;
      const auto bytes = row[1].get<std::uint64_t>();
      const auto ranks = static_cast<Rank>(comm_.rank_count());
      if (row[0] == "sendrecv") {
        calls.push_back({true, 1 % ranks, bytes});
        calls.push_back({false, ranks - 1, bytes});
      } else {
        for (Rank r = 0; r < ranks; ++r) {
          calls.push_back({true, r, bytes});
          calls.push_back({false, r, bytes});
        }
      }
      const P2pPlan plan = comm_.PlanP2p(0, calls);
      const std::string where = row[0].get<std::string>() + " " + row[1].dump();
      Compare(kP2p, where + " plans", row[3], plan.launches);
      const Json items = version_ < NcclVersion{2, 22, 3} ? PartRows(plan) : ItemRows(plan);
      for (std::size_t i = 0; i < std::max(items.size(), row[2].size()); ++i)
        Compare(kP2p, fmt::format("{} items[{}]", where, i), i < row[2].size() ? row[2][i] : Json(),
                i < items.size() ? items[i] : Json());
    }
  }

  static Json ItemRows(const P2pPlan& plan) {
    Json out = Json::array();
    for (const P2pItem& item : plan.items) {
      Json row = {item.send_to, item.receive_from, item.channel_base};
      for (const P2pMessage* message : {&item.send, &item.receive}) {
        if (message->present) {
          row.push_back(message->channels);
          row.push_back(message->ll ? 1 : 0);
          row.push_back(message->chunk_bytes);
        } else {
          row.push_back(0);
          row.push_back(nullptr);
          row.push_back(nullptr);
        }
      }
      out.push_back(row);
    }
    return out;
  }
  static Json PartRows(const P2pPlan& plan) {
    Json out = Json::array();
    for (const P2pPart& part : plan.parts)
      out.push_back({part.peer, part.send ? "send" : "recv", part.ll ? 1 : 0, part.chunk_bytes,
                     part.warps, part.groups, part.channels, part.bytes});
    return out;
  }

  const PlanCase& case_;
  const Json& json_;
  const Communicator& comm_;
  const Connections& connections_;
  const NcclVersion version_;
  std::vector<FieldCount>& counts_;
};

}  // namespace

void VerifyPlan(const PlanCase& plan_case, const Communicator& communicator,
                std::vector<FieldCount>& counts) {
  Verifier(plan_case, communicator, counts).Run();
}

}  // namespace windtunnel::nccl
