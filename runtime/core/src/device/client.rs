//! The one client of this process, made when it is first needed.
use super::chip::without_chip;
use super::dry::{dry_devices, is_dry};
use super::platform::{NO_HARDWARE, PLATFORMS, Platform, TPU};
use super::remote;
use super::wait::LOOK_UP;
use crate::mesh::{self, Mesh};
use crate::pod::{Client, Device};
use crate::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use xlazy_pjrt::Plugin;

/// The client and what is asked of it all the time.
pub struct OpenClient {
    pub pjrt: Client,
    pub platform: &'static Platform,
    /// Those that this process can use; a node says which by its place here.
    pub devices: Vec<Device>,
    /// `cpu:0`
    pub names: Vec<String>,
}

/// More devices than a node's byte can tell apart are left alone; the last numbers stand for meshes.
pub const MOST_DEVICES: usize = mesh::FIRST as usize;

static CLIENT: OnceLock<OpenClient> = OnceLock::new();

/// The client; the first call loads the plugin (0.2 s warm, about 1 s cold for the CPU; a TPU's takes longer). What could
/// not be opened is tried again the next time: a device may have been in use, or no descriptor free.
pub fn client() -> Result<&'static OpenClient> {
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    // In a cell on a thread of its own, since an interrupt must not wait for it; the next call finds what there is by then.
    if crate::host::running() {
        let (tell, told) = channel();
        let aside = move || drop(tell.send(open_once().map(drop)));
        if std::thread::Builder::new().name("open".into()).spawn(aside).is_ok() {
            loop {
                match told.recv_timeout(LOOK_UP) {
                    Ok(opened) => break opened?,
                    Err(RecvTimeoutError::Timeout) => crate::sys::check_interrupt(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
    }
    open_once()
}

fn open_once() -> Result<&'static OpenClient> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _turn = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if CLIENT.get().is_none() {
        let _ = CLIENT.set(open()?);
    }
    Ok(CLIENT.get().expect("it has just been set"))
}

fn open() -> Result<OpenClient> {
    if is_dry() {
        return Err(Error::Usage { message: "dry mode: there is no device, and nothing runs".into() });
    }
    if let Some(spec) = remote::wanted()? {
        let (client, platform) = remote::open(&spec)?;
        return of(client, platform, "the pod");
    }
    let mut platform = Platform::chosen()?;
    if let Some(why) = without_chip(platform) {
        crate::host::note(&why);
        platform = PLATFORMS[0];
    }
    let library = platform.library()?;
    let options = (platform.options)()?;
    platform.prepare(&options, 1);
    let plugin = Plugin::load(&library)?;
    let client = plugin.create_client(&options).map_err(|e| platform.refused(e))?;
    of(Client::Here(client), platform, &format!("the plugin {}", library.display()))
}

fn of(client: Client, platform: &'static Platform, whose: &str) -> Result<OpenClient> {
    let devices: Vec<Device> = client.addressable_devices().into_iter().take(MOST_DEVICES).collect();
    if devices.is_empty() {
        return Err(Error::Usage { message: format!("{whose} has no device") });
    }
    let names = (0..devices.len()).map(|i| format!("{}:{i}", platform.name.to_lowercase())).collect();
    Ok(OpenClient { pjrt: client, platform, devices, names })
}

/// Loads a plugin and asks it for a client: one line about it, or why it does not work. For `xlazy doctor`, in a process of
/// its own.
pub fn probe(library: &Path) -> Result<String> {
    let file = library.canonicalize().ok();
    let known = |p: &&&Platform| (p.candidates)().iter().any(|c| file.is_some() && c.canonicalize().ok() == file);
    let known = PLATFORMS.iter().find(known);
    let platform = known.map_or(PLATFORMS[0], |p| p);
    let no_chip = without_chip(platform).is_some();
    let environment = if no_chip && std::ptr::eq(platform, &TPU) { NO_HARDWARE } else { platform.environment };
    for (name, value) in environment {
        crate::sys::set_env_default(name, value);
    }
    let plugin = Plugin::load(library)?;
    if no_chip {
        let (major, minor) = plugin.api_version();
        return Ok(format!(
            "PJRT API {major}.{minor}, no {} in this machine: it compiles, and cannot run",
            if platform.name == TPU.name { "TPU" } else { "NVIDIA GPU" }
        ));
    }
    let (major, minor) = plugin.api_version();
    // Plugins differ in what they take where nobody says; to one that is no platform's nothing is known to say.
    let options = if known.is_some() { (platform.options)()? } else { Vec::new() };
    let client = plugin.create_client(&options).map_err(|e| platform.refused(e))?;
    let devices = client.addressable_devices();
    let kinds = devices.first().map(|d| d.kind()).unwrap_or_default();
    Ok(format!(
        "{} {}, PJRT API {major}.{minor}, {} ({kinds})",
        client.platform_name(),
        client.platform_version(),
        xlazy_mime::count(devices.len(), "device")
    ))
}

/// Gives the pages back that loading the plugin and compiling a program took, after the first program.
pub fn release_what_loading_took() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::Relaxed) {
        // Beside the program's run, which needs few of them.
        let release = || {
            let plugin = client_if_open().and_then(|c| c.pjrt.plugin()?.path().canonicalize().ok());
            if let Some(folder) = plugin.as_deref().and_then(Path::parent) {
                crate::sys::release_library_pages(folder);
            }
        };
        let _ = std::thread::Builder::new().name("release".into()).spawn(release);
    }
}

