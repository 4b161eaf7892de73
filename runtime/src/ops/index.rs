//! Elements by position: gather and scatter. Positions are checked, on the host where it knows them (`bounds`).
use super::barrier::barrier;
use super::base::rounded_once;
use super::bounds::{all_positions, all_within, positions as checked};
use crate::bucket;
use crate::tensor::{Entry, Grad, Sample, Tensor, trace, trace_all};
use xlazy_core::emit::{Reducer, Region, Val, array};
use xlazy_core::ir::Role::{Axis, Mode};
use xlazy_core::ir::{Attr, AttrDef, AttrsExt, Kind, Lower, Sig, attr};
use xlazy_core::ty::{Category, DType, Shape, Type};

/// How several values for one place combine, as an attribute: what is written replaces, is added…
pub(super) const REPLACE: i64 = 0;
pub(super) const ADD: i64 = 1;
pub(super) const MUL: i64 = 2;
pub(super) const MAX: i64 = 3;
pub(super) const MIN: i64 = 4;

fn region(l: &mut Lower, how: i64, dtype: DType) -> Region {
    match how {
        REPLACE => l.replacing(dtype),
        ADD => l.combining(Reducer::Add, dtype),
        MUL => l.combining(Reducer::Mul, dtype),
        MAX => l.combining(Reducer::Max, dtype),
        _ => l.combining(Reducer::Min, dtype),
    }
}

fn integers(t: &Type) -> std::result::Result<(), String> {
    match t.dtype.category() {
        Category::Int => Ok(()),
        _ => Err(format!("the index is {}, expected integers: convert with `.long()`", t.dtype)),
    }
}

/// Positions as int64 from the front; negative ones count from the end.
fn wrapped(l: &mut Lower, index: &Val, size: usize) -> Val {
    let i = l.convert(index, DType::I64);
    if index.dtype().is_unsigned() {
        return i;
    }
    let zero = l.constant(0.0, &i.ty);
    let negative = l.compare("LT", &i, &zero);
    let back = l.with_const("add", &i, size as f64);
    l.select(&negative, &back, &i)
}

/// Vectors of positions: the parts side by side in a new last dimension.
fn vectors(l: &mut Lower, parts: Vec<Val>) -> Val {
    let mut shape = parts[0].shape().clone();
    shape.push(1);
    let parts: Vec<Val> = parts.iter().map(|p| l.reshape(p, &shape)).collect();
    let last = shape.len() - 1;
    if parts.len() == 1 { parts[0].clone() } else { l.concatenate(&parts.iter().collect::<Vec<_>>(), last) }
}

/// How the positions of torch's `gather` and `scatter` are told, and which dimensions are the same in both: where those are as long
/// in the index as in the tensor, a position is a number, and devices that share a batch share the op; otherwise it is one in all
/// dimensions, the index along `dim` and counting in the others.
fn positions(l: &mut Lower, index: &Val, dim: usize, sizes: &Shape) -> (Val, Vec<usize>) {
    let batch: Vec<usize> = (0..sizes.len()).filter(|&d| d != dim).collect();
    let alike = batch.iter().all(|&d| index.shape()[d] == sizes[d]);
    let index = wrapped(l, index, sizes[dim]);
    if alike {
        return (vectors(l, vec![index]), batch);
    }
    let parts = (0..sizes.len()).map(|d| if d == dim { index.clone() } else { l.iota(&index.ty, d) }).collect();
    (vectors(l, parts), vec![])
}

/// The dimensions that positions are told in.
fn told(rank: usize, batch: &[usize]) -> String {
    numbers((0..rank).filter(|d| !batch.contains(d)))
}

fn numbers(items: impl IntoIterator<Item = usize>) -> String {
    items.into_iter().map(|d| d.to_string()).collect::<Vec<_>>().join(", ")
}

