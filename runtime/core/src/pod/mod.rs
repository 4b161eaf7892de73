//! The second engine: devices of other processes, on this machine or others, behind the same objects as this process's own.
//! Only the controller traces; a worker is a loop over PJRT calls on its standard input and output.
mod arrival;
mod controller;
mod convert;
mod files;
mod link;
mod objects;
mod signal;
mod spec;
mod store;
pub mod wire;
mod worker;

/// What an error of a pod, and of no plugin, names as its call.
pub const CALL: &str = "pod";

pub use controller::{Pod, Status};
pub use files::Run;
pub use objects::{Buffer, Client, Device, Event, LoadedExecutable};
pub use spec::{Spec, address, quoted};
pub use wire::{Failure, Open};
pub use worker::{Opener, serve};
