//! The funnel: every call into a plugin goes through `Api::call`, every pointer a plugin answers with is read here.
use crate::c::{self, Call, PJRT_Error, Struct};
use crate::{Code, Error, Result};
use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The table of one loaded plugin. Lives as long as the process: libraries are never closed.
pub(crate) struct Api {
    pub path: PathBuf,
    pub version: (i32, i32),
    table: NonNull<c_void>,
    /// The table's size in the plugin's own words: what lies behind it must not be read.
    size: usize,
}

// SAFETY: the table is read-only after GetPjrtApi returned it, and PJRT's entries may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Without these no object could be waited for or freed, so a plugin that lacks one is refused when it is loaded.
const REQUIRED: &[(&str, usize)] = &[
    required::<c::PJRT_Error_Destroy_Args>(),
    required::<c::PJRT_Error_Message_Args>(),
    required::<c::PJRT_Error_GetCode_Args>(),
    required::<c::PJRT_Event_Destroy_Args>(),
    required::<c::PJRT_Event_Await_Args>(),
    required::<c::PJRT_Event_OnReady_Args>(),
    required::<c::PJRT_Client_Destroy_Args>(),
    required::<c::PJRT_Executable_Destroy_Args>(),
    required::<c::PJRT_LoadedExecutable_Destroy_Args>(),
    required::<c::PJRT_Buffer_Destroy_Args>(),
    required::<c::PJRT_TopologyDescription_Destroy_Args>(),
];

const fn required<A: Call>() -> (&'static str, usize) {
    (A::NAME, A::OFFSET)
}

impl Api {
    /// Takes the pointer that `GetPjrtApi` returned, after checking version, size and the required entries.
    ///
    /// # Safety
    /// `table` is null or what a plugin's `GetPjrtApi` returned.
    pub unsafe fn new(path: PathBuf, table: *const c::PJRT_Api) -> Result<Api> {
        const CALL: &str = "GetPjrtApi";
        let answer = |message: String| Error::answer(CALL, format!("{}: {message}", path.display()));
        let Some(start) = NonNull::new(table as *mut c_void) else {
            return Err(answer("a null pointer instead of a table".into()));
        };
        if !(table as usize).is_multiple_of(align_of::<c::PJRT_Api>()) {
            return Err(answer("a misaligned table".into()));
        }
        // SAFETY: a table starts with its size, in every version of the API.
        let size = unsafe { start.cast::<usize>().read() };
        if size < c::PJRT_Api_Version::STRUCT_SIZE + std::mem::offset_of!(c::PJRT_Api, pjrt_api_version) {
            return Err(answer(format!("a table of {size} bytes, too short to hold its version")));
        }
        // SAFETY: the size just checked covers the version.
        let version = unsafe { (&raw const (*table).pjrt_api_version).read() };
        let (major, minor) = (version.major_version, version.minor_version);
        if major != c::MAJOR || minor < c::OLDEST_MINOR {
            let (path, our_major, oldest, ours) = (path.display(), c::MAJOR, c::OLDEST_MINOR, c::MINOR);
            return Err(Error::new(
                CALL,
                Code::FailedPrecondition,
                format!(
                    "{path} speaks PJRT API {major}.{minor}; xlazy speaks {our_major}.{ours} and takes plugins from \
                     {our_major}.{oldest} on"
                ),
            ));
        }
        let api = Api { path, version: (major, minor), table: start, size };
        match REQUIRED.iter().find(|(_, offset)| api.entry(*offset).is_none()) {
            Some((name, _)) => Err(Error::answer(CALL, format!("{}: the table lacks {name}", api.path.display()))),
            None => Ok(api),
        }
    }

    /// The first of the plugin's extensions; null where it has none.
    pub fn extensions(&self) -> *const c_void {
        let at = std::mem::offset_of!(c::PJRT_Api, extension_start);
        if self.size < at + size_of::<*const c_void>() {
            return std::ptr::null();
        }
        // SAFETY: the size just checked covers the field.
        unsafe { self.table.cast::<u8>().add(at).cast::<*const c_void>().read() }
    }

