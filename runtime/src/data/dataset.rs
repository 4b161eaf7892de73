//! Datasets: samples by number, and what is made of datasets.
use super::array::{Array, Failure};
use super::random;
use crate::Error;
use crate::insight::Cause;
use crate::tensor::{Tensor, refuse};
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::ir::Placement;
use xlazy_core::ty::{Shape, Type};

/// Samples of `N` parts each, such as a picture and its label (`torch.utils.data.Dataset`). A dataset of your own has `len` and
/// either `get`, which makes one sample on the host and may run on a worker's thread, or `batch`, which makes tensors.
///
/// ```
/// use xlazy::prelude::*;
/// struct Squares;
/// impl data::Dataset<2> for Squares {
///     fn len(&self) -> usize {
///         10
///     }
///     fn get(&self, i: usize) -> Result<[data::Array; 2], data::Failure> {
///         Ok([(i as f32).into(), ((i * i) as f32).into()])
///     }
/// }
/// let loader = data::DataLoader::new(Squares, 4).workers(2);
/// let sums: Vec<f64> = loader.iter().map(|[_, y]| y.sum().item()).collect();
/// assert_eq!(sums, [14.0, 126.0, 145.0]);
/// ```
pub trait Dataset<const N: usize>: Send + Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One sample, on the host (`__getitem__`).
    fn get(&self, index: usize) -> Result<[Array; N], Failure> {
        let _ = index;
        Err("this dataset has no `get`, which makes one sample on the host: without it neither workers nor what is made of \
             several datasets can have it"
            .into())
    }

    /// A batch of samples: each part stacked, unless the dataset says otherwise (`collate_fn`).
    fn collate(&self, samples: Vec<[Array; N]>) -> Result<[Array; N], Failure> {
        collate(samples)
    }

    /// The samples at these places, on the host.
    #[doc(hidden)]
    fn arrays(&self, indices: &[usize]) -> Result<[Array; N], Failure> {
        let mut samples = Vec::with_capacity(indices.len());
        for &i in indices {
            samples.push(random::of_sample(i, || self.get(i)).map_err(|e| format!("sample {i}: {e}"))?);
        }
        self.collate(samples)
    }

    /// The samples at these places, stacked: one tensor per part, on the device.
    // As `Module::forward`: a dataset of the user's own traces at its own lines.
    fn batch(&self, indices: &[usize]) -> [Tensor; N] {
        match self.arrays(indices) {
            Ok(arrays) => arrays.map(|a| a.tensor()),
            Err(e) => Error::Usage { message: e.to_string() }.raise(),
        }
    }

    // A call through `dyn` loses the caller's line, which batches should carry.
    #[doc(hidden)]
    fn as_tensors(&self) -> Option<&TensorDataset<N>> {
        None
    }

    /// Where batches go.
    #[doc(hidden)]
    fn places(&self) -> Option<[Placement; N]> {
        None
    }
}

fn collate<const N: usize>(samples: Vec<[Array; N]>) -> Result<[Array; N], Failure> {
    let mut parts: [Vec<Array>; N] = std::array::from_fn(|_| Vec::with_capacity(samples.len()));
    for sample in samples {
        sample.into_iter().zip(&mut parts).for_each(|(a, part)| part.push(a));
    }
    let mut out = Vec::with_capacity(N);
    for part in &parts {
        out.push(Array::stack(part)?);
    }
    Ok(out.try_into().unwrap_or_else(|_| unreachable!("one array for each of the N parts")))
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        impl<const N: usize, D: Dataset<N> + ?Sized> Dataset<N> for $pointer {
            fn len(&self) -> usize {
                (**self).len()
            }
            fn get(&self, index: usize) -> Result<[Array; N], Failure> {
                (**self).get(index)
            }
            fn collate(&self, samples: Vec<[Array; N]>) -> Result<[Array; N], Failure> {
                (**self).collate(samples)
            }
            fn arrays(&self, indices: &[usize]) -> Result<[Array; N], Failure> {
                (**self).arrays(indices)
            }
            fn batch(&self, indices: &[usize]) -> [Tensor; N] {
                (**self).batch(indices)
            }
            fn as_tensors(&self) -> Option<&TensorDataset<N>> {
                (**self).as_tensors()
            }
            fn places(&self) -> Option<[Placement; N]> {
                (**self).places()
            }
        }
    )*};
}
pointers!(Box<D> Arc<D>);

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

