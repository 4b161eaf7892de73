// The list of everything that the plugin implements: one line per entry of the C table.
//
// X(name, last) declares `absl::Status name(PJRT_<name>_Args*)` and fills the table's PJRT_<name> with a wrapper of it. `last`
// is the last field that a caller cannot do without; later fields are guarded where they are used, because callers built with
// an older header do not have them.
#pragma once

#include "absl/status/status.h"
#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_ffi_extension.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"

// clang-format off
#define XLAZY_ENTRIES(X)                                                \
  /* error.cc */                                                        \
  X(Error_GetCode, code)                                                \
  X(Plugin_Initialize, extension_start)                                 \
  X(Plugin_Attributes, num_attributes)                                  \
  /* event.cc */                                                        \
  X(Event_Destroy, event)                                               \
  X(Event_IsReady, is_ready)                                            \
  X(Event_Error, event)                                                 \
  X(Event_Await, event)                                                 \
  X(Event_OnReady, user_arg)                                            \
  X(Event_Create, event)                                                \
  X(Event_Set, error_message_size)                                      \
  /* client.cc */                                                       \
  X(Client_Create, client)                                              \
  X(Client_Destroy, client)                                             \
  X(Client_PlatformName, platform_name_size)                            \
  X(Client_PlatformVersion, platform_version_size)                      \
  X(Client_ProcessIndex, process_index)                                 \
  X(Client_TopologyDescription, topology)                               \
  X(Client_Devices, num_devices)                                        \
  X(Client_AddressableDevices, num_addressable_devices)                 \
  X(Client_LookupDevice, device)                                        \
  X(Client_LookupAddressableDevice, addressable_device)                 \
  X(Client_AddressableMemories, num_addressable_memories)               \
  X(Client_DefaultDeviceAssignment, default_assignment)                 \
  X(Client_DmaMap, size)                                                \
  X(Client_DmaUnmap, data)                                              \
  /* device.cc */                                                       \
  X(DeviceDescription_Id, id)                                           \
  X(DeviceDescription_ProcessIndex, process_index)                      \
  X(DeviceDescription_Attributes, attributes)                           \
  X(DeviceDescription_Kind, device_kind_size)                           \
  X(DeviceDescription_DebugString, debug_string_size)                   \
  X(DeviceDescription_ToString, to_string_size)                         \
  X(Device_GetDescription, device_description)                          \
  X(Device_IsAddressable, is_addressable)                               \
  X(Device_LocalHardwareId, local_hardware_id)                          \
  X(Device_AddressableMemories, num_memories)                           \
  X(Device_DefaultMemory, memory)                                       \
  X(Device_MemoryStats, bytes_in_use)                                   \
  X(Device_PoisonExecution, poisoned)                                   \
  X(Device_CreateAsyncTrackingEvent, event)                             \
  X(AsyncTrackingEvent_Destroy, event)                                  \
  X(Memory_Id, id)                                                      \
  X(Memory_Kind, kind_size)                                             \
  X(Memory_Kind_Id, kind_id)                                            \
  X(Memory_DebugString, debug_string_size)                              \
  X(Memory_ToString, to_string_size)                                    \
  X(Memory_AddressableByDevices, num_devices)                           \
  /* topology.cc */                                                     \
  X(TopologyDescription_Create, topology)                               \
  X(TopologyDescription_Destroy, topology)                              \
  X(TopologyDescription_PlatformName, platform_name_size)               \
  X(TopologyDescription_PlatformVersion, platform_version_size)         \
  X(TopologyDescription_GetDeviceDescriptions, num_descriptions)        \
  X(TopologyDescription_Serialize, serialized_topology_deleter)         \
  X(TopologyDescription_Deserialize, topology)                          \
  X(TopologyDescription_Attributes, num_attributes)                     \
  /* compile.cc */                                                      \
  X(Client_Compile, executable)                                         \
  X(Compile, executable)                                                \
  X(Executable_DeserializeAndLoad, loaded_executable)                   \
  /* executable.cc */                                                   \
  X(Executable_Destroy, executable)                                     \
  X(Executable_Name, executable_name_size)                              \
  X(Executable_NumReplicas, num_replicas)                               \
  X(Executable_NumPartitions, num_partitions)                           \
  X(Executable_NumOutputs, num_outputs)                                 \
  X(Executable_SizeOfGeneratedCodeInBytes, size_in_bytes)               \
  X(Executable_GetCostAnalysis, properties)                             \
  X(Executable_OutputMemoryKinds, memory_kind_sizes)                    \
  X(Executable_OutputElementTypes, num_output_types)                    \
  X(Executable_OutputDimensions, dim_sizes)                             \
  X(Executable_OptimizedProgram, program)                               \
  X(Executable_Serialize, serialized_executable_deleter)                \
  X(Executable_Fingerprint, executable_fingerprint_size)                \
  X(Executable_GetCompiledMemoryStats, temp_size_in_bytes)              \
  X(Executable_GetCompileOptions, serialized_compile_options_deleter)   \
  X(LoadedExecutable_Destroy, executable)                               \
  X(LoadedExecutable_GetExecutable, executable)                         \
  X(LoadedExecutable_AddressableDevices, num_addressable_devices)       \
  X(LoadedExecutable_Delete, executable)                                \
  X(LoadedExecutable_IsDeleted, is_deleted)                             \
  X(LoadedExecutable_Fingerprint, executable_fingerprint_size)          \
  X(LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter) \
  /* execute.cc */                                                      \
  X(LoadedExecutable_Execute, device_complete_events)                   \
  X(ExecuteContext_Create, context)                                     \
  X(ExecuteContext_Destroy, context)                                    \
  /* buffer.cc */                                                       \
  X(Buffer_Destroy, buffer)                                             \
  X(Buffer_ElementType, type)                                           \
  X(Buffer_Dimensions, num_dims)                                        \
  X(Buffer_UnpaddedDimensions, num_dims)                                \
  X(Buffer_DynamicDimensionIndices, num_dynamic_dims)                   \
  X(Buffer_GetMemoryLayout, layout)                                     \
  X(Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes)                \
  X(Buffer_Device, device)                                              \
  X(Buffer_Memory, memory)                                              \
  X(Buffer_Delete, buffer)                                              \
  X(Buffer_IsDeleted, is_deleted)                                       \
  X(Buffer_IsOnCpu, is_on_cpu)                                          \
  X(Buffer_ReadyEvent, event)                                           \
  X(Buffer_UnsafePointer, buffer_pointer)                               \
  X(Buffer_IncreaseExternalReferenceCount, buffer)                      \
  X(Buffer_DecreaseExternalReferenceCount, buffer)                      \
  X(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr)            \
  X(Buffer_DonateWithControlDependency, out_buffer)                     \
  /* transfer.cc */                                                     \
  X(Client_BufferFromHostBuffer, buffer)                                \
  X(Client_CreateUninitializedBuffer, buffer)                           \
  X(Client_CreateErrorBuffer, buffer)                                   \
  X(Client_CreateViewOfDeviceBuffer, buffer)                            \
  X(Client_CreateAliasBuffer, fulfill_alias_buffer_cb)                  \
  X(Client_FulfillAliasBuffer, fulfill_alias_buffer_cb)                 \
  X(Buffer_ToHostBuffer, event)                                         \
  X(Buffer_CopyRawToHost, event)                                        \
  X(Buffer_CopyRawToHostFuture, future_ready_callback)                  \
  X(Buffer_CopyToDevice, dst_buffer)                                    \
  X(Buffer_CopyToMemory, dst_buffer)                                    \
  /* async_transfer.cc */                                               \
  X(Client_CreateBuffersForAsyncHostToDevice, transfer_manager)         \
  X(AsyncHostToDeviceTransferManager_Destroy, transfer_manager)         \
  X(AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer)    \
  X(AsyncHostToDeviceTransferManager_TransferLiteral, done_with_h2d_transfer) \
  X(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out)        \
  X(AsyncHostToDeviceTransferManager_Device, device_out)                \
  X(AsyncHostToDeviceTransferManager_BufferCount, buffer_count)         \
  X(AsyncHostToDeviceTransferManager_BufferSize, buffer_size)           \
  X(AsyncHostToDeviceTransferManager_SetBufferError, error_message_size) \
  X(AsyncHostToDeviceTransferManager_AddMetadata, num_metadata)

