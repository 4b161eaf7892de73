//! Values in host memory: what a dataset makes of one sample, and a batch before it goes to the device.
use super::over::Over;
use crate::tensor::{Tensor, refuse};
use crate::tensor::{marked, physically};
use std::sync::Arc;
use xlazy_core::device::{DeviceData, upload, upload_sharded};
use xlazy_core::ir::{Bucket, Placement};
use xlazy_core::text::Place;
use xlazy_core::ty::{DType, Dims, Element, Shape, Type};

/// What went wrong with a sample: any error, as `?` gives it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A value of a dtype and a shape in host memory, such as a picture or a label of one sample. What makes arrays may run on any
/// thread, since it records nothing.
///
/// ```
/// use xlazy::prelude::*;
/// let picture = data::Array::new(vec![0.5f32; 12], [3, 2, 2]);
/// let label = data::Array::from(7i64);
/// assert_eq!((picture.shape(), label.shape()), (vec![3, 2, 2], vec![]));
/// assert_eq!(data::Array::stack(&[label.clone(), label]).unwrap().tensor().to_vec::<i64>(), [7, 7]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    bytes: Vec<u8>,
    ty: Type,
}

impl Array {
    /// The elements in row-major order.
    #[track_caller]
    pub fn new<T: Element>(values: Vec<T>, size: impl Into<Dims>) -> Array {
        let shape = size.into().shape("Array::new").unwrap_or_else(|e| e.raise());
        if shape.numel() != values.len() {
            let why = format!(
                "{} cannot fill {shape}, which has {}",
                xlazy_mime::count(values.len(), "element"),
                shape.numel()
            );
            refuse("Array::new", &[], why);
        }
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(&values[..]));
        values.into_iter().for_each(|v| v.write(&mut bytes));
        Array { bytes, ty: Type::new(T::DTYPE, shape) }
    }

    pub(super) fn of(bytes: Vec<u8>, ty: Type) -> Array {
        Array { bytes, ty }
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> Vec<usize> {
        self.ty.shape.to_vec()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The elements in row-major order; `T` must be of the array's dtype.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        if T::DTYPE != self.ty.dtype {
            refuse("to_vec", &[], format!("the array holds {}, asked for {}", self.ty.dtype, T::DTYPE));
        }
        T::read_all(&self.bytes)
    }

    /// Arrays of one type as rows of a new first dimension, which is how a batch is made of samples (`torch.stack`).
    pub fn stack(arrays: &[Array]) -> Result<Array, Failure> {
        let Some(first) = arrays.first() else { return Err("there is no array to stack".into()) };
        if let Some((k, other)) = arrays.iter().enumerate().find(|(_, a)| a.ty != first.ty) {
            return Err(format!(
                "the samples of a batch differ: the first is {}, number {} of it is {}; make them alike (crop, pad), or \
                 give the dataset a `collate` that does",
                first.ty,
                k + 1,
                other.ty
            )
            .into());
        }
        let mut shape = first.ty.shape.clone();
        shape.insert(0, arrays.len());
        Ok(Array {
            bytes: arrays.iter().flat_map(|a| &a.bytes).copied().collect(),
            ty: Type::new(first.ty.dtype, shape),
        })
    }

    /// Vectors of several lengths as rows of one matrix, with `value` behind those that are shorter than the longest or than
    /// `length` (`torch.nn.utils.rnn.pad_sequence`). What is longer than `length` is cut.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let rows = [vec![1i64, 2, 3], vec![4]].map(|v| { let n = v.len(); data::Array::new(v, n) });
    /// assert_eq!(data::Array::pad(&rows, 0i64, None).unwrap().to_vec::<i64>(), [1, 2, 3, 4, 0, 0]);
    /// assert_eq!(data::Array::pad(&rows, 0i64, Some(2)).unwrap().shape(), [2, 2]);
    /// ```
    pub fn pad<T: Element>(rows: &[Array], value: T, length: Option<usize>) -> Result<Array, Failure> {
        if let Some(row) = rows.iter().find(|r| r.ty.dtype != T::DTYPE || r.ty.shape.len() != 1) {
            return Err(not_padded(T::DTYPE, &row.ty).into());
        }
        let length = length.or(rows.iter().map(|r| r.ty.shape[0]).max()).unwrap_or(0);
        let mut bytes = Vec::new();
        for row in rows {
            let n = row.ty.shape[0].min(length);
            bytes.extend_from_slice(&row.bytes[..n * T::DTYPE.size()]);
            (n..length).for_each(|_| value.write(&mut bytes));
        }
        Ok(Array { bytes, ty: Type::new(T::DTYPE, Shape::new(&[rows.len(), length])) })
    }

    /// Each element less the mean of its channel, over its deviation: of a float32 array with the channels first
    /// (`torchvision.transforms.Normalize`).
    #[track_caller]
    pub fn normalize(mut self, mean: &[f32], std: &[f32]) -> Array {
        let channels = self.ty.shape.first().copied().unwrap_or(0);
        if self.ty.dtype != DType::F32 || mean.len() != channels || std.len() != channels || channels == 0 {
            let why = format!(
                "takes float32 with channels first, and a mean and a deviation for each: {} has {channels}, given {} and {}",
                self.ty,
                mean.len(),
                std.len()
            );
            refuse("normalize", &[], why);
        }
        let plane = self.bytes.len() / channels;
        for (c, plane) in self.bytes.chunks_exact_mut(plane.max(1)).enumerate() {
            for v in plane.as_chunks_mut::<4>().0 {
                *v = ((f32::from_le_bytes(*v) - mean[c]) / std[c]).to_le_bytes();
            }
        }
        self
    }

    /// The array as a tensor on the device.
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        Tensor::of_bytes(&self.bytes, self.ty.clone())
    }

    /// On its way to a device, or to those of a mesh; of `rows` rows, the last one repeated, where it has fewer.
    pub(super) fn send(
        mut self,
        mut place: Placement,
        rows: Option<usize>,
        over: Option<&Over>,
    ) -> Result<Sent, Failure> {
        let size = self.ty.shape.first().copied();
        let bucket = match (size, rows) {
            (Some(size), Some(rows)) if (1..=rows).contains(&size) => {
                let stride = self.bytes.len() / size;
                let last = self.bytes[self.bytes.len() - stride..].to_vec();
                (size..rows).for_each(|_| self.bytes.extend_from_slice(&last));
                self.ty.shape[0] = rows;
                Some(Bucket { dim: 0, size })
            }
            _ => None,
        };
        let data = match over {
            None => upload(&self.bytes, self.ty, place.home())?,
            Some(over) => {
                place = Placement::Device(over.mesh.place());
                let sharding = over.sharding(&self.ty.shape)?;
                upload_sharded(&self.bytes, self.ty, sharding)?
            }
        };
        Ok(Sent { data, place, bucket })
    }
}

