//! Which platform programs run on: `%device`, and `PJRT_DEVICE=TPU` where there is no TPU.
use crate::platform::{PLATFORMS, Platform, TPU};
use crate::{Error, Result, session};
use std::path::Path;
use xlazy_mime::Bundle;

/// PCI devices of Google's that are TPUs; the same vendor makes network cards.
const VENDOR: &str = "0x1ae0";
const TPUS: &[&str] = &["0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"];

/// TPU chips in this machine, as Linux lists them. libtpu itself would ask the network for minutes.
fn chips() -> usize {
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
pub(crate) fn without_chip(platform: &Platform) -> Option<String> {
    if !std::ptr::eq(platform, &TPU) || chips() > 0 {
        return None;
    }
    Some(
        "There is no TPU in this machine, so programs keep running on the CPU: open the notebook on a TPU VM or a Colab TPU \
         runtime to run on one, or ask what a TPU would do with %tpu v5e:1x1 EXPRESSION."
            .into(),
    )
}

/// Answers the kernel's question `device`: what programs run on, or a change of it.
pub(crate) fn answer(args: &str) -> Result<Bundle> {
    let wanted = args.trim();
    if wanted.is_empty() {
        return Ok(Bundle::text(now()));
    }
    let platform = PLATFORMS.iter().copied().find(|p| p.name.eq_ignore_ascii_case(wanted)).ok_or_else(|| {
        let names: Vec<&str> = PLATFORMS.iter().map(|p| p.name).collect();
        Error::Usage { message: format!("{wanted:?} is no platform of xlazy: there are {}", names.join(", ")) }
    })?;
    if let Some(why) = without_chip(platform) {
        return Ok(Bundle::text(why));
    }
    platform.library()?;
    match session::opened() {
        Some(name) if name.starts_with(&platform.name.to_lowercase()) => {
            Ok(Bundle::text(format!("programs run on {name} already")))
        }
        Some(name) => Ok(Bundle::text(format!(
            "programs have run on {name} in this session, and values live there: restart the kernel and write %device {} \
             before the first tensor, or set PJRT_DEVICE={} for the kernel",
            platform.name, platform.name
        ))),
        None => {
            crate::sys::set_env("PJRT_DEVICE", platform.name);
            Ok(Bundle::text(format!("programs will run on {}", platform.name)))
        }
    }
}

/// The devices that tensors can be moved to.
fn others() -> String {
    match session::device_names() {
        Ok([_, others @ ..]) if !others.is_empty() => {
            format!(", and where tensors are moved to ({}): `x.to({:?})`", others.join(", "), others[0])
        }
        _ => String::new(),
    }
}

fn now() -> String {
    let running = match (session::opened(), Platform::chosen()) {
        (Some(name), _) => format!("programs run on {name}{}", others()),
        (None, Ok(p)) => format!("programs will run on {}; nothing has run yet", p.name),
        (None, Err(e)) => return e.to_string(),
    };
    let tpu = match (chips(), TPU.library()) {
        (0, Ok(_)) => "no TPU in this machine; %tpu compiles for one all the same".to_owned(),
        (0, Err(_)) => "no TPU in this machine; after `xlazy plugins install tpu`, %tpu compiles for one".to_owned(),
        (1, _) => "one TPU chip in this machine: %device TPU".to_owned(),
        (n, _) => format!("{n} TPU chips in this machine: %device TPU"),
    };
    format!("{running}\n{tpu}")
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