// Which index positions are valid for gather and scatter along a dimension.
fn along_rule(s: &Sig, index: usize) -> std::result::Result<(), String> {
    integers(s.inputs[index])?;
    let (x, i, dim) = (s.shape(0), s.shape(index), s.attrs.index(0));
    if i.numel() == 0 {
        return Ok(());
    }
    if x.len() != i.len() {
        return Err(format!("the index {i} and the tensor {x} differ in their number of dimensions"));
    }
    match (0..x.len()).find(|&d| d != dim && i[d] > x[d]) {
        Some(d) => Err(format!("the index {i} is larger than the tensor {x} in dimension {d}")),
        None => Ok(()),
    }
}

pub(super) static GATHER: Entry = Entry::new(
    "gather",
    |s| {
        along_rule(s, 1)?;
        Ok(Type::new(s.dtype(0), s.shape(1).clone()))
    },
    |l| {
        let (x, index, out) = (l.x(0), l.x(1), l.out.clone());
        if out.shape.numel() == 0 {
            return l.constant(0.0, &out);
        }
        let rank = x.rank();
        let (at, batch) = positions(l, &index, l.attrs.index(0), x.shape());
        let attributes = format!(
            "{{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [{told}], \
             operand_batching_dims = [{batch}], start_indices_batching_dims = [{batch}], start_index_map = [{told}], \
             index_vector_dim = {rank}>, slice_sizes = array<i64{ones}>, indices_are_sorted = false}}",
            told = told(rank, &batch),
            batch = numbers(batch.iter().copied()),
            ones = array(&vec![1; rank]),
        );
        l.op("gather", &[&x, &at], &attributes, out)
    },
)
.kind(Kind::Select)
.checks(|s| vec![checked(s, 1, s.attrs.index(0), false)])
.attrs(&[attr("dim", Axis)])
.samples(|| {
    vec![
        Sample::of(&[&[4, 3]]).index(&[2, 3], 4).attrs(vec![0usize.into()]),
        Sample::of(&[&[2, 3]]).index(&[2, 5], 3).attrs(vec![1usize.into()]),
    ]
})
.grad(|g| {
    let dx = added_up(g, |zeros, dy| scatter_with(zeros, g.attrs.index(0), g.x(1), dy, ADD));
    vec![Some(dx), None]
})
.bucket(bucket::gather);

/// What is combined at a place is combined in this dtype: sums of halves in f32, and rounded once.
fn summed_in(how: i64, dtype: DType) -> DType {
    if how == ADD && dtype.is_half() { DType::F32 } else { dtype }
}

