//! Devices, and how tensors get from one to another.
//!
//! What comes from the host (`tensor(…)`, a loader's batch, a module's parameters) is on the client's first device. `to`
//! moves it; what an op makes is on its operands' device, and operands on two devices are refused. What is made of nothing
//! (`zeros`, `arange`, `rand`, numbers) is on no device: it follows the tensors it meets, also after a sync has given it a
//! value, which is then copied to them, and is computed on the first device where it meets none (JAX calls it uncommitted).
//! `zeros_like` and its kin are where their tensor is.
//!
//! Each device has programs of its own: a sync runs one for each device that something is pending on.
use crate::insight::Cause;
use crate::tensor::{Entry, Sample, Tensor, is_grad_enabled, trace};
use crate::{Error, Result, bucket};
use smallvec::smallvec;
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::device::{DeviceData, device_names, name_of};
use xlazy_core::ir::Role::Device;
use xlazy_core::ir::{DATA, Kind, Payload, Placement, REQUIRES_GRAD, attr, graph, rules};
use xlazy_core::thread::innermost;
use xlazy_core::ty::DType;

/// What a tensor is put on another device by. What has no device is computed there; otherwise the node has its value from the
/// start, a copy, and only the gradient tape holds the operand.
static TO_DEVICE: Entry = Entry::new("to_device", rules::same, |l| l.x(0))
    .kind(Kind::Transfer)
    .attrs(&[attr("device", Device)])
    .samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![0usize.into()])])
    .grad(|g| vec![g.want(0, || g.dy.clone().placed_like(g.x(0)))])
    .bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&TO_DEVICE];

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
    match device_names() {
        Ok(names) => names.to_vec(),
        Err(e) => e.raise(),
    }
}

/// The device of a name; the platform's name alone is its first one.
fn find(name: &str) -> Result<u8> {
    let names = device_names()?;
    let same = |n: &String| n.eq_ignore_ascii_case(name);
    let first = names[0].split(':').next().is_some_and(|platform| platform.eq_ignore_ascii_case(name));
    if let Some(i) = names.iter().position(same).or(first.then_some(0)) {
        return Ok(i as u8);
    }
    let more = match names {
        [only] if only.starts_with("cpu") => format!("; there are two with {}", xlazy_core::host::cpu_devices(2)),
        _ => String::new(),
    };
    let message = match names {
        [only] => format!("there is no device {name:?}: there is {only} alone{more}"),
        [all @ .., last] => format!("there is no device {name:?}: there are {} and {last}", all.join(", ")),
        [] => unreachable!("a session has a device"),
    };
    Err(Error::Op { op: "to", operands: vec![], message })
}

impl Tensor {
    /// The device the tensor is on, such as `cpu:0` (`torch.Tensor.device`). What is on none, since it was made of nothing,
    /// names the first, where it is computed unless it meets a tensor of another; what is in parts names its mesh.
    ///
    /// `tensor([1.0]).device()` is `"cpu:0"`.
    #[track_caller]
    pub fn device(&self) -> String {
        match device_names() {
            Ok(_) => name_of(self.placement().home()).to_owned(),
            Err(e) => e.raise(),
        }
    }

    pub(crate) fn placement(&self) -> Placement {
        graph().node(self.id()).placement
    }

    /// Puts a tensor that was just traced, and that nothing uses yet, somewhere.
    pub(crate) fn placed(self, place: Placement) -> Tensor {
        if place != Placement::Anywhere {
            graph().place(self.id(), place);
        }
        self
    }

    /// The tensor where `other` is.
    #[track_caller]
    pub(crate) fn placed_like(self, other: &Tensor) -> Tensor {
        match (self.placement(), other.placement()) {
            (here, there) if !here.together(there) => self.moved_to(there.home()),
            _ => self,
        }
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
        n.placement != Placement::Anywhere && n.value().is_none() && name_of(n.placement.home()) != name
    }

    #[track_caller]
    fn moved_to(&self, device: u8) -> Tensor {
        let (here, there_is) = {
            let g = graph();
            let n = g.node(self.id());
            (n.placement, n.data().is_some())
        };
        if here.home() == device {
            return self.clone();
        }
        if here == Placement::Anywhere && !there_is {
            return trace(&TO_DEVICE, [self.into()], [(device as usize).into()]).placed(Placement::Device(device));
        }
        let at = innermost(Location::caller());
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
        let (buckets, ty) = (g.node(from).buckets().to_vec(), copy.ty);
        let (op, operands) = if recorded { (&TO_DEVICE.op, smallvec![from]) } else { (&DATA, smallvec![]) };
        let attrs: Box<[_]> = if recorded { Box::new([(device as usize).into()]) } else { Box::default() };
        let id = g.push(op, operands, attrs, ty, Payload::Data(copy), at);
        g.place(id, Placement::Device(device));
        let n = g.node_mut(id);
        n.flags = if recorded { REQUIRES_GRAD } else { 0 };
        n.set_buckets(buckets);
        Tensor::of_node(&mut g, id)
    }
}
