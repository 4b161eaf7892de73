//! A client: a plugin's hold on its devices.
use crate::api::{self, Api, Borrowed, Handle, Slice, resource};
use crate::c::{self, Call, PJRT_Client, PJRT_Device, Struct};
use crate::device::DeviceInfo;
use crate::{
    Buffer, BufferType, CompileOptions, Device, Error, KeyValueStore, LoadedExecutable, Plugin, Program, Result,
    Topology, Value, buffer, event, store, value,
};
use std::mem::ManuallyDrop;
use std::sync::Arc;

resource!(PJRT_Client, "the client", PJRT_Client_Destroy_Args, client, CLIENTS);

/// A client of a plugin; clones are the same client.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    plugin: Plugin,
    raw: Borrowed<PJRT_Client>,
    platform_name: String,
    platform_version: String,
    process_index: i32,
    devices: Vec<DeviceInfo>,
    addressable: Vec<usize>,
    owned: ManuallyDrop<Owned>,
}

/// What has to be destroyed, in this order.
struct Owned {
    _client: Handle<PJRT_Client>,
    _store: Option<Box<store::Shared>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: `owned` is not touched again.
        let owned = unsafe { ManuallyDrop::take(&mut self.owned) };
        if event::in_callback() {
            // If there is no thread to be had the client leaks, which is better than waiting for ourselves forever.
            let owned = ManuallyDrop::new(owned);
            let destroy = move || drop(ManuallyDrop::into_inner(owned));
            let _ = std::thread::Builder::new().name("pjrt-destroy".into()).spawn(destroy);
        }
    }
}

pub(crate) fn create(
    plugin: Plugin,
    options: &[(&str, Value)],
    store: Option<Arc<dyn KeyValueStore>>,
) -> Result<Client> {
    let api = plugin.api;
    let call = c::PJRT_Client_Create_Args::NAME;
    let options = value::to_c(options);
    let store = store.map(|store| Box::new(store::Shared(store)));
    let mut args =
        c::PJRT_Client_Create_Args { create_options: options.as_ptr(), num_options: options.len(), ..Struct::zeroed() };
    if let Some(store) = &store {
        store::install(store, &mut args);
    }
    // SAFETY: the options outlive the call, the store outlives the client.
    let client = unsafe {
        api.call(&mut args)?;
        Handle::own(api, call, args.client)?
    };
    let raw = Borrowed::new(call, "the client", client.raw())?;
    let mut devices = vec![];
    for device in all_devices(api, raw)? {
        devices.push(DeviceInfo::read(api, device)?);
    }
    let addressable = addressable_devices(api, raw)?;
    let addressable = indices(c::PJRT_Client_AddressableDevices_Args::NAME, &devices, addressable)?;
    Ok(Client(Arc::new(Inner {
        plugin,
        raw,
        platform_name: platform_name(api, raw)?,
        platform_version: platform_version(api, raw)?,
        process_index: process_index(api, raw)?,
        devices,
        addressable,
        owned: ManuallyDrop::new(Owned { _client: client, _store: store }),
    })))
}

impl Client {
    /// The plugin that made this client.
    pub fn plugin(&self) -> Plugin {
        self.0.plugin
    }

    /// The platform, such as `cpu`, `tpu` or `cuda`.
    pub fn platform_name(&self) -> String {
        self.0.platform_name.clone()
    }

    /// The platform's version, in the plugin's words.
    pub fn platform_version(&self) -> String {
        self.0.platform_version.clone()
    }

    /// Which of several processes that work together this one is; 0 when alone.
    pub fn process_index(&self) -> i32 {
        self.0.process_index
    }

    /// All devices, those of other processes included.
    pub fn devices(&self) -> Vec<Device> {
        (0..self.0.devices.len()).map(|index| Device::new(self.clone(), index)).collect()
    }

    /// The devices that this process can use.
    pub fn addressable_devices(&self) -> Vec<Device> {
        self.0.addressable.iter().map(|index| Device::new(self.clone(), *index)).collect()
    }

    /// The topology of this client's devices.
    pub fn topology(&self) -> Result<Topology> {
        Topology::of_client(self)
    }

    /// Compiles a program and loads it on the devices that the options assign.
    ///
    /// Errors: the compiler's words about the program, or options that do not fit.
    pub fn compile(&self, program: &Program, options: &CompileOptions) -> Result<LoadedExecutable> {
        let call = c::PJRT_Client_Compile_Args::NAME;
        let options = options.checked_bytes(call)?;
        let program = program.to_c();
        let mut args = c::PJRT_Client_Compile_Args {
            client: self.raw(),
            program: &program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
            ..Struct::zeroed()
        };
        // SAFETY: client, program and options outlive the call; the executable is ours.
        let handle = unsafe {
            self.api().call(&mut args)?;
            Handle::own(self.api(), call, args.executable)?
        };
        LoadedExecutable::new(self, handle)
    }

    /// Loads an executable that [`Executable::serialize`](crate::Executable::serialize) wrote, with the same plugin version
    /// and on a machine with the same devices.
    ///
    /// Errors: the plugin cannot read it. Keep a checksum of your own beside bytes that were on disk: plugins trust them.
    pub fn deserialize(&self, bytes: &[u8]) -> Result<LoadedExecutable> {
        let call = c::PJRT_Executable_DeserializeAndLoad_Args::NAME;
        let mut args = c::PJRT_Executable_DeserializeAndLoad_Args {
            client: self.raw(),
            serialized_executable: bytes.as_ptr().cast(),
            serialized_executable_size: bytes.len(),
            ..Struct::zeroed()
        };
        // SAFETY: client and bytes outlive the call; the executable is ours.
        let handle = unsafe {
            self.api().call(&mut args)?;
            Handle::own(self.api(), call, args.loaded_executable)?
        };
        LoadedExecutable::new(self, handle)
    }

