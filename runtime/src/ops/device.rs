//! Devices, and how tensors get from one to another.
//!
//! What comes from the host (`tensor(…)`, a loader's batch, a module's parameters) is on the client's first device. `to`
//! moves it; what an op makes is on its operands' device, and operands on two devices are refused. What is made of nothing
//! (`zeros`, `arange`, `rand`, numbers) is on no device: it follows the tensors it meets, also after a sync has given it a
//! value, which is then copied to them, and is computed on the first device where it meets none (JAX calls it uncommitted).
//! `zeros_like` and its kin are where their tensor is.
//!
//! Each device has programs of its own: a sync runs one for each device that something is pending on.
use crate::display::place::binding;
use crate::dtype::DType;
use crate::insight::Cause;
use crate::ir::{ANYWHERE, Locked, NodeId, Payload, REQUIRES_GRAD, graph, home};
use crate::op::{OpDef, Sample, rules};
use crate::session::{self, DeviceData};
use crate::tensor::{Tensor, is_grad_enabled, line, trace};
use crate::{Error, Result, bucket};
use smallvec::smallvec;
use std::panic::Location;
use std::sync::Arc;

/// What a tensor is put on another device by. What has no device is computed there; otherwise the node has its value from the
/// start, a copy, and only the gradient tape holds the operand.
static TO_DEVICE: OpDef = OpDef::new("to_device", rules::same, |l| l.x(0))
    .attrs(&["device"])
    .samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![0usize.into()])])
    .grad(|g| vec![g.want(0, || g.dy.clone().beside(g.x(0)))])
    .bucket(bucket::each);

pub(super) static OPS: &[&OpDef] = &[&TO_DEVICE];

/// What [`Tensor::to`] takes: a dtype, or a device by its name.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    DType(DType),
    Device(String),
}

impl From<DType> for To {
    fn from(dtype: DType) -> To {
        To::DType(dtype)
    }
}

impl From<&str> for To {
    fn from(name: &str) -> To {
        To::Device(name.to_owned())
    }
}

impl From<String> for To {
    fn from(name: String) -> To {
        To::Device(name)
    }
}

impl From<&String> for To {
    fn from(name: &String) -> To {
        To::Device(name.clone())
    }
}

/// The names of the devices that tensors can be on, the first one first (`torch.cuda.device_count`, `jax.devices`).
///
/// ```
/// assert_eq!(xlazy::devices()[0], xlazy::device_name().unwrap());
/// ```
#[track_caller]
pub fn devices() -> Vec<String> {
    match session::device_names() {
        Ok(names) => names.to_vec(),
        Err(e) => e.raise(),
    }
}

/// The device of a name; the platform's name alone is its first one.
fn find(name: &str) -> Result<u8> {
    let names = session::device_names()?;
    let same = |n: &String| n.eq_ignore_ascii_case(name);
    let first = names[0].split(':').next().is_some_and(|platform| platform.eq_ignore_ascii_case(name));
    if let Some(i) = names.iter().position(same).or(first.then_some(0)) {
        return Ok(i as u8);
    }
    let more = match names {
        [only] if only.starts_with("cpu") => {
            "; there are two with XLAZY_CPU_DEVICES=2 in the environment of the kernel"
        }
        _ => "",
    };
    let message = match names {
        [only] => format!("there is no device {name:?}: there is {only} alone{more}"),
        [all @ .., last] => format!("there is no device {name:?}: there are {} and {last}", all.join(", ")),
        [] => unreachable!("a session has a device"),
    };
    Err(Error::Op { op: "to", operands: vec![], message })
}

