//! Data on its way to the device: datasets, batches, files.
mod csv;
mod lines;
mod over;
mod random;
mod workers;
// Public, for a cell names a variable's type by the path that the compiler gives.
#[doc(hidden)]
pub mod array;
#[doc(hidden)]
pub mod augment;
#[doc(hidden)]
pub mod dataset;
#[doc(hidden)]
pub mod folder;
#[doc(hidden)]
pub mod loader;
#[doc(hidden)]
pub mod picture;
#[doc(hidden)]
pub mod sampler;

pub use array::{Array, Failure};
pub use augment::Sides;
pub use csv::read_csv;
pub use dataset::{ConcatDataset, Cut, Dataset, FakeData, Lengths, Subset, TensorDataset, random_split};
pub use folder::ImageFolder;
pub use lines::{Record, read_jsonl, read_table};
pub use loader::{Batches, DataLoader, DataLoaderOptions, MpDeviceLoader};
pub use picture::Picture;
pub use random::{below, uniform};
pub use sampler::{BatchSampler, BucketBatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler};
pub use sampler::{SubsetRandomSampler, WeightedRandomSampler};
