//! Views: tensors that show elements of another one, in part, in another shape or order. No memory is shared; what is written
//! through one of them is written to all that show the same elements: its base and its siblings get new values, recorded as
//! ops (functionalization, as torch_xla's alias graph does it). A tensor that is never viewed knows nothing of this.
//!
//! A tensor that is no view lies in row-major order, as every result of an op does here. So strides follow from the chain of
//! steps between a view and its base, and `reshape` is a view where torch's strides allow it, else a copy.
use super::layout::{Layout, Step};
use super::thread::recording;
use super::{Meta, Tensor, View, caller_line, held, is_grad_enabled, is_physical, no_grad, refuse, set_all};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use xlazy_core::ir::{LEAF, REQUIRES_GRAD, Write, graph};
use xlazy_core::sys::statement;
use xlazy_core::thread::{innermost, rank, thread};
use xlazy_core::ty::{DType, Shape, TypeRef};

impl Drop for Meta {
    // A chain of views of any length goes by a loop, not by recursion.
    fn drop(&mut self) {
        let mut next = self.view.take().map(|v| v.of);
        while let Some(mut meta) = next.and_then(Arc::into_inner) {
            next = meta.view.take().map(|v| v.of);
        }
    }
}

type Chain<'a> = SmallVec<[&'a Arc<Meta>; 4]>;

impl Meta {
    /// The base, its view that leads to this one, and so on up to this one.
    fn chain(self: &Arc<Meta>) -> Chain<'_> {
        let mut chain: Chain = std::iter::successors(Some(self), |m| m.view.as_ref().map(|v| &v.of)).collect();
        chain.reverse();
        chain
    }
}

fn step(meta: &Arc<Meta>) -> &View {
    meta.view.as_ref().expect("only the first of a chain is no view")
}

/// How the last of a chain lies in the memory that its first would have.
fn layout(chain: &[&Arc<Meta>]) -> Layout {
    let mut views = chain.iter().skip(1).map(|m| step(m)).peekable();
    let start = Layout::in_order(views.peek().map_or(&Shape::default(), |v| &v.from));
    views.fold(start, |at, v| at.stepped(&v.step))
}

impl Tensor {
    pub(super) fn meta(&self) -> Arc<Meta> {
        self.0.meta.get_or_init(|| Meta::of(self, None)).latest()
    }

    /// The type that this handle knows, without a look at the graph where it can be.
    pub(super) fn known_type(&self) -> TypeRef {
        if self.0.reshaped.load(Ordering::Relaxed) { graph().node(self.id()).ty } else { self.0.ty }
    }

    /// The dtype of its elements, whatever the call under way takes it for.
    pub(crate) fn stored(&self) -> DType {
        graph().node(self.id()).ty.dtype
    }

    /// What is known of this tensor beyond its value, if anything is.
    pub(super) fn known(&self) -> Option<Arc<Meta>> {
        self.0.meta.get().map(Meta::latest)
    }

    /// This tensor, just made, as a view of another: what is written to one is seen by the other. Where tensors are taken
    /// as they are physically nobody writes.
    pub(crate) fn viewing(self, of: &Tensor, step: Step) -> Tensor {
        if is_physical() {
            return self;
        }
        let this = self.apart();
        graph().node_mut(this.id()).view = true;
        let parent = of.meta();
        let base = parent.view.as_ref().map_or(&parent, |v| &v.base);
        let in_order = matches!(step, Step::Reshape(_) | Step::Moved(..) | Step::Detach) && of.is_contiguous();
        let (from, recorded) = (of.shape(), is_grad_enabled() && !matches!(step, Step::Detach));
        let view = View { of: parent.clone(), base: base.clone(), step, from, recorded, in_order };
        {
            let mut views = held(&base.views);
            if views.len() == views.capacity() {
                views.retain(|v| v.strong_count() > 0);
            }
            views.push(Arc::downgrade(&this.0));
        }
        let meta = Meta::of(&this, Some(view));
        let _ = this.0.meta.set(meta);
        this
    }

    /// Whether the elements lie in row-major order in memory, which those of transposed and sliced views do not
    /// (`torch.Tensor.is_contiguous`). What is no view does.
    ///
    /// `Tensor::zeros([2, 3]).is_contiguous()` is `true`.
    pub fn is_contiguous(&self) -> bool {
        let Some(meta) = self.known() else { return true };
        meta.view.as_ref().is_none_or(|v| v.in_order || layout(&meta.chain()).is_contiguous())
    }

