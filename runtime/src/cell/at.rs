//! Which statement of a cell is running, in a file that outlives the process: what the kernel says of a crash.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use xlazy_core::sys::come_to_statement;

static FILE: OnceLock<File> = OnceLock::new();
static LINE: AtomicU32 = AtomicU32::new(0);

/// The line of the statement that runs; 0 before the first.
pub(super) fn line() -> u32 {
    LINE.load(Ordering::Relaxed)
}

/// Opens the file that the kernel names in `XLAZY_AT`.
pub(super) fn open() {
    let file = std::env::var_os("XLAZY_AT").and_then(|path| File::options().write(true).open(path).ok());
    if let Some(file) = file {
        let _ = FILE.set(file);
    }
}

/// A run begins: its number, and no line yet.
pub(super) fn begin(run: u64) {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&run.to_le_bytes());
    LINE.store(0, Ordering::Relaxed);
    write(&bytes, 0);
}

/// The statement on this line of the cell begins.
#[doc(hidden)]
#[track_caller]
#[inline(never)]
pub fn at(line: u32) {
    come_to_statement();
    LINE.store(line, Ordering::Relaxed);
    write(&line.to_le_bytes(), 8);
}

fn write(bytes: &[u8], offset: u64) {
    if let Some(file) = FILE.get() {
        let _ = file.write_all_at(bytes, offset);
    }
}
