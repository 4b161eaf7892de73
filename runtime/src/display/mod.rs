//! Values, pictures, plots and graphs as MIME bundles.
pub(crate) mod collectives;
mod debug;
mod draw;
mod drawn;
pub(crate) mod graph;
pub(crate) mod hlo;
mod image;
pub(crate) mod ir;
mod layout;
pub(crate) mod metrics;
pub(crate) mod named;
pub(crate) mod names;
mod number;
pub(crate) mod page;
pub(crate) mod picture;
mod plot;
pub(crate) mod rates;
mod template;
mod tensor;
pub(crate) mod timeline;
pub(crate) mod transfers;
pub(crate) mod value;

pub use image::{ImageOptions, Pictures, image, image_with, images, images_with};
pub use plot::{Numbers, Plot, grid, line_plot, scatter_plot};

use crate::{Error, Raised};
use std::panic::Location;

/// Ends the cell with an error at a given line: a display has no caller in user code.
fn fail(error: Error, at: &'static Location<'static>) -> ! {
    if std::thread::panicking() || !xlazy_core::host::running() {
        panic!("{error}")
    }
    std::panic::resume_unwind(Box::new(Raised::of(error, at, None)))
}
