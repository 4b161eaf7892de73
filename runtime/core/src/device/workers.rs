//! The workers of the pod, for who looks at them.
use super::client::client_if_open;
use crate::pod::Client;
use crate::text::Place;

/// A worker of the pod, for who looks at it.
pub struct Worker {
    pub name: String,
    pub process: u32,
    /// The names of its devices, and what they are.
    pub devices: Vec<String>,
    pub kind: String,
    /// Bytes that its devices hold, where it tells.
    pub memory: Option<u64>,
    /// Programs that it was told to run, has started, has ended.
    pub programs: [u64; 3],
    /// Those that it has compiled, and loaded as another has compiled them.
    pub made: [u64; 2],
    /// The line of the program that it was told to run last.
    pub last_program: Option<Place>,
    /// Why nothing is to be had of it.
    pub trouble: Option<String>,
}

/// The workers of the pod; none where this process has devices of its own, or nothing has run yet.
pub fn pod_workers() -> Vec<Worker> {
    let Some((client, Client::Pod(pod))) = client_if_open().map(|c| (c, &c.pjrt)) else { return vec![] };
    let trouble = pod.trouble().err().map(|e| e.message);
    let one = |(i, status): (usize, crate::pod::Status)| {
        let places = || pod.devices().iter().enumerate().filter(|(_, p)| p.worker == i);
        let stats = |d: usize| client.devices.get(d)?.memory_stats().ok().flatten();
        let memory = match trouble {
            Some(_) => None,
            None => places().map(|(d, _)| stats(d).map(|m| m.bytes_in_use.max(0) as u64)).sum(),
        };
        Worker {
            devices: places().filter_map(|(d, _)| client.names.get(d).cloned()).collect(),
            kind: places().next().map(|(_, p)| p.info.kind.clone()).unwrap_or_default(),
            memory,
            trouble: trouble.clone().filter(|t| pod.over().is_some() || t.starts_with(&status.name)),
            name: status.name,
            process: status.process,
            programs: status.programs,
            made: status.made,
            last_program: status.last_program,
        }
    };
    pod.status().into_iter().enumerate().map(one).collect()
}
