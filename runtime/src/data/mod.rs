//! Data on its way to the device: datasets, batches, files.
mod csv;
mod loader;

pub use csv::read_csv;
pub use loader::{Batches, DataLoader, DataLoaderOptions, Dataset, TensorDataset};
