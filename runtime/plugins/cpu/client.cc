// Clients: creation options, what a client answers about itself, and its devices.

#include "collectives.h"
#include "handles.h"
#include "kv_store.h"
#include "memory_counts.h"

namespace {

// The devices by which `space` can be reached, as handles.
std::vector<PJRT_Device*> DevicesOf(const xla::PjRtMemorySpace& space, const PJRT_Client& client) {
  std::vector<PJRT_Device*> devices;
  for (xla::PjRtDevice* device : space.devices()) devices.push_back(client.Find(device));
  return devices;
}

}  // namespace

PJRT_Client::PJRT_Client(std::unique_ptr<xla::PjRtClient> c, std::shared_ptr<xlazy::MemoryCounts> counts)
    : memory_counts(std::move(counts)), client(std::move(c)), topology(nullptr) {
  for (xla::PjRtDevice* device : client->devices()) {
    PJRT_Device* handle = &owned_devices.emplace_back(device, this);
    devices.push_back(handle);
    device_of[device] = handle;
    if (device->IsAddressable()) addressable_devices.push_back(handle);
  }
  for (xla::PjRtMemorySpace* space : client->memory_spaces()) {
    PJRT_Memory* handle = &owned_memories.emplace_back(PJRT_Memory{space, DevicesOf(*space, *this), this});
    addressable_memories.push_back(handle);
    memory_of[space] = handle;
  }
  for (PJRT_Device* device : addressable_devices) {
    for (xla::PjRtMemorySpace* space : device->device->memory_spaces()) device->memories.push_back(Find(space));
  }
  auto description = client->GetTopologyDescription();
  if (description.ok()) {
    topology = std::make_unique<PJRT_TopologyDescription>(*description);
  } else {
    topology = description.status();
  }
}

PJRT_Device* PJRT_Client::Find(xla::PjRtDevice* device) const {
  auto found = device_of.find(device);
  return found == device_of.end() ? nullptr : found->second;
}

PJRT_Memory* PJRT_Client::Find(xla::PjRtMemorySpace* space) const {
  auto found = memory_of.find(space);
  return found == memory_of.end() ? nullptr : found->second;
}

namespace xlazy {
namespace {

struct CreateOptions {
  xla::CpuClientOptions cpu;
  int64_t devices_per_process = 1;
  int64_t num_nodes = 1;
  int64_t node_id = 0;
  std::string address = "127.0.0.1";
};

absl::StatusOr<CreateOptions> ParseCreateOptions(const PJRT_NamedValue* values, size_t count) {
  CreateOptions options;
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& value = values[i];
    absl::string_view name = NameOf(value);
    if (name == "cpu_device_count") {
      XLAZY_ASSIGN(options.devices_per_process, IntOption(value));
    } else if (name == "asynchronous") {
      XLAZY_ASSIGN(options.cpu.asynchronous, BoolOption(value));
    } else if (name == "max_inflight_computations_per_device") {
      XLAZY_ASSIGN(options.cpu.max_inflight_computations_per_device, IntOption(value));
    } else if (name == "num_nodes") {
      XLAZY_ASSIGN(options.num_nodes, IntOption(value));
    } else if (name == "node_id") {
      XLAZY_ASSIGN(options.node_id, IntOption(value));
    } else if (name == "collectives_address") {
      XLAZY_ASSIGN(options.address, TextOption(value));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown create option ", name,
                       "; known are cpu_device_count, asynchronous, max_inflight_computations_per_device, num_nodes, "
                       "node_id, collectives_address"));
    }
  }
  if (options.devices_per_process < 1 || options.devices_per_process >= xla::kMaxCpuDevicesPerProcess) {
    return absl::InvalidArgumentError(absl::StrCat("cpu_device_count is ", options.devices_per_process,
                                                   ", but must be 1 to ", xla::kMaxCpuDevicesPerProcess - 1));
  }
  if (options.num_nodes < 1 || options.node_id < 0 || options.node_id >= options.num_nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("node_id ", options.node_id, " does not exist among num_nodes ", options.num_nodes));
  }
  return options;
}

}  // namespace

