//! Samplers: in which order an epoch goes through a dataset, and which samples make a batch.
use super::random::shuffle;
use crate::rng::SplitMix;
use crate::tensor::refuse;

/// The order of an epoch (`torch.utils.data.Sampler`).
pub trait Sampler: Send + Sync {
    /// How many samples an epoch has, of a dataset of `len`.
    fn count(&self, len: usize) -> usize {
        len
    }

    /// The samples' numbers; `seed` is another one in each epoch.
    fn indices(&self, len: usize, seed: u64) -> Vec<usize>;
}

/// One after the other (`torch.utils.data.SequentialSampler`).
#[derive(Clone, Copy, Debug, Default)]
pub struct SequentialSampler;

impl Sampler for SequentialSampler {
    fn indices(&self, len: usize, _: u64) -> Vec<usize> {
        (0..len).collect()
    }
}

/// Drawn with repeats or without (`torch.utils.data.RandomSampler`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomSampler {
    /// A sample may come again.
    pub replacement: bool,
    /// How many an epoch has; all where none is said. Without repeats more than there are begin anew.
    pub num_samples: Option<usize>,
}

impl Sampler for RandomSampler {
    fn count(&self, len: usize) -> usize {
        if len == 0 { 0 } else { self.num_samples.unwrap_or(len) }
    }
    fn indices(&self, len: usize, seed: u64) -> Vec<usize> {
        let (n, mut rng) = (self.count(len), SplitMix(seed));
        if self.replacement {
            return (0..n).map(|_| (rng.uniform() * len as f64) as usize).collect();
        }
        let mut out = Vec::with_capacity(n);
        let mut round = seed;
        while out.len() < n {
            let mut order: Vec<usize> = (0..len).collect();
            shuffle(&mut order, round);
            round = rng.next();
            out.extend(order.into_iter().take(n - out.len()));
        }
        out
    }
}

/// The part of one of several replicas: every `num_replicas`th sample of one order that all have, repeated from its beginning until all
/// parts are as large, so that all run the same programs (`torch.utils.data.DistributedSampler`). The loaders of all replicas have
/// the same seed.
///
/// ```
/// use xlazy::data::{DistributedSampler, Sampler};
/// let parts: Vec<_> = (0..2).map(|rank| DistributedSampler::new(2, rank, false).indices(5, 0)).collect();
/// assert_eq!(parts, [[0, 2, 4], [1, 3, 0]]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DistributedSampler {
    num_replicas: usize,
    rank: usize,
    shuffle: bool,
}

impl DistributedSampler {
    /// The part of `rank`, of as many as `num_replicas`; `shuffle`: another order in each epoch.
    #[track_caller]
    pub fn new(num_replicas: usize, rank: usize, shuffle: bool) -> DistributedSampler {
        if rank >= num_replicas {
            refuse("DistributedSampler", &[], format!("there is no rank {rank} of {num_replicas}: ranks begin with 0"));
        }
        DistributedSampler { num_replicas, rank, shuffle }
    }
}

impl Sampler for DistributedSampler {
    fn count(&self, len: usize) -> usize {
        len.div_ceil(self.num_replicas)
    }
    fn indices(&self, len: usize, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        if self.shuffle {
            shuffle(&mut order, seed);
        }
        order.iter().copied().cycle().skip(self.rank).step_by(self.num_replicas).take(self.count(len)).collect()
    }
}

/// Drawn as often as their weights say, such as rare classes more often (`torch.utils.data.WeightedRandomSampler`).
///
/// ```
/// use xlazy::prelude::*;
/// let data = data::TensorDataset::new([&Tensor::arange(0, 4, 1)]);
/// let rare = data::WeightedRandomSampler::new(vec![0.0, 0.0, 0.0, 2.5], 6, true);
/// let [x] = data::DataLoader::new(data, 6).sampler(rare).iter().next().unwrap();
/// assert_eq!(x.to_vec::<i64>(), [3; 6]);
/// ```
#[derive(Clone, Debug)]
pub struct WeightedRandomSampler {
    weights: Vec<f64>,
    num_samples: usize,
    replacement: bool,
}

impl WeightedRandomSampler {
    /// A weight for each sample, which need not add up to 1, and how many are drawn for an epoch, with repeats or without.
    #[track_caller]
    pub fn new(weights: Vec<f64>, num_samples: usize, replacement: bool) -> WeightedRandomSampler {
        let op = "WeightedRandomSampler";
        if weights.iter().any(|w| !w.is_finite() || *w < 0.0) || weights.iter().sum::<f64>() <= 0.0 {
            refuse(op, &[], "weights are 0 or more, and one of them is more");
        }
        let there = weights.iter().filter(|w| **w > 0.0).count();
        if !replacement && num_samples > there {
            refuse(op, &[], format!("{num_samples} cannot be drawn without repeats of {there} samples with a weight"));
        }
        WeightedRandomSampler { weights, num_samples, replacement }
    }
}

