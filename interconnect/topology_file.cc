#include "interconnect/topology_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "interconnect/catalogue.h"
#include "interconnect/fabric.h"
#include "interconnect/foreign/foreign_topology.h"
#include "interconnect/nccl/xml.h"
#include "interconnect/nccl_xml_topology.h"
#include "interconnect/nvidia_smi_topology.h"
#include "interconnect/topology_builder.h"
#include "interconnect/topology_drawing.h"
#include "proto/text_io.h"
#include "proto/topology.pb.h"
#include "sim/data_files.h"
#include "sim/parse_units.h"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIncludeDepth = 16;

std::uint64_t Fnv1a(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3u;
  }
  return hash;
}

proto::Spelling SpellingOf(TopologyFormat format) {
  switch (format) {
    case TopologyFormat::kJson:
      return proto::Spelling::kJson;
    case TopologyFormat::kTextProto:
      return proto::Spelling::kText;
    case TopologyFormat::kBinaryProto:
      return proto::Spelling::kBinary;
    default:
      return proto::Spelling::kYaml;
  }
}

// Reads one file and those it includes.
class FileReader {
 public:
  FileReader(const Catalogue& catalogue, const TopologyReadOptions& options)
      : catalogue_(catalogue), options_(options) {}

  Topology ReadFile(const fs::path& path) {
    const std::string text = proto::ReadRegularFile(path);
    return ReadText(text, TopologyFormatOf(path, text), path);
  }

  Topology ReadText(std::string_view text, TopologyFormat format, const fs::path& path) {
    digest_ = Fnv1a(text, digest_);
    Topology topology = Parse(text, format, path);
    topology.source = path.string();
    topology.digest = digest_;
    if (topology.name.empty()) topology.name = path.stem().string();
    return topology;
  }

 private:
  Topology Parse(std::string_view text, TopologyFormat format, const fs::path& path) {
    const std::string name = path.string();
    switch (format) {
      case TopologyFormat::kYaml:
      case TopologyFormat::kJson:
      case TopologyFormat::kTextProto:
      case TopologyFormat::kBinaryProto:
        return ParseOwn(text, SpellingOf(format), path);
      case TopologyFormat::kNcclXml:
        return TopologyFromNcclXml(
            nccl::ParseXml(text, name), catalogue_,
            {.strict = options_.strict, .complete_as = options_.complete_as});
      case TopologyFormat::kNvidiaSmi:
        return TopologyFromNvidiaSmi(text, name, options_.complete_as, catalogue_);
      case TopologyFormat::kDot:
      case TopologyFormat::kSvg:
        throw ConfigError({.file = name,
                           .problem = "is in a format that is not read as a topology",
                           .expected = "YAML, JSON, protobuf text or binary"});
    }
    return {};
  }

  Topology ParseOwn(std::string_view text, proto::Spelling spelling, const fs::path& path) {
    const std::string name = path.string();
    proto::TopologyFile file;
    proto::FieldLines lines;
    proto::ReadMessage(text, spelling, name, &file, &lines);
    std::map<std::string, fs::path> included_hosts;
    std::map<std::string, std::pair<fs::path, proto::TemplateEntry>> included_templates;
    std::error_code ignored;
    open_.push_back(fs::weakly_canonical(path, ignored));
    for (int i = 0; i < file.include_size(); ++i) {
      const std::string field = fmt::format("include[{}]", i);
      const InputFault where{.file = name, .line = lines.Line(field), .field = field};
      const fs::path target = proto::ResolveInclude(path, file.include(i), where);
      CollectIncluded(target, where, &included_hosts, &included_templates);
    }
    const HostSource hosts = [&](std::string_view host, const InputFault& where) -> Topology {
      const std::string key(host);
      if (const auto found = included_templates.find(key); found != included_templates.end()) {
        return BuildTemplate(found->second.second, "", {}, found->second.first.string(),
                             catalogue_);
      }
      if (const auto found = included_hosts.find(key); found != included_hosts.end())
        return Nested(found->second, where);
      const std::vector<std::string> shipped = ShippedTopologyNames();
      if (std::binary_search(shipped.begin(), shipped.end(), key))
        return Nested(ShippedPath(key), where);
      std::vector<std::string> known = shipped;
      for (const auto& [template_name, entry] : file.templates()) known.push_back(template_name);
      for (const auto& [template_name, entry] : included_templates) known.push_back(template_name);
      for (const auto& [host_name, target] : included_hosts) known.push_back(host_name);
      std::sort(known.begin(), known.end());
      InputFault fault = where;
      fault.value = key;
      fault.problem = key.empty() ? "is empty" : "names no template, include or shipped system";
      fault.expected = "one of " + JoinNames(known);
      fault.nearest = NearestName(key, known);
      throw ConfigError(std::move(fault));
    };
    Topology topology = BuildTopology(file, lines, name, catalogue_, hosts);
    open_.pop_back();
    return topology;
  }

