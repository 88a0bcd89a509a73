#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "interconnect/fabric.h"
#include "interconnect/nccl_xml_topology.h"
#include "interconnect/topology_file.h"

namespace windtunnel {
namespace {

using nccl::XmlElement;

// Lane rates as NCCL counts them, in 100 Mb/s (NVIDIA/nccl v2.28.9 src/graph/topo.cc), by
// generation.
struct PcieSpeed {
  std::uint32_t generation;
  const char* name;
  double nccl_lane;
};
constexpr PcieSpeed kPcieSpeeds[] = {{1, "2.5 GT/s PCIe", 15},   {2, "5.0 GT/s PCIe", 30},
                                     {3, "8.0 GT/s PCIe", 60},   {4, "16.0 GT/s PCIe", 120},
                                     {5, "32.0 GT/s PCIe", 240}, {6, "64.0 GT/s PCIe", 480}};

class Writer {
 public:
  Writer(const Topology& topology, const Catalogue& catalogue,
         const std::vector<std::uint32_t>& nodes)
      : topology_(topology), catalogue_(catalogue), nodes_(nodes) {
    const std::set<std::uint32_t> chosen(nodes.begin(), nodes.end());
    for (DeviceId id = 0; id < topology.devices.size(); ++id) {
      if (chosen.contains(topology.devices[id].node)) members_.insert(id);
    }
    for (LinkId id = 0; id < topology.links.size(); ++id) {
      const Link& link = topology.links[id];
      if (members_.contains(link.from)) links_out_[link.from].push_back(id);
    }
  }

  XmlElement Write() {
    AssignBusIds();
    XmlElement system{.name = "system"};
    system.Set("version", "1");
    for (const std::uint32_t node : nodes_) {
      visited_.clear();
      for (const DeviceId id : members_) {
        const Device& device = topology_.devices[id];
        if (device.node == node && device.kind == DeviceKind::kCpu)
          system.children.push_back(Cpu(id));
      }
    }
    return system;
  }

 private:
  const Device& device(DeviceId id) const { return topology_.devices[id]; }
  const DeviceModel* ModelOf(DeviceId id) const { return catalogue_.FindDevice(device(id).model); }
  static const std::string* Attribute(const Device& d, const std::string& name) {
    const auto found = d.attributes.find(name);
    return found == d.attributes.end() ? nullptr : &found->second;
  }
  // Sets `name` from the device's attributes, else from `otherwise` unless that is empty.
  static void Put(const Device& d, const std::string& name, const std::string& otherwise,
                  XmlElement* element) {
    if (const std::string* kept = Attribute(d, name)) {
      element->Set(name, *kept);
    } else if (!otherwise.empty()) {
      element->Set(name, otherwise);
    }
  }
  static void PutUnknown(const Device& d, XmlElement* element) {
    const std::string prefix = element->name + ":";
    for (const auto& [name, value] : d.attributes) {
      if (name.starts_with(prefix)) element->Set(name.substr(prefix.size()), value);
    }
  }
  static bool IsVirtual(const Device& d) {
    const std::string* kind = Attribute(d, "nic");
    return kind != nullptr && *kind == "virtual";
  }

  // Children of a device in the PCIe tree, in file order, each device once.
  std::vector<std::pair<DeviceId, const Link*>> ChildrenOf(DeviceId parent) {
    std::vector<std::pair<DeviceId, const Link*>> children;
    for (const LinkId id : links_out_[parent]) {
      const Link& link = topology_.links[id];
      if (link.kind != LinkKind::kPcie || !members_.contains(link.to)) continue;
      const DeviceKind kind = device(link.to).kind;
      if (kind != DeviceKind::kPcieSwitch && kind != DeviceKind::kGpu && kind != DeviceKind::kNic)
        continue;
      if (visited_.insert(link.to).second) children.emplace_back(link.to, &link);
    }
    return children;
  }