// In the C table, but not here: send/recv callbacks do not exist on XLA's CPU backend, and there is no coordination service
// that could tell about other processes.
#define XLAZY_UNIMPLEMENTED(X)           \
  X(CopyToDeviceStream_Destroy)          \
  X(CopyToDeviceStream_AddChunk)         \
  X(CopyToDeviceStream_TotalBytes)       \
  X(CopyToDeviceStream_GranuleSize)      \
  X(CopyToDeviceStream_CurrentBytes)     \
  X(Client_UpdateGlobalProcessInfo)

// layouts.cc: the entries of the layouts extension, in the same form.
#define XLAZY_LAYOUT_ENTRIES(X)                                \
  X(Layouts_MemoryLayout_Destroy, layout)                      \
  X(Layouts_MemoryLayout_Serialize, serialized_layout_deleter) \
  X(Layouts_PJRT_Client_GetDefaultLayout, layout)              \
  X(Layouts_PJRT_Buffer_MemoryLayout, layout)                  \
  X(Layouts_PJRT_Topology_GetDefaultLayout, layout)            \
  X(Layouts_PJRT_Executable_GetOutputLayouts, layouts)

// ffi.cc, execute.cc: the entries of the FFI extension. X(name, last, its name in the extension's struct)
#define XLAZY_FFI_ENTRIES(X)                              \
  X(FFI_Type_Register, type_info, type_register)          \
  X(FFI_UserData_Add, user_data, user_data_add)           \
  X(FFI_Register_Handler, platform_name_size, register_handler)
// clang-format on

namespace xlazy {

#define XLAZY_DECLARE(name, last, ...) absl::Status name(PJRT_##name##_Args* args);
XLAZY_ENTRIES(XLAZY_DECLARE)
XLAZY_LAYOUT_ENTRIES(XLAZY_DECLARE)
XLAZY_FFI_ENTRIES(XLAZY_DECLARE)
#undef XLAZY_DECLARE

// The two entries that return nothing and so cannot fail.
void Error_Destroy(PJRT_Error_Destroy_Args* args);
void Error_Message(PJRT_Error_Message_Args* args);

}  // namespace xlazy
