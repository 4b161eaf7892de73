//! What a C library's -dev package has in `libc_nonshared.a`: functions that must know which object calls them.
#![no_std]
use core::ffi::{c_int, c_void};

type Function = *const c_void;

unsafe extern "C" {
    static __dso_handle: c_void;
    fn __cxa_atexit(f: Function, argument: *const c_void, of: *const c_void) -> c_int;
    fn __cxa_at_quick_exit(f: Function, of: *const c_void) -> c_int;
    fn __register_atfork(before: Function, parent: Function, child: Function, of: *const c_void) -> c_int;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn atexit(f: Function) -> c_int {
    unsafe { __cxa_atexit(f, core::ptr::null(), &raw const __dso_handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn at_quick_exit(f: Function) -> c_int {
    unsafe { __cxa_at_quick_exit(f, &raw const __dso_handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_atfork(before: Function, parent: Function, child: Function) -> c_int {
    unsafe { __register_atfork(before, parent, child, &raw const __dso_handle) }
}
