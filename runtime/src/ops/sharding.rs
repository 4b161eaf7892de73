//! Tensors in parts on the devices of a mesh: one program, which XLA splits over them.
//!
//! A tensor that is marked lies on its mesh as its spec says; what is computed of it is computed there, split as XLA finds best
//! for it, and what it meets that is on the first device goes to all devices of the mesh. Values are the same as on one device,
//! but for the order in which sums are added up.
use super::collective::refuse_manual;
use crate::insight::Cause;
use crate::tensor::{Entry, Sample, Tensor, is_grad_enabled, on_behalf, refuse, trace};
use crate::{Error, Result, bucket};
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::device::{DeviceData, name_of, resharded};
use xlazy_core::ir::Role::Sharding as Sharded;
use xlazy_core::ir::{Attr, Bucket, DATA, Kind, LEAF, Payload, Placement, REQUIRES_GRAD, attr, graph, rules};
use xlazy_core::mesh::{Mesh, Sharding};
use xlazy_core::run;
use xlazy_core::thread::innermost;

static MARK_SHARDING: Entry = Entry::new("mark_sharding", rules::same, |l| {
    let x = l.x(0);
    match l.mesh().and_then(|mesh| sharding_of(mesh, &l.attrs[0])) {
        Some(sharding) => l.constrained(&x, &sharding),
        None => x,
    }
})
.kind(Kind::Transfer)
.attrs(&[attr("partition_spec", Sharded), attr("mesh", Sharded)])
.samples(|| vec![Sample::of(&[&[2, 3]]).attrs(vec![Attr::Name("(None, None)".into()), Attr::Name("mesh(x=1)".into())])])
.grad(|g| {
    vec![g.want(0, || {
        let place = g.x(0).placement().meet(g.output.placement());
        trace(&MARK_SHARDING, [(&g.dy).into()], g.attrs.to_vec()).placed(place)
    })]
})
.bucket(bucket::each);

pub(super) static OPS: &[&Entry] = &[&MARK_SHARDING];

fn sharding_of(mesh: Mesh, spec: &Attr) -> Option<Sharding> {
    match spec {
        Attr::Name(text) => Sharding::parse(mesh, text),
        _ => None,
    }
}

/// Lays a tensor out on a mesh: each dimension is split over the axis named for it, over two as `"data+model"`, or not at all
/// (`torch_xla.distributed.spmd.mark_sharding`; Shardy: sharding_constraint). The tensor itself, and every handle of it, is
/// there from now on; it is given back. What has a value is copied part by part, and of what is pending the spec is a
/// constraint on how it is computed. Gradients flow, and lie the same way.
///
/// Ends the cell where a size is not a multiple of the number of its parts, or an axis is not the mesh's.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
/// let x = mark_sharding(&Tensor::ones([8, 6]), &mesh, &[Some("data"), None]);
/// let w = mark_sharding(&Tensor::ones([6, 4]), &mesh, &[None, Some("model")]);
/// assert_eq!(x.matmul(&w).to_vec::<f32>(), [6.0; 32]);
/// ```
#[track_caller]
pub fn mark_sharding(t: &Tensor, mesh: &Mesh, partition_spec: &[Option<&str>]) -> Tensor {
    t.mark_sharding(mesh, partition_spec)
}

/// What one device holds of a tensor.
#[derive(Clone, Debug)]
pub struct Shard {
    /// `cpu:3`
    pub device: String,
    /// Of each dimension the part that it holds.
    pub index: Vec<Range<usize>>,
    /// The part, as a tensor on that device.
    pub data: Tensor,
}

impl Tensor {
    /// As [`mark_sharding`].
    #[track_caller]
    pub fn mark_sharding(&self, mesh: &Mesh, partition_spec: &[Option<&str>]) -> Tensor {
        let rank = self.dim();
        if partition_spec.len() != rank {
            let given = partition_spec.len();
            let why = format!(
                "the spec has {given} entries, and the tensor has {rank} dimensions: one for each, `None` for what \
                               is not split"
            );
            refuse("mark_sharding", &[self], why);
        }
        match Sharding::new(*mesh, partition_spec) {
            Ok(sharding) => self.laid(&sharding),
            Err(why) => refuse("mark_sharding", &[self], why),
        }
    }