    /// Copies dense row-major `data` to `device`; the data is free again on return.
    ///
    /// Errors: `data` is not of the size that `dtype` and `dims` give, or the device cannot hold it.
    pub fn buffer_from_host(&self, data: &[u8], dtype: BufferType, dims: &[i64], device: &Device) -> Result<Buffer> {
        buffer::copy_from_host(self, data, dtype, dims, device)
    }

    /// Like [`Client::buffer_from_host`], but keeps `data` alive until the transfer is over instead of copying it first.
    pub fn buffer_from_host_owned<T>(&self, data: T, dtype: BufferType, dims: &[i64], device: &Device) -> Result<Buffer>
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        let semantics = c::host_buffer::IMMUTABLE_UNTIL_TRANSFER_COMPLETES;
        buffer::keep_from_host(self, data, dtype, dims, device, semantics)
    }

    /// Like [`Client::buffer_from_host_owned`], but a device that shares the host's memory may use `data` in place (XLA's
    /// CPU client does when it is aligned to 64 bytes); it is dropped with the buffer's memory.
    pub fn buffer_from_host_zero_copy<T>(
        &self,
        data: T,
        dtype: BufferType,
        dims: &[i64],
        device: &Device,
    ) -> Result<Buffer>
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        buffer::keep_from_host(self, data, dtype, dims, device, c::host_buffer::IMMUTABLE_ZERO_COPY)
    }

    pub(crate) fn api(&self) -> &'static Api {
        self.0.plugin.api
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Client {
        self.0.raw.raw()
    }

    pub(crate) fn is(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn device_info(&self, index: usize) -> &DeviceInfo {
        &self.0.devices[index]
    }

    /// Which of this client's devices a plugin's pointer is.
    pub(crate) fn device(&self, call: &'static str, raw: *mut PJRT_Device) -> Result<Device> {
        Ok(Device::new(self.clone(), index(call, &self.0.devices, raw)?))
    }

    /// Which of this client's devices a plugin's pointers are.
    pub(crate) fn device_indices(&self, call: &'static str, raw: &[*mut PJRT_Device]) -> Result<Vec<usize>> {
        indices(call, &self.0.devices, raw)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Client({}, {} devices)", self.platform_name(), self.0.devices.len())
    }
}

fn index(call: &'static str, devices: &[DeviceInfo], raw: *mut PJRT_Device) -> Result<usize> {
    let found = devices.iter().position(|d| std::ptr::eq(d.raw.raw(), raw));
    found.ok_or_else(|| Error::answer(call, "a device that is not one of the client's"))
}

fn indices(call: &'static str, devices: &[DeviceInfo], raw: &[*mut PJRT_Device]) -> Result<Vec<usize>> {
    raw.iter().map(|raw| index(call, devices, *raw)).collect()
}

fn all_devices<'a>(api: &Api, client: Borrowed<PJRT_Client>) -> Result<&'a [*mut PJRT_Device]> {
    let mut args = c::PJRT_Client_Devices_Args { client: client.raw(), ..Struct::zeroed() };
    // SAFETY: the client is alive; its list of devices lives as long as it.
    unsafe {
        api.call(&mut args)?;
        let call = c::PJRT_Client_Devices_Args::NAME;
        api::list(Slice { call, what: "the list of devices", at: args.devices, len: args.num_devices })
    }
}

fn addressable_devices<'a>(api: &Api, client: Borrowed<PJRT_Client>) -> Result<&'a [*mut PJRT_Device]> {
    let mut args = c::PJRT_Client_AddressableDevices_Args { client: client.raw(), ..Struct::zeroed() };
    // SAFETY: as above.
    unsafe {
        api.call(&mut args)?;
        api::list(Slice {
            call: c::PJRT_Client_AddressableDevices_Args::NAME,
            what: "the list of devices",
            at: args.addressable_devices,
            len: args.num_addressable_devices,
        })
    }
}

fn platform_name(api: &Api, client: Borrowed<PJRT_Client>) -> Result<String> {
    let mut args = c::PJRT_Client_PlatformName_Args { client: client.raw(), ..Struct::zeroed() };
    // SAFETY: the client is alive, and so is its name.
    unsafe {
        api.call(&mut args)?;
        let call = c::PJRT_Client_PlatformName_Args::NAME;
        api::text(Slice { call, what: "the platform's name", at: args.platform_name, len: args.platform_name_size })
    }
}

fn platform_version(api: &Api, client: Borrowed<PJRT_Client>) -> Result<String> {
    let mut args = c::PJRT_Client_PlatformVersion_Args { client: client.raw(), ..Struct::zeroed() };
    // SAFETY: as above.
    unsafe {
        api.call(&mut args)?;
        let (at, len) = (args.platform_version, args.platform_version_size);
        api::text(Slice { call: c::PJRT_Client_PlatformVersion_Args::NAME, what: "the platform's version", at, len })
    }
}

fn process_index(api: &Api, client: Borrowed<PJRT_Client>) -> Result<i32> {
    let mut args = c::PJRT_Client_ProcessIndex_Args { client: client.raw(), ..Struct::zeroed() };
    // SAFETY: the client is alive.
    unsafe { api.call(&mut args) }?;
    Ok(args.process_index)
}
