//! Batches of a dataset, made on the cell's thread or ahead of it by workers.
use super::array::Sent;
use super::dataset::Dataset;
use super::over::Over;
use super::random;
use super::sampler::{BatchSampler, RandomSampler, Sampler, SequentialSampler};
use super::workers::{Order, Workers, send};
use crate::Error;
use crate::insight::Cause;
use crate::insight::batches::{Batch, hand_out};
use crate::tensor::{Tensor, is_grad_enabled, on_behalf, refuse, sync_for};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use xlazy_core::ir::{Placement, graph};
use xlazy_core::mesh::Mesh;
use xlazy_core::metrics;
use xlazy_core::thread::innermost;

/// What [`DataLoader::with`] takes beside the batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataLoaderOptions {
    /// Another order in each epoch.
    pub shuffle: bool,
    /// What the orders are drawn from: the same seed gives the same epochs.
    pub seed: u64,
    /// Leaves out a last batch that is smaller than the others. Its shape would compile a program of its own.
    pub drop_last: bool,
    /// Keeps a smaller last batch and bucketes the first dimension of all batches ([`Tensor::dynamic`]): one program for all.
    pub bucket_last: bool,
    /// Runs what is pending before each next batch and at the end, so that the loop needs no `sync()`
    /// (torch_xla's `MpDeviceLoader`).
    pub sync: bool,
    /// How many threads make batches and send them to the device, ahead of the loop. None: the loop makes each when it comes.
    pub workers: usize,
    /// How many batches are ready or made ahead of the loop; 0 stands for two for each worker.
    pub prefetch: usize,
}

/// Goes through a dataset in batches, as often as one likes (`torch.utils.data.DataLoader`). The last batch is smaller where
/// the samples do not come out even, unless `drop_last` is set. A sample has `N` parts; `&DataLoader` alone is one of inputs with
/// their targets.
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
pub struct DataLoader<const N: usize = 2> {
    dataset: Arc<dyn Dataset<N>>,
    batch_size: usize,
    options: DataLoaderOptions,
    sampler: Option<Box<dyn Sampler>>,
    batches: Option<Box<dyn BatchSampler>>,
    epoch: AtomicU64,
    over: Option<Over>,
    /// Tells it from other loaders.
    number: u64,
}

/// How many loaders there were.
static LOADERS: AtomicU64 = AtomicU64::new(0);

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
        let dataset = Arc::new(dataset);
        let epoch = AtomicU64::new(0);
        let number = LOADERS.fetch_add(1, Ordering::Relaxed);
        DataLoader { dataset, batch_size, options, sampler: None, batches: None, epoch, over: None, number }
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

    /// What the orders, and random changes of samples, are drawn from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Without a last batch that is smaller than the others, or with it.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.options.drop_last = drop_last;
        self
    }

    /// With a smaller last batch whose program is that of the others: the first dimension of all batches is bucketed
    /// ([`Tensor::dynamic`]), which masks what is only padding.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let data = data::TensorDataset::new([&Tensor::arange(0, 10, 1)]);
    /// let loader = data::DataLoader::new(data, 4).bucket_last(true);
    /// let sums: Vec<f64> = loader.iter().map(|[x]| x.sum().item()).collect();
    /// assert_eq!(sums, [6.0, 22.0, 17.0]);
    /// ```
    pub fn bucket_last(mut self, bucket_last: bool) -> Self {
        self.options.bucket_last = bucket_last;
        self
    }

    /// Has so many threads make batches and send them to the device while the loop works on those before (`num_workers`). The
    /// dataset needs `get`; the batches are the same however many threads there are.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// How many batches workers make ahead (`prefetch_factor`, of all workers together); 0 stands for two for each.
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.options.prefetch = prefetch;
        self
    }

    /// The order of samples in an epoch (torch's `sampler`); it takes the place of `shuffle`.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampler = Some(Box::new(sampler));
        self
    }

    /// The samples of each batch (torch's `batch_sampler`); it takes the place of the batch size, `shuffle`, `drop_last` and the sampler.
    pub fn batch_sampler(mut self, batches: impl BatchSampler + 'static) -> Self {
        self.batches = Some(Box::new(batches));
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
        if let Some(batches) = &self.batches {
            return batches.batches(self.dataset.len(), self.epoch_seed(self.epoch.load(Ordering::Relaxed))).len();
        }
        let samples = self.order().count(self.dataset.len());
        match self.options.drop_last {
            true => samples / self.batch_size,
            false => samples.div_ceil(self.batch_size),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples in the dataset.
    pub fn samples(&self) -> usize {
        self.dataset.len()
    }

    fn order(&self) -> &dyn Sampler {
        const WITHOUT_REPEATS: &RandomSampler = &RandomSampler { replacement: false, num_samples: None };
        match (&self.sampler, self.options.shuffle) {
            (Some(sampler), _) => &**sampler,
            (None, true) => WITHOUT_REPEATS,
            (None, false) => &SequentialSampler,
        }
    }

    fn epoch_seed(&self, epoch: u64) -> u64 {
        random::of_epoch(self.options.seed, epoch)
    }

    /// One epoch. Each call is another one, which shuffles anew, if the options say so.
    #[track_caller]
    pub fn iter(&self) -> Batches<'_, N> {
        let at = innermost(Location::caller());
        let seed = self.epoch_seed(self.epoch.fetch_add(1, Ordering::Relaxed));
        let len = self.dataset.len();
        let plan: Vec<Vec<usize>> = match &self.batches {
            Some(batches) => batches.batches(len, seed),
            None => {
                let indices = self.order().indices(len, seed);
                let whole = |b: &&[usize]| !self.options.drop_last || b.len() == self.batch_size;
                indices.chunks(self.batch_size).filter(whole).map(<[usize]>::to_vec).collect()
            }
        };
        if let Some(i) = plan.iter().flatten().find(|i| **i >= len) {
            refuse("DataLoader", &[], format!("the sampler names sample {i}, and the dataset has {len}"));
        }
        let rows = self.options.bucket_last.then(|| plan.iter().map(Vec::len).max()).flatten();
        let (dataset, place, over) = (self.dataset.clone(), Placement::here(), self.over.clone());
        let order = Order { dataset, plan: Arc::new(plan), seed, rows, place, over };
        let ahead = match self.options.prefetch {
            0 => 2 * self.options.workers,
            n => n,
        };
        let workers = (self.options.workers > 0).then(|| Workers::start(&order, self.options.workers, ahead));
        Batches { loader: self, order, workers, next: 0, at }
    }
}