    /// Lays the tensor out as another one of as many dimensions is (`jax.experimental.shard_alike`), and gives it back.
    ///
    /// ```no_run
    /// use xlazy::prelude::*;
    /// let mesh = Mesh::new(&[("data", 8)]);
    /// let x = Tensor::ones([16, 2]).mark_sharding(&mesh, &[Some("data"), None]);
    /// let y = Tensor::zeros([16, 2]).shard_as(&x);
    /// assert_eq!(y.sharding(), x.sharding());
    /// ```
    #[track_caller]
    pub fn shard_as(&self, other: &Tensor) -> Tensor {
        match other.sharding() {
            None => refuse("shard_as", &[self, other], "the other tensor is on one device: `mark_sharding` it first"),
            Some(s) if s.rank() != self.dim() => {
                refuse("shard_as", &[self, other], "the two have different numbers of dimensions")
            }
            Some(s) => self.laid(&s),
        }
    }

    /// How the tensor lies on its mesh, `None` where it is on one device. Where XLA chooses this the tensor is computed first,
    /// by itself: in a step it may choose otherwise.
    #[track_caller]
    pub fn sharding(&self) -> Option<Sharding> {
        let known = {
            let g = graph();
            let n = g.node(self.id());
            let mesh = n.placement.mesh()?;
            match n.value() {
                Some(data) => Some(data.sharding_on(mesh)),
                None if n.op.id == MARK_SHARDING.op.id => sharding_of(mesh, &n.attrs[0]),
                None => None,
            }
        };
        known.or_else(|| {
            let (data, _) = self.value(Cause::Read, Location::caller()).unwrap_or_else(|e| e.raise());
            Some(data.sharding_on(Mesh::at(data.device)?))
        })
    }

    /// What each device of the tensor's mesh holds of it; one part where it is on one device (`jax.Array.addressable_shards`).
    /// Runs what the tensor needs.
    ///
    /// ```no_run
    /// use xlazy::prelude::*;
    /// let mesh = Mesh::new(&[("data", 2)]);
    /// let shards = tensor([1.0, 2.0]).mark_sharding(&mesh, &[Some("data")]).shards();
    /// assert_eq!((shards[1].device.as_str(), shards[1].data.to_vec::<f32>()), ("cpu:1", vec![2.0]));
    /// ```
    #[track_caller]
    pub fn shards(&self) -> Vec<Shard> {
        let at = Location::caller();
        self.value(Cause::Read, at).and_then(|(data, _)| parts(&data, innermost(at))).unwrap_or_else(|e| e.raise())
    }

    /// To be computed in parts as other data are split, where these are.
    #[track_caller]
    pub(crate) fn constrained_like(self, other: &Tensor) -> Tensor {
        let sharding = {
            let g = graph();
            if !g.has_meshes() {
                return self;
            }
            let n = g.node(other.id());
            match n.data().and_then(|d| d.shards.as_ref()) {
                Some(s) if !s.sharding.is_replicated() => s.sharding.clone(),
                _ => return self,
            }
        };
        let there = Placement::Device(sharding.mesh().place());
        if sharding.rank() != self.dim() || !self.placement().together(there) {
            return self;
        }
        let attrs = [Attr::Name(sharding.to_string().into()), Attr::Name(sharding.mesh().to_string().into())];
        trace(&MARK_SHARDING, [(&self).into()], attrs).placed(there)
    }

