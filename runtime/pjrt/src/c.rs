//! The PJRT C API, declared by hand: the structs of the calls that this crate makes, field for field, and the table of
//! entries up to the last one of them. `tests/header.rs` compares all of it with the C header.
//!
//! Out fields of C type `bool` and of enum types are declared as integers: a plugin may answer anything.
#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// The major version that this file declares; another major version has another binary interface.
pub const MAJOR: c_int = 0;
/// The minor version of the header that this file was written from.
pub const MINOR: c_int = 90;
/// 0.57 reordered the table; since then entries and fields were only added at the end.
pub const OLDEST_MINOR: c_int = 57;

/// A struct of the C API: it starts with its own size, and all zeroes is a valid value of it.
pub trait Struct: Sized {
    /// Size up to the end of the last field, as the C header counts it: without the padding that follows.
    const STRUCT_SIZE: usize;
    /// A value of all zeroes and null pointers with `struct_size` filled in.
    fn zeroed() -> Self;
}

/// The arguments of one call: the type names the entry of the table.
pub trait Call: Struct {
    /// The entry's name, for messages.
    const NAME: &'static str;
    /// Where in the table the entry is.
    const OFFSET: usize;
}

/// Name, size and fields of a struct as declared here, for the test that compares them with the C header.
#[derive(Clone, Debug)]
pub struct Layout {
    pub name: &'static str,
    /// `size_of`, padding included.
    pub size: usize,
    /// Size up to the end of the last field.
    pub struct_size: usize,
    /// Name, offset and size of every field.
    pub fields: Vec<(&'static str, usize, usize)>,
}

macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )* };
}

opaque! {
    PJRT_Error PJRT_Event PJRT_Client PJRT_Device PJRT_Memory PJRT_DeviceDescription PJRT_TopologyDescription
    PJRT_Executable PJRT_LoadedExecutable PJRT_Buffer PJRT_ExecuteContext
}

macro_rules! structs {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name {
                pub struct_size: usize,
                pub extension_start: *mut c_void,
                $(pub $field: $type,)*
            }

            impl Struct for $name {
                const STRUCT_SIZE: usize = {
                    let ends = [
                        offset_of!($name, extension_start) + size_of::<*mut c_void>(),
                        $(offset_of!($name, $field) + size_of::<$type>(),)*
                    ];
                    ends[ends.len() - 1]
                };

                fn zeroed() -> $name {
                    // SAFETY: every field is an integer, a raw pointer, an optional function or a union or struct of those.
                    let zeroes: $name = unsafe { std::mem::zeroed() };
                    $name { struct_size: Self::STRUCT_SIZE, ..zeroes }
                }
            }
        )*

        /// Every struct declared here, and the table.
        pub fn layouts() -> Vec<Layout> {
            vec![
                $(Layout {
                    name: stringify!($name),
                    size: size_of::<$name>(),
                    struct_size: <$name as Struct>::STRUCT_SIZE,
                    fields: vec![
                        ("struct_size", offset_of!($name, struct_size), size_of::<usize>()),
                        ("extension_start", offset_of!($name, extension_start), size_of::<*mut c_void>()),
                        $((
                            stringify!($field).trim_start_matches("r#"),
                            offset_of!($name, $field),
                            size_of::<$type>(),
                        ),)*
                    ],
                },)*
                api_layout(),
            ]
        }
    };
}

/// The value of a `PJRT_NamedValue`; its `type` says which.
#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_NamedValue_Union {
    pub string_value: *const c_char,
    pub int64_value: i64,
    pub int64_array_value: *const i64,
    pub float_value: f32,
    pub bool_value: u8,
}

pub type OnReady = unsafe extern "C" fn(*mut PJRT_Error, *mut c_void);
pub type Deleter = unsafe extern "C" fn(*mut c_void);
pub type CallbackError = unsafe extern "C" fn(c_uint, *const c_char, usize) -> *mut PJRT_Error;
pub type StoreGet = unsafe extern "C" fn(*mut PJRT_KeyValueGetCallback_Args) -> *mut PJRT_Error;
pub type StoreTryGet = unsafe extern "C" fn(*mut PJRT_KeyValueTryGetCallback_Args) -> *mut PJRT_Error;
pub type StorePut = unsafe extern "C" fn(*mut PJRT_KeyValuePutCallback_Args) -> *mut PJRT_Error;
pub type StoreFree = unsafe extern "C" fn(*mut c_char);