    /// Whether the tensor is a view of another (`torch.Tensor._is_view`).
    pub(crate) fn is_view(&self) -> bool {
        self.known().is_some_and(|m| m.view.is_some())
    }

    /// Whether a tensor of this shape can be a view of this one, without a copy.
    pub(crate) fn can_be_viewed_as(&self, shape: &Shape) -> bool {
        let Some(meta) = self.known() else { return true };
        meta.view.as_ref().is_none_or(|v| v.in_order || layout(&meta.chain()).reshaped(shape).is_some())
    }

    /// The same value as a tensor that is no view: writes to it are seen by nobody.
    pub(crate) fn apart(self) -> Tensor {
        match self.0.meta.get() {
            Some(_) => Tensor::of_node(&mut graph(), self.id()),
            None => self,
        }
    }

    /// Makes this tensor (and all its clones) have another value of the same shape; what in-place methods do. Those that
    /// show the same elements follow.
    #[track_caller]
    pub(crate) fn assign(&self, op: &'static str, value: Tensor) {
        let value = self.fitted(op, value);
        let write = write_of(op);
        if self.0.meta.get().is_none() {
            return set_all(&mut [(self.clone(), value)], Some(write));
        }
        let mut values = vec![(self.clone(), value)];
        follow(&mut values);
        set_all(&mut values, Some(write));
    }

    /// Makes this tensor (and all its clones) what one of its views is, in another shape or order; what `t_` and its like do.
    /// Its elements stay those that its other views show.
    #[track_caller]
    pub(crate) fn become_view(&self, op: &'static str, view: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        // Refused where a write of its own value is; that its elements share places is no matter, as none is written.
        self.fit(op, self.clone(), false);
        let seen = view(self);
        if seen.is_same(self) {
            return seen;
        }
        let Some(view) = seen.known().and_then(|m| m.view.clone()) else { return self.clone() };
        let (before, base) = (self.meta(), view.base.clone());
        set_all(&mut [(self.clone(), seen.apart())], None);
        self.0.reshaped.store(true, Ordering::Relaxed);
        let now = Meta::of(self, Some(view));
        *held(&now.grad) = std::mem::take(&mut *held(&before.grad));
        if let Some(made) = before.made.get() {
            let _ = now.made.set(*made);
        }
        *held(&before.later) = Some(now);
        let this = Arc::downgrade(&self.0);
        if !base.this.ptr_eq(&this) {
            let mut views = held(&base.views);
            if !views.iter().any(|v| v.ptr_eq(&this)) {
                views.push(this);
            }
        }
        self.clone()
    }

    /// Lets go of what made this tensor: no gradient flows further back from here (`torch.Tensor.detach_`). A view is refused,
    /// as in torch: gradients flow to what it is a view of.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let x = tensor([1.0, 2.0]).requires_grad_(true);
    /// let hidden = &x * 2.0;
    /// assert!(!hidden.detach_().requires_grad());
    /// ```
    #[track_caller]
    pub fn detach_(&self) -> Tensor {
        if self.is_view() {
            let why = "Can't detach views in-place. Use detach() instead";
            refuse("detach_", &[self], why);
        }
        if self.requires_grad() {
            self.point_at(self.unrecorded().id(), false);
        }
        self.clone()
    }

    /// Whether both are handles of one tensor.
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Puts another value in this tensor's place, whatever its type; a leaf stays one.
    pub(crate) fn set_data(&self, value: Tensor) {
        set_all(&mut [(self.clone(), value)], None);
    }

    /// A value as it can take this tensor's place, or a refusal; nothing has changed yet.
    #[track_caller]
    pub(crate) fn fitted(&self, op: &'static str, value: Tensor) -> Tensor {
        self.fit(op, value, true)
    }

    /// Whether gradients accumulate in it.
    pub(crate) fn accumulates(&self) -> bool {
        graph().node(self.id()).flags & LEAF != 0
    }

    /// The value in this tensor's dtype, where that can hold what it is.
    #[track_caller]
    pub(crate) fn in_dtype(&self, op: &'static str, value: Tensor) -> Tensor {
        let (mine, new) = (self.stored(), value.stored());
        if new.category() > mine.category() {
            let message = format!("the result is {new} and cannot be put into a tensor of {mine}");
            refuse(op, &[self], message + ": make a new tensor, or convert this one first");
        }
        value.to(mine)
    }