impl Part {
    fn rows(&self, places: &[usize]) -> Array {
        let mut bytes = Vec::with_capacity(places.len() * self.stride);
        for &k in places {
            bytes.extend_from_slice(&self.bytes[k * self.stride..(k + 1) * self.stride]);
        }
        let mut dims = self.ty.shape.to_vec();
        dims[0] = places.len();
        Array::of(bytes, Type::new(self.ty.dtype, Shape::new(&dims)))
    }
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
        // One program for all of them.
        Tensor::compute(&tensors.map(Tensor::clone), Cause::Read, at).unwrap_or_else(|e| e.raise());
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
        check_places("subset", places, self.places.len());
        let places = places.iter().map(|&p| self.places[p]).collect();
        TensorDataset { parts: self.parts.clone(), places }
    }

    /// All samples in one batch.
    #[track_caller]
    pub fn tensors(&self) -> [Tensor; N] {
        self.rows(&self.places)
    }

    #[track_caller]
    fn rows(&self, places: &[usize]) -> [Tensor; N] {
        let at = xlazy_core::thread::innermost(Location::caller());
        self.parts.each_ref().map(|part| match part.rows(places).send(part.place, None, None) {
            Ok(sent) => sent.tensor(at),
            Err(e) => Error::Usage { message: e.to_string() }.raise(),
        })
    }
}

#[track_caller]
fn check_places(op: &'static str, places: &[usize], len: usize) {
    if let Some(p) = places.iter().find(|p| **p >= len) {
        refuse(op, &[], format!("there is no sample {p} among {len}"));
    }
}

impl<const N: usize> Dataset<N> for TensorDataset<N> {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn get(&self, index: usize) -> Result<[Array; N], Failure> {
        let Some(&place) = self.places.get(index) else {
            return Err(format!("there are {} samples", self.places.len()).into());
        };
        let row = |part: &Part| {
            let dims = Shape::new(&part.ty.shape[1..]);
            let bytes = part.bytes[place * part.stride..(place + 1) * part.stride].to_vec();
            Array::of(bytes, Type::new(part.ty.dtype, dims))
        };
        Ok(self.parts.each_ref().map(row))
    }

    fn arrays(&self, indices: &[usize]) -> Result<[Array; N], Failure> {
        let places: Vec<usize> = indices.iter().map(|&i| self.places[i]).collect();
        Ok(self.parts.each_ref().map(|part| part.rows(&places)))
    }

    #[inline]
    #[track_caller]
    fn batch(&self, indices: &[usize]) -> [Tensor; N] {
        let places: Vec<usize> = indices.iter().map(|&i| self.places[i]).collect();
        self.rows(&places)
    }

    fn as_tensors(&self) -> Option<&TensorDataset<N>> {
        Some(self)
    }

    fn places(&self) -> Option<[Placement; N]> {
        Some(self.parts.each_ref().map(|part| part.place))
    }
}

/// Samples of a dataset at some of its places (`torch.utils.data.Subset`).
///
/// ```
/// use xlazy::prelude::*;
/// let data = data::FakeData::new(10, [1, 2, 2], 3);
/// let odd = data::Subset::new(data, (0..10).filter(|i| i % 2 == 1).collect());
/// assert_eq!(odd.len(), 5);
/// ```
pub struct Subset<D> {
    dataset: D,
    places: Vec<usize>,
}