    /// Lays data out as other data of their shape are, where these are in parts.
    #[track_caller]
    pub(crate) fn lie_like(&self, other: &Tensor) {
        let sharding = {
            let g = graph();
            let (mine, theirs) = (g.node(self.id()), g.node(other.id()));
            let (Some(here), Some(there)) = (mine.data(), theirs.data()) else { return };
            let Some(shards) = &there.shards else { return };
            let same = here.shards.as_ref().is_some_and(|s| s.sharding == shards.sharding);
            if same || mine.ty.shape != theirs.ty.shape {
                return;
            }
            shards.sharding.clone()
        };
        self.laid(&sharding);
    }

    /// The tensor, laid out so; every dimension must be split evenly.
    #[track_caller]
    pub(crate) fn laid(&self, sharding: &Sharding) -> Tensor {
        let (mesh, at) = (sharding.mesh(), Location::caller());
        refuse_manual("mark_sharding");
        let (here, data, physical, flags) = {
            let g = graph();
            let n = g.node(self.id());
            (n.placement, n.data().cloned(), n.ty, n.flags)
        };
        if let Some(why) = sharding.why_uneven(&physical.shape) {
            refuse("mark_sharding", &[self], why);
        }
        let there = Placement::Device(mesh.place());
        if let Some(data) = data {
            // Only what gradients are recorded of needs an op.
            let kept = flags & LEAF != 0 || flags & REQUIRES_GRAD == 0;
            if data.shards.as_ref().is_some_and(|s| s.sharding == *sharding) {
                return self.clone();
            }
            if kept {
                let new = resharded(&data, sharding.clone()).unwrap_or_else(|e| e.raise());
                let buckets = graph().node(self.id()).buckets().to_vec();
                let value = data_on(new, there, innermost(at), buckets);
                self.set_data(value);
                return self.clone();
            }
        }
        if !here.together(there) {
            let why = format!(
                "the tensor is pending on {}, and a constraint is for one mesh: mark it once it has a value, behind a `sync()`",
                name_of(here.home())
            );
            refuse("mark_sharding", &[self], why);
        }
        let attrs = [Attr::Name(sharding.to_string().into()), Attr::Name(mesh.to_string().into())];
        // Of a leaf it is another value, and no op that gradients flow through.
        let recorded = is_grad_enabled() && flags & LEAF == 0;
        let marked = on_behalf(at, recorded, || trace(&MARK_SHARDING, [self.into()], attrs)).placed(there);
        self.set_data(marked);
        self.clone()
    }
}

fn data_on(data: Arc<DeviceData>, place: Placement, at: &'static Location<'static>, buckets: Vec<Bucket>) -> Tensor {
    let mut g = graph();
    let ty = data.ty;
    let id = g.push(&DATA, SmallVec::new(), Box::default(), ty, Payload::Data(data), at);
    g.place(id, place);
    g.node_mut(id).set_buckets(buckets);
    Tensor::of_node(&mut g, id)
}

fn parts(data: &DeviceData, at: &'static Location<'static>) -> Result<Vec<Shard>> {
    run::wait(data)?;
    let shape = &data.ty.shape;
    let Some(mesh) = Mesh::at(data.device) else {
        let index = shape.iter().map(|&n| 0..n).collect();
        let copy = data.copied_to(data.device)?;
        let part = Tensor::of_data(copy, Placement::Device(data.device), at);
        return Ok(vec![Shard { device: name_of(data.device).to_owned(), index, data: part }]);
    };
    let sharding = data.sharding_on(mesh);
    let block = sharding.shard_shape(shape);
    let one = |(position, (buffer, &device)): (usize, (_, &u8))| {
        let part = DeviceData::part(buffer, data.ty, &block, device)?;
        let offsets = sharding.offsets(position, shape);
        let index = offsets.iter().zip(block.iter()).map(|(&from, &n)| from..from + n).collect();
        let data = Tensor::of_data(Arc::new(part), Placement::Device(device), at);
        Ok::<_, Error>(Shard { device: name_of(device).to_owned(), index, data })
    };
    data.buffers().zip(mesh.devices()).enumerate().map(one).collect()
}
