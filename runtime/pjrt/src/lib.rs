//! The PJRT C API, loaded at run time: the only crate of ours that calls it, and it knows no tensor.
//!
//! A [`Plugin`] is a shared library; it gives a [`Client`], which owns [`Device`]s, compiles a [`Program`] into a
//! [`LoadedExecutable`] and moves data into [`Buffer`]s. A buffer or executable keeps its client alive. Every type may be
//! used from any thread. Whatever a plugin answers, the result is a value or an [`Error`], never a panic.
// This crate is the boundary to C: each block says why it is sound.
#![allow(unsafe_code)]
#![warn(missing_docs)]

mod api;
mod buffer;
#[allow(missing_docs)]
mod c;
mod client;
mod device;
mod error;
mod event;
mod executable;
mod layout;
mod live;
mod options;
mod plugin;
mod profiler;
mod store;
mod topology;
mod value;

pub use buffer::{Buffer, HostCopy};
pub use client::Client;
pub use device::{Device, MemoryStats};
pub use error::{Code, Error, Result};
pub use event::Event;
pub use executable::{CompiledMemoryStats, Executable, LoadedExecutable};
pub use live::{LiveObjects, live};
pub use options::{CompileOptions, Program};
pub use plugin::Plugin;
pub use profiler::Profiler;
pub use store::KeyValueStore;
pub use topology::{DeviceDescription, Topology};
pub use value::{BufferType, Value};

/// The declarations of `c.rs`, for the test that compares them with the C header.
#[doc(hidden)]
pub mod declared {
    pub use crate::c::{Layout, MINOR, OLDEST_MINOR, enumerators, layouts};
}
