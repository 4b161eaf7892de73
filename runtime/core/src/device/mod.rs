//! Devices: the client and its plugin, values, transfers, waits. Only this floor talks to `pjrt` about them.
mod chip;
mod client;
mod data;
mod disk;
mod dry;
mod flight;
pub mod platform;
mod remote;
mod transfer;
mod wait;
mod workers;

pub use chip::{chips, without_chip};
pub use client::{
    MOST_DEVICES, OpenClient, client, client_if_open, device_name, device_names, name_of, opened, preload, probe,
    release_what_loading_took,
};
pub use data::{Counted, DeviceData, Shards, bytes_in_use, counted};
pub use disk::{OnDisk, load_sharded, machines, read_file};
pub use dry::{go_dry, is_dry, read_as};
pub use flight::{is_unsettled, make_room, settle, wait_for_all, watch};
pub use remote::{check_pod, worker_main};
pub use transfer::{download, resharded, upload, upload_sharded};
pub use wait::{LOOK_UP, ready, wait};
pub use workers::{Worker, pod_workers};
pub use xlazy_pjrt::Profiler;
