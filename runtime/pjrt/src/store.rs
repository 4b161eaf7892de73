//! The key-value store through which the clients of several processes meet.
use crate::c::{self, CallbackError, PJRT_Error};
use crate::{Code, Error, Result};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A store shared by all processes of a run; a plugin's threads call it.
pub trait KeyValueStore: Send + Sync {
    /// Waits until the key has a value. Errors: none came in time (`DeadlineExceeded`).
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>>;
    /// The value, if there is one by now. Errors: there is none (`NotFound`).
    fn try_get(&self, key: &str) -> Result<Vec<u8>>;
    /// Sets a value.
    fn put(&self, key: &str, value: &[u8]) -> Result<()>;
}

/// A store at an address that does not change, which the plugin gets as `user_arg`.
pub(crate) struct Shared(pub Arc<dyn KeyValueStore>);

pub(crate) fn install(store: &Shared, args: &mut c::PJRT_Client_Create_Args) {
    let user_arg = std::ptr::from_ref(store).cast_mut().cast::<c_void>();
    args.kv_get_callback = Some(get);
    args.kv_get_user_arg = user_arg;
    args.kv_put_callback = Some(put);
    args.kv_put_user_arg = user_arg;
    args.kv_try_get_callback = Some(try_get);
    args.kv_try_get_user_arg = user_arg;
}

/// # Safety
/// Called by the plugin with its own arguments and the `user_arg` of `install`, while the client is alive.
unsafe extern "C" fn get(args: *mut c::PJRT_KeyValueGetCallback_Args) -> *mut PJRT_Error {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let a = &mut *args;
        let timeout = Duration::from_millis(a.timeout_in_ms.max(0) as u64);
        match run(a.user_arg, a.key, a.key_size, |store, key| store.get(key, timeout)) {
            Err(e) => refuse(a.callback_error, &e),
            Ok(value) => {
                (a.value, a.value_size, a.value_deleter_callback) = give(&value);
                std::ptr::null_mut()
            }
        }
    }
}

/// # Safety
/// As for `get`.
unsafe extern "C" fn try_get(args: *mut c::PJRT_KeyValueTryGetCallback_Args) -> *mut PJRT_Error {
    // SAFETY: as for `get`.
    unsafe {
        let a = &mut *args;
        match run(a.user_arg, a.key, a.key_size, |store, key| store.try_get(key)) {
            Err(e) => refuse(a.callback_error, &e),
            Ok(value) => {
                (a.value, a.value_size, a.value_deleter_callback) = give(&value);
                std::ptr::null_mut()
            }
        }
    }
}

/// # Safety
/// As for `get`.
unsafe extern "C" fn put(args: *mut c::PJRT_KeyValuePutCallback_Args) -> *mut PJRT_Error {
    // SAFETY: as for `get`.
    unsafe {
        let a = &mut *args;
        let value = bytes(a.value, a.value_size);
        match run(a.user_arg, a.key, a.key_size, |store, key| store.put(key, value)) {
            Err(e) => refuse(a.callback_error, &e),
            Ok(()) => std::ptr::null_mut(),
        }
    }
}

/// # Safety
/// As for `get`.
unsafe fn run<T>(
    user_arg: *mut c_void,
    key: *const c_char,
    key_size: usize,
    with: impl FnOnce(&dyn KeyValueStore, &str) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller's promise.
    let (store, key) = unsafe { (&*user_arg.cast::<Shared>(), bytes(key, key_size)) };
    let failed = |code, message: &str| Error::new("KeyValueStore", code, message);
    let key = std::str::from_utf8(key).map_err(|_| failed(Code::InvalidArgument, "the key is not UTF-8"))?;
    catch_unwind(AssertUnwindSafe(|| with(&*store.0, key))).unwrap_or_else(|panic| {
        std::mem::forget(panic);
        Err(failed(Code::Internal, "the store panicked"))
    })
}

/// # Safety
/// `at` is null or the start of `len` bytes.
unsafe fn bytes<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    match at.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(at.cast(), len) },
    }
}

/// # Safety
/// `make` is null or points to the plugin's function for making an error.
unsafe fn refuse(make: *mut Option<CallbackError>, e: &Error) -> *mut PJRT_Error {
    // SAFETY: the caller's promise; the plugin copies the message.
    unsafe {
        match make.as_ref() {
            Some(Some(make)) => make(e.code.number() as u32, e.message.as_ptr().cast(), e.message.len()),
            _ => std::ptr::null_mut(),
        }
    }
}

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(at: *mut c_void);
}

/// A copy of the value for the plugin. Its deleter gets no length, so it comes from C's allocator.
fn give(value: &[u8]) -> (*mut c_char, usize, Option<c::StoreFree>) {
    unsafe extern "C" fn delete(value: *mut c_char) {
        // SAFETY: the plugin passes what `give` allocated, once.
        unsafe { free(value.cast()) }
    }
    // SAFETY: one byte at least, so a null pointer means that there is no memory; the copy fits.
    unsafe {
        let copy = malloc(value.len().max(1)).cast::<u8>();
        if copy.is_null() {
            return (std::ptr::null_mut(), 0, None);
        }
        std::ptr::copy_nonoverlapping(value.as_ptr(), copy, value.len());
        (copy.cast(), value.len(), Some(delete))
    }
}