    /// Calls the entry that `args` names; the plugin's error becomes a value and is freed.
    ///
    /// # Safety
    /// Every pointer in `args` is what the C header asks for at that place and stays so during the call.
    pub unsafe fn call<A: Call>(&self, args: &mut A) -> Result<()> {
        let Some(entry) = self.entry(A::OFFSET) else {
            let (path, (major, minor)) = (self.path.display(), self.version);
            let message = format!("{path} (PJRT API {major}.{minor}) does not have this call");
            return Err(Error::new(A::NAME, Code::Unimplemented, message));
        };
        // SAFETY: the header gives every entry but the two for errors this type, and `A` belongs to this entry.
        let error = unsafe {
            let entry: unsafe extern "C" fn(*mut A) -> *mut PJRT_Error = std::mem::transmute(entry);
            entry(args)
        };
        // SAFETY: the plugin's error, which is ours to free.
        if error.is_null() { Ok(()) } else { Err(unsafe { self.take_error(A::NAME, error) }) }
    }

    /// Converts and frees an error of the plugin.
    ///
    /// # Safety
    /// `error` is an error of this plugin that nothing else frees.
    #[cold]
    pub unsafe fn take_error(&self, call: &'static str, error: *mut PJRT_Error) -> Error {
        let mut message = c::PJRT_Error_Message_Args { error, ..Struct::zeroed() };
        let mut code = c::PJRT_Error_GetCode_Args { error, ..Struct::zeroed() };
        let mut destroy = c::PJRT_Error_Destroy_Args { error, ..Struct::zeroed() };
        // SAFETY: the error is alive until the last of the three calls; message and destroy return nothing (`call_void`).
        unsafe {
            self.call_void(&mut message);
            // A plugin that cannot even tell the code leaves it at zero; an error while telling it is freed inside.
            let told = match self.entry(c::PJRT_Error_GetCode_Args::OFFSET) {
                Some(entry) => {
                    let entry: unsafe extern "C" fn(*mut c::PJRT_Error_GetCode_Args) -> *mut PJRT_Error =
                        std::mem::transmute(entry);
                    entry(&mut code)
                }
                None => std::ptr::null_mut(),
            };
            if !told.is_null() {
                self.call_void(&mut c::PJRT_Error_Destroy_Args { error: told, ..Struct::zeroed() });
                code.code = Code::Unknown.number() as u32;
            }
            let text = Slice { call, what: "error message", at: message.message, len: message.message_size };
            let text = match bytes(text) {
                Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Err(e) => e.message,
            };
            self.call_void(&mut destroy);
            Error::new(call, Code::from_number(code.code as i32), text)
        }
    }

    /// Calls an entry of type `void`.
    ///
    /// # Safety
    /// As for `call`, and the header gives the entry no result.
    unsafe fn call_void<A: Call>(&self, args: &mut A) {
        if let Some(entry) = self.entry(A::OFFSET) {
            // SAFETY: the caller's promise.
            unsafe {
                let entry: unsafe extern "C" fn(*mut A) = std::mem::transmute(entry);
                entry(args)
            }
        }
    }

    /// The entry at an offset, if the plugin's table reaches that far and has something there.
    fn entry(&self, offset: usize) -> Option<NonNull<c_void>> {
        if offset + size_of::<*const c_void>() > self.size {
            return None;
        }
        // SAFETY: inside the table by the check above, and every offset of `c.rs` is that of an aligned pointer.
        NonNull::new(unsafe { self.table.byte_add(offset).cast::<*mut c_void>().read() })
    }
}

/// A pointer and a length that a plugin answered with, and the words for an error about them.
pub(crate) struct Slice<T> {
    pub call: &'static str,
    pub what: &'static str,
    pub at: *const T,
    pub len: usize,
}

/// No list of a plugin (devices, attributes, dimensions, outputs) is longer than this.
const LONGEST_LIST: usize = 1 << 20;
/// No text or serialised object is longer: protobuf's own limit is 2 GiB, some plugins append object code.
pub(crate) const MOST_BYTES: usize = 1 << 34;

/// Reads a plugin's list.
///
/// # Safety
/// The pointer came from the plugin as the start of `len` elements, alive for `'a`.
pub(crate) unsafe fn list<'a, T>(s: Slice<T>) -> Result<&'a [T]> {
    // SAFETY: the caller's promise.
    unsafe { checked(s, LONGEST_LIST) }
}