structs! {
    PJRT_Api_Version { major_version: c_int, minor_version: c_int }

    PJRT_Error_Destroy_Args { error: *mut PJRT_Error }
    PJRT_Error_Message_Args { error: *const PJRT_Error, message: *const c_char, message_size: usize }
    PJRT_Error_GetCode_Args { error: *const PJRT_Error, code: c_uint }

    // In the header the value is an unnamed union; int64_value is one of its members.
    PJRT_NamedValue {
        name: *const c_char, name_size: usize, r#type: c_uint, int64_value: PJRT_NamedValue_Union, value_size: usize,
    }

    PJRT_Plugin_Initialize_Args {}
    PJRT_Plugin_Attributes_Args { attributes: *const PJRT_NamedValue, num_attributes: usize }

    PJRT_Event_Destroy_Args { event: *mut PJRT_Event }
    PJRT_Event_IsReady_Args { event: *mut PJRT_Event, is_ready: u8 }
    PJRT_Event_Await_Args { event: *mut PJRT_Event }
    PJRT_Event_OnReady_Args { event: *mut PJRT_Event, callback: Option<OnReady>, user_arg: *mut c_void }

    PJRT_KeyValueGetCallback_Args {
        key: *const c_char, key_size: usize, timeout_in_ms: c_int, callback_error: *mut Option<CallbackError>,
        user_arg: *mut c_void, value: *mut c_char, value_size: usize, value_deleter_callback: Option<StoreFree>,
    }
    PJRT_KeyValueTryGetCallback_Args {
        key: *const c_char, key_size: usize, callback_error: *mut Option<CallbackError>, user_arg: *mut c_void,
        value: *mut c_char, value_size: usize, value_deleter_callback: Option<StoreFree>,
    }
    PJRT_KeyValuePutCallback_Args {
        key: *const c_char, key_size: usize, value: *const c_char, value_size: usize,
        callback_error: *mut Option<CallbackError>, user_arg: *mut c_void,
    }

    PJRT_Client_Create_Args {
        create_options: *const PJRT_NamedValue, num_options: usize,
        kv_get_callback: Option<StoreGet>, kv_get_user_arg: *mut c_void,
        kv_put_callback: Option<StorePut>, kv_put_user_arg: *mut c_void,
        client: *mut PJRT_Client,
        kv_try_get_callback: Option<StoreTryGet>, kv_try_get_user_arg: *mut c_void,
    }
    PJRT_Client_Destroy_Args { client: *mut PJRT_Client }
    PJRT_Client_PlatformName_Args { client: *mut PJRT_Client, platform_name: *const c_char, platform_name_size: usize }
    PJRT_Client_PlatformVersion_Args {
        client: *mut PJRT_Client, platform_version: *const c_char, platform_version_size: usize,
    }
    PJRT_Client_ProcessIndex_Args { client: *mut PJRT_Client, process_index: c_int }
    PJRT_Client_TopologyDescription_Args { client: *mut PJRT_Client, topology: *mut PJRT_TopologyDescription }
    PJRT_Client_Devices_Args { client: *mut PJRT_Client, devices: *const *mut PJRT_Device, num_devices: usize }
    PJRT_Client_AddressableDevices_Args {
        client: *mut PJRT_Client, addressable_devices: *const *mut PJRT_Device, num_addressable_devices: usize,
    }
    PJRT_Program { code: *mut c_char, code_size: usize, format: *const c_char, format_size: usize }
    PJRT_Client_Compile_Args {
        client: *mut PJRT_Client, program: *const PJRT_Program, compile_options: *const c_char,
        compile_options_size: usize, executable: *mut PJRT_LoadedExecutable,
    }

    PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: *const i64, minor_to_major_size: usize, tile_dims: *const i64, tile_dim_sizes: *const usize,
        num_tiles: usize,
    }
    // In the header `tiled` is the larger member of an unnamed union.
    PJRT_Buffer_MemoryLayout { tiled: PJRT_Buffer_MemoryLayout_Tiled, r#type: c_uint }
    PJRT_Client_BufferFromHostBuffer_Args {
        client: *mut PJRT_Client, data: *const c_void, r#type: c_uint, dims: *const i64, num_dims: usize,
        byte_strides: *const i64, num_byte_strides: usize, host_buffer_semantics: c_uint, device: *mut PJRT_Device,
        memory: *mut PJRT_Memory, device_layout: *mut PJRT_Buffer_MemoryLayout, done_with_host_buffer: *mut PJRT_Event,
        buffer: *mut PJRT_Buffer,
    }

    PJRT_DeviceDescription_Id_Args { device_description: *mut PJRT_DeviceDescription, id: c_int }
    PJRT_DeviceDescription_ProcessIndex_Args { device_description: *mut PJRT_DeviceDescription, process_index: c_int }
    PJRT_DeviceDescription_Attributes_Args {
        device_description: *mut PJRT_DeviceDescription, num_attributes: usize, attributes: *const PJRT_NamedValue,
    }
    PJRT_DeviceDescription_Kind_Args {
        device_description: *mut PJRT_DeviceDescription, device_kind: *const c_char, device_kind_size: usize,
    }
    PJRT_DeviceDescription_DebugString_Args {
        device_description: *mut PJRT_DeviceDescription, debug_string: *const c_char, debug_string_size: usize,
    }
    PJRT_DeviceDescription_ToString_Args {
        device_description: *mut PJRT_DeviceDescription, to_string: *const c_char, to_string_size: usize,
    }
    PJRT_Device_GetDescription_Args { device: *mut PJRT_Device, device_description: *mut PJRT_DeviceDescription }
    PJRT_Device_IsAddressable_Args { device: *mut PJRT_Device, is_addressable: u8 }
    PJRT_Device_LocalHardwareId_Args { device: *mut PJRT_Device, local_hardware_id: c_int }
    PJRT_Device_MemoryStats_Args {
        device: *mut PJRT_Device,
        bytes_in_use: i64,
        peak_bytes_in_use: i64, peak_bytes_in_use_is_set: u8,
        num_allocs: i64, num_allocs_is_set: u8,
        largest_alloc_size: i64, largest_alloc_size_is_set: u8,
        bytes_limit: i64, bytes_limit_is_set: u8,
        bytes_reserved: i64, bytes_reserved_is_set: u8,
        peak_bytes_reserved: i64, peak_bytes_reserved_is_set: u8,
        bytes_reservable_limit: i64, bytes_reservable_limit_is_set: u8,
        largest_free_block_bytes: i64, largest_free_block_bytes_is_set: u8,
        pool_bytes: i64, pool_bytes_is_set: u8,
        peak_pool_bytes: i64, peak_pool_bytes_is_set: u8,
    }

    PJRT_Executable_Destroy_Args { executable: *mut PJRT_Executable }
    PJRT_Executable_Name_Args {
        executable: *mut PJRT_Executable, executable_name: *const c_char, executable_name_size: usize,
    }
    PJRT_Executable_NumOutputs_Args { executable: *mut PJRT_Executable, num_outputs: usize }
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args { executable: *mut PJRT_Executable, size_in_bytes: i64 }
    PJRT_Executable_Fingerprint_Args {
        executable: *mut PJRT_Executable, executable_fingerprint: *const c_char, executable_fingerprint_size: usize,
    }
    PJRT_Executable_GetCostAnalysis_Args {
        executable: *mut PJRT_Executable, num_properties: usize, properties: *const PJRT_NamedValue,
    }
    PJRT_Executable_GetCompiledMemoryStats_Args {
        executable: *mut PJRT_Executable,
        generated_code_size_in_bytes: i64, argument_size_in_bytes: i64, output_size_in_bytes: i64,
        alias_size_in_bytes: i64, temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64, host_argument_size_in_bytes: i64, host_output_size_in_bytes: i64,
        host_alias_size_in_bytes: i64, host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64, total_size_in_bytes: i64,
    }
    PJRT_Executable_OutputElementTypes_Args {
        executable: *mut PJRT_Executable, output_types: *mut c_uint, num_output_types: usize,
    }
    PJRT_Executable_OutputDimensions_Args {
        executable: *mut PJRT_Executable, num_outputs: usize, dims: *const i64, dim_sizes: *const usize,
    }
    PJRT_Executable_OptimizedProgram_Args { executable: *mut PJRT_Executable, program: *mut PJRT_Program }
    PJRT_Executable_Serialize_Args {
        executable: *const PJRT_Executable, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_executable: *mut c_void, serialized_executable_deleter: Option<Deleter>,
    }
    PJRT_Executable_DeserializeAndLoad_Args {
        client: *mut PJRT_Client, serialized_executable: *const c_char, serialized_executable_size: usize,
        loaded_executable: *mut PJRT_LoadedExecutable, overridden_serialized_compile_options: *const c_char,
        overridden_serialized_compile_options_size: usize,
    }

    PJRT_LoadedExecutable_Destroy_Args { executable: *mut PJRT_LoadedExecutable }
    PJRT_LoadedExecutable_GetExecutable_Args {
        loaded_executable: *mut PJRT_LoadedExecutable, executable: *mut PJRT_Executable,
    }
    PJRT_LoadedExecutable_AddressableDevices_Args {
        executable: *mut PJRT_LoadedExecutable, addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_ExecuteOptions {
        send_callbacks: *mut *mut c_void, recv_callbacks: *mut *mut c_void, num_send_ops: usize, num_recv_ops: usize,
        launch_id: c_int, non_donatable_input_indices: *const i64, num_non_donatable_input_indices: usize,
        context: *mut PJRT_ExecuteContext, call_location: *const c_char, num_tasks: usize, task_ids: *mut c_int,
        incarnation_ids: *mut i64,
    }
    PJRT_LoadedExecutable_Execute_Args {
        executable: *mut PJRT_LoadedExecutable, options: *mut PJRT_ExecuteOptions,
        argument_lists: *const *const *mut PJRT_Buffer, num_devices: usize, num_args: usize,
        output_lists: *const *mut *mut PJRT_Buffer, device_complete_events: *mut *mut PJRT_Event,
        execute_device: *mut PJRT_Device,
    }

    PJRT_Buffer_Destroy_Args { buffer: *mut PJRT_Buffer }
    PJRT_Buffer_ElementType_Args { buffer: *mut PJRT_Buffer, r#type: c_uint }
    PJRT_Buffer_Dimensions_Args { buffer: *mut PJRT_Buffer, dims: *const i64, num_dims: usize }
    PJRT_Buffer_GetMemoryLayout_Args { buffer: *mut PJRT_Buffer, layout: PJRT_Buffer_MemoryLayout }
    PJRT_Buffer_ToHostBuffer_Args {
        src: *mut PJRT_Buffer, host_layout: *mut PJRT_Buffer_MemoryLayout, dst: *mut c_void, dst_size: usize,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: *mut PJRT_Buffer, on_device_size_in_bytes: usize }
    PJRT_Buffer_Delete_Args { buffer: *mut PJRT_Buffer }
    PJRT_Buffer_IsDeleted_Args { buffer: *mut PJRT_Buffer, is_deleted: u8 }
    PJRT_Buffer_CopyToDevice_Args { buffer: *mut PJRT_Buffer, dst_device: *mut PJRT_Device, dst_buffer: *mut PJRT_Buffer }
    PJRT_Buffer_Device_Args { buffer: *mut PJRT_Buffer, device: *mut PJRT_Device }
    PJRT_Buffer_ReadyEvent_Args { buffer: *mut PJRT_Buffer, event: *mut PJRT_Event }

    PJRT_TopologyDescription_Create_Args {
        topology_name: *const c_char, topology_name_size: usize, create_options: *const PJRT_NamedValue,
        num_options: usize, topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_Destroy_Args { topology: *mut PJRT_TopologyDescription }
    PJRT_TopologyDescription_PlatformName_Args {
        topology: *const PJRT_TopologyDescription, platform_name: *const c_char, platform_name_size: usize,
    }
    PJRT_TopologyDescription_PlatformVersion_Args {
        topology: *mut PJRT_TopologyDescription, platform_version: *const c_char, platform_version_size: usize,
    }
    PJRT_TopologyDescription_GetDeviceDescriptions_Args {
        topology: *const PJRT_TopologyDescription, descriptions: *const *mut PJRT_DeviceDescription,
        num_descriptions: usize,
    }
    PJRT_TopologyDescription_Attributes_Args {
        topology: *mut PJRT_TopologyDescription, attributes: *const PJRT_NamedValue, num_attributes: usize,
    }
    PJRT_Compile_Args {
        topology: *const PJRT_TopologyDescription, program: *const PJRT_Program, compile_options: *const c_char,
        compile_options_size: usize, client: *mut PJRT_Client, executable: *mut PJRT_Executable,
    }
}

macro_rules! table {
    ($($entry:ident $(($args:ident))?)*) => {
        /// The table of entries, in the header's order. Entries without arguments here are never called.
        #[repr(C)]
        pub struct PJRT_Api {
            pub struct_size: usize,
            pub extension_start: *mut c_void,
            pub pjrt_api_version: PJRT_Api_Version,
            $(pub $entry: *const c_void,)*
        }

        $($(
            impl Call for $args {
                const NAME: &'static str = stringify!($entry);
                const OFFSET: usize = offset_of!(PJRT_Api, $entry);
            }
        )?)*

        fn api_layout() -> Layout {
            Layout {
                name: "PJRT_Api",
                size: size_of::<PJRT_Api>(),
                struct_size: size_of::<PJRT_Api>(),
                fields: vec![
                    ("struct_size", offset_of!(PJRT_Api, struct_size), size_of::<usize>()),
                    ("extension_start", offset_of!(PJRT_Api, extension_start), size_of::<*mut c_void>()),
                    ("pjrt_api_version", offset_of!(PJRT_Api, pjrt_api_version), size_of::<PJRT_Api_Version>()),
                    $((stringify!($entry), offset_of!(PJRT_Api, $entry), size_of::<*const c_void>()),)*
                ],
            }
        }
    };
}

table! {
    PJRT_Error_Destroy(PJRT_Error_Destroy_Args)
    PJRT_Error_Message(PJRT_Error_Message_Args)
    PJRT_Error_GetCode(PJRT_Error_GetCode_Args)
    PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args)
    PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args)
    PJRT_Event_Destroy(PJRT_Event_Destroy_Args)
    PJRT_Event_IsReady(PJRT_Event_IsReady_Args)
    PJRT_Event_Error
    PJRT_Event_Await(PJRT_Event_Await_Args)
    PJRT_Event_OnReady(PJRT_Event_OnReady_Args)
    PJRT_Client_Create(PJRT_Client_Create_Args)
    PJRT_Client_Destroy(PJRT_Client_Destroy_Args)
    PJRT_Client_PlatformName(PJRT_Client_PlatformName_Args)
    PJRT_Client_ProcessIndex(PJRT_Client_ProcessIndex_Args)
    PJRT_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args)
    PJRT_Client_Devices(PJRT_Client_Devices_Args)
    PJRT_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args)
    PJRT_Client_LookupDevice
    PJRT_Client_LookupAddressableDevice
    PJRT_Client_AddressableMemories
    PJRT_Client_Compile(PJRT_Client_Compile_Args)
    PJRT_Client_DefaultDeviceAssignment
    PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args)
    PJRT_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args)
    PJRT_DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args)
    PJRT_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args)
    PJRT_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args)
    PJRT_DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args)
    PJRT_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args)
    PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args)
    PJRT_Device_IsAddressable(PJRT_Device_IsAddressable_Args)
    PJRT_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args)
    PJRT_Device_AddressableMemories
    PJRT_Device_DefaultMemory
    PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args)
    PJRT_Memory_Id
    PJRT_Memory_Kind
    PJRT_Memory_DebugString
    PJRT_Memory_ToString
    PJRT_Memory_AddressableByDevices
    PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args)
    PJRT_Executable_Name(PJRT_Executable_Name_Args)
    PJRT_Executable_NumReplicas
    PJRT_Executable_NumPartitions
    PJRT_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args)
    PJRT_Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args)
    PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args)
    PJRT_Executable_OutputMemoryKinds
    PJRT_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args)
    PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args)
    PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args)
    PJRT_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args)
    PJRT_LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args)
    PJRT_LoadedExecutable_Delete
    PJRT_LoadedExecutable_IsDeleted
    PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args)
    PJRT_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args)
    PJRT_LoadedExecutable_Fingerprint
    PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args)
    PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args)
    PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args)
    PJRT_Buffer_UnpaddedDimensions
    PJRT_Buffer_DynamicDimensionIndices
    PJRT_Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args)
    PJRT_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args)
    PJRT_Buffer_Device(PJRT_Buffer_Device_Args)
    PJRT_Buffer_Memory
    PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args)
    PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args)
    PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args)
    PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args)
    PJRT_Buffer_IsOnCpu
    PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args)
    PJRT_Buffer_UnsafePointer
    PJRT_Buffer_IncreaseExternalReferenceCount
    PJRT_Buffer_DecreaseExternalReferenceCount
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer
    PJRT_CopyToDeviceStream_Destroy
    PJRT_CopyToDeviceStream_AddChunk
    PJRT_CopyToDeviceStream_TotalBytes
    PJRT_CopyToDeviceStream_GranuleSize
    PJRT_CopyToDeviceStream_CurrentBytes
    PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args)
    PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args)
    PJRT_TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args)
    PJRT_TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args)
    PJRT_TopologyDescription_GetDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args)
    PJRT_TopologyDescription_Serialize
    PJRT_TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args)
    PJRT_Compile(PJRT_Compile_Args)
    PJRT_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args)
    PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args)
    PJRT_Buffer_CopyToMemory
    PJRT_Client_CreateViewOfDeviceBuffer
    PJRT_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args)
    PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args)
    PJRT_Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args)
}