  void RefuseLoop(const fs::path& target, const InputFault& where) const {
    std::error_code ignored;
    const fs::path resolved = fs::weakly_canonical(target, ignored);
    const bool loop = std::find(open_.begin(), open_.end(), resolved) != open_.end();
    if (!loop && open_.size() < kMaxIncludeDepth) return;
    InputFault fault = where;
    fault.value = target.filename().string();
    fault.problem = loop ? "includes itself in a loop:" : "includes too deeply:";
    fault.expected = fmt::format("no loop, and at most {} levels", kMaxIncludeDepth);
    throw ConfigError(std::move(fault));
  }

  Topology Nested(const fs::path& path, const InputFault& where) {
    RefuseLoop(path, where);
    std::error_code ignored;
    Topology host = ReadFile(path);
    return host;
  }

  // An included file gives its templates, and, when it describes devices, itself as a host.
  void CollectIncluded(
      const fs::path& target, const InputFault& where, std::map<std::string, fs::path>* hosts,
      std::map<std::string, std::pair<fs::path, proto::TemplateEntry>>* templates) {
    RefuseLoop(target, where);
    const std::string text = proto::ReadRegularFile(target);
    const TopologyFormat format = TopologyFormatOf(target, text);
    std::string name = target.stem().string();
    if (format == TopologyFormat::kYaml || format == TopologyFormat::kJson ||
        format == TopologyFormat::kTextProto || format == TopologyFormat::kBinaryProto) {
      digest_ = Fnv1a(text, digest_);
      proto::TopologyFile file;
      proto::FieldLines lines;
      proto::ReadMessage(text, SpellingOf(format), target.string(), &file, &lines);
      for (const auto& [template_name, entry] : file.templates())
        templates->emplace(template_name, std::pair{target, entry});
      open_.push_back(target);
      for (int i = 0; i < file.include_size(); ++i) {
        const std::string field = fmt::format("include[{}]", i);
        const InputFault inner{.file = target.string(), .line = lines.Line(field), .field = field};
        CollectIncluded(proto::ResolveInclude(target, file.include(i), inner), inner, hosts,
                        templates);
      }
      open_.pop_back();
      if (file.devices().empty() && file.of().empty() && file.groups().empty()) return;
      if (!file.name().empty()) name = file.name();
    }
    hosts->emplace(name, target);
  }

  static fs::path ShippedPath(const std::string& name) {
    const fs::path folder = ShippedFile("topologies");
    std::error_code ignored;
    for (const char* extension : {".yaml", ".xml"}) {
      const fs::path path = folder / (name + extension);
      if (fs::exists(path, ignored)) return path;
    }
    return folder / name;
  }

  friend Topology windtunnel::LoadTopology(std::string_view, const TopologyReadOptions&);

  const Catalogue& catalogue_;
  TopologyReadOptions options_;
  std::vector<fs::path> open_;  // Files being read, outermost first.
  std::uint64_t digest_ = 0xcbf29ce484222325u;
};

// "hgx-h100*4:ib-ndr-rail"
struct ShortForm {
  std::string host;
  std::uint32_t nodes = 0;
  std::string fabric;
};

std::optional<ShortForm> SplitShortForm(std::string_view text) {
  const auto star = text.rfind('*');
  if (star == std::string_view::npos) return std::nullopt;
  ShortForm form{.host = std::string(text.substr(0, star))};
  std::string_view rest = text.substr(star + 1);
  const auto colon = rest.find(':');
  const InputFault where{.field = "-t " + std::string(text)};
  form.nodes = static_cast<std::uint32_t>(ParseCount(rest.substr(0, colon), where, 1, kMaxHosts));
  form.fabric =
      colon == std::string_view::npos ? "single-switch" : std::string(rest.substr(colon + 1));
  return form;
}

}  // namespace

TopologyFormat TopologyFormatOf(const fs::path& path, std::string_view text) {
  const std::string extension = path.extension().string();
  if (extension == ".xml") return TopologyFormat::kNcclXml;
  if (extension == ".dot" || extension == ".gv") return TopologyFormat::kDot;
  if (extension == ".svg") return TopologyFormat::kSvg;
  switch (proto::SpellingFromName(path)) {
    case proto::Spelling::kJson:
      return TopologyFormat::kJson;
    case proto::Spelling::kText:
      return TopologyFormat::kTextProto;
    case proto::Spelling::kBinary:
      return TopologyFormat::kBinaryProto;
    case proto::Spelling::kYaml:
      break;
  }
  if (extension == ".yaml" || extension == ".yml") return TopologyFormat::kYaml;
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '<') return TopologyFormat::kNcclXml;
  if (first != std::string_view::npos && text[first] == '{') return TopologyFormat::kJson;
  const bool keys = text.find("devices:") != std::string_view::npos ||
                    text.find("links:") != std::string_view::npos;
  const bool matrix = text.find("GPU0") != std::string_view::npos ||
                      text.find("CPU Affinity") != std::string_view::npos;
  if (matrix && !keys) return TopologyFormat::kNvidiaSmi;
  return TopologyFormat::kYaml;
}