/// The client, if something has run already.
pub fn client_if_open() -> Option<&'static OpenClient> {
    CLIENT.get()
}

/// The name of the first device, if something has run already.
pub fn opened() -> Option<&'static str> {
    client_if_open().map(|c| c.names[0].as_str())
}

/// The name of the device that tensors are on unless they are moved, such as `cpu:0`.
pub fn device_name() -> Result<&'static str> {
    device_names().map(|names| names[0].as_str())
}

/// The names of all devices; a node's device is a place here.
pub fn device_names() -> Result<&'static [String]> {
    match dry_devices() {
        Some(names) => Ok(names),
        None => client().map(|c| c.names.as_slice()),
    }
}

/// The name of one device, or of a mesh by its number; before anything has run that of the platform's first.
pub fn name_of(device: u8) -> &'static str {
    if let Some(mesh) = Mesh::at(device) {
        return mesh.name();
    }
    static EXPECTED: OnceLock<String> = OnceLock::new();
    let expected = || format!("{}:0", Platform::chosen().map_or("cpu", |p| p.name).to_lowercase());
    let names = dry_devices().or_else(|| client_if_open().map(|c| c.names.as_slice()));
    let known = names.and_then(|names| names.get(device as usize));
    known.unwrap_or_else(|| EXPECTED.get_or_init(expected))
}

impl Mesh {
    /// Devices in a grid with named axes: the first ones of this machine, in row-major order (`jax.make_mesh`, torch_xla's
    /// `xs.Mesh`). The CPU counts as several devices with `XLAZY_CPU_DEVICES` in the environment of the kernel.
    ///
    /// Ends the cell where there are fewer devices, or an axis has no name or no size.
    ///
    /// ```no_run
    /// # use xlazy_core::mesh::Mesh;
    /// let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
    /// assert_eq!(mesh.size(), 8);
    /// ```
    #[track_caller]
    pub fn new(axes: &[(&str, usize)]) -> Mesh {
        let made = device_names().and_then(|names| {
            let refused = |message| Error::Op { op: "Mesh::new", operands: vec![], message };
            Mesh::of(axes, names.len()).map_err(refused)
        });
        made.unwrap_or_else(|e| e.raise())
    }

    /// A mesh over several slices of a pod, or hosts: of each axis how long it is within a slice, where links are fast, and over how
    /// many slices it goes, by the data centre's network (`jax.experimental.mesh_utils.create_hybrid_device_mesh`). Its sizes are the
    /// products; along each axis devices of one slice are neighbours. Where devices tell of no slices, as the CPU's, they are
    /// taken as so many as the axes ask for, in order.
    ///
    /// Ends the cell where there are fewer devices or slices, or an axis goes over slices only.
    ///
    /// ```no_run
    /// # use xlazy_core::mesh::Mesh;
    /// let mesh = Mesh::hybrid(&[("data", 2), ("model", 2)], &[("data", 2)]);
    /// assert_eq!(mesh.axes(), [("data".to_owned(), 4), ("model".to_owned(), 2)]);
    /// ```
    #[track_caller]
    pub fn hybrid(ici: &[(&str, usize)], dcn: &[(&str, usize)]) -> Mesh {
        let refused = |message| Error::Op { op: "Mesh::hybrid", operands: vec![], message };
        let made = device_names().and_then(|names| {
            let wanted = dcn.iter().map(|(_, n)| *n).product();
            Mesh::of_slices(ici, dcn, &slices(names.len(), wanted)).map_err(refused)
        });
        made.unwrap_or_else(|e| e.raise())
    }
}

/// The devices of each slice, as they tell it; all in order, in as many parts, where they do not.
fn slices(devices: usize, wanted: usize) -> Vec<Vec<u8>> {
    let told = |d: &Device| {
        d.attributes().ok()?.into_iter().find_map(|(name, value)| match value {
            xlazy_pjrt::Value::Int(n) if name == "slice_index" => Some(n),
            _ => None,
        })
    };
    let all: Vec<Option<i64>> = client_if_open().map(|c| c.devices.iter().map(told).collect()).unwrap_or_default();
    if !all.is_empty() && all.iter().all(Option::is_some) {
        let mut slices: std::collections::BTreeMap<i64, Vec<u8>> = std::collections::BTreeMap::new();
        all.iter().zip(0u8..).for_each(|(slice, d)| slices.entry(slice.unwrap_or(0)).or_default().push(d));
        return slices.into_values().collect();
    }
    let part = (devices / wanted.max(1)).max(1);
    (0..devices as u8).collect::<Vec<u8>>().chunks(part).map(<[u8]>::to_vec).collect()
}

/// Loads the plugin in the background, so that the first tensor does not wait for it.
pub fn preload() {
    // A failure is reported where the client is first needed, which tries again.
    let _ = std::thread::Builder::new().name("preload".into()).spawn(|| drop(open_once()));
}

impl From<xlazy_pjrt::Error> for Error {
    fn from(e: xlazy_pjrt::Error) -> Error {
        if e.call == crate::pod::CALL {
            return match e.code {
                xlazy_pjrt::Code::Unavailable => Error::Pod { message: e.message },
                _ => Error::Usage { message: e.message },
            };
        }
        if e.code == xlazy_pjrt::Code::ResourceExhausted {
            let said = e.message.trim_end_matches('.');
            return Error::Usage {
                message: format!("the device has no room: {said} (`%memory` lists what holds how much)"),
            };
        }
        Error::Pjrt { call: e.call, code: e.code.to_string(), message: e.message }
    }
}
