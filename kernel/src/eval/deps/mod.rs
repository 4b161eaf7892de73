//! Dependencies of a notebook (`:dep`).
pub mod build;
pub mod cargo;
pub mod lockfile;
pub mod notebook;
pub mod rooms;
mod scripts;
pub mod stages;