/// Why a value of this dtype pads no array of that type: a number without a type is Rust's choice, not the user's.
fn not_padded(value: DType, row: &Type) -> String {
    if row.shape.len() != 1 {
        return format!("vectors are padded, and one of the samples is {row}");
    }
    let number = match row.dtype {
        DType::Bool => "false".to_owned(),
        float @ (DType::F32 | DType::F64) => format!("0.0{}", float.name()),
        other => format!("0{}", other.name()),
    };
    format!(
        "the value to pad with is of dtype {value}, and one of the vectors is {row}: write its type, as in `{number}`"
    )
}

/// An array that is on a device.
pub(super) struct Sent {
    data: Arc<DeviceData>,
    place: Placement,
    bucket: Option<Bucket>,
}

impl Sent {
    pub fn tensor(self, at: Place) -> Tensor {
        let t = Tensor::of_data(self.data, self.place, at);
        match self.bucket {
            Some(bucket) => physically(|| marked(t, vec![bucket])),
            None => t,
        }
    }
}

macro_rules! of_a_number {
    ($($t:ty)*) => {$(
        /// One number, without dimensions.
        impl From<$t> for Array {
            fn from(v: $t) -> Array {
                Array::new(vec![v], Dims(vec![]))
            }
        }
        /// A vector.
        impl From<Vec<$t>> for Array {
            fn from(v: Vec<$t>) -> Array {
                let n = v.len();
                Array::new(v, n)
            }
        }
        /// As a field of a sample that is lent has it.
        impl From<&$t> for Array {
            fn from(v: &$t) -> Array {
                Array::from(*v)
            }
        }
        /// A copy of a vector that is lent.
        impl From<&Vec<$t>> for Array {
            fn from(v: &Vec<$t>) -> Array {
                Array::from(v.clone())
            }
        }
        /// A copy of a part of a vector.
        impl From<&[$t]> for Array {
            fn from(v: &[$t]) -> Array {
                Array::from(v.to_vec())
            }
        }
    )*};
}
of_a_number!(f32 f64 i32 i64 u8 bool);

/// Counts and labels, which are int64 in torch.
impl From<usize> for Array {
    fn from(v: usize) -> Array {
        Array::from(v as i64)
    }
}

impl From<Vec<usize>> for Array {
    fn from(v: Vec<usize>) -> Array {
        Array::from(v.into_iter().map(|n| n as i64).collect::<Vec<i64>>())
    }
}
