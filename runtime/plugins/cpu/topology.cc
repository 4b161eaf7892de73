// Topologies: the devices of a client, or of a machine that is only described, for compiling ahead of time.

#include "handles.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_topology.pb.h"
#include "xla/pjrt/proto/topology_description.pb.h"

namespace xla::cpu {
// Exported by the library; its own header needs LLVM's headers, which the wheel does not ship.
std::vector<std::string> DetectMachineAttributes();
}  // namespace xla::cpu

PJRT_TopologyDescription::PJRT_TopologyDescription(const xla::PjRtTopologyDescription* t)
    : topology(t), device_descriptions(t->DeviceDescriptions()), attributes(t->Attributes()) {
  for (const auto& description : device_descriptions) {
    description_pointers.push_back(&descriptions.emplace_back(description.get()));
  }
}

namespace xlazy {
namespace {

std::unique_ptr<xla::CpuTopologyDescription> TopologyOf(std::vector<xla::CpuTopology::CpuDevice> devices,
                                                        absl::Span<const std::string> machine) {
  return std::make_unique<xla::CpuTopologyDescription>(xla::CpuId(), xla::CpuName(), xla::CpuName(), std::move(devices),
                                                       machine);
}

}  // namespace

std::unique_ptr<xla::CpuTopologyDescription> MakeTopology(int processes, int devices) {
  std::vector<xla::CpuTopology::CpuDevice> list;
  for (int process = 0; process < processes; ++process) {
    for (int device = 0; device < devices; ++device) list.push_back({process, device});
  }
  return TopologyOf(std::move(list), xla::cpu::DetectMachineAttributes());
}

absl::Status TopologyDescription_Create(PJRT_TopologyDescription_Create_Args* args) {
  if (args->num_options != 0) XLAZY_NEED(args->create_options);
  int64_t devices = 1, processes = 1;
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue& option = args->create_options[i];
    if (NameOf(option) == "cpu_device_count") {
      XLAZY_ASSIGN(devices, IntOption(option));
    } else if (NameOf(option) == "num_nodes") {
      XLAZY_ASSIGN(processes, IntOption(option));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown topology option ", NameOf(option), "; known are cpu_device_count, num_nodes"));
    }
  }
  if (devices < 1 || devices >= xla::kMaxCpuDevicesPerProcess || processes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a topology of ", processes, " x ", devices, " devices cannot be"));
  }
  args->topology = new PJRT_TopologyDescription(MakeTopology(static_cast<int>(processes), static_cast<int>(devices)));
  return absl::OkStatus();
}

absl::Status TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args* args) {
  delete args->topology;
  return absl::OkStatus();
}

absl::Status TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args* args) {
  XLAZY_NEED(args->topology);
  XLAZY_ANSWER_TEXT(args, platform_name, args->topology->topology->platform_name());
  return absl::OkStatus();
}

absl::Status TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args* args) {
  XLAZY_NEED(args->topology);
  XLAZY_ANSWER_TEXT(args, platform_version, args->topology->topology->platform_version());
  return absl::OkStatus();
}

absl::Status TopologyDescription_GetDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  XLAZY_NEED(args->topology);
  args->descriptions = args->topology->description_pointers.data();
  args->num_descriptions = args->topology->description_pointers.size();
  return absl::OkStatus();
}

absl::Status TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args* args) {
  XLAZY_NEED(args->topology);
  XLAZY_ASSIGN(std::string bytes, args->topology->topology->Serialize());
  XLAZY_ANSWER_BYTES(args, serialized_topology, serialized_topology_deleter, PJRT_SerializedTopology, std::move(bytes));
  return absl::OkStatus();
}

absl::Status TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args* args) {
  XLAZY_NEED(args->serialized_topology);
  // The inverse of CpuTopologyDescription::Serialize, which writes a bare CpuTopologyProto.
  xla::CpuTopologyProto proto;
  if (args->serialized_topology_size > INT32_MAX ||
      !proto.ParseFromArray(args->serialized_topology, static_cast<int>(args->serialized_topology_size))) {
    return absl::InvalidArgumentError("the bytes are not a serialized CPU topology");
  }
  std::unique_ptr<const xla::CpuTopology> topology = xla::CpuTopology::FromProto(proto);
  if (topology == nullptr || topology->number_of_devices() == 0) {
    return absl::InvalidArgumentError("the serialized topology has no devices");
  }
  absl::Span<const xla::CpuTopology::CpuDevice> devices = topology->devices();
  args->topology = new PJRT_TopologyDescription(
      TopologyOf({devices.begin(), devices.end()}, topology->machine_attributes()));
  return absl::OkStatus();
}

absl::Status TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args* args) {
  XLAZY_NEED(args->topology);
  args->attributes = args->topology->attributes.data();
  args->num_attributes = args->topology->attributes.size();
  return absl::OkStatus();
}

}  // namespace xlazy
