//! Whether there is a chip of a platform in this machine.
use super::platform::{CUDA, Platform, TPU};
use std::path::Path;
use xlazy_mime::gpu::Gpu;

/// PCI devices of Google's that are TPUs; the same vendor makes network cards.
const VENDOR: &str = "0x1ae0";
const TPUS: &[&str] = &["0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"];

/// TPU chips in this machine, as Linux lists them. libtpu itself would ask the network for minutes.
pub fn chips() -> usize {
    chips_in(Path::new("/sys/bus/pci/devices"))
}

fn chips_in(folder: &Path) -> usize {
    let devices = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let reads = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let is_tpu =
        |folder: &Path| reads(folder, "vendor").trim() == VENDOR && TPUS.contains(&reads(folder, "device").trim());
    devices.filter(|d| is_tpu(&d.path())).count()
}

/// Why programs cannot run on this platform here, and what to do; `None` when they can, as far as can be told beforehand.
pub fn without_chip(platform: &Platform) -> Option<String> {
    let why = match platform.name {
        name if name == TPU.name && chips() == 0 => {
            "There is no TPU in this machine, so programs keep running on the CPU: open the notebook on a TPU VM or a Colab TPU \
             runtime to run on one, or ask what a TPU would do with %tpu v5e:1x1 EXPRESSION."
        }
        name if name == CUDA.name => match xlazy_mime::gpu::nvidia(Path::new("/")) {
            Gpu::Driven { .. } => return None,
            Gpu::Undriven => {
                "There is an NVIDIA GPU in this machine, and no driver for it, so programs keep running on the CPU: install \
                 NVIDIA's driver, until `nvidia-smi` lists the GPU."
            }
            Gpu::None => {
                "There is no NVIDIA GPU in this machine, so programs keep running on the CPU: open the notebook on a machine \
                 or a Colab runtime that has one. A container wants to be started with its GPUs (docker run --gpus all)."
            }
        },
        _ => return None,
    };
    Some(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_counted_by_what_the_bus_says() {
        let folder = std::env::temp_dir().join(format!("xlazy-pci-{}", std::process::id()));
        for (name, vendor, device) in [("a", VENDOR, "0x0063"), ("b", VENDOR, "0x0042"), ("c", "0x8086", "0x0063")] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
            std::fs::write(folder.join(name).join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(folder.join(name).join("device"), format!("{device}\n")).unwrap();
        }
        assert_eq!(chips_in(&folder), 1);
        assert_eq!(chips_in(&folder.join("nothing")), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
