//! Which platform programs run on, and as how many devices the CPU counts: `%device`, and `PJRT_DEVICE=TPU` where there is no TPU.
use crate::{Error, Result};
use xlazy_core::device::platform::{CPU, CUDA, PLATFORMS, Platform, TPU};
use xlazy_core::device::{MOST_DEVICES, chips, device_names, opened, without_chip};
use xlazy_mime::Bundle;

/// Answers the kernel's question `device`: what programs run on, or a change of it.
pub(crate) fn answer(args: &str) -> Result<Bundle> {
    let mut words = args.split_whitespace();
    let Some(wanted) = words.next() else { return Ok(Bundle::text(now())) };
    let count = words.next();
    let platform = PLATFORMS.iter().copied().find(|p| p.name.eq_ignore_ascii_case(wanted)).ok_or_else(|| {
        let names: Vec<&str> = PLATFORMS.iter().map(|p| p.name).collect();
        Error::Usage { message: format!("{wanted:?} is no platform of xlazy: there are {}", names.join(", ")) }
    })?;
    if let Some(count) = count {
        return counted(platform, count);
    }
    if let Some(why) = without_chip(platform) {
        return Ok(Bundle::text(why));
    }
    platform.library()?;
    match opened() {
        Some(name) if name.starts_with(&platform.name.to_lowercase()) => {
            Ok(Bundle::text(format!("programs run on {name} already")))
        }
        Some(name) => Ok(Bundle::text(format!(
            "programs have run on {name} in this session, and values live there: restart the kernel and write %device {} \
             before the first tensor, or set PJRT_DEVICE={} for the kernel",
            platform.name, platform.name
        ))),
        None => {
            xlazy_core::sys::set_env("PJRT_DEVICE", platform.name);
            Ok(Bundle::text(format!("programs will run on {}", platform.name)))
        }
    }
}

/// What `%device` and these words do and say, in a program: `xlazy export` writes it.
#[doc(hidden)]
#[track_caller]
pub fn device(words: &str) -> String {
    match answer(words) {
        Ok(said) => said.plain().to_owned(),
        Err(e) => e.raise(),
    }
}

/// Has a platform count as so many devices.
fn counted(platform: &Platform, count: &str) -> Result<Bundle> {
    let refused = |message: String| Err(Error::Usage { message });
    let count = match count.parse::<usize>() {
        Ok(count @ 1..=MOST_DEVICES) if platform.name == CPU.name => count,
        Ok(_) if platform.name == CPU.name => return refused(format!("the CPU counts as 1 to {MOST_DEVICES} devices")),
        _ => return refused(format!("{} has the devices that there are: %device {}", platform.name, platform.name)),
    };
    platform.library()?;
    let devices = xlazy_mime::count(count, "device");
    match opened() {
        None => {
            xlazy_core::sys::set_env("PJRT_DEVICE", platform.name);
            xlazy_core::sys::set_env("XLAZY_CPU_DEVICES", &count.to_string());
            Ok(Bundle::text(format!("programs will run on CPU, which counts as {devices}")))
        }
        Some(name) if name.starts_with("cpu") && device_names()?.len() == count => {
            Ok(Bundle::text(format!("programs run on {name} already, one of {devices}")))
        }
        Some(name) => refused(format!(
            "programs have run on {name} in this session, one of {}, and values live there: restart the kernel, and run \
             `%device CPU {count}` before the first tensor",
            xlazy_mime::count(device_names()?.len(), "device")
        )),
    }
}

/// The devices that tensors can be moved to.
fn others() -> String {
    match device_names() {
        Ok([_, others @ ..]) if !others.is_empty() => {
            format!(", and where tensors are moved to ({}): `x.to({:?})`", others.join(", "), others[0])
        }
        _ => String::new(),
    }
}

fn now() -> String {
    let running = match (opened(), Platform::chosen()) {
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
    let gpu = match without_chip(&CUDA) {
        None if Platform::chosen().is_ok_and(|p| p.name == CUDA.name) => "",
        None if CUDA.library().is_ok() => "\nan NVIDIA GPU in this machine: %device CUDA",
        None => "\nan NVIDIA GPU in this machine: %device CUDA, after `xlazy plugins install cuda12`",
        Some(_) => "",
    };
    format!("{running}\n{tpu}{gpu}")
}
