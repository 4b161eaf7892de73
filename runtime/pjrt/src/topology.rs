//! Topologies: devices described without having them, to compile ahead of time.
use crate::api::{self, Api, Borrowed, Handle, Slice, resource};
use crate::c::{self, Call, PJRT_DeviceDescription, PJRT_TopologyDescription, Struct};
use crate::{Client, Plugin, Result, Value, value};
use std::fmt;

resource!(PJRT_TopologyDescription, "the topology", PJRT_TopologyDescription_Destroy_Args, topology, TOPOLOGIES);

/// A description of devices and how they are connected.
pub struct Topology {
    plugin: Plugin,
    raw: Borrowed<PJRT_TopologyDescription>,
    _owner: Owner,
}

/// What keeps the description alive.
#[expect(dead_code, reason = "held, not read")]
enum Owner {
    Ours(Handle<PJRT_TopologyDescription>),
    Client(Client),
}

impl Topology {
    pub(crate) fn create(plugin: Plugin, name: &str, options: &[(&str, Value)]) -> Result<Topology> {
        let options = value::to_c(options);
        let mut args = c::PJRT_TopologyDescription_Create_Args {
            topology_name: name.as_ptr().cast(),
            topology_name_size: name.len(),
            create_options: options.as_ptr(),
            num_options: options.len(),
            ..Struct::zeroed()
        };
        let call = c::PJRT_TopologyDescription_Create_Args::NAME;
        // SAFETY: name and options outlive the call; the topology is ours.
        let handle = unsafe {
            plugin.api.call(&mut args)?;
            Handle::own(plugin.api, call, args.topology)?
        };
        let raw = Borrowed::new(call, "the topology", handle.raw())?;
        Ok(Topology { plugin, raw, _owner: Owner::Ours(handle) })
    }

    pub(crate) fn of_client(client: &Client) -> Result<Topology> {
        let mut args = c::PJRT_Client_TopologyDescription_Args { client: client.raw(), ..Struct::zeroed() };
        // SAFETY: the client is alive.
        unsafe { client.api().call(&mut args) }?;
        let raw = Borrowed::new(c::PJRT_Client_TopologyDescription_Args::NAME, "the topology", args.topology)?;
        Ok(Topology { plugin: client.plugin(), raw, _owner: Owner::Client(client.clone()) })
    }

    /// The plugin that knows this topology.
    pub fn plugin(&self) -> Plugin {
        self.plugin
    }

    /// The platform, such as `tpu`.
    pub fn platform_name(&self) -> Result<String> {
        let mut args = c::PJRT_TopologyDescription_PlatformName_Args { topology: self.raw(), ..Struct::zeroed() };
        // SAFETY: the topology is alive, and so is its text.
        unsafe {
            self.plugin.api.call(&mut args)?;
            let (at, len) = (args.platform_name, args.platform_name_size);
            let call = c::PJRT_TopologyDescription_PlatformName_Args::NAME;
            api::text(Slice { call, what: "the platform's name", at, len })
        }
    }

    /// The platform's version, in the plugin's words.
    pub fn platform_version(&self) -> Result<String> {
        let mut args = c::PJRT_TopologyDescription_PlatformVersion_Args { topology: self.raw(), ..Struct::zeroed() };
        // SAFETY: as above.
        unsafe {
            self.plugin.api.call(&mut args)?;
            let (at, len) = (args.platform_version, args.platform_version_size);
            let call = c::PJRT_TopologyDescription_PlatformVersion_Args::NAME;
            api::text(Slice { call, what: "the platform's version", at, len })
        }
    }

    /// What the plugin says of the topology.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        let mut args = c::PJRT_TopologyDescription_Attributes_Args { topology: self.raw(), ..Struct::zeroed() };
        // SAFETY: as above.
        unsafe {
            self.plugin.api.call(&mut args)?;
            let call = c::PJRT_TopologyDescription_Attributes_Args::NAME;
            value::from_c(call, args.attributes, args.num_attributes)
        }
    }

    /// The devices, with their attributes.
    pub fn devices(&self) -> Result<Vec<DeviceDescription>> {
        let api = self.plugin.api;
        let mut args =
            c::PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology: self.raw(), ..Struct::zeroed() };
        let call = c::PJRT_TopologyDescription_GetDeviceDescriptions_Args::NAME;
        // SAFETY: the topology is alive, and so is its list.
        let list = unsafe {
            api.call(&mut args)?;
            let (at, len) = (args.descriptions, args.num_descriptions);
            api::list(Slice { call, what: "the list of devices", at, len })?
        };
        list.iter().map(|raw| DeviceDescription::read(api, *raw)?.with_attributes(api)).collect()
    }

    pub(crate) fn raw(&self) -> *mut PJRT_TopologyDescription {
        self.raw.raw()
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Topology({:?})", self.platform_version())
    }
}