  void AssignBusIds() {
    std::map<std::uint32_t, std::set<std::string>> taken;
    for (const DeviceId id : members_) taken[device(id).node].insert(device(id).bus_id);
    std::map<std::uint32_t, std::uint32_t> next;
    for (const DeviceId id : members_) {
      if (device(id).kind == DeviceKind::kCpu) visited_.insert(id);
    }
    const auto walk = [&](const auto& self, DeviceId parent) -> void {
      for (const auto& [child, link] : ChildrenOf(parent)) {
        const std::uint32_t node = device(child).node;
        std::string& bus_id = bus_ids_[child];
        bus_id = device(child).bus_id;
        while (bus_id.empty()) {
          const std::uint32_t n = ++next[node];
          bus_id = fmt::format("{:04x}:{:02x}:00.0", n >> 8, n & 0xff);
          if (!taken[node].insert(bus_id).second) bus_id.clear();
        }
        if (device(child).kind == DeviceKind::kPcieSwitch) self(self, child);
      }
    };
    for (const DeviceId id : members_) {
      if (device(id).kind == DeviceKind::kCpu) walk(walk, id);
    }
  }

  XmlElement Cpu(DeviceId id) {
    const Device& d = device(id);
    const DeviceModel* model = ModelOf(id);
    if (model == nullptr) model = catalogue_.FindDevice("xeon-skylake");
    XmlElement element{.name = "cpu"};
    Put(d, "host_hash", nodes_.size() > 1 ? fmt::format("{:#x}", d.node + 1) : "", &element);
    element.Set("numaid", fmt::format("{}", d.index));
    Put(d, "affinity", "", &element);
    Put(d, "arch", model->arch, &element);
    Put(d, "vendor", model->vendor, &element);
    Put(d, "familyid", model->family == 0 ? "" : fmt::format("{}", model->family), &element);
    Put(d, "modelid", model->family == 0 ? "" : fmt::format("{}", model->cpu_model), &element);
    PutUnknown(d, &element);
    AddChildren(id, &element);
    return element;
  }

  void AddChildren(DeviceId parent, XmlElement* element) {
    for (const auto& [child, link] : ChildrenOf(parent)) {
      const Device& d = device(child);
      if (d.kind == DeviceKind::kNic && IsVirtual(d)) {
        XmlElement nic{.name = "nic"};
        nic.children.push_back(Net(child));
        element->children.push_back(std::move(nic));
        continue;
      }
      // Ports of one card share its element.
      if (d.kind == DeviceKind::kNic && !d.bus_id.empty()) {
        const auto card = std::find_if(
            element->children.begin(), element->children.end(), [&](const XmlElement& e) {
              return e.name == "pci" && *e.Find("busid") == d.bus_id && e.Child("nic") != nullptr;
            });
        if (card != element->children.end()) {
          card->children[0].children.push_back(Net(child));
          continue;
        }
      }
      element->children.push_back(Pci(child, *link));
    }
  }

  XmlElement Pci(DeviceId id, const Link& link) {
    const Device& d = device(id);
    const DeviceModel* model = ModelOf(id);
    XmlElement element{.name = "pci"};
    element.Set("busid", bus_ids_[id]);
    const char* generic = d.kind == DeviceKind::kGpu   ? "0x030200"
                          : d.kind == DeviceKind::kNic ? "0x020000"
                                                       : "0x060400";
    const bool from_xml = Attribute(d, "link_speed") != nullptr;
    Put(d, "class", model == nullptr || model->pci_class.empty() ? generic : model->pci_class,
        &element);
    const std::string vendor = model == nullptr || from_xml ? "" : model->pci_vendor;
    const std::string product = model == nullptr || from_xml ? "" : model->pci_device;
    Put(d, "vendor", product.empty() ? "" : vendor, &element);
    Put(d, "device", product, &element);
    Put(d, "subsystem_vendor", "", &element);
    Put(d, "subsystem_device", "", &element);
    const auto [speed, width] = SpeedAndWidth(link);
    Put(d, "link_speed", speed, &element);
    Put(d, "link_width", fmt::format("{}", width), &element);
    PutUnknown(d, &element);
    if (d.kind == DeviceKind::kGpu) {
      element.children.push_back(Gpu(id));
    } else if (d.kind == DeviceKind::kNic) {
      XmlElement nic{.name = "nic"};
      nic.children.push_back(Net(id));
      element.children.push_back(std::move(nic));
    } else {
      AddChildren(id, &element);
      if (const std::string* side = Attribute(d, "pcilink")) {
        std::size_t at = 0;
        while (at <= side->size()) {
          const std::size_t end = std::min(side->find(';', at), side->size());
          XmlElement side_link{.name = "pcilink"};
          side_link.Set("target", side->substr(at, end - at));
          element.children.push_back(std::move(side_link));
          at = end + 1;
        }
      }
    }
    return element;
  }

