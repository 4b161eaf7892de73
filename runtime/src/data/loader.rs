//! Batches from data in host memory.
use crate::insight::Cause;
use crate::rng::SplitMix;
use crate::tensor::{Tensor, is_grad_enabled, on_behalf, refuse, sync_for};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xlazy_core::ir::Placement;
use xlazy_core::mesh::{Mesh, Sharding};
use xlazy_core::ty::{Shape, Type};

/// Samples of `N` parts each, such as a picture and its label (`torch.utils.data.Dataset`).
pub trait Dataset<const N: usize>: Send + Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples at these places, stacked: one tensor per part, on the device.
    // As `Module::forward`: a dataset of the user's own traces at its own lines.
    fn batch(&self, indices: &[usize]) -> [Tensor; N];

    // A call through `dyn` loses the caller's line, which batches should carry.
    #[doc(hidden)]
    fn as_tensors(&self) -> Option<&TensorDataset<N>> {
        None
    }
}

/// Tensors whose first dimension counts the samples (`torch.utils.data.TensorDataset`). Their values are copied to host
/// memory once; batches go to the device one by one.
///
/// ```
/// use xlazy::prelude::*;
/// let data = data::TensorDataset::new([&Tensor::rand([10, 3]), &Tensor::arange(0, 10, 1)]);
/// for [x, y] in &data::DataLoader::new(data, 4) {
///     assert_eq!(x.size(0), y.size(0));
/// }
/// ```
#[derive(Clone)]
pub struct TensorDataset<const N: usize> {
    parts: Arc<[Part; N]>,
    /// The places of the samples in the parts.
    places: Vec<usize>,
}

struct Part {
    bytes: Vec<u8>,
    ty: Type,
    /// Bytes of one sample.
    stride: usize,
    /// Where its tensor was: batches go there.
    place: Placement,
}