pub(super) static SCATTER: Entry = Entry::new(
    "scatter",
    |s| {
        along_rule(s, 1)?;
        let (i, src) = (s.shape(1), s.shape(2));
        let fits = src.is_empty() || i.numel() == 0 || (src.len() == i.len() && (0..i.len()).all(|d| i[d] <= src[d]));
        match fits {
            true => Ok(s.inputs[0].clone()),
            false => Err(format!("the index {i} is larger than the source {src}")),
        }
    },
    |l| {
        let (x, index, src) = (l.x(0), l.x(1), l.cast(2));
        if index.shape().numel() == 0 {
            return x;
        }
        let rank = x.rank();
        let src = match src.rank() < index.rank() {
            true => l.broadcast(&src, index.shape()),
            false if src.shape() == index.shape() => src,
            false => {
                let limit: Vec<i64> = index.shape().iter().map(|&d| d as i64).collect();
                l.slice(&src, &vec![0; rank], &limit, &vec![1; rank])
            }
        };
        let (at, batch) = positions(l, &index, l.attrs.index(0), x.shape());
        let how = l.attrs.int(1);
        let dtype = summed_in(how, x.dtype());
        let (x, src) = (l.convert(&x, dtype), l.convert(&src, dtype));
        let region = region(l, how, dtype);
        let attributes = format!(
            "{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [{told}], \
             input_batching_dims = [{batch}], scatter_indices_batching_dims = [{batch}], scatter_dims_to_operand_dims = [{told}], \
             index_vector_dim = {rank}>, indices_are_sorted = false, unique_indices = false}}",
            told = told(rank, &batch),
            batch = numbers(batch.iter().copied()),
        );
        let ty = x.ty.clone();
        let [y] = l.with_regions("scatter", &[&x, &at, &src], &[region], &attributes, [ty]);
        let dtype = l.out.dtype;
        l.convert(&y, dtype)
    },
)
.kind(Kind::Update)
.checks(|s| vec![checked(s, 1, s.attrs.index(0), false)])
.attrs(&[attr("dim", Axis), attr("reduce", Mode)])
.samples(|| {
    let of = |how: i64| Sample::of(&[&[4, 3]]).index(&[2, 3], 4).then(&[&[2, 3]]).attrs(vec![0usize.into(), how.into()]);
    // replacing has no unique result where positions repeat: one column with one position each
    let replace = Sample::of(&[&[1, 3]]).index(&[1, 3], 1).then(&[&[1, 3]]).attrs(vec![0usize.into(), REPLACE.into()]);
    vec![replace, of(ADD), of(MUL).range(0.5, 1.5), of(MAX), of(MIN)]
})
.grad(|g| {
    let dim = g.attrs.index(0);
    let index = g.x(1);
    let back = |dy: &Tensor| source_grad(g, 2, trace(&GATHER, [dy.into(), index.into()], [dim.into()]));
    let picked = |t: &Tensor| trace(&GATHER, [t.into(), index.into()], [dim.into()]);
    let add = |t: &Tensor, src: &Tensor| scatter_with(t, dim, index, src, ADD);
    match g.attrs.int(1) {
        REPLACE => {
            let dx = g.want(0, || scatter_with(&g.dy, dim, index, &zero_like(&g.dy), REPLACE));
            vec![dx, None, g.want(2, || back(&g.dy))]
        }
        ADD => vec![Some(g.dy.clone()), None, g.want(2, || back(&g.dy))],
        MUL => {
            // the product of all others, without dividing by zero: a zero counts as one where it is the only one
            let one = |t: &Tensor, zero: &Tensor| t.masked_fill(zero, 1.0);
            let product = |x: &Tensor, src: &Tensor| scatter_with(x, dim, index, src, MUL);
            let (x, src) = (g.x(0), source(g, 2).expand(index.shape()));
            let dx = g.want(0, || {
                let zero = x.eq(0.0);
                let safe = one(x, &zero);
                &g.dy * product(&safe, &src) / safe
            });
            let dsrc = g.want(2, || {
                let zero = src.eq(0.0);
                let zeros = add(&g.dy.zeros_like(), &zero.to(g.dy.dtype()));
                let alone = zero.logical_and(picked(&zeros).eq(1.0));
                let others = picked(&(&g.dy * product(x, &one(&src, &alone))));
                let divided = picked(&(&g.dy * g.y())) / one(&src, &zero);
                source_grad(g, 2, others.where_(&alone, &divided))
            });
            vec![dx, None, dsrc]
        }
        // equals share the gradient evenly, as in torch; asked of one and the same values, as for `amax`
        how => {
            let dtype = g.dy.dtype();
            let given = barrier(&[g.x(0).clone(), source(g, 2)]);
            let (x, src) = (&given[0], &given[1]);
            let extreme = scatter_with(x, dim, index, src, how);
            let mine = x.eq(&extreme).to(dtype);
            let theirs = src.eq(picked(&extreme)).to(dtype);
            let share = &g.dy / add(&mine, &theirs);
            vec![g.want(0, || &mine * &share), None, g.want(2, || source_grad(g, 2, picked(&share) * &theirs))]
        }
    }
})
.bucket(|b| bucket::scatter(b, neutral(b.attrs.int(1))));