/// One epoch of a [`DataLoader`]. Workers end their sample and no more when it is dropped half way, and nobody waits for them.
pub struct Batches<'a, const N: usize> {
    loader: &'a DataLoader<N>,
    order: Order<N>,
    workers: Option<Workers<N>>,
    next: usize,
    at: &'static Location<'static>,
}

impl<const N: usize> Batches<'_, N> {
    /// The tensors of what was sent, as from the line that iterates: `next` itself may be called by an adapter of the standard library.
    fn tensors(&self, sent: [Sent; N]) -> [Tensor; N] {
        sent.map(|s| s.tensor(self.at))
    }

    fn made_here(&self) -> Result<[Tensor; N], String> {
        let Order { dataset, plan, seed, rows, over, .. } = &self.order;
        let indices = &plan[self.next];
        random::enter(*seed);
        match dataset.as_tensors() {
            Some(tensors) if rows.is_none() && over.is_none() => return Ok(tensors.batch(indices)),
            // Padded, and split, before it is sent.
            Some(_) => return Ok(self.tensors(send(&self.order, self.next)?)),
            None => {}
        }
        let mut batch = dataset.batch(indices);
        if let Some(rows) = rows {
            batch = batch.map(|t| if t.dim() == 0 { t } else { t.dynamic(0).buckets(*rows) });
        }
        let Some(over) = over else { return Ok(batch) };
        let laid: Result<Vec<Tensor>, String> = batch.iter().map(|t| Ok(t.laid(&over.sharding(&t.shape())?))).collect();
        Ok(laid?.try_into().unwrap_or_else(|_| unreachable!("one for each of the N parts")))
    }
}

impl<const N: usize> Iterator for Batches<'_, N> {
    type Item = [Tensor; N];

    #[track_caller]
    fn next(&mut self) -> Option<[Tensor; N]> {
        if self.loader.options.sync && self.next > 0 {
            sync_for(Cause::LoaderBarrier);
        }
        if self.next >= self.order.plan.len() {
            return None;
        }
        let begun = Instant::now();
        let made = match &self.workers {
            Some(workers) => workers.take(self.next).map(|sent| self.tensors(sent)),
            None => on_behalf(self.at, is_grad_enabled(), || self.made_here()),
        };
        let batch = made.unwrap_or_else(|e| failed(e));
        metrics::LOADER_WAIT_TIME.add_time(begun.elapsed());
        let planned = Batch::planned(self.loader.number, self.next, &self.order.plan);
        let made = batch.each_ref().map(|t| graph().node(t.id()).seq);
        made.into_iter().for_each(|seq| hand_out(seq, planned));
        // Where an interrupt or an error came first, the batch is still to come.
        self.next += 1;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.order.plan.len() - self.next;
        (left, Some(left))
    }
}

#[track_caller]
fn failed(why: String) -> ! {
    Error::Usage { message: format!("DataLoader: {why}") }.raise()
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

/// A loader whose work on the host, and whose transfers, go on while the device works, and that syncs before each next batch and at the
/// end (`torch_xla.distributed.parallel_loader.MpDeviceLoader`): one worker at least, and `sync`.
///
/// ```
/// use xlazy::prelude::*;
/// let w = tensor(1.0).requires_grad_(true);
/// let loader = data::MpDeviceLoader::new(data::DataLoader::new(data::FakeData::new(8, [4], 2), 2));
/// for [x, _] in &loader {
///     (x * &w).square().mean().backward();
/// }
/// assert_eq!(loader.len(), 4);
/// ```
pub struct MpDeviceLoader<const N: usize>(DataLoader<N>);

impl<const N: usize> MpDeviceLoader<N> {
    pub fn new(mut loader: DataLoader<N>) -> MpDeviceLoader<N> {
        loader.options.sync = true;
        loader.options.workers = loader.options.workers.max(1);
        MpDeviceLoader(loader)
    }
}

impl<const N: usize> std::ops::Deref for MpDeviceLoader<N> {
    type Target = DataLoader<N>;
    fn deref(&self) -> &DataLoader<N> {
        &self.0
    }
}

impl<'a, const N: usize> IntoIterator for &'a MpDeviceLoader<N> {
    type Item = [Tensor; N];
    type IntoIter = Batches<'a, N>;

    #[track_caller]
    fn into_iter(self) -> Batches<'a, N> {
        self.0.iter()
    }
}