/// What is known of a device without having it.
#[derive(Clone)]
pub struct DeviceDescription {
    raw: Borrowed<PJRT_DeviceDescription>,
    id: i32,
    process_index: i32,
    kind: String,
    text: String,
    attributes: Vec<(String, Value)>,
}

impl DeviceDescription {
    /// Reads everything but the attributes, which some plugins are slow to give.
    pub(crate) fn read(api: &Api, raw: *mut PJRT_DeviceDescription) -> Result<DeviceDescription> {
        let raw = Borrowed::new("PJRT_Device_GetDescription", "a device's description", raw)?;
        let device_description = raw.raw();
        let mut id = c::PJRT_DeviceDescription_Id_Args { device_description, ..Struct::zeroed() };
        let mut process = c::PJRT_DeviceDescription_ProcessIndex_Args { device_description, ..Struct::zeroed() };
        let mut kind = c::PJRT_DeviceDescription_Kind_Args { device_description, ..Struct::zeroed() };
        let mut text = c::PJRT_DeviceDescription_ToString_Args { device_description, ..Struct::zeroed() };
        // SAFETY: the description belongs to a living client or topology, and so do its texts.
        unsafe {
            api.call(&mut id)?;
            api.call(&mut process)?;
            api.call(&mut kind)?;
            api.call(&mut text)?;
            let kind = Slice {
                call: c::PJRT_DeviceDescription_Kind_Args::NAME,
                what: "the device's kind",
                at: kind.device_kind,
                len: kind.device_kind_size,
            };
            let text = Slice {
                call: c::PJRT_DeviceDescription_ToString_Args::NAME,
                what: "the device's text",
                at: text.to_string,
                len: text.to_string_size,
            };
            Ok(DeviceDescription {
                raw,
                id: id.id,
                process_index: process.process_index,
                kind: api::text(kind)?,
                text: api::text(text)?,
                attributes: vec![],
            })
        }
    }

    fn with_attributes(mut self, api: &Api) -> Result<DeviceDescription> {
        self.attributes = self.attributes_of(api)?;
        Ok(self)
    }

    /// Asks the plugin for the attributes; the description's owner must be alive, as in every crate-private call.
    pub(crate) fn attributes_of(&self, api: &Api) -> Result<Vec<(String, Value)>> {
        let mut args =
            c::PJRT_DeviceDescription_Attributes_Args { device_description: self.raw.raw(), ..Struct::zeroed() };
        // SAFETY: the callers hold the owner.
        unsafe {
            api.call(&mut args)?;
            value::from_c(c::PJRT_DeviceDescription_Attributes_Args::NAME, args.attributes, args.num_attributes)
        }
    }

    /// Asks the plugin for the long description; as `attributes_of`.
    pub(crate) fn debug_string(&self, api: &Api) -> Result<String> {
        let mut args =
            c::PJRT_DeviceDescription_DebugString_Args { device_description: self.raw.raw(), ..Struct::zeroed() };
        // SAFETY: the callers hold the owner.
        unsafe {
            api.call(&mut args)?;
            let (at, len) = (args.debug_string, args.debug_string_size);
            let call = c::PJRT_DeviceDescription_DebugString_Args::NAME;
            api::text(Slice { call, what: "the device's description", at, len })
        }
    }

    /// The id, unique among the devices of all processes.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The process that the device belongs to.
    pub fn process_index(&self) -> i32 {
        self.process_index
    }

    /// The kind, such as `TPU v5 lite`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// A short description.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the plugin says of the device, such as its coordinates; empty for the devices of a client, see
    /// [`Device::attributes`](crate::Device::attributes).
    pub fn attributes(&self) -> &[(String, Value)] {
        &self.attributes
    }
}

impl fmt::Debug for DeviceDescription {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "DeviceDescription({} {}, {})", self.kind, self.id, self.text)
    }
}
