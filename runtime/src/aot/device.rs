//! Which platform programs run on: `%device`, and `PJRT_DEVICE=TPU` where there is no TPU.
use crate::{Error, Result};
use xlazy_core::device::platform::{CUDA, PLATFORMS, Platform, TPU};
use xlazy_core::device::{chips, device_names, opened, without_chip};
use xlazy_mime::Bundle;

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
