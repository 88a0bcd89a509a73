#include "validate/fidelity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <stdexcept>

#include "validate/board_decisions.h"
#include "validate/worker_processes.h"

namespace windtunnel::validate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ScoredRun> ScoredWith(const std::vector<std::string>& ids) {
  // Larger messages take the packet level seconds and say the same.
  constexpr std::uint64_t kMostBytes = 64 << 20;
  std::vector<MeasuredRun> runs;
  for (MeasuredRun& run : ReadShippedRuns())
    if (std::find(ids.begin(), ids.end(), run.id) != ids.end()) runs.push_back(std::move(run));
  for (MeasuredRun& run : runs)
    std::erase_if(run.rows, [](const MeasuredRow& row) { return row.bytes > kMostBytes; });
  EXPECT_EQ(runs.size(), ids.size());
  return Score(runs, BoardDecisions(), timing::TimingConstants::Shipped());
}

/// One node in LL and Simple, one node in NVLS, two nodes, and one that no topology fits.
std::vector<ScoredRun> FewRuns() {
  return ScoredWith({"nv-h100-8-ag-half-nccl2.29.2", "nv-h200-8-ar-half-nccl2.29.2",
                     "dstack-nebius-h100-2n-ar", "gke-a4-b200-8-ar"});
}

TEST(Fidelity, PacketAndFlowLevelAgreeOnIdleMachinesAndFlowIsNearTheClosedForm) {
  const auto runs = FewRuns();
  const auto levels = SimulateRuns(runs, {.level = Fidelity::kPacket});
  ASSERT_EQ(levels.size(), 4u);
  std::size_t simulated = 0;
  for (const LevelRun& level : levels) {
    const std::string& id = runs[level.index].run.id;
    if (id == "gke-a4-b200-8-ar") {
      EXPECT_THAT(level.why_not, HasSubstr("no topology named gcp-a4"));
      continue;
    }
    EXPECT_THAT(level.why_not, IsEmpty()) << id;
    EXPECT_GE(level.times.size(), 3u) << id;
    for (const auto& [bytes, times] : level.times) {
      EXPECT_NEAR(times.level / times.flow, 1, 0.02) << id << " " << bytes;
      EXPECT_NEAR(times.flow / times.analytic, 1, 0.35) << id << " " << bytes;
      ++simulated;
    }
  }
  EXPECT_GE(simulated, 12u);
}

TEST(Fidelity, TheNumberOfProcessesChangesNothing) {
  const auto runs = FewRuns();
  const FidelityOptions one{.level = Fidelity::kFlow, .sizes_per_band = 2, .processes = 1};
  const FidelityOptions three{.level = Fidelity::kFlow, .sizes_per_band = 2, .processes = 3};
  EXPECT_EQ(JsonLevels(runs, SimulateRuns(runs, one), one),
            JsonLevels(runs, SimulateRuns(runs, three), three));
}

TEST(Fidelity, RunsBeyondTheLimitOfRanksAreListed) {
  const auto runs = FewRuns();
  const FidelityOptions options{.level = Fidelity::kFlow, .max_ranks = 8};
  const auto levels = SimulateRuns(runs, options);
  EXPECT_THAT(TextLevels(runs, levels, options),
              HasSubstr("more than 8 ranks (1): dstack-nebius-h100-2n-ar"));
}

TEST(Fidelity, SizesAreTheMiddlesOfTheBandsAndZeroMeansAll) {
  const auto runs = ScoredWith({"nv-h100-8-ag-half-nccl2.29.2"});
  const auto one = SimulateRuns(runs, {.level = Fidelity::kFlow});
  std::set<std::size_t> bands;
  for (const auto& [bytes, times] : one[0].times) bands.insert(BandOf(bytes));
  EXPECT_EQ(bands.size(), one[0].times.size()) << "one size a band";
  const auto all = SimulateRuns(runs, {.level = Fidelity::kFlow, .sizes_per_band = 0});
  EXPECT_EQ(all[0].times.size(), runs[0].points.size());
}

TEST(WorkerProcesses, GiveTheirAnswersInOrderWhateverTheirNumber) {
  const auto square = [](std::size_t i) { return std::to_string(i * i); };
  for (const unsigned processes : {1u, 4u}) {
    const auto results = RunInProcesses(20, processes, square);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(results[i].done);
      EXPECT_EQ(results[i].text, std::to_string(i * i));
    }
  }
  EXPECT_TRUE(RunInProcesses(0, 4, square).empty());
}

TEST(WorkerProcesses, AnExceptionAndADeadWorkerCostTheirOwnPieceOnly) {
  const auto results = RunInProcesses(6, 2, [](std::size_t i) -> std::string {
    if (i == 1) throw std::runtime_error("refused");
    if (i == 2) std::raise(SIGKILL);
    return "fine";
  });
  EXPECT_FALSE(results[1].done);
  EXPECT_EQ(results[1].text, "refused");
  EXPECT_FALSE(results[2].done);
  EXPECT_THAT(results[2].text, HasSubstr("signal 9"));
  for (const std::size_t i : {0u, 3u, 4u, 5u}) EXPECT_EQ(results[i].text, "fine") << i;
}

TEST(WorkerProcesses, WhenAllWorkersAreDeadTheRestSaysSo) {
  const auto results = RunInProcesses(3, 1, [](std::size_t) -> std::string {
    std::raise(SIGKILL);
    return {};
  });
  EXPECT_THAT(results[0].text, HasSubstr("signal 9"));
  EXPECT_THAT(results[2].text, HasSubstr("no worker was left"));
}

TEST(WorkerProcesses, LongAnswersArriveWhole) {
  const auto results = RunInProcesses(
      3, 3, [](std::size_t i) { return std::string(1 << 20, 'a' + static_cast<char>(i)); });
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(results[i].text, std::string(1 << 20, static_cast<char>('a' + i)));
}

}  // namespace
}  // namespace windtunnel::validate
