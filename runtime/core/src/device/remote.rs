//! Devices of other processes: the pod that the environment asks for, and what a worker of one does.
use super::chip::without_chip;
use super::platform::{CPU, CPU_OF_SEVERAL, PLATFORMS, Platform};
use crate::pod::{CALL, Client, Failure, Open, Pod, Spec, address, quoted, serve};
use crate::{Error, Result, sys};
use std::fs::File;
use std::sync::Arc;
use xlazy_pjrt::{Code, KeyValueStore, Plugin, Value};

/// The pod that `XLAZY_POD` asks for, in the words of `%pod start`.
pub(super) fn wanted() -> Result<Option<Spec>> {
    match std::env::var("XLAZY_POD") {
        Ok(text) if !text.trim().is_empty() => check_pod(&text).map(Some),
        _ => Ok(None),
    }
}

/// Reads what a pod is to be.
///
/// Errors: what is wrong with it.
pub fn check_pod(text: &str) -> Result<Spec> {
    let exe = std::env::current_exe().map(|e| e.display().to_string()).unwrap_or_default();
    Spec::read(text, &format!("{} --worker", quoted(&exe))).map_err(|message| Error::Usage { message })
}

/// Starts the workers.
pub(super) fn open(spec: &Spec) -> Result<(Client, &'static Platform)> {
    let pod = Pod::start(spec).map_err(|message| Error::Usage { message })?;
    let client = Client::Pod(pod);
    let name = client.platform_name();
    let known = PLATFORMS.iter().copied().find(|p| p.name.eq_ignore_ascii_case(&name));
    let platform =
        known.ok_or_else(|| Error::Usage { message: format!("the pod's platform {name} is none of xlazy's") })?;
    Ok((client, platform))
}

/// Serves a controller on standard input and output until it goes away: the exit code.
pub fn worker_main() -> i32 {
    let ends = sys::take_stdin().and_then(|input| Ok((File::from(input), File::from(sys::take_stdout()?))));
    match ends.and_then(|(input, output)| serve(input, output, make)) {
        Ok(()) => 0,
        Err(e) => {
            std::eprintln!("xlazy worker: {e}");
            1
        }
    }
}

/// Makes a worker's client. Those of several workers meet in the store; true where this one's plugin knows nothing of others.
fn make(how: &Open, store: Arc<dyn KeyValueStore>) -> std::result::Result<(xlazy_pjrt::Client, bool), Failure> {
    for (name, value) in &how.variables {
        sys::set_env(name, value);
    }
    if !how.platform.is_empty() {
        sys::set_env("PJRT_DEVICE", &how.platform);
    }
    let failed =
        |message: String| Failure { call: CALL.into(), code: Code::FailedPrecondition.number().into(), message };
    let said = |e: Error| failed(e.to_string());
    let platform = Platform::chosen().map_err(said)?;
    if let Some(why) = without_chip(platform) {
        return Err(failed(why));
    }
    let platform = if how.workers > 1 && platform.name == CPU.name { &CPU_OF_SEVERAL } else { platform };
    let library = platform.library().map_err(said)?;
    let options = (platform.options)().map_err(said)?;
    platform.prepare(&options, how.workers);
    let plugin = Plugin::load(&library).map_err(|e| failed(e.to_string()))?;
    let alone = || plugin.create_client(&options).map_err(|e| said(platform.refused(e)));
    if how.workers == 1 {
        return Ok((alone()?, false));
    }
    let mut joint = options.clone();
    let several = [("num_nodes", how.workers), ("node_id", how.worker)];
    let several = several.map(|(name, n)| (name, Value::Int(n.into())));
    match platform.name {
        "CPU" => {
            joint.extend(several);
            joint.push(("collectives_address", Value::Str(address(&how.host).map_err(failed)?)));
        }
        "CUDA" => joint.extend(several),
        // libtpu asks its metadata, or TPU_WORKER_HOSTNAMES and its like.
        _ => {}
    }
    match plugin.create_client_with_store(&joint, store) {
        // A plugin that knows no such options may take no notice of them: then the others' devices are none of its client's.
        Ok(client) => {
            let alone = client.devices().len() == client.addressable_devices().len();
            Ok((client, alone))
        }
        // Or it refuses them.
        Err(e) if platform.name == "CPU" && matches!(e.code, Code::InvalidArgument | Code::Unimplemented) => {
            Ok((alone()?, true))
        }
        Err(e) => Err(said(platform.refused(e))),
    }
}