    #[track_caller]
    fn fit(&self, op: &'static str, value: Tensor, written: bool) -> Tensor {
        let (physical, grad, body) = thread(|t| (t.physical.get(), t.grad.get(), t.body.get()));
        // Asked of every parameter in every step: one look at the graph.
        let (shapes, buckets, leaf, dtype, together) = {
            let g = graph();
            let (mine, new) = (g.node(self.id()), g.node(value.id()));
            let plain = physical || mine.buckets().is_empty() && new.buckets().is_empty();
            let shapes = if plain { mine.ty.shape == new.ty.shape } else { mine.shown().shape == new.shown().shape };
            let buckets = plain || mine.buckets() == new.buckets();
            let dtype = (mine.ty.dtype != new.ty.dtype).then_some(mine.ty.dtype);
            (shapes, buckets, mine.flags & LEAF != 0, dtype, mine.placement == new.placement)
        };
        if !shapes {
            refuse(op, &[self, &value], "an in-place op cannot change the shape of its tensor");
        }
        if !buckets {
            refuse(op, &[self, &value], "an in-place op cannot change which dimensions of its tensor are bucketed");
        }
        let value = match dtype {
            Some(_) => self.in_dtype(op, value),
            None => value,
        };
        let value = if together { value } else { value.placed_like(self) };
        if leaf && grad {
            let why = "a leaf Variable that requires grad is being used in an in-place operation; do it inside \
                       `no_grad(|| …)`";
            refuse(op, &[self], why);
        }
        if let Some(body) = body {
            let behind = self.known().map_or_else(Vec::new, |m| m.chain().iter().map(|m| m.this.clone()).collect());
            for t in behind.iter().filter_map(Weak::upgrade).map(Tensor).chain([self.clone()]) {
                t.refuse_outside(op, body);
            }
        }
        if rank().is_some() {
            let base = self.known().and_then(|m| m.view.as_ref()?.base.this.upgrade()).map(Tensor);
            base.as_ref().unwrap_or(self).refuse_shared(op);
        }
        self.refuse_write(op, written);
        if grad { value } else { history_kept(self, value) }
    }

    /// Refuses a write that torch refuses; nothing is recorded.
    #[track_caller]
    fn refuse_write(&self, op: &'static str, written: bool) {
        let Some(meta) = self.known().filter(|m| m.view.is_some()) else { return };
        let chain = meta.chain();
        if written && layout(&chain).overlaps() {
            let why = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
                       location. Please clone() the tensor before performing the operation: `.copy()`";
            refuse(op, &[self], why);
        }
        // Gradients flow to what is behind a view, up to where it is detached.
        let detached = chain.iter().rposition(|m| m.view.as_ref().is_some_and(|v| matches!(v.step, Step::Detach)));
        let leaf = |m: &Arc<Meta>| m.this.upgrade().map(Tensor).is_some_and(|t| t.requires_grad() && t.is_leaf());
        if is_grad_enabled() && chain[detached.unwrap_or(0)..].iter().any(|m| leaf(m)) {
            let why = "a view of a leaf Variable that requires grad is being used in an in-place operation; do it inside \
                       `no_grad(|| …)`";
            refuse(op, &[self], why);
        }
    }
}

impl Meta {
    fn of(tensor: &Tensor, view: Option<View>) -> Arc<Meta> {
        let (made, grad, views, later) = Default::default();
        let ty = graph().node(tensor.id()).ty;
        Arc::new(Meta { made, grad, this: Arc::downgrade(&tensor.0), ty, view, views, later })
    }

    /// What it has become since.
    fn latest(self: &Arc<Meta>) -> Arc<Meta> {
        let mut latest = self.clone();
        while let Some(later) = { held(&latest.later).clone() } {
            latest = later;
        }
        latest
    }
}

/// An in-place op of the line that runs.
#[track_caller]
pub(crate) fn write_of(op: &'static str) -> Write {
    Write { op, at: innermost(Location::caller()), statement: statement(), seq: 0 }
}