  // The slot as NCCL would see it. A link that only says a rate gets the slot whose rate by NCCL's
  // own count (lanes x lane rate / 80) comes nearest.
  static std::pair<std::string, std::uint32_t> SpeedAndWidth(const Link& link) {
    for (const PcieSpeed& speed : kPcieSpeeds) {
      if (speed.generation == link.generation) return {speed.name, link.width};
    }
    std::pair<std::string, std::uint32_t> best;
    double least = HUGE_VAL;
    for (const PcieSpeed& speed : kPcieSpeeds) {
      for (const std::uint32_t width : {16u, 8u, 4u, 2u, 1u}) {
        const double distance =
            std::abs(speed.nccl_lane * width / 80 - ToGigabytesPerSecond(link.rate));
        if (distance >= least) continue;
        least = distance;
        best = {speed.name, width};
      }
    }
    return best;
  }

  XmlElement Gpu(DeviceId id) {
    const Device& d = device(id);
    const DeviceModel* model = ModelOf(id);
    XmlElement element{.name = "gpu"};
    element.Set("dev", fmt::format("{}", d.index));
    element.Set("sm", fmt::format("{}", d.sm));
    Put(d, "rank", fmt::format("{}", RankOf(id)), &element);
    // GPUDirect RDMA: not on consumer boards, which show themselves as display controllers.
    Put(d, "gdr", model != nullptr && model->pci_class == "0x030000" ? "0" : "1", &element);
    PutUnknown(d, &element);
    if (const std::string* kept = Attribute(d, "nvlink")) {
      Records(*kept, "nvlink", {"target", "count", "tclass"}, &element);
    } else {
      for (const LinkId link_id : links_out_[id]) {
        const Link& link = topology_.links[link_id];
        if (link.kind == LinkKind::kNvlink && !link.down) element.children.push_back(Nvlink(link));
      }
    }
    if (const std::string* kept = Attribute(d, "c2c")) {
      Records(*kept, "c2c", {"bw", "count"}, &element);
    } else {
      for (const LinkId link_id : links_out_[id]) {
        const Link& link = topology_.links[link_id];
        if (link.kind != LinkKind::kC2c || link.down) continue;
        XmlElement c2c{.name = "c2c"};
        c2c.Set("bw", fmt::format("{}", link.rate.count() / 8'000'000 / link.width));
        c2c.Set("count", fmt::format("{}", link.width));
        element.children.push_back(std::move(c2c));
      }
    }
    return element;
  }

  XmlElement Nvlink(const Link& link) const {
    XmlElement element{.name = "nvlink"};
    const Device& target = device(link.to);
    if (target.kind == DeviceKind::kGpu) {
      const auto bus_id = bus_ids_.find(link.to);
      const std::string* own_class = Attribute(target, "class");
      element.Set("target", bus_id == bus_ids_.end() ? "fffffff:ff:ff.0" : bus_id->second);
      element.Set("count", fmt::format("{}", link.width));
      element.Set("tclass", own_class == nullptr ? "0x030200" : *own_class);
    } else {
      // An NVSwitch that stands for the whole layer has no bus id: NCCL's mark for one it cannot
      // see.
      element.Set("target", "fffffff:ff:ff.0");
      element.Set("count", fmt::format("{}", link.width));
      element.Set("tclass", target.kind == DeviceKind::kCpu ? "0x068001" : "0x068000");
    }
    return element;
  }

