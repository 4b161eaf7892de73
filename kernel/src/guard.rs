//! Ends a group of processes when the kernel goes away without a word: cargo's build scripts, shell commands and what cells
//! have started would work on for nobody.
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Watches for as long as it lives. A shell waits for the end of its input, which comes when it is dropped, or when the
/// kernel dies, however that happens.
pub struct Guard(Option<Child>);

impl Guard {
    pub fn of(group: u32) -> Guard {
        let watch = Command::new("sh")
            .args(["-c", &format!("read _; kill -s KILL -- -{group}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Guard(watch.ok())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut watch) = self.0.take() {
            // Before its input ends: what the command left behind on purpose lives on.
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }
}