/// Adds to values that are about to be put in the place of tensors those of all who show the same elements.
#[track_caller]
pub(crate) fn follow(values: &mut Vec<(Tensor, Tensor)>) {
    let _line = caller_line();
    for i in 0..values.len() {
        let Some(meta) = values[i].0.known() else { continue };
        let base = meta.view.as_ref().map_or(&meta, |v| &v.base).clone();
        let family: Vec<Tensor> = {
            let views = held(&base.views);
            let all = std::iter::once(&base.this).chain(views.iter()).filter_map(Weak::upgrade).map(Tensor);
            all.collect()
        };
        if family.len() > 1 && fits(&values[i].0, &values[i].1) {
            follow_one(values, i, &meta, family);
        }
    }
}

/// Whether a value is of its tensor's type, and not on another device.
fn fits(tensor: &Tensor, value: &Tensor) -> bool {
    let g = graph();
    g.node(tensor.id()).ty == g.node(value.id()).ty && !g.apart(&[tensor.id(), value.id()])
}

/// A tensor that is written to, or that follows it.
struct Written {
    meta: Arc<Meta>,
    value: Tensor,
}

#[track_caller]
fn follow_one(values: &mut Vec<(Tensor, Tensor)>, i: usize, meta: &Arc<Meta>, family: Vec<Tensor>) {
    let tensor = values[i].0.clone();
    let written = meta.chain();
    let value = leaf_of(&tensor, &values[i].1).unwrap_or_else(|| values[i].1.clone());
    values[i].1 = value.clone();
    let mut done = vec![Written { meta: meta.clone(), value: value.clone() }];
    let mut family: Vec<(usize, Tensor)> = family
        .into_iter()
        .filter(|t| !t.is_same(&tensor))
        .map(|t| {
            let n = t.meta().chain().len();
            (n, t)
        })
        .collect();
    family.sort_by_key(|(length, _)| *length);
    for (_, member) in family {
        let theirs = member.meta();
        let other = theirs.chain();
        let common = written.iter().zip(&other).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let apart = written.get(common).zip(other.get(common)).is_some_and(|(a, b)| step(a).is_apart_from(step(b)));
        // What has got another type since shows these elements no longer.
        if apart || graph().node(member.id()).ty != theirs.ty {
            continue;
        }
        let now =
            values.iter().rev().find(|(t, _)| t.is_same(&member)).map_or_else(|| member.clone(), |(_, v)| v.clone());
        let behind = done.iter().filter_map(|d| Some((other.iter().position(|m| Arc::ptr_eq(m, &d.meta))?, d)));
        let nearest = behind.max_by_key(|(at, _)| *at).map(|(at, d)| (at, d.value.clone()));
        let new = match nearest {
            Some((at, value)) => shown(&other[at + 1..], value),
            None if common == other.len() && !other.iter().skip(1).any(|m| step(m).step.may_overlap()) => {
                let new = put(&written[common..], &now, &value);
                if is_grad_enabled() { new } else { history_kept(&now, new) }
            }
            None => {
                // Nobody holds what both are parts of, with each element once: as much of it as this one shows is made up.
                let several = other.iter().position(|m| m.view.as_ref().is_some_and(|v| v.step.may_overlap()));
                let common = several.map_or(common, |at| at.min(common));
                let scratch = Tensor::zeros(&step(other[common]).from).to(now.dtype()).placed_like(&now);
                let before = put(&other[common..], &scratch, &now);
                shown(&other[common..], put(&written[common..], &before, &value))
            }
        };
        let new = leaf_of(&member, &new).unwrap_or(new);
        done.push(Written { meta: theirs.clone(), value: new.clone() });
        values.push((member.clone(), new));
    }
}

/// A leaf's new value, already a leaf: what is recorded on it is recorded on the leaf.
fn leaf_of(tensor: &Tensor, value: &Tensor) -> Option<Tensor> {
    let mut g = graph();
    if g.node(tensor.id()).flags & LEAF == 0 {
        return None;
    }
    let leaf = super::alias(&mut g, value.id(), None);
    g.node_mut(leaf.id()).flags |= REQUIRES_GRAD | LEAF;
    let owner = Arc::downgrade(&tensor.0);
    g.owners.insert(leaf.id(), owner);
    Some(leaf)
}

/// A value that takes a tensor's place without being recorded: gradients flow on to what made the old one, as in torch.
#[track_caller]
fn history_kept(old: &Tensor, new: Tensor) -> Tensor {
    let flags = graph().node(old.id()).flags;
    if flags & REQUIRES_GRAD == 0 || flags & LEAF != 0 { new } else { new.with_history_of(old) }
}

