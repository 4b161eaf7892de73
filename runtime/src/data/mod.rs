//! Data on its way to the device: datasets, batches, files.
mod csv;
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod loader;

pub use csv::read_csv;
pub use loader::{Batches, DataLoader, DataLoaderOptions, Dataset, TensorDataset, random_split};
