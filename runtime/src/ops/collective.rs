//! Collectives: how the devices of a mesh hear of one another in code that is written for each of them (`spmd::manual`).
//!
//! Each is one operation of XLA's, which joins those over the same groups, and gradients flow through all that computes with
//! numbers: what a device gave is used by all of its group, so it gets the sum of what flows to each.
use super::barrier::barrier;
use crate::tensor::{Entry, Grad, Tensor, refuse, trace};
use std::cell::Cell;
use xlazy_core::emit::{Reducer, Val};
use xlazy_core::ir::Role::{Axis, Mode, Position, Sharding};
use xlazy_core::ir::{Attr, AttrsExt, Kind, Lower, Rule, Sig, attr, rules};
use xlazy_core::mesh::Mesh;
use xlazy_core::thread::rank;
use xlazy_core::ty::{Category, DType, Shape, Type};

/// How elements of several devices are combined (`torch.distributed.ReduceOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Added up.
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Multiplied.
    Prod,
    /// Bits that all have, of bool and integers.
    And,
    /// Bits that one has, of bool and integers.
    Or,
}

impl ReduceOp {
    const ALL: [ReduceOp; 6] =
        [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod, ReduceOp::And, ReduceOp::Or];

    fn of(attr: i64) -> ReduceOp {
        ReduceOp::ALL[attr as usize]
    }

    fn attr(self) -> Attr {
        (self as usize).into()
    }

    fn reducer(self) -> Reducer {
        match self {
            ReduceOp::Sum => Reducer::Add,
            ReduceOp::Max => Reducer::Max,
            ReduceOp::Min => Reducer::Min,
            ReduceOp::Prod => Reducer::Mul,
            ReduceOp::And => Reducer::And,
            ReduceOp::Or => Reducer::Or,
        }
    }

    /// Whether it takes elements of a dtype.
    fn takes(self, dtype: DType) -> Result<(), String> {
        let (takes, what) = match self {
            ReduceOp::Sum | ReduceOp::Prod => (dtype != DType::Bool, "numbers: convert with `.to(I32)`"),
            ReduceOp::Max | ReduceOp::Min => {
                (dtype != DType::Bool && !dtype.is_complex(), "numbers that have an order; of bool `Or` and `And`")
            }
            ReduceOp::And | ReduceOp::Or => {
                (matches!(dtype.category(), Category::Bool | Category::Int), "bool and integers")
            }
        };
        if takes { Ok(()) } else { Err(format!("{self:?} is of {what}")) }
    }
}

/// Which devices a collective goes over: each device is in one group, and hears of that group alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Groups {
    /// All in one.
    #[default]
    All,
    /// Those that differ along these axes of the mesh only.
    Axes(Vec<String>),
    /// By their positions in the mesh.
    Of(Vec<Vec<usize>>),
}

impl From<()> for Groups {
    fn from((): ()) -> Groups {
        Groups::All
    }
}

impl From<&str> for Groups {
    fn from(axis: &str) -> Groups {
        Groups::Axes(vec![axis.to_owned()])
    }
}

impl<const N: usize> From<[&str; N]> for Groups {
    fn from(axes: [&str; N]) -> Groups {
        Groups::Axes(axes.map(str::to_owned).to_vec())
    }
}

impl From<Vec<Vec<usize>>> for Groups {
    fn from(groups: Vec<Vec<usize>>) -> Groups {
        Groups::Of(groups)
    }
}

impl From<&[Vec<usize>]> for Groups {
    fn from(groups: &[Vec<usize>]) -> Groups {
        Groups::Of(groups.to_vec())
    }
}

impl<const N: usize, const M: usize> From<[[usize; N]; M]> for Groups {
    fn from(groups: [[usize; N]; M]) -> Groups {
        Groups::Of(groups.map(|g| g.to_vec()).to_vec())
    }
}

thread_local! {
    static INSIDE: Cell<Option<Mesh>> = const { Cell::new(None) };
}

/// While code for each device of a mesh is recorded.
pub(crate) struct Inside(Option<Mesh>);

impl Inside {
    pub fn of(mesh: Mesh) -> Inside {
        Inside(INSIDE.replace(Some(mesh)))
    }