impl<const N: usize> TensorDataset<N> {
    #[track_caller]
    pub fn new(tensors: [&Tensor; N]) -> TensorDataset<N> {
        let shapes = tensors.map(Tensor::shape);
        let len = shapes.first().and_then(|s| s.first().copied()).unwrap_or(0);
        if shapes.iter().any(|s| s.first() != Some(&len)) {
            refuse("TensorDataset", &tensors, "the first dimensions must be equal: they count the samples");
        }
        let at = Location::caller();
        let parts = tensors.map(|t| {
            let ty = t.ty();
            let bytes = t.bytes(Cause::Read, at).unwrap_or_else(|e| e.raise());
            Part { stride: ty.bytes() / len.max(1), ty, bytes, place: t.placement() }
        });
        TensorDataset { parts: Arc::new(parts), places: (0..len).collect() }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The samples at these places as a dataset of its own, without a copy (`torch.utils.data.Subset`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let data = data::TensorDataset::new([&Tensor::arange(0, 6, 1)]);
    /// let (train, test): (Vec<usize>, Vec<usize>) = (0..6).partition(|i| i % 3 != 0);
    /// assert_eq!(data.subset(&train).tensors()[0].to_vec::<i64>(), [1, 2, 4, 5]);
    /// assert_eq!(data.subset(&test).tensors()[0].to_vec::<i64>(), [0, 3]);
    /// ```
    #[track_caller]
    pub fn subset(&self, places: &[usize]) -> TensorDataset<N> {
        if let Some(p) = places.iter().find(|p| **p >= self.places.len()) {
            refuse("subset", &[], format!("there is no sample {p} among {}", self.places.len()));
        }
        let places = places.iter().map(|&p| self.places[p]).collect();
        TensorDataset { parts: self.parts.clone(), places }
    }

    /// All samples in one batch.
    #[track_caller]
    pub fn tensors(&self) -> [Tensor; N] {
        self.rows(&self.places, None)
    }

    #[track_caller]
    fn rows(&self, places: &[usize], over: Option<&Over>) -> [Tensor; N] {
        // No closures: they lose the caller's line.
        let mut out = Vec::with_capacity(N);
        for part in self.parts.iter() {
            let mut bytes = Vec::with_capacity(places.len() * part.stride);
            for &k in places {
                bytes.extend_from_slice(&part.bytes[k * part.stride..(k + 1) * part.stride]);
            }
            let mut dims = part.ty.shape.to_vec();
            dims[0] = places.len();
            let ty = Type::new(part.ty.dtype, Shape::new(&dims));
            out.push(match over {
                None => Tensor::of_bytes_on(part.place, &bytes, ty),
                Some(over) => Tensor::of_bytes_laid(&over.sharding(&ty.shape), &bytes, ty),
            });
        }
        out.try_into().unwrap_or_else(|_| unreachable!("one tensor for each of the N parts"))
    }
}

impl<const N: usize> Dataset<N> for TensorDataset<N> {
    fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    #[track_caller]
    fn batch(&self, indices: &[usize]) -> [Tensor; N] {
        let places: Vec<usize> = indices.iter().map(|&i| self.places[i]).collect();
        self.rows(&places, None)
    }

    fn as_tensors(&self) -> Option<&TensorDataset<N>> {
        Some(self)
    }
}

/// What [`DataLoader::with`] takes beside the batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataLoaderOptions {
    /// Another order in each epoch.
    pub shuffle: bool,
    /// What the orders are drawn from: the same seed gives the same epochs.
    pub seed: u64,
    /// Leaves out a last batch that is smaller than the others. Its shape would compile a program of its own.
    pub drop_last: bool,
    /// Runs what is pending before each next batch and at the end, so that the loop needs no `sync()`
    /// (torch_xla's `MpDeviceLoader`).
    pub sync: bool,
}

/// Goes through a dataset in batches, as often as one likes (`torch.utils.data.DataLoader`). The last batch is smaller where
/// the samples do not come out even, unless `drop_last` is set.
///
/// ```
/// use xlazy::prelude::*;
/// let data = data::TensorDataset::new([&Tensor::arange(0, 10, 1)]);
/// let options = data::DataLoaderOptions { shuffle: true, seed: 7, drop_last: true, ..Default::default() };
/// let loader = data::DataLoader::with(data, 4, options);
/// assert_eq!(loader.len(), 2);
/// for [x] in &loader {
///     assert_eq!(x.shape(), [4]);
/// }
/// ```
pub struct DataLoader<const N: usize> {
    dataset: Box<dyn Dataset<N>>,
    batch_size: usize,
    options: DataLoaderOptions,
    epoch: AtomicU64,
    over: Option<Over>,
}

/// The axis of a mesh that batches are split over.
struct Over {
    mesh: Mesh,
    axis: String,
}

impl Over {
    /// How a tensor of a batch lies: its first dimension is split.
    #[track_caller]
    fn sharding(&self, shape: &Shape) -> Sharding {
        let spec: Vec<Option<&str>> = (0..shape.len()).map(|d| (d == 0).then_some(&*self.axis)).collect();
        let sharding = Sharding::new(self.mesh, &spec).unwrap_or_else(|why| refuse("DataLoader", &[], why));
        if sharding.uneven(shape).is_some() {
            let why = format!(
                "a batch of {} samples does not split evenly over the {} parts of the axis `{}`: choose another batch size, and \
                 `.drop_last(true)` where the last batch is smaller",
                shape[0],
                sharding.parts(0),
                self.axis
            );
            refuse("DataLoader", &[], why);
        }
        sharding
    }
}

impl<const N: usize> DataLoader<N> {
    #[track_caller]
    pub fn new(dataset: impl Dataset<N> + 'static, batch_size: usize) -> DataLoader<N> {
        DataLoader::with(dataset, batch_size, DataLoaderOptions::default())
    }

    #[track_caller]
    pub fn with(dataset: impl Dataset<N> + 'static, batch_size: usize, options: DataLoaderOptions) -> DataLoader<N> {
        if batch_size == 0 {
            refuse("DataLoader", &[], "the batch size must be 1 or more");
        }
        DataLoader { dataset: Box::new(dataset), batch_size, options, epoch: AtomicU64::new(0), over: None }
    }

    /// In another order in each epoch, or not (`shuffle=True`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let data = data::TensorDataset::new([&Tensor::arange(0, 10, 1)]);
    /// let loader = data::DataLoader::new(data, 4).shuffle(true).seed(7).drop_last(true);
    /// assert_eq!(loader.len(), 2);
    /// ```
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.options.shuffle = shuffle;
        self
    }

