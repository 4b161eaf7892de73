//! What ops say of themselves and their attributes, checked against what they do.
use super::{apply, numbers, operands};
use crate::ops::table;
use crate::tensor::{Entry, Sample, Tensor, sync};
use std::collections::HashMap;
use xlazy_core::ir::{Attr, Kind, Role, Sig};
use xlazy_core::ty::{DType, Shape, Type};

/// Every op with each of its samples.
fn samples() -> impl Iterator<Item = (&'static Entry, Sample)> {
    table().flat_map(|op| (op.samples)().into_iter().map(move |s| (op, s)))
}

#[test]
fn attributes_hold_what_their_role_says() {
    for (op, sample) in samples() {
        assert_eq!(op.attrs.len(), sample.attrs.len(), "{}: the attributes of a sample", op.name);
        let rank = sample.inputs.iter().map(|o| o.shape.len()).max().unwrap_or(0) as i64;
        for (def, value) in op.attrs.iter().zip(&sample.attrs) {
            let fits = match (def.role, value) {
                (Role::Axis, Attr::Int(d)) => (0..=rank).contains(d),
                (Role::Axis, Attr::Ints(dims)) => dims.iter().all(|d| (0..rank).contains(d)),
                (Role::Size, Attr::Int(n)) => *n >= 0,
                (Role::Stride, Attr::Int(n)) => *n > 0,
                (Role::Position | Role::Size | Role::Stride, Attr::Ints(_)) => true,
                (Role::Position | Role::Device, Attr::Int(_)) => true,
                (Role::Dtype, Attr::DType(_)) => true,
                (Role::Constant, Attr::Float(_) | Attr::Floats(_) | Attr::Ints(_)) => true,
                (Role::Mode, Attr::Bool(_) | Attr::Int(_)) => true,
                (Role::Sharding, Attr::Name(_) | Attr::Ints(_)) => true,
                _ => false,
            };
            assert!(fits, "`{}` of {} is {:?} and holds {value:?}", def.name, op.name, def.role);
        }
    }
}

/// How much of the result's type each attribute decides is what its role says.
#[test]
fn only_sizes_positions_and_axes_change_a_shape() {
    let mut seen: HashMap<Role, usize> = HashMap::new();
    for (op, sample) in samples() {
        let types: Vec<Type> =
            sample.inputs.iter().map(|o| Type::new(o.dtype.unwrap_or(DType::F32), o.shape.clone())).collect();
        let types: Vec<&Type> = types.iter().collect();
        let infer = |attrs: &[Attr]| (op.infer)(&Sig { inputs: &types, attrs }).ok();
        let Some(was) = infer(&sample.attrs) else { continue };
        for (k, def) in op.attrs.iter().enumerate() {
            let other = match &sample.attrs[k] {
                Attr::Bool(b) => Attr::Bool(!b),
                Attr::DType(d) => Attr::DType(if *d == DType::F32 { DType::BF16 } else { DType::F32 }),
                Attr::Float(v) => Attr::Float(v + 1.0),
                Attr::Floats(v) => Attr::Floats(v.iter().map(|v| v + 1.0).collect()),
                Attr::Ints(v) if def.role == Role::Constant => Attr::Ints(v.iter().map(|v| v + 1).collect()),
                _ => continue,
            };
            let mut attrs = sample.attrs.clone();
            attrs[k] = other;
            let Some(now) = infer(&attrs) else { continue };
            *seen.entry(def.role).or_default() += 1;
            assert_eq!(was.dtype != now.dtype, def.role == Role::Dtype, "`{}` of {}", def.name, op.name);
            // whether a reduced dimension stays is the one mode that a shape shows
            assert!(was.shape.numel() == now.shape.numel(), "`{}` of {}", def.name, op.name);
        }
    }
    assert!([Role::Dtype, Role::Constant, Role::Mode].iter().all(|r| seen.contains_key(r)), "{seen:?}");
}

#[test]
fn the_form_that_healing_chooses_is_the_same_op_without_the_attribute() {
    let mut healed = 0;
    for (op, sample) in samples().filter(|(op, _)| op.has_dynamic_form()) {
        let form = (op.heal.unwrap())(&sample.attrs).unwrap_or_else(|| panic!("{} is not healed", op.name));
        assert_eq!((form.op.kind, form.op.torch_name()), (op.kind, op.torch_name()));
        assert_ne!(form.op.name, op.name);
        assert_eq!(form.attrs.len(), form.op.attrs.len(), "{}", form.op.name);
        let lifted = op.attrs.iter().zip(&sample.attrs).filter(|(def, value)| {
            matches!(def.role, Role::Position | Role::Constant) && (form.value == **value || def.role == Role::Constant)
        });
        assert!(lifted.count() > 0, "{}: positions and constants are what is lifted", op.name);
        assert!(!op.heals(&sample.attrs, &sample.attrs), "{}: nothing differs", op.name);
        healed += 1;
    }
    assert!(healed > 5);
}

