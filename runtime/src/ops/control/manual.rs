//! Code for each device of a mesh: a closure that is given every device's parts of some tensors, and gives parts of others.
use super::again::gradients;
use super::tree::{Tensors, filled, flat};
use crate::ops::collective::{Groups, Inside, ReduceOp, by_device, grouped, reduced};
use crate::tensor::{Arg, Argument, Entry, Grad, Recorder, Tensor, refuse, result, try_trace};
use std::panic::Location;
use xlazy_core::ir::Role::{Body as Bodied, Sharding as Sharded};
use xlazy_core::ir::{Attr, Bodies, Kind, Placement, Rule, Sig, attr};
use xlazy_core::mesh::{Mesh, Sharding};
use xlazy_core::thread::{innermost, rank};
use xlazy_core::ty::{Shape, Type, TypeRef};

/// Operands: what is split for the body, what it took from outside, which every device has whole.
pub(super) static MANUAL: Entry = Entry::new("manual", rule, |l| {
    let body = &Bodies::of(&l.attrs[0]).all[0];
    let spec = Spec::of(l.attrs);
    let inputs = l.inputs.to_vec();
    let ins = spec.of_inputs(&inputs.iter().map(|v| v.rank()).collect::<Vec<_>>());
    let gives = spec.gives(&body.gives);
    let done = l.e.manual(&inputs, &ins, &spec.outs, &gives, |e, locals| body.write(e, locals));
    done[0].clone()
})
.kind(Kind::Control)
.several()
.attrs(&[
    attr("body", Bodied).advice(super::scan::BODY_ADVICE),
    attr("in_specs", Sharded),
    attr("out_specs", Sharded),
    attr("mesh", Sharded),
])
.grad(gradient);

fn rule(s: &Sig) -> Rule {
    let body = &Bodies::of(&s.attrs[0]).all[0];
    Ok(Spec::of(s.attrs).gives(&body.gives).swap_remove(0))
}

/// What the attributes say.
struct Spec {
    mesh: Mesh,
    ins: Vec<Sharding>,
    outs: Vec<Sharding>,
}

fn written(all: &[Sharding]) -> Attr {
    Attr::Name(all.iter().map(Sharding::to_string).collect::<Vec<_>>().join("; ").into())
}

impl Spec {
    fn of(attrs: &[Attr]) -> Spec {
        let text = |i: usize| match &attrs[i] {
            Attr::Name(text) => &**text,
            a => unreachable!("no specs: {a:?}"),
        };
        let mesh = Mesh::named(text(3)).expect("known since it was made");
        let all = |i: usize| text(i).split("; ").filter_map(|s| Sharding::parse(mesh, s)).collect();
        Spec { mesh, ins: all(1), outs: all(2) }
    }

    fn attrs(&self, body: Attr) -> Box<[Attr]> {
        [body, written(&self.ins), written(&self.outs), Attr::Name(self.mesh.name().into())].into()
    }

    /// Of all operands: what was taken from outside is whole everywhere.
    fn of_inputs(&self, ranks: &[usize]) -> Vec<Sharding> {
        let whole = ranks.iter().map(|&rank| Sharding::replicated(self.mesh, rank));
        self.ins.iter().cloned().chain(whole.skip(self.ins.len())).collect()
    }

    /// The types of the results, put together of the parts.
    fn gives(&self, parts: &[TypeRef]) -> Vec<Type> {
        parts.iter().zip(&self.outs).map(|(ty, s)| whole(ty, s)).collect()
    }
}

fn whole(part: &Type, sharding: &Sharding) -> Type {
    let sizes: Vec<usize> = (0..sharding.rank()).map(|d| part.shape[d] * sharding.parts(d)).collect();
    Type::new(part.dtype, Shape::new(&sizes))
}

fn part(ty: &Type, sharding: &Sharding) -> TypeRef {
    Type::new(ty.dtype, sharding.shard_shape(&ty.shape)).into()
}

/// The axes over which a value is the same on several devices.
fn shared(mesh: Mesh, sharding: &Sharding) -> Vec<usize> {
    let split = sharding.axes();
    (0..mesh.axes().len()).filter(|a| mesh.axes()[*a].1 > 1 && !split.contains(a)).collect()
}