/// Why an op does not take operands of two devices.
#[cold]
#[inline(never)]
pub(crate) fn apart(g: Locked, op: &'static OpDef, operands: &[NodeId]) -> Error {
    drop(g);
    let variables = crate::cell::tensors();
    let (all, types): (Vec<(u8, Option<String>)>, Vec<String>) = {
        let g = graph();
        let one = |&id: &NodeId| {
            let n = g.node(id);
            let variable = variables.iter().find(|(_, v)| *v == id).map(|(name, _)| name.clone());
            ((n.device, variable.or_else(|| binding(n.at))), n.described())
        };
        operands.iter().map(one).unzip()
    };
    let mut found = all.iter().enumerate().filter(|(_, (device, _))| *device != ANYWHERE);
    let (i, (a, first)) = found.next().expect("one operand is on a device");
    let (j, (b, other)) = found.find(|(_, (device, _))| device != a).expect("and one on another");
    let named = |i: usize, name: &Option<String>| match name {
        Some(name) => format!("`{name}`"),
        None => format!("operand {}", i + 1),
    };
    let (here, there) = (session::name_of(*a), session::name_of(*b));
    let message = format!(
        "expected all tensors to be on the same device: {} is on {here}, {} on {there}; move one of them: `{}.to({here:?})`",
        named(i, first),
        named(j, other),
        other.as_deref().unwrap_or_default(),
    );
    Error::Op { op: op.name, operands: types, message }
}

impl Tensor {
    /// The device the tensor is on, such as `cpu:0` (`torch.Tensor.device`). What is on none, since it was made of nothing,
    /// names the first, where it is computed unless it meets a tensor of another.
    #[track_caller]
    pub fn device(&self) -> String {
        match session::device_names() {
            Ok(names) => names[home(self.place()) as usize].clone(),
            Err(e) => e.raise(),
        }
    }

    /// The number of the device, or [`ANYWHERE`].
    pub(crate) fn place(&self) -> u8 {
        graph().node(self.id()).device
    }

    /// Puts a tensor that was just traced, and that nothing uses yet, on a device.
    pub(crate) fn placed(self, device: u8) -> Tensor {
        if device != ANYWHERE {
            graph().place(self.id(), device);
        }
        self
    }

    /// The tensor where `other` is.
    #[track_caller]
    pub(crate) fn beside(self, other: &Tensor) -> Tensor {
        let (here, there) = (self.place(), other.place());
        if here == there || here == ANYWHERE || there == ANYWHERE { self } else { self.moved_to(there) }
    }

    #[track_caller]
    pub(super) fn moved(&self, name: &str) -> Tensor {
        match find(name) {
            Ok(device) => self.moved_to(device),
            Err(e) => e.raise(),
        }
    }

    /// Whether moving the tensor there runs something first.
    pub(crate) fn runs_to_move(&self, name: &str) -> bool {
        let g = graph();
        let n = g.node(self.id());
        n.device != ANYWHERE && n.value().is_none() && session::name_of(n.device) != name
    }

    #[track_caller]
    fn moved_to(&self, device: u8) -> Tensor {
        let (here, there_is) = {
            let g = graph();
            let n = g.node(self.id());
            (n.device, n.data().is_some())
        };
        if home(here) == device {
            return self.clone();
        }
        if here == ANYWHERE && !there_is {
            return trace(&TO_DEVICE, [self.into()], [(device as usize).into()]).placed(device);
        }
        let at = line().unwrap_or(Location::caller());
        let copy = self.value(Cause::DeviceChange, at).and_then(|(data, _)| match data.device == device {
            true => Ok(data),
            false => data.copied_to(device),
        });
        match copy {
            Ok(copy) => self.as_copied(copy, device, at),
            Err(e) => e.raise(),
        }
    }

    // The tensor on another device, where its value is already. Only a tensor that gradients flow through stays behind it.
    fn as_copied(&self, copy: Arc<DeviceData>, device: u8, at: &'static Location<'static>) -> Tensor {
        let recorded = is_grad_enabled() && self.requires_grad();
        let mut g = graph();
        let from = self.id();
        let (buckets, ty) = (g.node(from).buckets().to_vec(), copy.ty.clone());
        let (op, operands) = if recorded { (&TO_DEVICE, smallvec![from]) } else { (&super::DATA, smallvec![]) };
        let attrs: Box<[_]> = if recorded { Box::new([(device as usize).into()]) } else { Box::default() };
        let id = g.push(op, operands, attrs, ty, Payload::Data(copy), at);
        g.place(id, device);
        let n = g.node_mut(id);
        n.flags = if recorded { REQUIRES_GRAD } else { 0 };
        n.set_buckets(buckets);
        Tensor::of_node(&mut g, id)
    }
}