impl Sampler for WeightedRandomSampler {
    fn count(&self, _: usize) -> usize {
        self.num_samples
    }
    fn indices(&self, len: usize, seed: u64) -> Vec<usize> {
        if self.weights.len() != len {
            refuse("WeightedRandomSampler", &[], format!("{} weights for {len} samples", self.weights.len()));
        }
        let mut rng = SplitMix(seed);
        if !self.replacement {
            // The largest of u^(1/w) (Efraimidis and Spirakis 2006).
            let mut keys: Vec<(f64, usize)> = (self.weights.iter().enumerate())
                .filter(|(_, w)| **w > 0.0)
                .map(|(i, w)| ((1.0 - rng.uniform()).ln() / w, i))
                .collect();
            keys.sort_by(|a, b| b.0.total_cmp(&a.0));
            return keys.into_iter().take(self.num_samples).map(|(_, i)| i).collect();
        }
        let mut sum = 0.0;
        let upto: Vec<f64> = self
            .weights
            .iter()
            .map(|w| {
                sum += w;
                sum
            })
            .collect();
        let last = self.weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
        let draw = |u: f64| upto.partition_point(|c| *c <= u * sum).min(last);
        (0..self.num_samples).map(|_| draw(rng.uniform())).collect()
    }
}

/// Some of the samples, drawn without repeats (`torch.utils.data.SubsetRandomSampler`).
#[derive(Clone, Debug)]
pub struct SubsetRandomSampler(pub Vec<usize>);

impl Sampler for SubsetRandomSampler {
    fn count(&self, _: usize) -> usize {
        self.0.len()
    }
    fn indices(&self, _: usize, seed: u64) -> Vec<usize> {
        let mut order = self.0.clone();
        shuffle(&mut order, seed);
        order
    }
}

/// Which samples make a batch (torch's `batch_sampler`).
pub trait BatchSampler: Send + Sync {
    /// The batches of an epoch; `seed` is another one in each.
    fn batches(&self, len: usize, seed: u64) -> Vec<Vec<usize>>;
}

/// Batches of samples whose lengths are in one bucket, in another order in each epoch: sequences are padded to few sizes, each of which
/// is compiled once. The last batch of a bucket is smaller where its samples do not come out even, unless `drop_last` is set.
///
/// ```
/// use xlazy::{data::BatchSampler, prelude::*};
/// let by_length = data::BucketBatchSampler { lengths: vec![3, 9, 4, 10], buckets: vec![4, 16], batch_size: 2, drop_last: false };
/// let batches = by_length.batches(4, 0);
/// assert!(batches.iter().all(|b| b.contains(&0) == b.contains(&2)));
/// ```
#[derive(Clone, Debug)]
pub struct BucketBatchSampler {
    /// Of each sample.
    pub lengths: Vec<usize>,
    /// The largest length of each bucket; what is longer than all of them makes one more.
    pub buckets: Vec<usize>,
    pub batch_size: usize,
    pub drop_last: bool,
}

impl BatchSampler for BucketBatchSampler {
    fn batches(&self, len: usize, seed: u64) -> Vec<Vec<usize>> {
        if self.lengths.len() != len || self.batch_size == 0 {
            let why = format!("{} lengths for {len} samples, batches of {}", self.lengths.len(), self.batch_size);
            refuse("BucketBatchSampler", &[], why);
        }
        let mut buckets = self.buckets.clone();
        buckets.sort_unstable();
        let mut members: Vec<Vec<usize>> = vec![vec![]; buckets.len() + 1];
        for (i, &length) in self.lengths.iter().enumerate() {
            members[buckets.partition_point(|b| *b < length)].push(i);
        }
        let mut rng = SplitMix(seed);
        let mut all: Vec<Vec<usize>> = vec![];
        for mut bucket in members {
            shuffle(&mut bucket, rng.next());
            all.extend(bucket.chunks(self.batch_size).map(<[usize]>::to_vec));
        }
        all.retain(|b| !self.drop_last || b.len() == self.batch_size);
        let mut order: Vec<usize> = (0..all.len()).collect();
        shuffle(&mut order, rng.next());
        order.into_iter().map(|i| std::mem::take(&mut all[i])).collect()
    }
}
