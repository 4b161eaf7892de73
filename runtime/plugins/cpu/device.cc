// Devices, their descriptions, and the memories attached to them.

#include "handles.h"
#include "memory_counts.h"

namespace xlazy {

absl::Status DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args) {
  XLAZY_NEED(args->device_description);
  args->id = args->device_description->description->id();
  return absl::OkStatus();
}

absl::Status DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  XLAZY_NEED(args->device_description);
  args->process_index = args->device_description->description->process_index();
  return absl::OkStatus();
}

absl::Status DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args* args) {
  XLAZY_NEED(args->device_description);
  args->attributes = args->device_description->attributes.data();
  args->num_attributes = args->device_description->attributes.size();
  return absl::OkStatus();
}

absl::Status DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* args) {
  XLAZY_NEED(args->device_description);
  XLAZY_ANSWER_TEXT(args, device_kind, args->device_description->description->device_kind());
  return absl::OkStatus();
}

absl::Status DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args* args) {
  XLAZY_NEED(args->device_description);
  XLAZY_ANSWER_TEXT(args, debug_string, args->device_description->description->DebugString());
  return absl::OkStatus();
}

absl::Status DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args* args) {
  XLAZY_NEED(args->device_description);
  XLAZY_ANSWER_TEXT(args, to_string, args->device_description->description->ToString());
  return absl::OkStatus();
}

absl::Status Device_GetDescription(PJRT_Device_GetDescription_Args* args) {
  XLAZY_NEED(args->device);
  args->device_description = &args->device->description;
  return absl::OkStatus();
}

absl::Status Device_IsAddressable(PJRT_Device_IsAddressable_Args* args) {
  XLAZY_NEED(args->device);
  args->is_addressable = args->device->device->IsAddressable();
  return absl::OkStatus();
}

absl::Status Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args* args) {
  XLAZY_NEED(args->device);
  args->local_hardware_id = args->device->device->local_hardware_id().value();
  return absl::OkStatus();
}

absl::Status Device_AddressableMemories(PJRT_Device_AddressableMemories_Args* args) {
  XLAZY_NEED(args->device);
  args->memories = args->device->memories.data();
  args->num_memories = args->device->memories.size();
  return absl::OkStatus();
}

absl::Status Device_DefaultMemory(PJRT_Device_DefaultMemory_Args* args) {
  XLAZY_NEED(args->device);
  XLAZY_ASSIGN(xla::PjRtMemorySpace * space, args->device->device->default_memory_space());
  args->memory = args->device->client->Find(space);
  return absl::OkStatus();
}

absl::Status Device_MemoryStats(PJRT_Device_MemoryStats_Args* args) {
  XLAZY_NEED(args->device);
  const MemoryCounts& counts = *args->device->client->memory_counts;
  args->bytes_in_use = counts.in_use.load();
  XLAZY_SET(args, peak_bytes_in_use, counts.peak.load());
  XLAZY_SET(args, peak_bytes_in_use_is_set, true);
  XLAZY_SET(args, num_allocs, counts.allocations.load());
  XLAZY_SET(args, num_allocs_is_set, true);
  XLAZY_SET(args, largest_alloc_size, counts.largest.load());
  XLAZY_SET(args, largest_alloc_size_is_set, true);
  // What a pool would tell: there is none, and no limit but the host's.
  XLAZY_SET(args, bytes_limit_is_set, false);
  XLAZY_SET(args, bytes_reserved_is_set, false);
  XLAZY_SET(args, peak_bytes_reserved_is_set, false);
  XLAZY_SET(args, bytes_reservable_limit_is_set, false);
  XLAZY_SET(args, largest_free_block_bytes_is_set, false);
  XLAZY_SET(args, pool_bytes_is_set, false);
  XLAZY_SET(args, peak_pool_bytes_is_set, false);
  return absl::OkStatus();
}

absl::Status Device_PoisonExecution(PJRT_Device_PoisonExecution_Args* args) {
  XLAZY_NEED(args->device);
  absl::Status error = FromErrorCode(args->error_code, args->error_message, args->error_message_size);
  XLAZY_ASSIGN(args->poisoned, args->device->device->PoisonExecution(args->launch_id, std::move(error)));
  return absl::OkStatus();
}

absl::Status Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args* args) {
  XLAZY_NEED(args->device);
  absl::string_view description(args->description, args->description_size);
  // XLA's CPU devices answer null: they track nothing. The caller still gets a handle that it may destroy.
  args->event = new PJRT_AsyncTrackingEvent{args->device->device->CreateAsyncTrackingEvent(description)};
  return absl::OkStatus();
}

absl::Status AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args* args) {
  delete args->event;
  return absl::OkStatus();
}

absl::Status Memory_Id(PJRT_Memory_Id_Args* args) {
  XLAZY_NEED(args->memory);
  args->id = args->memory->space->id();
  return absl::OkStatus();
}

absl::Status Memory_Kind(PJRT_Memory_Kind_Args* args) {
  XLAZY_NEED(args->memory);
  XLAZY_ANSWER_TEXT(args, kind, args->memory->space->kind());
  return absl::OkStatus();
}

absl::Status Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* args) {
  XLAZY_NEED(args->memory);
  args->kind_id = args->memory->space->kind_id();
  return absl::OkStatus();
}

absl::Status Memory_DebugString(PJRT_Memory_DebugString_Args* args) {
  XLAZY_NEED(args->memory);
  XLAZY_ANSWER_TEXT(args, debug_string, args->memory->space->DebugString());
  return absl::OkStatus();
}

absl::Status Memory_ToString(PJRT_Memory_ToString_Args* args) {
  XLAZY_NEED(args->memory);
  XLAZY_ANSWER_TEXT(args, to_string, args->memory->space->ToString());
  return absl::OkStatus();
}

absl::Status Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args) {
  XLAZY_NEED(args->memory);
  args->devices = args->memory->devices.data();
  args->num_devices = args->memory->devices.size();
  return absl::OkStatus();
}

}  // namespace xlazy