#[test]
fn what_differs_by_the_lifted_attribute_alone_is_one_program_once_healed() {
    let op = |name: &str| table().find(|op| op.name == name).unwrap();
    let slice =
        |start: i64, end: i64, step: i64| -> Vec<Attr> { vec![1i64.into(), start.into(), end.into(), step.into()] };
    assert!(op("slice").heals(&slice(0, 3, 1), &slice(2, 5, 1)));
    assert!(!op("slice").heals(&slice(0, 3, 1), &slice(0, 4, 1)), "another length is another program");
    assert!(op("tril").heals(&[0i64.into()], &[1i64.into()]));
    assert!(!op("softmax").heals(&[0i64.into()], &[1i64.into()]), "it has no dynamic form");
}

/// Which positions of `y` see an element of the first operand, if each sees the one in its place.
fn in_place(x: &Shape, y: &Shape, element: usize, position: usize) -> bool {
    let skip = y.len() - x.len();
    let (mut rest, mut at, mut stride) = (position, 0, 1);
    for d in (0..y.len()).rev() {
        let i = rest % y[d];
        rest /= y[d];
        if d >= skip {
            let n = x[d - skip];
            at += if n == 1 { 0 } else { i * stride };
            stride *= n;
        }
    }
    at == element
}

fn values(t: &Tensor) -> Vec<f64> {
    let bytes = t.bytes(crate::insight::Cause::Read, t.location()).unwrap();
    bytes.chunks_exact(t.dtype().size()).map(|b| t.dtype().read(b).as_f64()).collect()
}

/// A result, the same with the first element of the first operand another, and that operand's elements.
type Seen = (&'static Entry, Vec<f64>, Vec<f64>, Shape, Sample, Vec<Vec<f64>>);

fn seen() -> Vec<Seen> {
    let mut traced = Vec::new();
    for (op, sample) in samples() {
        let types: Vec<Type> =
            sample.inputs.iter().map(|o| Type::new(o.dtype.unwrap_or(DType::F32), o.shape.clone())).collect();
        let fits = (op.infer)(&Sig { inputs: &types.iter().collect::<Vec<_>>(), attrs: &sample.attrs }).is_ok();
        if !fits || sample.inputs.is_empty() || sample.inputs[0].dtype.is_some() {
            continue;
        }
        let of = numbers(&sample, 11);
        let mut moved = of.clone();
        moved[0][0] = sample.low + 0.999 * (sample.high - sample.low);
        let [y, z] = [&of, &moved].map(|v| apply(op, &sample, &operands(&sample, v, DType::F32)));
        traced.push((op, y, z, sample, of));
    }
    sync();
    let read = |(op, y, z, sample, of): (&'static Entry, Tensor, Tensor, Sample, Vec<Vec<f64>>)| {
        (op, values(&y), values(&z), y.shape(), sample, of)
    };
    traced.into_iter().map(read).collect()
}

#[test]
fn ops_do_with_elements_what_their_kind_says() {
    let mut spreads: HashMap<&str, bool> = HashMap::new();
    for (op, y, z, shape, sample, operands) in seen() {
        let name = op.name;
        let x = &sample.inputs[0].shape;
        let operand = |i: usize| operands[i].iter().map(|v| f64::from(*v as f32)).collect::<Vec<_>>();
        let from = |i: usize| y.iter().all(|v| operand(i).contains(v));
        let numel: Vec<usize> = sample.inputs.iter().map(|o| o.shape.numel()).collect();
        match op.kind {
            Kind::Elementwise | Kind::Add | Kind::Mul | Kind::Convert => {
                let changed = (0..y.len()).filter(|&i| y[i] != z[i] && !(y[i].is_nan() && z[i].is_nan()));
                let elsewhere: Vec<usize> = changed.filter(|&i| !in_place(x, &shape, 0, i)).collect();
                assert!(elsewhere.is_empty(), "{name} is elementwise, but {elsewhere:?} changed");
            }
            Kind::Along => {
                assert_eq!(shape, *x, "{name}");
                let elsewhere = (1..y.len()).any(|i| y[i] != z[i]);
                *spreads.entry(name).or_default() |= elsewhere;
            }
            Kind::View => assert!(from(0) && y.len().is_multiple_of(numel[0]), "{name} computes"),
            Kind::Select => assert!(from(0), "{name} computes"),
            Kind::Pad => {
                assert!(y.iter().all(|v| operand(0).contains(v) || operand(1).contains(v)), "{name} computes")
            }
            Kind::Concat => {
                assert_eq!(y.len(), numel.iter().sum::<usize>(), "{name}");
                let all: Vec<f64> = (0..numel.len()).flat_map(operand).collect();
                assert!(y.iter().all(|v| all.contains(v)), "{name} computes");
            }
            Kind::Update => assert_eq!(shape, *x, "{name}"),
            Kind::Transfer => assert_eq!(y, operand(0), "{name}"),
            Kind::Reduce => assert!(y.len() < numel[0], "{name}: {} of {}", y.len(), numel[0]),
            Kind::Made | Kind::Mask | Kind::Random => {
                let numbers = numel.iter().all(|&n| n == 1) || name.contains('.');
                assert!(numbers, "{name} is made of nothing, and takes tensors");
            }
            Kind::Contract | Kind::Window => assert!(!x.is_empty(), "{name}"),
            Kind::Control => panic!("{name} has no samples"),
            Kind::Data | Kind::Found | Kind::Chosen => panic!("{name} is computed"),
        }
    }
    let local: Vec<&&str> = spreads.iter().filter(|(_, spread)| !**spread).map(|(name, _)| name).collect();
    assert!(local.is_empty(), "elementwise after all: {local:?}");
}