/// Values of `PJRT_NamedValue_Type`.
pub mod named_value {
    pub const STRING: u32 = 0;
    pub const INT64: u32 = 1;
    pub const INT64_LIST: u32 = 2;
    pub const FLOAT: u32 = 3;
    pub const BOOL: u32 = 4;
}

/// Values of `PJRT_HostBufferSemantics`.
pub mod host_buffer {
    pub const IMMUTABLE_ONLY_DURING_CALL: u32 = 0;
    pub const IMMUTABLE_UNTIL_TRANSFER_COMPLETES: u32 = 1;
    pub const IMMUTABLE_ZERO_COPY: u32 = 2;
}

/// The value of `PJRT_Buffer_MemoryLayout_Type` that this crate uses.
pub const LAYOUT_TILED: u32 = 0;

/// Every enumerator that this crate uses under its C name, for the test that compares them with the C header.
pub fn enumerators() -> Vec<(String, u32)> {
    let mut all = vec![
        ("PJRT_NamedValue_kString".to_owned(), named_value::STRING),
        ("PJRT_NamedValue_kInt64".to_owned(), named_value::INT64),
        ("PJRT_NamedValue_kInt64List".to_owned(), named_value::INT64_LIST),
        ("PJRT_NamedValue_kFloat".to_owned(), named_value::FLOAT),
        ("PJRT_NamedValue_kBool".to_owned(), named_value::BOOL),
        ("PJRT_HostBufferSemantics_kImmutableOnlyDuringCall".to_owned(), host_buffer::IMMUTABLE_ONLY_DURING_CALL),
        (
            "PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes".to_owned(),
            host_buffer::IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
        ),
        ("PJRT_HostBufferSemantics_kImmutableZeroCopy".to_owned(), host_buffer::IMMUTABLE_ZERO_COPY),
        ("PJRT_Buffer_MemoryLayout_Type_Tiled".to_owned(), LAYOUT_TILED),
        ("PJRT_API_MAJOR".to_owned(), MAJOR as u32),
    ];
    all.extend(crate::BufferType::ALL.iter().map(|t| (format!("PJRT_Buffer_Type_{}", t.name()), *t as u32)));
    all.extend(crate::Code::NAMED.iter().map(|c| (format!("PJRT_Error_Code_{c}"), c.number() as u32)));
    all
}
