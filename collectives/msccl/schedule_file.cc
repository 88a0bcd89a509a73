#include "collectives/msccl/schedule_file.h"

#include <fstream>

namespace windtunnel {
namespace {

// The first character that is no white space.
char FirstCharacter(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  char c = 0;
  in >> c;
  return c;
}

std::variant<msccl::Program, mscclpp::ExecutionPlan> ReadEither(const std::filesystem::path& file) {
  if (FirstCharacter(file) == '{') return mscclpp::ReadJson(file);
  return msccl::ReadXml(file);
}

// Both formats have functions of one name in namespaces of their own: found by the argument.
template <class Content>
std::string ProveSchedule(const Content& content) {
  return Prove(content);
}

}  // namespace

ScheduleFile::ScheduleFile(const std::filesystem::path& file)
    : file_(file.string()), content_(ReadEither(file)) {}

std::uint64_t ScheduleFile::smallest_count() const {
  return std::visit([](const auto& content) { return SmallestCount(content); }, content_);
}

Plan ScheduleFile::MakePlan(std::uint64_t count, DataType type, ReduceOp op) const {
  if (const auto* program = std::get_if<msccl::Program>(&content_))
    return msccl::MakePlan(*program, count, type, op);
  return mscclpp::MakePlan(std::get<mscclpp::ExecutionPlan>(content_), count, type);
}

std::string ScheduleFile::Prove() const {
  return std::visit([](const auto& content) { return ProveSchedule(content); }, content_);
}

}  // namespace windtunnel