Topology ReadTopologyText(std::string_view text, TopologyFormat format, std::string_view file_name,
                          const TopologyReadOptions& options) {
  const bool may_be_foreign = format == TopologyFormat::kYaml || format == TopologyFormat::kNcclXml;
  const auto foreign = may_be_foreign ? DetectForeignFormat(text) : std::nullopt;
  // The catalogue is read when it is needed: foreign files name no products.
  Topology topology =
      foreign
          ? ReadForeignTopology(text, *foreign, file_name)
          : FileReader(Catalogue::Shipped(), options).ReadText(text, format, fs::path(file_name));
  if (options.nodes > 1) {
    const InputFault where{.file = std::string(file_name), .field = "nodes"};
    topology = MultiplyHosts(topology, options.nodes, where);
    BuildFabric({.kind = "single-switch", .where = where}, Catalogue::Shipped(), &topology);
  }
  return topology;
}

Topology LoadTopology(std::string_view file_or_name, const TopologyReadOptions& options) {
  const std::string given(file_or_name);
  const InputFault where{.field = "-t"};
  if (given.find('\0') != std::string::npos || given.empty()) {
    InputFault fault = where;
    fault.problem = given.empty() ? "is empty" : "has a NUL in it";
    fault.expected = "a file or the name of a shipped system";
    throw ConfigError(std::move(fault));
  }
  std::error_code ignored;
  fs::path path(given);
  if (!fs::exists(path, ignored)) {
    if (const auto form = SplitShortForm(given)) {
      TopologyReadOptions one_host = options;
      one_host.nodes = 0;
      Topology host = LoadTopology(form->host, one_host);
      const InputFault short_form{.file = host.source, .field = "-t " + given};
      Topology cluster = MultiplyHosts(host, form->nodes, short_form);
      BuildFabric({.kind = form->fabric, .where = short_form}, Catalogue::Shipped(), &cluster);
      cluster.name = given;
      cluster.digest = Fnv1a(given.substr(form->host.size()), host.digest);
      return cluster;
    }
    const std::vector<std::string> shipped = ShippedTopologyNames();
    const bool bare_name = path == path.filename();
    if (std::binary_search(shipped.begin(), shipped.end(), given)) {
      path = FileReader::ShippedPath(given);
    } else if (bare_name && fs::exists(ShippedFile("topologies") / path, ignored)) {
      path = ShippedFile("topologies") / path;
    } else {
      InputFault fault = where;
      fault.value = given;
      fault.problem = "is neither a file nor a shipped system";
      fault.expected = "a path, or one of " + JoinNames(shipped);
      fault.nearest = NearestName(path.stem().string(), shipped);
      throw ConfigError(std::move(fault));
    }
  }
  const std::string text = proto::ReadRegularFile(path);
  return ReadTopologyText(text, TopologyFormatOf(path, text), path.string(), options);
}

std::string WriteTopologyText(const Topology& topology, TopologyFormat format) {
  switch (format) {
    case TopologyFormat::kYaml:
    case TopologyFormat::kJson:
    case TopologyFormat::kTextProto:
    case TopologyFormat::kBinaryProto:
      return proto::WriteMessage(ToProto(topology), SpellingOf(format));
    case TopologyFormat::kNcclXml: {
      std::vector<std::uint32_t> nodes(topology.node_count);
      std::iota(nodes.begin(), nodes.end(), 0u);
      return nccl::WriteXml(NcclXmlFromTopology(topology, nodes, Catalogue::Shipped()));
    }
    case TopologyFormat::kDot:
      return TopologyToDot(topology);
    case TopologyFormat::kSvg:
      return TopologyToSvg(topology);
    case TopologyFormat::kNvidiaSmi:
      break;
  }
  throw ConfigError({.file = topology.source,
                     .problem = "nvidia-smi text is read, not written",
                     .expected = "yaml, json, textproto, binary, xml, dot or svg"});
}

std::vector<std::string> ShippedTopologyNames() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(ShippedFile("topologies"))) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".yaml" || extension == ".xml") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

}  // namespace windtunnel