/// What the last of some views shows of a value of the tensor before the first of them.
#[track_caller]
fn shown(views: &[&Arc<Meta>], mut value: Tensor) -> Tensor {
    for v in views.iter().map(|m| step(m)) {
        let _back = recording(v.recorded);
        value = v.step.shown(&value);
    }
    value.apart()
}

/// `base` with `new` where the last of some views of it is.
#[track_caller]
fn put(views: &[&Arc<Meta>], base: &Tensor, new: &Tensor) -> Tensor {
    let Some((first, rest)) = views.split_first() else { return new.clone() };
    let first = step(first);
    if first.step.may_overlap() {
        // One element may be seen in several places, of which only one has changed.
        if views.iter().any(|m| matches!(step(m).step, Step::Real | Step::Imag | Step::AsReal | Step::AsComplex)) {
            refuse(
                "copy_",
                &[base, new],
                "a part of an expanded complex tensor cannot be written to: `.copy()` it first",
            );
        }
        let start = Layout::in_order(&first.from);
        let at = views.iter().fold(start, |at, m| at.stepped(&step(m).step));
        return base.as_strided_scatter(new, &at.size, at.stride.to_vec(), at.offset as usize);
    }
    let part = match rest {
        [] => new.clone(),
        _ => put(rest, &first.step.shown(base), new),
    };
    first.step.put(base, &first.from, &part)
}

impl View {
    /// Whether two steps from the same tensor show none of the same elements.
    fn is_apart_from(&self, other: &View) -> bool {
        match (&self.step, &other.step) {
            (Step::Slice { dim: a, .. }, Step::Slice { dim: b, .. }) if a == b => {
                let n = self.from[*a] as i64;
                let (start, end, step) = self.step.range(n);
                let (from, to, by) = other.step.range(n);
                end <= from || to <= start || step == by && (start - from) % step != 0
            }
            (Step::Real, Step::Imag) | (Step::Imag, Step::Real) => true,
            _ => false,
        }
    }
}

impl Step {
    #[track_caller]
    fn shown(&self, x: &Tensor) -> Tensor {
        match self {
            Step::Reshape(shape) => x.reshape(shape),
            Step::Moved(shape, to) => x.reshape_moving(shape.clone(), |d| to[d]),
            Step::Permute(dims) => x.permute(dims.to_vec()),
            Step::Slice { dim, start, end, step } => x.slice(*dim as i64, *start, *end, *step),
            Step::Expand(shape) => x.expand(shape),
            Step::Diagonal { offset, dims: [a, b] } => x.diagonal(*offset, *a as i64, *b as i64),
            Step::Unfold { dim, size, step } => x.unfold(*dim as i64, *size, *step),
            Step::Strided { size, stride, offset } => x.as_strided(size, stride.to_vec(), *offset),
            Step::Detach => x.detach(),
            Step::Real => x.real(),
            Step::Imag => x.imag(),
            Step::AsReal => x.view_as_real(),
            Step::AsComplex => x.view_as_complex(),
        }
    }

    /// `base`, of the shape `from`, with `new` in the place of what the step shows.
    #[track_caller]
    fn put(&self, base: &Tensor, from: &Shape, new: &Tensor) -> Tensor {
        match self {
            Step::Reshape(_) => new.reshape(from),
            Step::Moved(_, to) => new.reshape_moving(from.clone(), |d| to.iter().position(|t| *t == Some(d))),
            Step::Permute(dims) => {
                let mut back = vec![0; dims.len()];
                dims.iter().enumerate().for_each(|(i, &d)| back[d] = i);
                new.permute(back)
            }
            Step::Slice { dim, start, end, step } => base.slice_scatter(new, *dim as i64, *start, *end, *step),
            Step::Diagonal { offset, dims: [a, b] } => base.diagonal_scatter(new, *offset, *a as i64, *b as i64),
            Step::Detach => history_kept(base, no_grad(|| new.detach())),
            Step::Real => new.complex(&base.imag()),
            Step::Imag => base.real().complex(new),
            Step::AsReal => new.view_as_complex(),
            Step::AsComplex => new.view_as_real(),
            Step::Expand(_) | Step::Unfold { .. } | Step::Strided { .. } => unreachable!("written by its strides"),
        }
    }
}