/// The body is recorded again and differentiated on each device. What the devices have together gets the sum of what flows to
/// it on each; of a result that they all give each is one of as many.
fn gradient(g: &Grad) -> Vec<Option<Tensor>> {
    let body = &Bodies::of(&g.attrs[0]).all[0];
    let spec = Spec::of(&g.attrs);
    let mesh = spec.mesh;
    let ins = spec.of_inputs(&g.inputs.iter().map(Tensor::dim).collect::<Vec<_>>());
    let wanted: Vec<usize> = (0..g.inputs.len()).filter(|&i| g.wanted[i]).collect();
    let given: Vec<Tensor> = g.inputs.iter().chain(g.dys.iter().map(|(_, dy)| dy)).cloned().collect();
    let of_dys = g.dys.iter().map(|(k, _)| spec.outs[*k].clone());
    let ins: Vec<Sharding> = ins.into_iter().chain(of_dys).collect();
    let outs: Vec<Sharding> = wanted.iter().map(|&i| ins[i].clone()).collect();
    let at = Location::caller();
    let mut recorder = Recorder::new("manual", at);
    let n = g.inputs.len();
    let types: Vec<TypeRef> = {
        let _inside = Inside::of(mesh);
        let body = recorder.record(&arguments(&given, &ins), false, |locals| {
            let part_of = |((k, _), dy): (&(usize, Tensor), &Tensor)| {
                let same: usize = shared(mesh, &spec.outs[*k]).iter().map(|&a| mesh.axes()[a].1).product();
                (*k, if same == 1 { dy.clone() } else { dy / same as f64 })
            };
            let dys: Vec<(usize, Tensor)> = g.dys.iter().zip(&locals[n..]).map(part_of).collect();
            let found = gradients(g, body, &locals[..n], &wanted, &dys);
            let sum = |(dx, &i): (Tensor, &usize)| match shared(mesh, &ins[i]) {
                none if none.is_empty() => dx,
                axes => reduced(&dx, ReduceOp::Sum, &mesh.groups(&axes)),
            };
            found.into_iter().zip(&wanted).map(sum).collect()
        });
        body.gives.clone()
    };
    let done = traced(Spec { mesh, ins, outs }, recorder, &given, &types, at);
    let mut found = vec![None; n];
    wanted.into_iter().zip(done).for_each(|(i, dx)| found[i] = Some(dx));
    found
}

fn arguments(of: &[Tensor], shardings: &[Sharding]) -> Vec<Argument> {
    let one = |(t, s): (&Tensor, &Sharding)| {
        let ty = part(&Argument::of(t).ty, s);
        Argument { ty, placement: Placement::Device(s.mesh().place()) }
    };
    of.iter().zip(shardings).map(one).collect()
}

#[track_caller]
fn traced(
    spec: Spec,
    recorder: Recorder,
    inputs: &[Tensor],
    types: &[TypeRef],
    at: &'static Location<'static>,
) -> Vec<Tensor> {
    let (bodies, captured) = recorder.finish();
    let args: Vec<Arg> = inputs.iter().chain(&captured).map(Arg::from).collect();
    let attrs = spec.attrs(bodies);
    let of = try_trace(&MANUAL, &args, attrs, at).unwrap_or_else(|e| e.raise());
    // Before the results are made, which are where it is.
    let of = of.placed(Placement::Device(spec.mesh.place()));
    let gives = spec.gives(types);
    gives.into_iter().enumerate().map(|(k, ty)| result(&of, k, ty.into())).collect()
}