    /// What the orders are drawn from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Without a last batch that is smaller than the others, or with it.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.options.drop_last = drop_last;
        self
    }

    /// Splits every batch over an axis of a mesh, along its first dimension: each device gets its samples and no others
    /// (torch_xla's `MpDeviceLoader` with `input_sharding`).
    ///
    /// ```no_run
    /// use xlazy::prelude::*;
    /// let mesh = Mesh::new(&[("data", 8)]);
    /// let data = data::TensorDataset::new([&Tensor::rand([64, 3])]);
    /// for [x] in &data::DataLoader::new(data, 16).shard(&mesh, "data") {
    ///     assert_eq!(x.sharding().unwrap().to_string(), "(data, None)");
    /// }
    /// ```
    #[track_caller]
    pub fn shard(mut self, mesh: &Mesh, axis: &str) -> Self {
        if mesh.axis(axis).is_none() {
            refuse("DataLoader", &[], format!("{mesh} has no axis `{axis}`"));
        }
        self.over = Some(Over { mesh: *mesh, axis: axis.to_owned() });
        self
    }

    /// Batches in an epoch.
    pub fn len(&self) -> usize {
        match self.options.drop_last {
            true => self.dataset.len() / self.batch_size,
            false => self.dataset.len().div_ceil(self.batch_size),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One epoch. Each call shuffles anew, if the options say so.
    #[track_caller]
    pub fn iter(&self) -> Batches<'_, N> {
        let mut order: Vec<usize> = (0..self.dataset.len()).collect();
        if self.options.shuffle {
            let epoch = self.epoch.fetch_add(1, Ordering::Relaxed);
            shuffle(&mut order, self.options.seed ^ epoch.wrapping_mul(0xd134_2543_de82_ef95));
        }
        Batches { loader: self, order, next: 0, at: Location::caller() }
    }
}

/// Fisher and Yates's shuffle.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut rng = SplitMix(seed);
    for i in (1..order.len()).rev() {
        // The high half of the product is uniform below i + 1 but for a bias of 2^-64 of it.
        order.swap(i, ((rng.next() as u128 * (i as u128 + 1)) >> 64) as usize);
    }
}

/// One epoch of a [`DataLoader`].
pub struct Batches<'a, const N: usize> {
    loader: &'a DataLoader<N>,
    order: Vec<usize>,
    next: usize,
    at: &'static Location<'static>,
}

impl<const N: usize> Iterator for Batches<'_, N> {
    type Item = [Tensor; N];

    #[track_caller]
    fn next(&mut self) -> Option<[Tensor; N]> {
        if self.loader.options.sync && self.next > 0 {
            sync_for(Cause::LoaderBarrier);
        }
        if self.next >= self.loader.len() {
            return None;
        }
        let start = self.next * self.loader.batch_size;
        let end = (start + self.loader.batch_size).min(self.order.len());
        let (dataset, indices) = (&self.loader.dataset, &self.order[start..end]);
        let over = self.loader.over.as_ref();
        let batch = || match (dataset.as_tensors(), over) {
            (Some(tensors), None) => tensors.batch(indices),
            (Some(tensors), Some(_)) => {
                let places: Vec<usize> = indices.iter().map(|&i| tensors.places[i]).collect();
                tensors.rows(&places, over)
            }
            (None, None) => dataset.batch(indices),
            (None, Some(over)) => dataset.batch(indices).map(|t| t.laid(&over.sharding(&t.shape()))),
        };
        // The line that iterates: `next` itself may be called by an adapter of the standard library.
        let batch = on_behalf(self.at, is_grad_enabled(), batch);
        // Where an interrupt or an error came first, the batch is still to come.
        self.next += 1;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.loader.len() - self.next;
        (left, Some(left))
    }
}

impl<const N: usize> ExactSizeIterator for Batches<'_, N> {}

impl<'a, const N: usize> IntoIterator for &'a DataLoader<N> {
    type Item = [Tensor; N];
    type IntoIter = Batches<'a, N>;

    #[track_caller]
    fn into_iter(self) -> Batches<'a, N> {
        self.iter()
    }
}

/// A dataset cut into parts of these lengths, samples drawn without repeats; the same seed cuts the same way
/// (`torch.utils.data.random_split`).
///
/// ```
/// use xlazy::prelude::*;
/// let all = data::TensorDataset::new([&Tensor::arange(0, 10, 1)]);
/// let [train, test] = data::random_split(&all, &[8, 2], 0);
/// assert_eq!((train.len(), test.len()), (8, 2));
/// ```
#[track_caller]
pub fn random_split<const N: usize, const M: usize>(
    dataset: &TensorDataset<N>,
    lengths: &[usize; M],
    seed: u64,
) -> [TensorDataset<N>; M] {
    let n = dataset.places.len();
    if lengths.iter().sum::<usize>() != n {
        refuse("random_split", &[], format!("the lengths {lengths:?} must add up to the {n} samples that there are"));
    }
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut order, seed);
    let mut rest = order.as_slice();
    lengths.map(|length| {
        let (part, others) = rest.split_at(length);
        rest = others;
        dataset.subset(part)
    })
}
