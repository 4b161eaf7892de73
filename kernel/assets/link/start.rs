//! Where a program begins, as `Scrt1.o` of a C library's -dev package has it: linked to executables where there is no such package.
#![no_std]
use core::ffi::{c_char, c_int};

type Constructor = unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;

// The stack as the kernel leaves it: how many arguments there are, and the arguments; rdx has what is to run at the end.
core::arch::global_asm!(
    ".globl _start",
    ".type _start, @function",
    "_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "endbr64",
    "xor ebp, ebp",
    "mov r9, rdx",
    "pop rsi",
    "mov rdx, rsp",
    "and rsp, -16",
    "push rax",
    "push rsp",
    "xor r8d, r8d",
    "lea rcx, [rip + {construct}]",
    "mov rdi, qword ptr [rip + main@GOTPCREL]",
    "call qword ptr [rip + __libc_start_main@GOTPCREL]",
    "hlt",
    ".cfi_endproc",
    ".size _start, . - _start",
    construct = sym construct,
);

unsafe extern "C" {
    static __init_array_start: [Constructor; 0];
    static __init_array_end: [Constructor; 0];
}

/// Runs the program's own constructors: every glibc calls what it is given for that.
unsafe extern "C" fn construct(count: c_int, arguments: *const *const c_char, variables: *const *const c_char) -> c_int {
    unsafe {
        let (mut next, end) = (__init_array_start.as_ptr(), __init_array_end.as_ptr());
        while next != end {
            (*next)(count, arguments, variables);
            next = next.add(1);
        }
    }
    0
}