/// Reads a plugin's bytes.
///
/// # Safety
/// The pointer came from the plugin as the start of `len` bytes, alive for `'a`.
pub(crate) unsafe fn bytes<'a>(s: Slice<c_char>) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise; a char is a byte.
    unsafe { checked(Slice { call: s.call, what: s.what, at: s.at as *const u8, len: s.len }, MOST_BYTES) }
}

/// Reads and copies a plugin's text.
///
/// # Safety
/// As for `bytes`.
pub(crate) unsafe fn text(s: Slice<c_char>) -> Result<String> {
    let (call, what) = (s.call, s.what);
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(s) }?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::answer(call, format!("{what} is not UTF-8")))
}

/// # Safety
/// As for `list`.
unsafe fn checked<'a, T>(s: Slice<T>, most: usize) -> Result<&'a [T]> {
    let Slice { call, what, at, len } = s;
    if len == 0 {
        return Ok(&[]);
    }
    if len > most {
        return Err(Error::answer(call, format!("{what} has length {len}")));
    }
    if at.is_null() || !(at as usize).is_multiple_of(align_of::<T>()) {
        return Err(Error::answer(call, format!("{what} has length {len} but no valid address")));
    }
    // SAFETY: not null, aligned, of a plausible length; that it is readable is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at, len) })
}

/// A pointer to something that the plugin owns and that lives as long as its client.
pub(crate) struct Borrowed<T>(NonNull<T>);

impl<T> Borrowed<T> {
    pub fn new(call: &'static str, what: &str, at: *mut T) -> Result<Borrowed<T>> {
        NonNull::new(at).map(Borrowed).ok_or_else(|| Error::answer(call, format!("{what} is a null pointer")))
    }

    pub fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Clone for Borrowed<T> {
    fn clone(&self) -> Borrowed<T> {
        *self
    }
}

impl<T> Copy for Borrowed<T> {}

// SAFETY: only ever passed back to the plugin, whose objects may be used from any thread.
unsafe impl<T> Send for Borrowed<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Borrowed<T> {}

/// An object of a plugin that this crate has to destroy.
pub(crate) trait Resource: Sized {
    /// What it is called in messages.
    const WHAT: &'static str;
    /// How many are alive.
    fn live() -> &'static AtomicUsize;
    /// # Safety
    /// `raw` is an object of this plugin, alive, and not used again.
    unsafe fn destroy(api: &'static Api, raw: *mut Self);
}

/// Owns one object of a plugin: counted while alive, destroyed when dropped.
pub(crate) struct Handle<R: Resource> {
    raw: Borrowed<R>,
    pub api: &'static Api,
}

impl<R: Resource> Handle<R> {
    /// Takes what `call` gave.
    ///
    /// # Safety
    /// `raw` is null or an object of the plugin that nothing else destroys.
    pub unsafe fn own(api: &'static Api, call: &'static str, raw: *mut R) -> Result<Handle<R>> {
        let raw = Borrowed::new(call, R::WHAT, raw)?;
        R::live().fetch_add(1, Ordering::Relaxed);
        Ok(Handle { raw, api })
    }

    pub fn raw(&self) -> *mut R {
        self.raw.raw()
    }
}

impl<R: Resource> Drop for Handle<R> {
    fn drop(&mut self) {
        R::live().fetch_sub(1, Ordering::Relaxed);
        // SAFETY: owned, and never seen again after drop.
        unsafe { R::destroy(self.api, self.raw()) }
    }
}

/// `Resource` for an object whose destruction is one call.
macro_rules! resource {
    ($raw:ident, $what:literal, $args:ident, $field:ident, $live:ident) => {
        impl $crate::api::Resource for $crate::c::$raw {
            const WHAT: &'static str = $what;
            fn live() -> &'static std::sync::atomic::AtomicUsize {
                &$crate::live::$live
            }
            unsafe fn destroy(api: &'static $crate::api::Api, raw: *mut Self) {
                let mut args = $crate::c::$args { $field: raw, ..$crate::c::Struct::zeroed() };
                // SAFETY: the object is alive and not used again, by the caller's promise. There is nobody to tell of an
                // error while destroying; it is freed.
                let _ = unsafe { api.call(&mut args) };
            }
        }
    };
}
pub(crate) use resource;
