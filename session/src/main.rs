//! The session process: everything is in `libxlazy.so`, so that cells and the worker share one copy of it.
fn main() {
    xlazy::cell::worker::main();
}