    /// The mesh.
    pub fn now() -> Option<Mesh> {
        INSIDE.get()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Refuses what has no meaning in code for each device.
#[track_caller]
pub(super) fn refuse_manual(op: &'static str) {
    if rank().is_some() {
        refuse(
            op,
            &[],
            "in `spawn` each rank has tensors of its own, on its device: lay tensors out on a mesh outside of it",
        );
    }
    if Inside::now().is_some() {
        refuse(
            op,
            &[],
            "in `spmd::manual` each device has parts of its own, which lie nowhere else: mark what comes out",
        );
    }
}

const OUTSIDE: &str = "is for code that each device runs on its parts: call it in `spmd::manual(&mesh, …)` or `xm::spawn`. Outside \
                       of them tensors are whole, and XLA finds the collectives by itself";

/// Refuses gradients through a collective where there is nobody to hear of: behind the end of `spawn`.
fn among_devices() -> Result<(), String> {
    if Inside::now().is_some() { Ok(()) } else { Err(OUTSIDE.into()) }
}

fn among(s: &Sig) -> Rule {
    among_devices()?;
    rules::same(s)
}

/// The mesh that code is recorded for, and the groups, each device in one of them.
#[track_caller]
pub(super) fn grouped(op: &'static str, of: &[&Tensor], groups: &Groups) -> (Mesh, Vec<Vec<usize>>) {
    let Some(mesh) = Inside::now() else { refuse(op, of, OUTSIDE) };
    let n = mesh.size();
    let groups = match groups {
        Groups::All => vec![(0..n).collect()],
        Groups::Of(groups) if groups.is_empty() => vec![(0..n).collect()],
        Groups::Axes(names) => {
            let axis = |name: &String| {
                mesh.axis(name).unwrap_or_else(|| refuse(op, of, format!("{mesh} has no axis `{name}`")))
            };
            mesh.groups(&names.iter().map(axis).collect::<Vec<_>>())
        }
        Groups::Of(groups) => groups.clone(),
    };
    let mut seen = vec![0; n];
    for &d in groups.iter().flatten() {
        match seen.get_mut(d) {
            Some(times) => *times += 1,
            None => refuse(op, of, format!("the groups name device {d}, and {mesh} has the devices 0 to {}", n - 1)),
        }
    }
    if let Some(d) = seen.iter().position(|&times| times > 1) {
        refuse(op, of, format!("the groups name device {d} more than once: each device is in one"));
    }
    if let Some(d) = seen.iter().position(|&times| times == 0) {
        refuse(op, of, format!("no group has device {d}: each device is in one, alone as `[{d}]`"));
    }
    (mesh, groups.into_iter().filter(|g| !g.is_empty()).collect())
}

/// As [`grouped`], all groups as large.
#[track_caller]
fn even(op: &'static str, of: &[&Tensor], groups: &Groups) -> Vec<Vec<usize>> {
    let (_, groups) = grouped(op, of, groups);
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    if sizes.windows(2).any(|w| w[0] != w[1]) {
        refuse(
            op,
            of,
            format!("groups of {sizes:?} devices would give results of different shapes: all must be as large"),
        );
    }
    groups
}

/// Groups as an attribute: rows of one width, the smaller ones filled up with -1.
fn rows(groups: &[Vec<usize>]) -> [Attr; 2] {
    let width = groups.iter().map(Vec::len).max().unwrap_or(0);
    let row = |g: &Vec<usize>| g.iter().map(|&d| d as i64).chain(std::iter::repeat(-1)).take(width).collect::<Vec<_>>();
    [Attr::Ints(groups.iter().flat_map(row).collect()), width.into()]
}

fn groups_of(attrs: &[Attr], at: usize) -> Vec<Vec<usize>> {
    let all = attrs.ints(at).chunks(attrs.index(at + 1).max(1));
    all.map(|row| row.iter().filter(|d| **d >= 0).map(|&d| d as usize).collect()).collect()
}

fn with_groups<const N: usize>(groups: &[Vec<usize>], others: [Attr; N]) -> Vec<Attr> {
    rows(groups).into_iter().chain(others).collect()
}

/// For each device by position a number of its group, and where it is in it.
fn places(groups: &[Vec<usize>]) -> (Vec<i64>, Vec<i64>) {
    let n = groups.iter().map(Vec::len).sum();
    let (mut group, mut place) = (vec![0; n], vec![0; n]);
    for (i, members) in groups.iter().enumerate() {
        for (k, &d) in members.iter().enumerate() {
            (group[d], place[d]) = (i as i64, k as i64);
        }
    }
    (group, place)
}

const GROUPS: [xlazy_core::ir::AttrDef; 2] = [attr("groups", Sharding), attr("group_size", Sharding)];

static ALL_REDUCE: Entry = Entry::new(
    "all_reduce",
    |s| {
        among_devices()?;
        ReduceOp::of(s.attrs.int(2)).takes(s.dtype(0))?;
        rules::same(s)
    },
    |l| {
        let (x, groups, op) = (l.x(0), groups_of(l.attrs, 0), ReduceOp::of(l.attrs.int(2)));
        match op {
            ReduceOp::And | ReduceOp::Or if x.dtype() != DType::Bool => bits(l, &x, op, &groups),
            _ => l.all_reduce(&x, op.reducer(), &groups),
        }
    },
)
.kind(Kind::Reduce)
.attrs(&[GROUPS[0], GROUPS[1], attr("reduce_op", Mode)])
.grad(|g| {
    let (groups, op) = (groups_of(&g.attrs, 0), ReduceOp::of(g.attrs.int(2)));
    let total = reduced(&g.dy, ReduceOp::Sum, &groups);
    vec![Some(match op {
        ReduceOp::Sum => total,
        // Of several that are as large each gets its part; asked of one and the same values, as for `amax`: XLA may compare what
        // it has not rounded to halves yet with what it has.
        ReduceOp::Max | ReduceOp::Min => {
            let x = barrier(std::slice::from_ref(g.x(0))).remove(0);
            let best = x.eq(reduced(&x, op, &groups)).to(total.dtype());
            total * &best / reduced(&best, ReduceOp::Sum, &groups)
        }
        ReduceOp::Prod => total * product_of_others(g, &groups),
        ReduceOp::And | ReduceOp::Or => total,
    })]
});

/// XLA combines bits of bool alone, so those of integers are gathered. `a & b` is `!(!a | !b)`.
fn bits(l: &mut Lower, x: &Val, op: ReduceOp, groups: &[Vec<usize>]) -> Val {
    let Some(mesh) = l.mesh() else { return x.clone() };
    let x = if op == ReduceOp::And { l.unary("not", x) } else { x.clone() };
    let mut row = x.shape().clone();
    row.insert(0, 1);
    let one = l.reshape(&x, &row);
    let sizes = groups.iter().all(|g| g.len() == groups[0].len());
    let all = match sizes {
        true => l.all_gather(&one, 0, groups),
        false => {
            // Of groups of different sizes: from all, and what others have is nothing.
            let everybody = vec![(0..mesh.size()).collect::<Vec<_>>()];
            let all = l.all_gather(&one, 0, &everybody);
            let (group, _) = places(groups);
            let mine = l.by_device(&group);
            let theirs = l.ints(&group, DType::I64);
            let mine = l.broadcast(&mine, &Shape::new(&[mesh.size()]));
            let same = l.compare("EQ", &theirs, &mine);
            let same = l.broadcast_in_dim(&same, all.shape(), &[0]);
            let none = l.constant(0.0, &all.ty);
            l.select(&same, &all, &none)
        }
    };
    let all = l.reduce(&all, &[0], Reducer::Or);
    if op == ReduceOp::And { l.unary("not", &all) } else { all }
}

/// The product of what the other devices of the group have, whatever of it is zero.
fn product_of_others(g: &Grad, groups: &[Vec<usize>]) -> Tensor {
    let n = groups.iter().map(Vec::len).sum::<usize>();
    let x = g.x(0);
    // From all devices, so that groups may be of any size; outside of the group stands 1.
    let everybody = vec![(0..n).collect::<Vec<_>>()];
    let all = trace(&ALL_GATHER, [(&x.unsqueeze(0)).into()], with_groups(&everybody, [0usize.into()]));
    let (group, _) = places(groups);
    let shape: Vec<i64> = std::iter::once(n as i64).chain(x.shape().iter().map(|_| 1)).collect();
    let mine = by_device(group.clone());
    let me = by_device((0..n as i64).collect());
    let own = Tensor::arange(0, n as i64, 1).eq(&me);
    let groups = crate::ops::create::tensor(group);
    let others = groups.eq(&mine).logical_and(own.logical_not()).reshape(shape);
    crate::ops::compare::where_(&others, &all, all.ones_like()).prod_dim(0, false)
}

static ALL_GATHER: Entry = Entry::new(
    "all_gather",
    |s| {
        among_devices()?;
        let mut ty = rules::same(s)?;
        ty.shape[s.attrs.index(2)] *= s.attrs.index(1);
        Ok(ty)
    },
    |l| {
        let (x, groups, dim) = (l.x(0), groups_of(l.attrs, 0), l.attrs.index(2));
        l.all_gather(&x, dim, &groups)
    },
)
.kind(Kind::Concat)
.attrs(&[GROUPS[0], GROUPS[1], attr("dim", Axis)])
.grad(|g| vec![Some(trace(&REDUCE_SCATTER, [(&g.dy).into()], g.attrs.to_vec()))]);

static REDUCE_SCATTER: Entry = Entry::new(
    "reduce_scatter",
    |s| {
        among_devices()?;
        ReduceOp::Sum.takes(s.dtype(0))?;
        let mut ty = rules::same(s)?;
        ty.shape[s.attrs.index(2)] /= s.attrs.index(1);
        Ok(ty)
    },
    |l| {
        let (x, groups, dim) = (l.x(0), groups_of(l.attrs, 0), l.attrs.index(2));
        l.reduce_scatter(&x, Reducer::Add, dim, &groups)
    },
)
.kind(Kind::Reduce)
.attrs(&[GROUPS[0], GROUPS[1], attr("dim", Axis)])
.grad(|g| vec![Some(trace(&ALL_GATHER, [(&g.dy).into()], g.attrs.to_vec()))]);

static ALL_TO_ALL: Entry = Entry::new(
    "all_to_all",
    |s| {
        among_devices()?;
        let mut ty = rules::same(s)?;
        ty.shape[s.attrs.index(2)] /= s.attrs.index(1);
        ty.shape[s.attrs.index(3)] *= s.attrs.index(1);
        Ok(ty)
    },
    |l| {
        let (x, groups) = (l.x(0), groups_of(l.attrs, 0));
        let (split, concat) = (l.attrs.index(2), l.attrs.index(3));
        l.all_to_all(&x, split, concat, &groups)
    },
)
.kind(Kind::View)
.attrs(&[GROUPS[0], GROUPS[1], attr("split_dimension", Axis), attr("concat_dimension", Axis)])
.grad(|g| {
    let mut attrs = g.attrs.to_vec();
    attrs.swap(2, 3);
    vec![Some(trace(&ALL_TO_ALL, [(&g.dy).into()], attrs))]
});

static COLLECTIVE_PERMUTE: Entry = Entry::new("collective_permute", among, |l| {
    let x = l.x(0);
    let pairs: Vec<(usize, usize)> = l.attrs.dims(0).chunks(2).map(|p| (p[0], p[1])).collect();
    match pairs.is_empty() {
        true => l.constant(0.0, &x.ty),
        false => l.collective_permute(&x, &pairs),
    }
})
.kind(Kind::View)
.attrs(&[attr("pairs", Sharding)])
.grad(|g| {
    let back: Vec<i64> = g.attrs.ints(0).chunks(2).flat_map(|p| [p[1], p[0]]).collect();
    vec![Some(trace(&COLLECTIVE_PERMUTE, [(&g.dy).into()], [back.into()]))]
});

/// As a sum to which all but one give zeros; of floats that of their bits, so that what comes is what was sent.
static BROADCAST: Entry = Entry::new("broadcast", among, |l| {
    let (x, groups, root) = (l.x(0), groups_of(l.attrs, 0), l.attrs.int(2));
    if l.mesh().is_none() {
        return x;
    }
    let (_, place) = places(&groups);
    let gives: Vec<i64> = place.iter().map(|&p| i64::from(p == root)).collect();
    let gives = l.by_device(&gives);
    let gives = l.convert(&gives, DType::Bool);
    let as_bits = match x.dtype() {
        DType::Bool => Some(DType::I8),
        d if d.is_float() => [DType::I8, DType::I16, DType::I32, DType::I64].into_iter().find(|i| i.size() == d.size()),
        _ => None,
    };
    let of = Type::new(as_bits.unwrap_or(x.dtype()), x.shape().clone());
    let y = match as_bits {
        Some(_) if x.dtype() != DType::Bool => l.op("bitcast_convert", &[&x], "", of),
        Some(dtype) => l.convert(&x, dtype),
        None => x.clone(),
    };
    let gives = l.broadcast(&gives, y.shape());
    let none = l.constant(0.0, &y.ty);
    let y = l.select(&gives, &y, &none);
    let y = l.all_reduce(&y, Reducer::Add, &groups);
    match as_bits {
        Some(_) if x.dtype() != DType::Bool => l.op("bitcast_convert", &[&y], "", x.ty.clone()),
        _ => l.convert(&y, x.dtype()),
    }
})
.kind(Kind::Select)
.attrs(&[GROUPS[0], GROUPS[1], attr("root", Position)])
.grad(|g| {
    let (groups, root) = (groups_of(&g.attrs, 0), g.attrs.int(2));
    let total = reduced(&g.dy, ReduceOp::Sum, &groups);
    let (_, place) = places(&groups);
    let gave = by_device(place.iter().map(|&p| i64::from(p == root)).collect());
    vec![Some(total.clone() * gave.to(total.dtype()))]
});

static BY_DEVICE: Entry = Entry::new(
    "by_device",
    |_: &Sig| -> Rule {
        among_devices()?;
        Ok(Type::new(DType::I64, Shape::default()))
    },
    |l| {
        let numbers = l.attrs.ints(0).to_vec();
        l.by_device(&numbers)
    },
)
.kind(Kind::Made)
.attrs(&[attr("numbers", Sharding)]);

pub(super) static OPS: &[&Entry] =
    &[&ALL_REDUCE, &ALL_GATHER, &REDUCE_SCATTER, &ALL_TO_ALL, &COLLECTIVE_PERMUTE, &BROADCAST, &BY_DEVICE];

/// The number that each device has in a list by position.
#[track_caller]
pub(super) fn by_device(numbers: Vec<i64>) -> Tensor {
    trace(&BY_DEVICE, [], [numbers.into()])
}

/// What the devices of each group have, combined.
#[track_caller]
pub(super) fn reduced(x: &Tensor, op: ReduceOp, groups: &[Vec<usize>]) -> Tensor {
    trace(&ALL_REDUCE, [x.into()], with_groups(groups, [op.attr()]))
}

fn scaled(x: Tensor, scale: f64) -> Tensor {
    if scale == 1.0 { x } else { x * scale }
}

/// Elements in the same place on all devices of a group, combined, times `scale`: each device gets the same
/// (`xm.all_reduce`, `jax.lax.psum`, `pmax`, `pmin`; StableHLO: all_reduce). In [`manual`](super::manual). Several tensors over
/// the same groups are one collective of XLA's.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("x", 4)]);
/// let (all, half) = (spmd::Groups::All, [[0, 1], [2, 3]]);
/// let y = spmd::manual(&mesh, &[&[Some("x")]], &[&[None], &[Some("x")]], |a: Tensor| {
///     (spmd::all_reduce(spmd::Sum, &[&a], 1.0, all).remove(0), spmd::all_reduce(spmd::Max, &[&a], 1.0, half).remove(0))
/// }, &tensor([1.0, 2.0, 3.0, 4.0]));
/// assert_eq!((y.0.to_vec::<f32>(), y.1.to_vec::<f32>()), (vec![10.0], vec![2.0, 2.0, 4.0, 4.0]));
/// ```
#[track_caller]
pub fn all_reduce(op: ReduceOp, tensors: &[&Tensor], scale: f64, groups: impl Into<Groups>) -> Vec<Tensor> {
    let (_, groups) = grouped("all_reduce", tensors, &groups.into());
    tensors.iter().map(|t| scaled(reduced(t, op, &groups), scale)).collect()
}

/// As [`all_reduce`], each tensor combined in its own way; those of one way are one collective of XLA's.
#[track_caller]
pub fn all_reduce_many(tensors: &[(ReduceOp, &Tensor)], groups: impl Into<Groups>) -> Vec<Tensor> {
    let of: Vec<&Tensor> = tensors.iter().map(|(_, t)| *t).collect();
    let (_, groups) = grouped("all_reduce_many", &of, &groups.into());
    tensors.iter().map(|(op, t)| reduced(t, *op, &groups)).collect()
}

/// The tensors of all devices of a group, one behind the other along `dim`, in the group's order (`xm.all_gather`,
/// `jax.lax.all_gather` with `tiled`; StableHLO: all_gather). In [`manual`](super::manual).
#[track_caller]
pub fn all_gather(x: &Tensor, dim: i64, groups: impl Into<Groups>) -> Tensor {
    let dim = x.dim_index("all_gather", dim);
    let groups = even("all_gather", &[x], &groups.into());
    if x.dim() == 0 {
        refuse("all_gather", &[x], "needs a dimension to put the parts along: `.reshape([1])` first");
    }
    trace(&ALL_GATHER, [x.into()], with_groups(&groups, [dim.into()]))
}

/// As [`all_reduce`], of which each device gets its part along `dim`, in the group's order (`xm.reduce_scatter`,
/// `jax.lax.psum_scatter`; StableHLO: reduce_scatter). In [`manual`](super::manual).
#[track_caller]
pub fn reduce_scatter(op: ReduceOp, x: &Tensor, scale: f64, dim: i64, groups: impl Into<Groups>) -> Tensor {
    let dim = x.dim_index("reduce_scatter", dim);
    let groups = even("reduce_scatter", &[x], &groups.into());
    let part = parts("reduce_scatter", x, dim, groups[0].len());
    if op == ReduceOp::Sum {
        return scaled(trace(&REDUCE_SCATTER, [x.into()], with_groups(&groups, [dim.into()])), scale);
    }
    let whole = reduced(x, op, &groups);
    let (_, place) = places(&groups);
    let own = by_device(place) * part as i64 + Tensor::arange(0, part as i64, 1);
    scaled(whole.index_select(dim as i64, &own), scale)
}

/// How large each of `n` parts of a dimension is.
#[track_caller]
fn parts(op: &'static str, x: &Tensor, dim: usize, n: usize) -> usize {
    match x.shape().get(dim) {
        None => refuse(op, &[x], "needs a dimension to split: `.reshape([1])` first"),
        Some(size) if size % n != 0 => refuse(
            op,
            &[x],
            format!("dimension {dim} of size {size} does not split evenly over a group of {n} devices"),
        ),
        Some(size) => size / n,
    }
}

/// Each device splits its tensor along one dimension, one part for each of its group, and puts what it gets together along
/// another (`xm.all_to_all`, `jax.lax.all_to_all` with `tiled`; StableHLO: all_to_all). In [`manual`](super::manual).
#[track_caller]
pub fn all_to_all(x: &Tensor, split_dim: i64, concat_dim: i64, groups: impl Into<Groups>) -> Tensor {
    let (split, concat) = (x.dim_index("all_to_all", split_dim), x.dim_index("all_to_all", concat_dim));
    let groups = even("all_to_all", &[x], &groups.into());
    parts("all_to_all", x, split, groups[0].len());
    trace(&ALL_TO_ALL, [x.into()], with_groups(&groups, [split.into(), concat.into()]))
}

/// Each tensor goes from one device to another, by pairs of positions in the mesh; who is sent none has zeros
/// (`xm.collective_permute`, `jax.lax.ppermute`; StableHLO: collective_permute). In [`manual`](super::manual).
#[track_caller]
pub fn collective_permute(x: &Tensor, pairs: &[(usize, usize)]) -> Tensor {
    let (mesh, _) = grouped("collective_permute", &[x], &Groups::All);
    let n = mesh.size();
    let (mut from, mut to) = (vec![false; n], vec![false; n]);
    for &(a, b) in pairs {
        if a >= n || b >= n {
            let why = format!("the pair ({a}, {b}) names a device that is none of {mesh}: it has 0 to {}", n - 1);
            refuse("collective_permute", &[x], why);
        }
        if std::mem::replace(&mut from[a], true) || std::mem::replace(&mut to[b], true) {
            let why = format!("the pair ({a}, {b}): a device sends once at most, and is sent to once at most");
            refuse("collective_permute", &[x], why);
        }
    }
    let pairs: Vec<i64> = pairs.iter().flat_map(|&(a, b)| [a as i64, b as i64]).collect();
    trace(&COLLECTIVE_PERMUTE, [x.into()], [pairs.into()])
}

/// The tensor of one device of each group, on all of it; `root` is that device's place in its group
/// (`xm.collective_broadcast`). In [`manual`](super::manual).
#[track_caller]
pub fn broadcast(x: &Tensor, root: usize, groups: impl Into<Groups>) -> Tensor {
    let (_, groups) = grouped("broadcast", &[x], &groups.into());
    if let Some(g) = groups.iter().find(|g| root >= g.len()) {
        let why = format!("the group {g:?} has no place {root}: places begin with 0");
        refuse("broadcast", &[x], why);
    }
    trace(&BROADCAST, [x.into()], with_groups(&groups, [root.into()]))
}