// What flows back to places that were taken: of halves added up in f32, since one place may have been taken often.
fn added_up(g: &Grad, add: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Tensor {
    rounded_once([&g.dy], |[dy]| add(&g.x(0).zeros_like().to(dy.dtype()), dy))
}

// The part of a scatter's source that the index reaches.
fn source(g: &Grad, i: usize) -> Tensor {
    let (src, index) = (g.x(i).clone(), g.x(1).shape());
    if src.dim() == 0 {
        return src;
    }
    (0..index.len()).fold(src, |s, d| s.narrow(d as i64, 0, index[d] as i64))
}

// The gradient of that part, as one of the whole source: zero beyond what the index reaches.
fn source_grad(g: &Grad, i: usize, part: Tensor) -> Tensor {
    let (src, shape) = (g.x(i).shape(), part.shape());
    if src.is_empty() || src == shape {
        return part;
    }
    let amounts: Vec<i64> = (0..src.len()).rev().flat_map(|d| [0, (src[d] - shape[d]) as i64]).collect();
    part.pad(amounts, 0.0)
}

fn zero_like(x: &Tensor) -> Tensor {
    Tensor::zeros(()).to(x.dtype())
}

#[track_caller]
fn scatter_with(x: &Tensor, dim: usize, index: &Tensor, src: &Tensor, how: i64) -> Tensor {
    trace(&SCATTER, [x.into(), index.into(), src.into()], [dim.into(), how.into()])
}

/// The shape of `x[indices]`: what the indexed dimensions leave, with the indices' shape put in at `at`.
fn indexed(x: &Shape, index: &Shape, dims: &[usize], at: usize) -> Shape {
    let mut left: Vec<usize> = (0..x.len()).filter(|d| !dims.contains(d)).map(|d| x[d]).collect();
    left.splice(at..at, index.iter().copied());
    Shape::new(&left)
}

// The shape that the index tensors (operands `from`…) have together.
fn index_shape(s: &Sig, from: usize) -> std::result::Result<Shape, String> {
    let mut shape = Shape::default();
    for t in &s.inputs[from..] {
        integers(t)?;
        shape = shape
            .broadcast(&t.shape)
            .ok_or_else(|| format!("the index tensors {shape} and {} do not broadcast", t.shape))?;
    }
    let x = s.shape(0);
    match s.attrs.dims(0).iter().find(|&&d| x[d] == 0 && shape.numel() > 0) {
        Some(d) => Err(format!("dimension {d} of {x} has no elements to choose from")),
        None => Ok(shape),
    }
}

// Vectors of positions from the index tensors `from`…, broadcast together.
fn index_vectors(l: &mut Lower, from: usize, sizes: &Shape) -> (Val, Shape) {
    let mut shape = Shape::default();
    for v in &l.inputs[from..] {
        shape = shape.broadcast(v.shape()).expect("checked by the type rule");
    }
    let dims = l.attrs.dims(0);
    let parts = (0..dims.len())
        .map(|i| {
            let v = l.x(from + i);
            let v = wrapped(l, &v, sizes[dims[i]]);
            l.broadcast(&v, &shape)
        })
        .collect();
    (vectors(l, parts), shape)
}

const INDEXED: &[AttrDef] = &[attr("dims", Axis), attr("at", Axis)];
const PLACED: &[AttrDef] = &[attr("dims", Axis), attr("at", Axis), attr("reduce", Mode)];

/// The elements at index tensors, under the name of the method that asks for them.
const fn indexing(name: &'static str) -> Entry {
    Entry::new(
        name,
        |s| {
            let shape = index_shape(s, 1)?;
            Ok(Type::new(s.dtype(0), indexed(s.shape(0), &shape, &s.attrs.dims(0), s.attrs.index(1))))
        },
        |l| {
            let (x, out) = (l.x(0), l.out.clone());
            if out.shape.numel() == 0 {
                return l.constant(0.0, &out);
            }
            let (dims, at) = (l.attrs.dims(0), l.attrs.index(1));
            let (vectors, shape) = index_vectors(l, 1, x.shape());
            let offset = (0..out.shape.len()).filter(|&d| d < at || d >= at + shape.len());
            let sizes: Vec<usize> =
                x.shape().iter().enumerate().map(|(d, &n)| if dims.contains(&d) { 1 } else { n }).collect();
            let attributes = format!(
                "{{dimension_numbers = #stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{picked}], \
                 start_index_map = [{picked}], index_vector_dim = {}>, slice_sizes = array<i64{}>, indices_are_sorted = false}}",
                numbers(offset),
                shape.len(),
                array(&sizes),
                picked = numbers(dims),
            );
            l.op("gather", &[&x, &vectors], &attributes, out)
        },
    )
    .kind(Kind::Select)
    .attrs(INDEXED)
    .samples(|| {
        let of = |dims: Vec<i64>, at: usize| vec![dims.into(), at.into()];
        vec![
            Sample::of(&[&[4, 3]]).index(&[2, 2], 4).attrs(of(vec![0], 0)),
            Sample::of(&[&[2, 3, 2]]).index(&[5], 3).attrs(of(vec![1], 1)),
            Sample::of(&[&[2, 3, 2]]).index(&[3], 2).index(&[2, 1], 2).attrs(of(vec![0, 2], 0)),
        ]
    })
    .grad(|g| {
        let mut out = vec![None; g.inputs.len()];
        let indices: Vec<&Tensor> = g.inputs[1..].iter().collect();
        let attrs = [g.attrs[0].clone(), g.attrs[1].clone()];
        out[0] = Some(added_up(g, |zeros, dy| put(&INDEX_PUT, zeros, dy, &indices, attrs, ADD)));
        out
    })
    .bucket(bucket::index)
}

static INDEX: Entry = indexing("index").checks(|s| all_positions(s, 1, true));
pub(super) static TAKE: Entry = indexing("take").checks(|s| all_positions(s, 1, true));
pub(super) static INDEX_SELECT: Entry = indexing("index_select").checks(|s| all_positions(s, 1, false));
pub(super) static EMBEDDING: Entry = indexing("embedding").checks(|s| all_positions(s, 1, false));

/// Values put at index tensors, under the name of the method that puts them.
const fn putting(name: &'static str) -> Entry {
    Entry::new(
        name,
        |s| {
            let shape = index_shape(s, 2)?;
            let place = indexed(s.shape(0), &shape, &s.attrs.dims(0), s.attrs.index(1));
            match s.shape(1).broadcast(&place) {
                Some(b) if b == place => Ok(s.inputs[0].clone()),
                _ => Err(format!("the values {} do not broadcast to {place}, the shape of what is indexed", s.shape(1))),
            }
        },
        |l| {
            let (x, values) = (l.x(0), l.cast(1));
            let (dims, at, how) = (l.attrs.dims(0), l.attrs.index(1), l.attrs.int(2));
            let (vectors, shape) = index_vectors(l, 2, x.shape());
            let place = indexed(x.shape(), &shape, &dims, at);
            if place.numel() == 0 {
                return x;
            }
            let values = l.broadcast(&values, &place);
            let dtype = summed_in(how, x.dtype());
            let (x, values) = (l.convert(&x, dtype), l.convert(&values, dtype));
            let region = region(l, how, dtype);
            let attributes = format!(
                "{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [{picked}], \
                 scatter_dims_to_operand_dims = [{picked}], index_vector_dim = {}>, indices_are_sorted = false, unique_indices = false}}",
                numbers((0..place.len()).filter(|&d| d < at || d >= at + shape.len())),
                shape.len(),
                picked = numbers(dims),
            );
            let ty = x.ty.clone();
            let [y] = l.with_regions("scatter", &[&x, &vectors, &values], &[region], &attributes, [ty]);
            let dtype = l.out.dtype;
            l.convert(&y, dtype)
        },
    )
    .kind(Kind::Update)
    .attrs(PLACED)
    .samples(|| {
        let of = |dims: Vec<i64>, at: usize, how: i64| vec![dims.into(), at.into(), how.into()];
        vec![
            Sample::of(&[&[4, 3], &[2, 3]]).index(&[2], 4).attrs(of(vec![0], 0, ADD)),
            Sample::of(&[&[2, 3], &[]]).index(&[2], 3).attrs(of(vec![1], 1, REPLACE)),
        ]
    })
    .grad(|g| {
        let attrs = [g.attrs[0].clone(), g.attrs[1].clone()];
        let indices: Vec<&Tensor> = g.inputs[2..].iter().collect();
        let mut out = vec![None; g.inputs.len()];
        out[0] = g.want(0, || match g.attrs.int(2) {
            REPLACE => put(&INDEX_PUT, &g.dy, &zero_like(&g.dy), &indices, attrs.clone(), REPLACE),
            _ => g.dy.clone(),
        });
        out[1] = g.want(1, || pick(&INDEX, &g.dy, &indices, attrs.clone()));
        out
    })
    .bucket(|b| bucket::index_put(b, neutral(b.attrs.int(2))))
}

static INDEX_PUT: Entry = putting("index_put").checks(|s| all_positions(s, 2, true));
pub(super) static PUT: Entry = putting("put").checks(|s| all_positions(s, 2, true));
pub(super) static INDEX_ADD: Entry = putting("index_add").checks(|s| all_positions(s, 2, false));
pub(super) static INDEX_COPY: Entry = putting("index_copy").checks(|s| all_positions(s, 2, false));
pub(super) static INDEX_FILL: Entry = putting("index_fill").checks(|s| all_positions(s, 2, true));

pub(super) static OPS: &[&Entry] = &[
    &GATHER,
    &SCATTER,
    &INDEX,
    &TAKE,
    &INDEX_SELECT,
    &EMBEDDING,
    &INDEX_PUT,
    &PUT,
    &INDEX_ADD,
    &INDEX_COPY,
    &INDEX_FILL,
];

/// `x` at the index tensors; `[dims, at]` as in [`INDEX`].
#[track_caller]
pub(super) fn picked(x: &Tensor, indices: &[&Tensor], attrs: [Attr; 2]) -> Tensor {
    pick(&INDEX, x, indices, attrs)
}

#[track_caller]
pub(super) fn pick(op: &'static Entry, x: &Tensor, indices: &[&Tensor], attrs: [Attr; 2]) -> Tensor {
    all_within(op.name, x, indices, &attrs.dims(0));
    let mut inputs = vec![x];
    inputs.extend(indices);
    trace_all(op, &inputs, attrs)
}

#[track_caller]
pub(super) fn put(
    op: &'static Entry,
    x: &Tensor,
    values: &Tensor,
    indices: &[&Tensor],
    [dims, at]: [Attr; 2],
    how: i64,
) -> Tensor {
    all_within(op.name, x, indices, &[dims.clone()].dims(0));
    let mut inputs = vec![x, values];
    inputs.extend(indices);
    trace_all(op, &inputs, [dims, at, how.into()])
}

/// Writes or adds `values` at the index tensors.
#[track_caller]
pub(super) fn put_at(x: &Tensor, values: &Tensor, indices: &[&Tensor], attrs: [Attr; 2], accumulate: bool) -> Tensor {
    put(&INDEX_PUT, x, values, indices, attrs, if accumulate { ADD } else { REPLACE })
}

/// What padding is to be where it falls on a place; nothing leaves alone what it replaces.
fn neutral(how: i64) -> Option<bucket::Neutral> {
    use bucket::Neutral::{Least, Most, One, Zero};
    let all = [(ADD, Zero), (MUL, One), (MAX, Least), (MIN, Most)];
    all.into_iter().find_map(|(h, neutral)| (h == how).then_some(neutral))
}

/// The attributes of one index tensor for one dimension.
pub(super) fn one(dim: usize) -> [Attr; 2] {
    [vec![dim as i64].into(), dim.into()]
}
