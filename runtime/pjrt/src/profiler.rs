//! The profiler extension: what a plugin's devices and threads did between two moments.
use crate::api::{Api, MOST_BYTES};
use crate::{Code, Error, Plugin, Result};
use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};
use std::ptr::{NonNull, null, null_mut};

/// `PJRT_Extension_Type_Profiler`.
const PROFILER: c_int = 1;
/// Bytes of a profile that are asked for at most.
const MOST: usize = if MOST_BYTES > 1 << 31 { 1 << 31 } else { MOST_BYTES };

// The structs of `profiler_c_api.h` and `pjrt_c_api_profiler_extension.h`, field for field.

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
    table: *const Table,
}

#[repr(C)]
struct Table {
    struct_size: usize,
    private: *mut c_void,
    error_destroy: Option<unsafe extern "C" fn(*mut OfError)>,
    error_message: Option<unsafe extern "C" fn(*mut Message)>,
    error_get_code: Option<unsafe extern "C" fn(*mut GetCode) -> *mut c_void>,
    create: Option<unsafe extern "C" fn(*mut Create) -> *mut c_void>,
    destroy: Option<unsafe extern "C" fn(*mut Of) -> *mut c_void>,
    start: Option<unsafe extern "C" fn(*mut Of) -> *mut c_void>,
    stop: Option<unsafe extern "C" fn(*mut Of) -> *mut c_void>,
    collect_data: Option<unsafe extern "C" fn(*mut Collect) -> *mut c_void>,
}

#[repr(C)]
struct OfError {
    struct_size: usize,
    private: *mut c_void,
    error: *mut c_void,
}

#[repr(C)]
struct Message {
    struct_size: usize,
    private: *mut c_void,
    error: *const c_void,
    message: *const c_char,
    message_size: usize,
}

#[repr(C)]
struct GetCode {
    struct_size: usize,
    private: *mut c_void,
    error: *const c_void,
    code: c_int,
}

#[repr(C)]
struct Create {
    struct_size: usize,
    options: *const c_char,
    options_size: usize,
    profiler: *mut c_void,
}

#[repr(C)]
struct Of {
    struct_size: usize,
    profiler: *mut c_void,
}

#[repr(C)]
struct Collect {
    struct_size: usize,
    profiler: *mut c_void,
    buffer: *mut u8,
    buffer_size_in_bytes: usize,
}

/// A profile that is being taken. Only one may be at a time, as plugins have it.
pub struct Profiler {
    api: &'static Api,
    table: NonNull<Table>,
    at: NonNull<c_void>,
}

// SAFETY: the table is read-only, and a profiler is used by one thread at a time.
unsafe impl Send for Profiler {}

impl Plugin {
    /// Whether the plugin has the profiler extension.
    pub fn has_profiler(&self) -> bool {
        table(self.api).is_some()
    }

    /// Begins a profile, with the plugin's own defaults for what is in it.
    ///
    /// Errors: the plugin has no profiler, or refuses: only one profile is taken at a time.
    pub fn profile(&self) -> Result<Profiler> {
        const CALL: &str = "PLUGIN_Profiler_Create";
        let api = self.api;
        let missing = || Error::new(CALL, Code::Unimplemented, format!("{} has no profiler", api.path.display()));
        let table = table(api).ok_or_else(missing)?;
        let mut args =
            Create { struct_size: size_of::<Create>(), options: null(), options_size: 0, profiler: null_mut() };
        // SAFETY: the table's entry of that name, with its own arguments.
        unsafe { done(api, table, CALL, table.as_ref().create.ok_or_else(missing)?(&raw mut args)) }?;
        let none = || Error::answer(CALL, "no profiler");
        let profiler = Profiler { api, table, at: NonNull::new(args.profiler).ok_or_else(none)? };
        // SAFETY: as above; the profiler was just made.
        let start = unsafe { table.as_ref().start };
        profiler.call("PLUGIN_Profiler_Start", start)?;
        Ok(profiler)
    }
}

/// The extension's table, where it has all that is called here.
fn table(api: &Api) -> Option<NonNull<Table>> {
    /// No plugin has as many extensions: a list that bites its tail ends.
    const MOST_EXTENSIONS: usize = 256;
    let mut next: *const Extension = api.extensions().cast();
    for _ in 0..MOST_EXTENSIONS {
        let here = NonNull::new(next.cast_mut())?;
        if !next.is_aligned() {
            return None;
        }
        // SAFETY: every extension begins with its size, its kind and the next one; what lies behind is read where its size
        // says that it is there.
        unsafe {
            let size = (&raw const (*here.as_ptr()).struct_size).read();
            if size < offset_of!(Extension, table) {
                return None;
            }
            if (&raw const (*here.as_ptr()).kind).read() == PROFILER {
                let there = size >= offset_of!(Extension, table) + size_of::<*const Table>();
                let table = if there { (&raw const (*here.as_ptr()).table).read() } else { null() };
                let table = NonNull::new(table.cast_mut()).filter(|t| t.is_aligned())?;
                let whole = (&raw const (*table.as_ptr()).struct_size).read() >= size_of::<Table>();
                return whole.then_some(table);
            }
            next = (&raw const (*here.as_ptr()).next).read();
        }
    }
    None
}