absl::Status Client_Create(PJRT_Client_Create_Args* args) {
  if (args->num_options != 0) XLAZY_NEED(args->create_options);
  XLAZY_ASSIGN(CreateOptions options, ParseCreateOptions(args->create_options, args->num_options));
  xla::CpuClientOptions& cpu = options.cpu;
  cpu.cpu_device_count = options.devices_per_process;
  auto counts = std::make_shared<MemoryCounts>();
  cpu.allocator = CountingAllocator(counts);
  std::unique_ptr<xla::CpuTopologyDescription> topology;
  if (options.num_nodes > 1) {
    auto store = std::make_shared<KvStore>(*args);
    if (!store->IsUsable()) {
      return absl::InvalidArgumentError("num_nodes > 1 needs the key-value callbacks: processes find each other by them");
    }
    topology = MakeTopology(options.num_nodes, options.devices_per_process);
    cpu.topology = topology.get();
    cpu.process_id = options.node_id;
    // XLA counts the devices of all processes here.
    cpu.cpu_device_count = options.num_nodes * options.devices_per_process;
    cpu.collectives = MakeTcpCollectives(std::move(store), options.address);
  }
  XLAZY_ASSIGN(std::unique_ptr<xla::PjRtClient> client, xla::GetXlaPjrtCpuClient(std::move(cpu)));
  args->client = new PJRT_Client(std::move(client), std::move(counts));
  return absl::OkStatus();
}

absl::Status Client_Destroy(PJRT_Client_Destroy_Args* args) {
  delete args->client;
  return absl::OkStatus();
}

absl::Status Client_PlatformName(PJRT_Client_PlatformName_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ANSWER_TEXT(args, platform_name, args->client->client->platform_name());
  return absl::OkStatus();
}

absl::Status Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ANSWER_TEXT(args, platform_version, args->client->client->platform_version());
  return absl::OkStatus();
}

absl::Status Client_ProcessIndex(PJRT_Client_ProcessIndex_Args* args) {
  XLAZY_NEED(args->client);
  args->process_index = args->client->client->process_index();
  return absl::OkStatus();
}

absl::Status Client_TopologyDescription(PJRT_Client_TopologyDescription_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_TRY(args->client->topology.status());
  args->topology = args->client->topology->get();
  return absl::OkStatus();
}

absl::Status Client_Devices(PJRT_Client_Devices_Args* args) {
  XLAZY_NEED(args->client);
  args->devices = args->client->devices.data();
  args->num_devices = args->client->devices.size();
  return absl::OkStatus();
}

absl::Status Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  XLAZY_NEED(args->client);
  args->addressable_devices = args->client->addressable_devices.data();
  args->num_addressable_devices = args->client->addressable_devices.size();
  return absl::OkStatus();
}

absl::Status Client_AddressableMemories(PJRT_Client_AddressableMemories_Args* args) {
  XLAZY_NEED(args->client);
  args->addressable_memories = args->client->addressable_memories.data();
  args->num_addressable_memories = args->client->addressable_memories.size();
  return absl::OkStatus();
}

absl::Status Client_LookupDevice(PJRT_Client_LookupDevice_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::PjRtDevice * device, args->client->client->LookupDevice(xla::PjRtGlobalDeviceId(args->id)));
  args->device = args->client->Find(device);
  return absl::OkStatus();
}

absl::Status Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_ASSIGN(xla::PjRtDevice * device,
               args->client->client->LookupAddressableDevice(xla::PjRtLocalDeviceId(args->local_hardware_id)));
  args->addressable_device = args->client->Find(device);
  return absl::OkStatus();
}

absl::Status Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args) {
  XLAZY_NEED(args->client);
  XLAZY_NEED(args->default_assignment);
  int replicas = args->num_replicas, partitions = args->num_partitions;
  if (replicas < 1 || partitions < 1) return absl::InvalidArgumentError("replicas and partitions must be at least 1");
  if (args->default_assignment_size < static_cast<size_t>(replicas) * partitions) {
    return absl::FailedPreconditionError(absl::StrCat("default_assignment has room for ", args->default_assignment_size,
                                                      " devices, needed are ", replicas, " x ", partitions));
  }
  XLAZY_ASSIGN(xla::DeviceAssignment assignment, args->client->client->GetDefaultDeviceAssignment(replicas, partitions));
  int* out = args->default_assignment;
  for (int replica = 0; replica < replicas; ++replica) {
    for (int partition = 0; partition < partitions; ++partition) *out++ = assignment(replica, partition);
  }
  return absl::OkStatus();
}

absl::Status Client_DmaMap(PJRT_Client_DmaMap_Args* args) {
  XLAZY_NEED(args->client);
  return args->client->client->DmaMap(args->data, args->size);
}

absl::Status Client_DmaUnmap(PJRT_Client_DmaUnmap_Args* args) {
  XLAZY_NEED(args->client);
  return args->client->client->DmaUnmap(args->data);
}

}  // namespace xlazy
