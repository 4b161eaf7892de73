//! What is linked without a C compiler in a test of `toolchain/linker.rs`.
use std::cell::Cell;
unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> i32;
    fn cos(x: f64) -> f64;
}
static COUNT: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
extern "C" fn before(count: i32) {
    COUNT.store(count, std::sync::atomic::Ordering::Relaxed);
}
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE: extern "C" fn(i32) = before;
extern "C" fn last() {
    println!("last");
}
thread_local!(static OWN: Cell<i32> = const { Cell::new(1) });
fn main() {
    unsafe { atexit(last) };
    OWN.set(2);
    let other = std::thread::spawn(|| OWN.get()).join().unwrap();
    let unwound = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(1))).is_err();
    let cosine = unsafe { cos(std::hint::black_box(0.0)) };
    println!("{} {} {other} {unwound} {cosine}", COUNT.load(std::sync::atomic::Ordering::Relaxed), OWN.get());
}