/// An error of the profiler as a value; frees it.
///
/// # Safety
/// `error` is null or what an entry of this table has just returned.
unsafe fn done(api: &Api, table: NonNull<Table>, call: &'static str, error: *mut c_void) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    let mut told =
        Message { struct_size: size_of::<Message>(), private: null_mut(), error, message: null(), message_size: 0 };
    let mut code = GetCode { struct_size: size_of::<GetCode>(), private: null_mut(), error, code: 0 };
    let mut free = OfError { struct_size: size_of::<OfError>(), private: null_mut(), error };
    // SAFETY: the error is alive until it is destroyed, and its text as long as it.
    unsafe {
        let table = table.as_ref();
        if let Some(message) = table.error_message {
            message(&raw mut told);
        }
        if let Some(get) = table.error_get_code {
            get(&raw mut code);
        }
        let text = match told.message.is_null() || told.message_size > MOST {
            true => String::new(),
            false => {
                String::from_utf8_lossy(std::slice::from_raw_parts(told.message.cast::<u8>(), told.message_size)).into()
            }
        };
        if let Some(destroy) = table.error_destroy {
            destroy(&raw mut free);
        }
        let code = Code::from_number(code.code);
        Err(Error::new(call, code, format!("{}: {text}", api.path.display())))
    }
}

impl Profiler {
    fn call(&self, name: &'static str, entry: Option<unsafe extern "C" fn(*mut Of) -> *mut c_void>) -> Result<()> {
        let missing = || Error::new(name, Code::Unimplemented, format!("{} lacks it", self.api.path.display()));
        let mut args = Of { struct_size: size_of::<Of>(), profiler: self.at.as_ptr() };
        // SAFETY: an entry of the table with its own arguments; the profiler is alive.
        unsafe { done(self.api, self.table, name, entry.ok_or_else(missing)?(&raw mut args)) }
    }

    /// Ends the profile and gives it as the plugin does: a serialized `XSpace` (`xplane.proto`).
    pub fn stop(self) -> Result<Vec<u8>> {
        const CALL: &str = "PLUGIN_Profiler_CollectData";
        // SAFETY: the table is the plugin's, which is never closed.
        let (stop, collect) = unsafe { (self.table.as_ref().stop, self.table.as_ref().collect_data) };
        self.call("PLUGIN_Profiler_Stop", stop)?;
        let missing = || Error::new(CALL, Code::Unimplemented, format!("{} lacks it", self.api.path.display()));
        let collect = collect.ok_or_else(missing)?;
        // SAFETY: an entry of the table with its own arguments; what it points to lives as long as the profiler.
        unsafe { collected(self.at.as_ptr(), |args| done(self.api, self.table, CALL, collect(args))) }
    }
}

/// What a plugin has collected. By the header the first call tells the size and the second one fills memory of that size; XLA's own
/// plugins have it in memory of theirs from the first call on, and leave the second one's as it was.
///
/// # Safety
/// `collect` is such a call: what it points to can be read.
unsafe fn collected(profiler: *mut c_void, collect: impl Fn(*mut Collect) -> Result<()>) -> Result<Vec<u8>> {
    let struct_size = size_of::<Collect>();
    let mut args = Collect { struct_size, profiler, buffer: null_mut(), buffer_size_in_bytes: 0 };
    collect(&raw mut args)?;
    let size = args.buffer_size_in_bytes;
    if size > MOST {
        return Err(Error::answer("PLUGIN_Profiler_CollectData", format!("a profile of {size} bytes")));
    }
    if size > 0 && !args.buffer.is_null() {
        // SAFETY: the plugin's memory, of the size that it tells.
        return Ok(unsafe { std::slice::from_raw_parts(args.buffer, size) }.to_vec());
    }
    let mut bytes = vec![0u8; size];
    args.buffer = bytes.as_mut_ptr();
    if size > 0 {
        collect(&raw mut args)?;
    }
    Ok(bytes)
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // SAFETY: the profiler is ours, and nothing uses it any more. An error while it is freed says nothing to anybody.
        let destroy = unsafe { self.table.as_ref().destroy };
        let _ = self.call("PLUGIN_Profiler_Destroy", destroy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_of_both_kinds_give_what_they_collected() {
        let data = [10u8, 2, 8, 1];
        let by_the_header = |args: *mut Collect| {
            // SAFETY: the arguments of this test's own call.
            let args = unsafe { &mut *args };
            match args.buffer.is_null() {
                true => args.buffer_size_in_bytes = data.len(),
                // SAFETY: memory of the size that was told.
                false => unsafe { args.buffer.copy_from(data.as_ptr(), data.len()) },
            }
            Ok(())
        };
        let as_xla_does = |args: *mut Collect| {
            // SAFETY: as above.
            let args = unsafe { &mut *args };
            if args.buffer.is_null() {
                (args.buffer, args.buffer_size_in_bytes) = (data.as_ptr().cast_mut(), data.len());
            }
            Ok(())
        };
        // SAFETY: both point to what can be read.
        unsafe {
            assert_eq!(collected(null_mut(), by_the_header).unwrap(), data);
            assert_eq!(collected(null_mut(), as_xla_does).unwrap(), data);
        }
    }
}
