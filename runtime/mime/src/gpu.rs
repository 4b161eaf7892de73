//! Whether there is an NVIDIA GPU, as Linux tells without any of NVIDIA's libraries.
use std::fs;
use std::path::Path;

/// What there is of NVIDIA's.
#[derive(Debug, PartialEq)]
pub enum Gpu {
    /// GPUs that a driver has made devices for, by the devices' names; and the driver's version where it tells.
    Driven {
        devices: Vec<String>,
        driver: Option<String>,
    },
    /// A GPU on the bus without a driver.
    Undriven,
    None,
}

/// NVIDIA's number among the makers of PCI devices, and how the classes of what draws or computes begin.
const VENDOR: &str = "0x10de";
const CLASSES: [&str; 2] = ["0x0300", "0x0302"];

/// NVIDIA's GPUs in the machine whose root folder this is.
///
/// ```
/// # use xlazy_mime::gpu::{nvidia, Gpu};
/// assert_eq!(nvidia(std::path::Path::new("/nowhere")), Gpu::None);
/// ```
pub fn nvidia(root: &Path) -> Gpu {
    let names = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned())
    };
    let numbered =
        |n: &String| n.strip_prefix("nvidia").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    // Under Windows Subsystem for Linux there is one device for all GPUs, and NVIDIA's library beside Windows' own.
    let wsl = root.join("usr/lib/wsl/lib/libcuda.so.1").exists().then(|| "dxg".to_owned());
    let mut devices: Vec<String> = names("dev").filter(|n| numbered(n) || Some(n) == wsl.as_ref()).collect();
    devices.sort();
    if !devices.is_empty() {
        let says = fs::read_to_string(root.join("proc/driver/nvidia/version")).unwrap_or_default();
        let version = |w: &&str| w.contains('.') && w.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let driver = says.lines().next().and_then(|l| l.split_whitespace().find(version)).map(str::to_owned);
        let devices = devices.into_iter().map(|d| format!("/dev/{d}")).collect();
        return Gpu::Driven { devices, driver };
    }
    let bus = "sys/bus/pci/devices";
    let reads = |device: &str, file: &str| {
        fs::read_to_string(root.join(bus).join(device).join(file)).unwrap_or_default().trim().to_owned()
    };
    let is_gpu = |d: String| reads(&d, "vendor") == VENDOR && CLASSES.iter().any(|c| reads(&d, "class").starts_with(c));
    if names(bus).any(is_gpu) { Gpu::Undriven } else { Gpu::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_driver_and_bus_tell() {
        let root = crate::private::temporary(&std::env::temp_dir(), "xlazy-gpu-").unwrap();
        let write = |file: &str, text: &str| {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        };
        write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
        write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
        for name in ["nvidiactl", "nvidia-uvm", "null", "dxg"] {
            write(&format!("dev/{name}"), "");
        }
        assert_eq!(nvidia(&root), Gpu::None, "sound of NVIDIA's is no GPU");
        write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        assert_eq!(nvidia(&root), Gpu::Undriven);
        write("dev/nvidia0", "");
        write("dev/nvidia11", "");
        let devices = vec!["/dev/nvidia0".to_owned(), "/dev/nvidia11".to_owned()];
        assert_eq!(nvidia(&root), Gpu::Driven { devices: devices.clone(), driver: None });
        write(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: gcc 12.2.0\n",
        );
        assert_eq!(nvidia(&root), Gpu::Driven { devices, driver: Some("550.54.15".into()) });
        for name in ["nvidia0", "nvidia11"] {
            fs::remove_file(root.join("dev").join(name)).unwrap();
        }
        write("usr/lib/wsl/lib/libcuda.so.1", "");
        assert!(matches!(nvidia(&root), Gpu::Driven { devices, .. } if devices == ["/dev/dxg"]));
        fs::remove_dir_all(root).unwrap();
    }
}