/// Runs a closure on each device of a mesh, on its parts of the operands (`jax.shard_map`; Shardy: manual_computation). `in_specs`
/// says of each operand how it is split, `out_specs` of each result how its parts are put together; `None` in all places is
/// the whole, which every device must then give alike. In the closure devices hear of one another only through collectives
/// ([`all_reduce`](super::super::collective::all_reduce) and its kin). What it takes from outside is whole everywhere.
/// Gradients flow.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("x", 4)]);
/// let a = Tensor::arange(0.0, 8.0, 1.0);
/// // Each device's two elements, less the mean of all.
/// let centred = spmd::manual(&mesh, &[&[Some("x")]], &[&[Some("x")]], |a: Tensor| {
///     let sum = spmd::all_reduce(spmd::Sum, &[&a.sum()], 1.0, "x").remove(0);
///     a - sum / 8.0
/// }, &a);
/// ```
#[track_caller]
pub fn manual<T: Tensors, R: Tensors>(
    mesh: &Mesh,
    in_specs: &[&[Option<&str>]],
    out_specs: &[&[Option<&str>]],
    f: impl FnOnce(T) -> R,
    operands: &T,
) -> R {
    let at = innermost(Location::caller());
    if rank().is_some() {
        refuse("manual", &[], "is written in `xm::spawn`, where each rank is one device already");
    }
    if Inside::now().is_some() {
        refuse("manual", &[], "is written in another `spmd::manual`: there each device has its parts already");
    }
    let given = flat(operands);
    let of: Vec<&Tensor> = given.iter().collect();
    let shardings = |what: &str, specs: &[&[Option<&str>]]| -> Vec<Sharding> {
        let one = |(k, spec): (usize, &&[Option<&str>])| {
            Sharding::new(*mesh, spec).unwrap_or_else(|why| refuse("manual", &of, format!("{what} {}: {why}", k + 1)))
        };
        specs.iter().enumerate().map(one).collect()
    };
    let (ins, outs) = (shardings("operand", in_specs), shardings("result", out_specs));
    if ins.len() != given.len() {
        let why = format!("{} specs of operands, and there are {}: one for each tensor", ins.len(), given.len());
        refuse("manual", &of, why);
    }
    for (k, (t, s)) in given.iter().zip(&ins).enumerate() {
        if s.rank() != t.dim() {
            refuse(
                "manual",
                &of,
                format!("operand {}: {s} is of {} dimensions, and the tensor has {}", k + 1, s.rank(), t.dim()),
            );
        }
        if let Some(why) = s.why_uneven(&t.shape()) {
            refuse("manual", &of, format!("operand {}: {why}", k + 1));
        }
        if !t.placement().together(Placement::Device(mesh.place())) {
            refuse("manual", &of, format!("operand {} is on {}, and the code is for {mesh}", k + 1, t.device()));
        }
    }
    let mut recorder = Recorder::new("manual", at);
    let mut gave = None;
    let types = {
        let _inside = Inside::of(*mesh);
        let body =
            recorder.record(&arguments(&given, &ins), false, |locals| flat(gave.insert(f(filled(operands, locals)))));
        body.gives.clone()
    };
    let gave = gave.expect("the body was recorded");
    if types.len() != outs.len() || types.is_empty() {
        let why = format!(
            "the closure gives {} tensors, and there are {} specs of results: one for each",
            types.len(),
            outs.len()
        );
        refuse("manual", &of, why);
    }
    for (k, (ty, s)) in types.iter().zip(&outs).enumerate() {
        if ty.shape.len() != s.rank() {
            let why = format!("result {}: {s} is of {} dimensions, and each device gives {ty}", k + 1, s.rank());
            refuse("manual", &of, why);
        }
    }
    filled(&gave, &traced(Spec { mesh: *mesh, ins, outs }, recorder, &given, &types, at))
}

/// Where the device is along an axis of the mesh, as an int64 tensor without dimensions: in [`manual`] (`jax.lax.axis_index`).
///
/// ```no_run
/// use xlazy::prelude::*;
/// let mesh = Mesh::new(&[("x", 4)]);
/// let ids = spmd::manual(&mesh, &[], &[&[Some("x")]], |()| spmd::axis_index("x").reshape([1]), &());
/// assert_eq!(ids.to_vec::<i64>(), [0, 1, 2, 3]);
/// ```
#[track_caller]
pub fn axis_index(axis: &str) -> Tensor {
    let (mesh, _) = grouped("axis_index", &[], &Groups::All);
    match mesh.axis(axis) {
        Some(axis) => by_device((0..mesh.size()).map(|p| mesh.coordinate(p, axis) as i64).collect()),
        None => refuse("axis_index", &[], format!("{mesh} has no axis `{axis}`")),
    }
}