  static void Records(const std::string& text, const char* name,
                      const std::vector<std::string>& fields, XmlElement* parent) {
    std::size_t at = 0;
    while (at <= text.size()) {
      const std::size_t end = std::min(text.find(';', at), text.size());
      XmlElement element{.name = name};
      std::size_t from = at;
      for (const std::string& field : fields) {
        const std::size_t to = std::min(text.find(' ', from), end);
        element.Set(field, text.substr(from, to - from));
        from = std::min(to + 1, end);
      }
      parent->children.push_back(std::move(element));
      at = end + 1;
    }
  }

  // Among the GPUs of the system, hosts in order, by dev within a host.
  std::uint32_t RankOf(DeviceId id) const {
    std::uint32_t rank = 0;
    const Device& own = device(id);
    for (const DeviceId other : members_) {
      const Device& d = device(other);
      if (d.kind == DeviceKind::kGpu && std::pair(d.node, d.index) < std::pair(own.node, own.index))
        ++rank;
    }
    return rank;
  }

  XmlElement Net(DeviceId id) const {
    const Device& d = device(id);
    XmlElement element{.name = "net"};
    Put(d, "name", fmt::format("net{}", d.index), &element);
    element.Set("dev", fmt::format("{}", d.index));
    Put(d, "latency", "0", &element);
    std::optional<BitsPerSecond> rate = PortRate(d, catalogue_);
    if (!rate) {
      const auto links = links_out_.find(id);
      if (links != links_out_.end()) {
        for (const LinkId link_id : links->second) {
          const Link& link = topology_.links[link_id];
          if (link.kind == LinkKind::kNetwork) rate = link.rate;
        }
      }
    }
    Put(d, "speed", rate ? fmt::format("{}", rate->count() / 1'000'000) : "0", &element);
    Put(d, "port", "1", &element);
    Put(d, "guid", fmt::format("{:#x}", 0x100 + d.index), &element);
    Put(d, "maxconn", "131072", &element);
    Put(d, "gdr", "1", &element);
    Put(d, "coll", "", &element);
    Put(d, "keep", "", &element);
    PutUnknown(d, &element);
    return element;
  }

  const Topology& topology_;
  const Catalogue& catalogue_;
  std::vector<std::uint32_t> nodes_;
  std::set<DeviceId> members_;
  std::map<DeviceId, std::vector<LinkId>> links_out_;
  std::map<DeviceId, std::string> bus_ids_;
  std::set<DeviceId> visited_;
};

}  // namespace

XmlElement NcclXmlFromTopology(const Topology& topology, const std::vector<std::uint32_t>& nodes,
                               const Catalogue& catalogue) {
  return Writer(topology, catalogue, nodes).Write();
}

std::vector<std::uint32_t> NvlinkDomain(const Topology& topology, std::uint32_t node) {
  std::set<std::uint32_t> hosts{node};
  std::set<DeviceId> switches;
  // Hosts are joined directly, or over a switch that belongs to none; repeat until nothing is new.
  for (bool grew = true; grew;) {
    grew = false;
    for (const Link& link : topology.links) {
      if (link.kind != LinkKind::kNvlink || link.down) continue;
      const std::uint32_t from = topology.devices[link.from].node;
      const std::uint32_t to = topology.devices[link.to].node;
      const bool from_in = from == kNoNode ? switches.contains(link.from) : hosts.contains(from);
      if (!from_in) continue;
      grew |= to == kNoNode ? switches.insert(link.to).second : hosts.insert(to).second;
    }
  }
  return {hosts.begin(), hosts.end()};
}

std::string NodeNcclXml(const Topology& topology, std::uint32_t node) {
  return nccl::WriteXml(
      NcclXmlFromTopology(topology, NvlinkDomain(topology, node), Catalogue::Shipped()));
}

}  // namespace windtunnel
