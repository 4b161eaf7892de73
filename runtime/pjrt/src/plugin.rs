//! A plugin: a shared library that offers `GetPjrtApi`, loaded once per process and never closed.
use crate::api::{Api, Handle};
use crate::c::{self, Call, Struct};
use crate::{
    Client, Code, CompileOptions, Error, Executable, KeyValueStore, Program, Result, Topology, Value, client, value,
};
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A loaded PJRT plugin.
#[derive(Clone, Copy)]
pub struct Plugin {
    pub(crate) api: &'static Api,
}

/// Plugins by the path of their file: initialising one twice is not allowed.
static LOADED: Mutex<Option<HashMap<PathBuf, Plugin>>> = Mutex::new(None);

impl Plugin {
    /// Opens the library (`RTLD_LAZY | RTLD_LOCAL`), checks the API's version and initialises the plugin. A second load of
    /// the same file gives the same plugin. Set the plugin's environment variables before: most are read on opening.
    ///
    /// Errors: the file is missing or no plugin, or speaks an API that is too old or of another major version.
    pub fn load(path: &Path) -> Result<Plugin> {
        let file = path
            .canonicalize()
            .map_err(|e| Error::new("dlopen", Code::NotFound, format!("{}: {e}", path.display())))?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        if let Some(plugin) = loaded.get(&file) {
            return Ok(*plugin);
        }
        let plugin = open(&file)?;
        loaded.insert(file, plugin);
        Ok(plugin)
    }

    /// The library's file, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.api.path
    }

    /// Major and minor version of the PJRT C API that the plugin speaks.
    pub fn api_version(&self) -> (i32, i32) {
        self.api.version
    }

    /// What the plugin says of itself, such as `stablehlo_current_version`.
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        let mut args = c::PJRT_Plugin_Attributes_Args::zeroed();
        // SAFETY: no pointers go in; the answer lives as long as the plugin.
        unsafe {
            self.api.call(&mut args)?;
            value::from_c(c::PJRT_Plugin_Attributes_Args::NAME, args.attributes, args.num_attributes)
        }
    }

    /// Creates a client, which takes hold of the devices.
    ///
    /// Errors: no such device on this machine, or an option that the plugin does not know.
    pub fn create_client(&self, options: &[(&str, Value)]) -> Result<Client> {
        client::create(*self, options, None)
    }

    /// Creates one of several clients that work together; they meet through `store`.
    pub fn create_client_with_store(&self, options: &[(&str, Value)], store: Arc<dyn KeyValueStore>) -> Result<Client> {
        client::create(*self, options, Some(store))
    }

    /// Describes devices that need not exist, such as `v5e:2x2`, to compile for them.
    ///
    /// Errors: a name or option that the plugin does not know.
    pub fn topology(&self, name: &str, options: &[(&str, Value)]) -> Result<Topology> {
        Topology::create(*self, name, options)
    }

    /// Compiles for the devices of `topology` without having them.
    ///
    /// Errors: the compiler's words about the program, or options that do not fit.
    pub fn compile(&self, topology: &Topology, program: &Program, options: &CompileOptions) -> Result<Executable> {
        let call = c::PJRT_Compile_Args::NAME;
        if !std::ptr::eq(topology.plugin().api, self.api) {
            return Err(Error::argument(call, "the topology belongs to another plugin"));
        }
        let options = options.checked_bytes(call)?;
        let program = program.to_c();
        let mut args = c::PJRT_Compile_Args {
            topology: topology.raw(),
            program: &program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
            ..Struct::zeroed()
        };
        // SAFETY: program, options and topology outlive the call; the executable is ours.
        let handle = unsafe {
            self.api.call(&mut args)?;
            Handle::own(self.api, call, args.executable)?
        };
        Ok(Executable::new(handle, None))
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (major, minor) = self.api_version();
        write!(f, "Plugin({}, PJRT API {major}.{minor})", self.path().display())
    }
}

fn open(file: &Path) -> Result<Plugin> {
    let failed = |call, e: libloading::Error| Error::new(call, Code::FailedPrecondition, words(e));
    // SAFETY: opening a library runs its initialisers; that this file is a PJRT plugin is what the caller asked for.
    let library = unsafe { Library::open(Some(file), RTLD_LAZY | RTLD_LOCAL) }.map_err(|e| failed("dlopen", e))?;
    // SAFETY: the type that the PJRT C API gives this symbol. The library is never closed, so the table lives on.
    let table = unsafe {
        let get = library.get::<unsafe extern "C" fn() -> *const c::PJRT_Api>(b"GetPjrtApi\0");
        let table = get.map_err(|e| failed("dlsym", e))?();
        std::mem::forget(library);
        table
    };
    // SAFETY: GetPjrtApi returned it.
    let api = unsafe { Api::new(file.to_owned(), table) }?;
    // SAFETY: no pointers go in.
    unsafe { api.call(&mut c::PJRT_Plugin_Initialize_Args::zeroed()) }?;
    Ok(Plugin { api: Box::leak(Box::new(api)) })
}

/// libloading keeps dlerror's words in the source of its error.
fn words(e: libloading::Error) -> String {
    match std::error::Error::source(&e) {
        Some(source) => format!("{e}: {source}"),
        None => e.to_string(),
    }
}