impl<D> Subset<D> {
    #[track_caller]
    pub fn new<const N: usize>(dataset: D, places: Vec<usize>) -> Subset<D>
    where
        D: Dataset<N>,
    {
        check_places("Subset", &places, dataset.len());
        Subset { dataset, places }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl<const N: usize, D: Dataset<N>> Dataset<N> for Subset<D> {
    fn len(&self) -> usize {
        self.places.len()
    }
    fn get(&self, index: usize) -> Result<[Array; N], Failure> {
        self.dataset.get(self.places[index])
    }
    fn collate(&self, samples: Vec<[Array; N]>) -> Result<[Array; N], Failure> {
        self.dataset.collate(samples)
    }
    fn batch(&self, indices: &[usize]) -> [Tensor; N] {
        self.dataset.batch(&indices.iter().map(|&i| self.places[i]).collect::<Vec<_>>())
    }
    fn places(&self) -> Option<[Placement; N]> {
        self.dataset.places()
    }
}

/// Datasets one behind the other (`torch.utils.data.ConcatDataset`).
///
/// ```
/// use xlazy::prelude::*;
/// let part = |n: usize| -> Box<dyn data::Dataset<2>> { Box::new(data::FakeData::new(n, [1, 2, 2], 3)) };
/// let all = data::ConcatDataset::new(vec![part(3), part(4)]);
/// assert_eq!(all.len(), 7);
/// ```
pub struct ConcatDataset<const N: usize> {
    datasets: Vec<Box<dyn Dataset<N>>>,
}

impl<const N: usize> ConcatDataset<N> {
    pub fn new(datasets: Vec<Box<dyn Dataset<N>>>) -> ConcatDataset<N> {
        ConcatDataset { datasets }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.datasets.iter().map(|d| d.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.datasets.iter().all(|d| d.is_empty())
    }
}

impl<const N: usize> Dataset<N> for ConcatDataset<N> {
    fn len(&self) -> usize {
        self.len()
    }
    fn get(&self, index: usize) -> Result<[Array; N], Failure> {
        let mut rest = index;
        for d in &self.datasets {
            match rest.checked_sub(d.len()) {
                Some(behind) => rest = behind,
                None => return d.get(rest),
            }
        }
        Err(format!("there are {} samples", self.len()).into())
    }
    fn collate(&self, samples: Vec<[Array; N]>) -> Result<[Array; N], Failure> {
        match self.datasets.first() {
            Some(d) => d.collate(samples),
            None => collate(samples),
        }
    }
}

/// How long the parts of a dataset are that is cut: numbers of samples, or parts of 1.
pub trait Lengths<const M: usize> {
    /// The lengths of the parts of `n` samples, or why there are none.
    fn of(&self, n: usize) -> Result<[usize; M], String>;
}

impl<const M: usize> Lengths<M> for [usize; M] {
    fn of(&self, n: usize) -> Result<[usize; M], String> {
        let whole = self.iter().sum::<usize>() == n;
        whole
            .then_some(*self)
            .ok_or_else(|| format!("the lengths {self:?} must add up to the {n} samples that there are"))
    }
}

/// As torch rounds them: down, and what is left goes to the first parts, one each.
impl<const M: usize> Lengths<M> for [f64; M] {
    fn of(&self, n: usize) -> Result<[usize; M], String> {
        let sum: f64 = self.iter().sum();
        if (sum - 1.0).abs() > 1e-6 || self.iter().any(|part| *part < 0.0) {
            return Err(format!("the parts {self:?} must add up to 1"));
        }
        let mut lengths = self.map(|part| (n as f64 * part).floor() as usize);
        let left = n.saturating_sub(lengths.iter().sum());
        (0..left).for_each(|i| lengths[i % M] += 1);
        Ok(lengths)
    }
}

impl<const M: usize, L: Lengths<M>> Lengths<M> for &L {
    fn of(&self, n: usize) -> Result<[usize; M], String> {
        (**self).of(n)
    }
}

/// A dataset cut into parts of these lengths, or these parts of 1, samples drawn without repeats; the same seed cuts the same
/// way (`torch.utils.data.random_split`).
///
/// ```
/// use xlazy::prelude::*;
/// let all = data::TensorDataset::new([&Tensor::arange(0, 10, 1)]);
/// let [train, test] = data::random_split(&all, &[8, 2], 0);
/// assert_eq!((train.len(), test.len()), (8, 2));
/// let [train, test] = data::random_split(&all, [0.75, 0.25], 0);
/// assert_eq!((train.len(), test.len()), (8, 2));
/// let [train, _] = data::random_split(data::FakeData::new(10, [1, 2, 2], 3), [8, 2], 0);
/// assert_eq!(data::DataLoader::new(train, 4).len(), 2);
/// ```
#[track_caller]
pub fn random_split<const N: usize, const M: usize, D: Cut<N>>(
    dataset: D,
    lengths: impl Lengths<M>,
    seed: u64,
) -> [D::Part; M] {
    let n = dataset.count();
    let lengths = lengths.of(n).unwrap_or_else(|why| refuse("random_split", &[], why));
    let mut order: Vec<usize> = (0..n).collect();
    random::shuffle(&mut order, seed);
    let mut rest = order.as_slice();
    dataset.cut(lengths.map(|length| {
        let (part, others) = rest.split_at(length);
        rest = others;
        part
    }))
}

/// What [`random_split`] cuts: tensors that are lent, whose parts are tensors, too, or any dataset, which its parts share.
pub trait Cut<const N: usize> {
    type Part: Dataset<N>;

    fn count(&self) -> usize;
    /// The parts that have the samples at these places.
    fn cut<const M: usize>(self, places: [&[usize]; M]) -> [Self::Part; M];
}

impl<const N: usize> Cut<N> for &TensorDataset<N> {
    type Part = TensorDataset<N>;

    fn count(&self) -> usize {
        self.places.len()
    }
    fn cut<const M: usize>(self, places: [&[usize]; M]) -> [TensorDataset<N>; M] {
        places.map(|part| self.subset(part))
    }
}

impl<const N: usize, D: Dataset<N>> Cut<N> for D {
    type Part = Subset<Arc<D>>;

    fn count(&self) -> usize {
        self.len()
    }
    fn cut<const M: usize>(self, places: [&[usize]; M]) -> [Subset<Arc<D>>; M] {
        let whole = Arc::new(self);
        places.map(|part| Subset::new(whole.clone(), part.to_vec()))
    }
}

/// Pictures of noise with labels, the same for a number each time (`torchvision.datasets.FakeData`): what a model costs, without
/// data. A sample's parts are float32 of `shape`, normally distributed, and an int64 below `classes`.
///
/// ```
/// use xlazy::prelude::*;
/// let loader = data::DataLoader::new(data::FakeData::new(100, [3, 32, 32], 10), 20).workers(1);
/// let [x, y] = loader.iter().next().unwrap();
/// assert_eq!((x.shape(), y.dtype()), (Shape::new(&[20, 3, 32, 32]), I64));
/// ```
#[derive(Clone, Debug)]
pub struct FakeData {
    len: usize,
    shape: Vec<usize>,
    classes: usize,
}

impl FakeData {
    /// `len` samples.
    #[track_caller]
    pub fn new(len: usize, shape: impl Into<xlazy_core::ty::Dims>, classes: usize) -> FakeData {
        let shape = shape.into().shape("FakeData").unwrap_or_else(|e| e.raise()).to_vec();
        FakeData { len, shape, classes: classes.max(1) }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Dataset<2> for FakeData {
    fn len(&self) -> usize {
        self.len
    }
    fn get(&self, index: usize) -> Result<[Array; 2], Failure> {
        let mut rng = crate::rng::SplitMix(index as u64 ^ 0x5eed);
        let label = (rng.uniform() * self.classes as f64) as i64;
        let pixels = (0..self.shape.iter().product()).map(|_| rng.normal() as f32).collect();
        Ok([Array::new(pixels, Shape::new(&self.shape)), label.into()])
    }
}
