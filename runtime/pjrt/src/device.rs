//! Devices of a client. What does not change is read once, when the client is created.
use crate::api::{Api, Borrowed};
use crate::c::{self, PJRT_Device, Struct};
use crate::topology::DeviceDescription;
use crate::{Client, Code, Result, Value};
use std::fmt;

/// A device of a client; clones are the same device.
#[derive(Clone)]
pub struct Device {
    client: Client,
    index: usize,
}

pub(crate) struct DeviceInfo {
    pub raw: Borrowed<PJRT_Device>,
    pub description: DeviceDescription,
    local_hardware_id: i32,
    is_addressable: bool,
}

impl DeviceInfo {
    pub fn read(api: &'static Api, raw: &*mut PJRT_Device) -> Result<DeviceInfo> {
        let raw = Borrowed::new("PJRT_Client_Devices", "a device", *raw)?;
        let mut description = c::PJRT_Device_GetDescription_Args { device: raw.raw(), ..Struct::zeroed() };
        let mut addressable = c::PJRT_Device_IsAddressable_Args { device: raw.raw(), ..Struct::zeroed() };
        let mut local = c::PJRT_Device_LocalHardwareId_Args { device: raw.raw(), ..Struct::zeroed() };
        // SAFETY: the device came from the client, which is alive.
        let has_local_id = unsafe {
            api.call(&mut description)?;
            api.call(&mut addressable)?;
            // Some plugins give an error for a device of another process.
            api.call(&mut local).is_ok()
        };
        Ok(DeviceInfo {
            raw,
            description: DeviceDescription::read(api, description.device_description)?,
            local_hardware_id: if has_local_id { local.local_hardware_id } else { -1 },
            is_addressable: addressable.is_addressable != 0,
        })
    }
}

impl Device {
    pub(crate) fn new(client: Client, index: usize) -> Device {
        Device { client, index }
    }

    /// The device's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The id, unique among the devices of all processes.
    pub fn id(&self) -> i32 {
        self.info().description.id()
    }

    /// The number that this machine gives the device; -1 if it is on another.
    pub fn local_hardware_id(&self) -> i32 {
        self.info().local_hardware_id
    }

    /// The process that the device belongs to.
    pub fn process_index(&self) -> i32 {
        self.info().description.process_index()
    }

    /// The kind, such as `TPU v5 lite`.
    pub fn kind(&self) -> String {
        self.info().description.kind().to_owned()
    }

    /// A long description for people who debug; `to_string()` gives the short one.
    pub fn debug_string(&self) -> Result<String> {
        self.info().description.debug_string(self.client.api())
    }

    /// What the plugin says of the device, such as its coordinates.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        self.info().description.attributes_of(self.client.api())
    }

    /// Whether this process can use the device.
    pub fn is_addressable(&self) -> bool {
        self.info().is_addressable
    }

    /// How much memory is in use; `None` where the plugin does not count.
    pub fn memory_stats(&self) -> Result<Option<MemoryStats>> {
        let mut args = c::PJRT_Device_MemoryStats_Args { device: self.raw(), ..Struct::zeroed() };
        // SAFETY: the device lives as long as its client.
        match unsafe { self.client.api().call(&mut args) } {
            Err(e) if e.code == Code::Unimplemented => return Ok(None),
            other => other?,
        }
        let given = |value: i64, is_set: u8| (is_set != 0).then_some(value);
        Ok(Some(MemoryStats {
            bytes_in_use: args.bytes_in_use,
            peak_bytes_in_use: given(args.peak_bytes_in_use, args.peak_bytes_in_use_is_set),
            num_allocs: given(args.num_allocs, args.num_allocs_is_set),
            largest_alloc_size: given(args.largest_alloc_size, args.largest_alloc_size_is_set),
            bytes_limit: given(args.bytes_limit, args.bytes_limit_is_set),
            bytes_reserved: given(args.bytes_reserved, args.bytes_reserved_is_set),
            peak_bytes_reserved: given(args.peak_bytes_reserved, args.peak_bytes_reserved_is_set),
            bytes_reservable_limit: given(args.bytes_reservable_limit, args.bytes_reservable_limit_is_set),
            largest_free_block_bytes: given(args.largest_free_block_bytes, args.largest_free_block_bytes_is_set),
            pool_bytes: given(args.pool_bytes, args.pool_bytes_is_set),
            peak_pool_bytes: given(args.peak_pool_bytes, args.peak_pool_bytes_is_set),
        }))
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Device {
        self.info().raw.raw()
    }

    fn info(&self) -> &DeviceInfo {
        self.client.device_info(self.index)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.info().description.text())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Device({} {}, {self})", self.kind(), self.id())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.index == other.index && self.client.is(&other.client)
    }
}

impl Eq for Device {}

/// How a device's memory is used, in bytes; `None` where the plugin does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MemoryStats {
    pub bytes_in_use: i64,
    pub peak_bytes_in_use: Option<i64>,
    pub num_allocs: Option<i64>,
    pub largest_alloc_size: Option<i64>,
    pub bytes_limit: Option<i64>,
    pub bytes_reserved: Option<i64>,
    pub peak_bytes_reserved: Option<i64>,
    pub bytes_reservable_limit: Option<i64>,
    pub largest_free_block_bytes: Option<i64>,
    pub pool_bytes: Option<i64>,
    pub peak_pool_bytes: Option<i64>,
}
