//! What may be changed in a drawn program, and what must be said of it.
use super::act::Act;
use super::layout::Text;
use super::places::{COLUMNS, at};
use super::program::{Data, Op, Program, Spec, Stmt};
use super::support::Seeded;
use super::world::{Knobs, World};
use std::collections::BTreeSet;
use xlazy::insight::Class::{self, *};
use xlazy::prelude::*;

/// What must be told: a difference at one of these rows that has one of these texts in it.
#[derive(Clone, Debug)]
pub struct Root {
    pub rows: BTreeSet<usize>,
    pub texts: Vec<String>,
}

/// How a mutation is brought about.
#[derive(Clone, Debug)]
pub enum Change {
    Batch(usize),
    Time(usize),
    Side(usize),
    Rows(usize, usize),
    Deeper(usize),
    Dtype(usize, DType),
    Attr(usize),
    Rounds(usize, usize),
    Skip(usize, usize),
    Condition(usize),
    NoGrad(usize),
    Grad(usize),
    Unstepped,
    Stepped,
    Init,
    Read(usize),
    Keep(usize),
    Number(usize),
    Micro,
    Between,
    Freeze(Vec<usize>),
    Thaw(Vec<usize>),
    Eval,
    Precision,
    Device,
    Same(usize, usize),
    Swap(usize, usize),
    Release,
    Clip,
    Evicted,
    Grown,
    LeftOver,
}

/// A known mutation, and what an explanation must say of it.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The row of the table of rates.
    pub name: &'static str,
    pub change: Change,
    pub classes: Vec<Class>,
    /// The rows of the text of which one must be named.
    pub lines: BTreeSet<usize>,
    /// All that must be told.
    pub roots: Vec<Root>,
    /// Rows that may be told of, besides those above.
    pub follows: BTreeSet<usize>,
}

pub fn row(place: usize) -> usize {
    place / COLUMNS
}

fn rows(places: &[usize]) -> BTreeSet<usize> {
    places.iter().map(|p| row(*p)).collect()
}

impl Mutation {
    fn new(name: &'static str, change: Change, classes: &[Class], lines: BTreeSet<usize>) -> Mutation {
        let roots = vec![Root { rows: lines.clone(), texts: vec![] }];
        Mutation { name, change, classes: classes.to_vec(), lines, roots, follows: BTreeSet::new() }
    }

    /// Each of these rows must be told, with one of its texts.
    fn roots(mut self, roots: Vec<Root>) -> Mutation {
        self.roots = roots;
        self
    }

    fn follows(mut self, rows: impl IntoIterator<Item = usize>) -> Mutation {
        self.follows.extend(rows);
        self
    }

    /// All of the model that comes after what it changes has another shape.
    fn of_shape(mut self, t: &Text) -> Mutation {
        self.follows.extend(t.model.clone());
        self.follows.extend(t.step.clone());
        self
    }
}

/// Rows of statements and of all inside them, with the lines where their layers are made.
fn rows_of(p: &Program, body: &[Stmt]) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    let op_rows = |op: &Op, out: &mut BTreeSet<usize>| match op {
        Op::Layer(l) => drop(out.insert(row(p.layers[*l].0))),
        Op::Times(_) => drop(out.insert(row(p.places.scale))),
        _ => {}
    };
    for s in body {
        match s {
            Stmt::Op { at, op, .. } => {
                out.insert(row(*at));
                op_rows(op, &mut out);
            }
            Stmt::Residual { at, body } | Stmt::Region { at, body, .. } => {
                out.insert(row(*at));
                out.extend(rows_of(p, body));
            }
            Stmt::Call { at, helper } => {
                out.insert(row(*at));
                out.extend(rows_of(p, &p.helpers[*helper].body));
            }
            Stmt::Loop { at, skip_at, first, stride, body, .. } => {
                out.extend([row(*at), row(*skip_at)]);
                out.extend(rows_of(p, body));
                out.extend(p.layers[*first..].iter().take(stride * 8).map(|l| row(l.0)));
            }
            Stmt::If { at, then, other, .. } => {
                out.insert(row(*at));
                out.extend(rows_of(p, then));
                out.extend(rows_of(p, other));
            }
            Stmt::Join { at, .. } | Stmt::Aux { at, .. } => {
                out.insert(row(*at));
            }
        }
    }
    out
}

/// Rows where the gradients of what changed, and what goes by them, are.
fn behind(p: &Program) -> Vec<usize> {
    let pl = p.places;
    let mut all = vec![pl.barrier];
    if p.evaluates.is_some() {
        all.extend([pl.accuracy, pl.evaluated, pl.accuracy_read]);
        all.extend(p.inputs.iter().map(|i| i.evaluated_at));
    }
    if p.trains() {
        all.extend([pl.loss, pl.backward, pl.step]);
    }
    if p.train.ema {
        all.extend([pl.ema, pl.shadow]);
    }
    if p.trains() && p.train.optimizer > 0 {
        all.push(pl.optimizer);
    }
    if p.train.second {
        all.extend([pl.second, pl.second_guard, pl.second_step]);
    }
    if p.state {
        all.extend([pl.assign, pl.state]);
    }
    all.into_iter().map(row).collect()
}

fn ty(shape: &[usize], dtype: DType) -> String {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("{}[{}]", dtype.name(), dims.join(","))
}

/// Inputs that differ between two settings, each as something that must be told.
fn inputs_that_differ(p: &Program, now: &Knobs) -> (BTreeSet<usize>, Vec<Root>) {
    let was = Knobs::of(p);
    let differing = (0..p.inputs.len()).filter(|&i| was.input(p, i) != now.input(p, i));
    let roots: Vec<Root> = differing
        .map(|i| {
            let (shape, dtype) = now.input(p, i);
            Root { rows: rows(&[p.inputs[i].at]), texts: vec![ty(&shape, dtype)] }
        })
        .collect();
    (roots.iter().flat_map(|r| r.rows.clone()).collect(), roots)
}

/// All mutations that a program can have.
pub fn mutations(p: &Program, t: &Text, r: &mut Seeded) -> Vec<Mutation> {
    let mut all = Vec::new();
    let pl = p.places;
    let has = |f: fn(&Data) -> bool| p.inputs.iter().any(|i| f(&i.data));
    let mut sized = |name, change: Change| {
        let mut k = Knobs::of(p);
        apply_knobs(&change, &mut k, p);
        let (lines, roots) = inputs_that_differ(p, &k);
        all.push(Mutation::new(name, change, &[Shape], lines).roots(roots).of_shape(t));
    };
    sized("batch size", Change::Batch(2 + r.below(2)));
    if has(|d| matches!(d, Data::Seq(_) | Data::Ids)) {
        sized("length", Change::Time(9 + r.below(4)));
    }
    if has(|d| matches!(d, Data::Img(_))) {
        sized("picture size", Change::Side(9 + r.below(4)));
    }
    let contexts: Vec<usize> = (0..p.inputs.len()).filter(|&i| matches!(p.inputs[i].data, Data::Context(_))).collect();
    if let Some(&c) = contexts.first() {
        sized("rows of one input", Change::Rows(c, 17));
        sized("rank of one input", Change::Deeper(c));
    }
    let floats = p.statements().iter().any(|s| matches!(s, Stmt::Op { op: Op::Float, .. }));
    let dtype = match contexts.first() {
        Some(&c) => Some((c, [F64, I32, I64][r.below(3)])),
        None if floats => Some((0, [F64, U8, I32][r.below(3)])),
        None => None,
    };
    if let Some((i, dtype)) = dtype {
        let mut k = Knobs::of(p);
        k.dtypes[i] = Some(dtype);
        let (lines, roots) = inputs_that_differ(p, &k);
        let m = Mutation::new("dtype", Change::Dtype(i, dtype), &[Dtype], lines);
        all.push(m.roots(roots).of_shape(t));
    }
    attributes(p, t, &mut all);
    structure(p, &mut all);
    for s in p.live() {
        if let Stmt::Aux { at, guard_at, read_at, keep_at, id, .. } = s {
            let m =
                Mutation::new("a read in the middle", Change::Read(*id), &[EarlyRead, ControlFlow], rows(&[*read_at]));
            all.push(m.follows(rows(&[*at, *guard_at, pl.barrier])));
            let m = Mutation::new("another result", Change::Keep(*id), &[Roots], rows(&[*at, *keep_at]));
            all.push(m.follows(rows(&[pl.barrier])));
        }
    }
    for (i, place) in p.live().iter().filter_map(|s| match s {
        Stmt::Op { at, op: Op::Times(i), .. } => Some((*i, *at)),
        _ => None,
    }) {
        let m = Mutation::new(
            "a number for a tensor",
            Change::Number(i),
            &[Structure, Dtype, Aliasing],
            rows(&[place, pl.scale]),
        );
        all.push(m.follows(behind(p)));
    }
    training(p, t, &mut all);
    surroundings(p, t, &contexts, &mut all);
    all
}

/// A change that may not compile anything.
pub const NUMBER: &str = "a number";

fn attributes(p: &Program, t: &Text, all: &mut Vec<Mutation>) {
    for s in p.live() {
        let Stmt::Op { at, op, .. } = s else { continue };
        let Some(a) = op.attr() else { continue };
        let (name, classes): (_, &[Class]) = match op {
            Op::Roll(_) | Op::Narrow(..) | Op::Select(_) | Op::Tril(_) | Op::Part(..) => ("position", &[Index]),
            Op::Take(_) => ("length taken", &[Index, Shape]),
            // Numbers of the program: these may not compile anything.
            Op::Pad(_) | Op::Threshold(_) => (NUMBER, &[]),
            Op::Start(_) => ("changed init", &[Structure, Constant]),
            Op::Gelu(_) | Op::Sort(_) => ("constant", &[Constant, Structure]),
            Op::Softmax(_) | Op::Cumsum(_) | Op::Flip(_) | Op::Center(_) | Op::Peak(_) | Op::Spread(_) => {
                ("axis", &[Index, Constant, Structure])
            }
            _ => continue,
        };
        let m = Mutation::new(name, Change::Attr(a), classes, rows(&[*at])).follows(behind(p));
        let shape = matches!(op, Op::Take(_));
        all.push(if shape { m.of_shape(t) } else { m });
    }
    if p.trains()
        && let Some(a) = p.loss.attr()
    {
        let m = Mutation::new("mode", Change::Attr(a), &[Structure, Constant], rows(&[p.places.loss]));
        all.push(m.follows(behind(p)));
    }
}

fn structure(p: &Program, all: &mut Vec<Mutation>) {
    let inner = p.inner_loops();
    for s in p.statements() {
        match s {
            Stmt::Loop { at, skip_at, id, body, first, stride, .. } => {
                let inside = rows_of(p, body);
                let layers = p.layers[*first..*first + stride * (p.rounds[*id] + 1)].iter().map(|l| row(l.0));
                let inside: BTreeSet<usize> = inside.into_iter().chain(layers).collect();
                let ops: BTreeSet<usize> = rows_of_ops(p, body);
                let of = |name, change, mut lines: BTreeSet<usize>| {
                    lines.extend(&ops);
                    let told = Root { rows: inside.clone(), texts: vec![] };
                    let m = Mutation::new(name, change, &[Structure], lines).roots(vec![told]);
                    m.follows(inside.clone()).follows(behind(p)).follows([row(*skip_at), row(*at)])
                };
                let n = p.rounds[*id];
                let made = p.layers[*first + stride * n..][..*stride].iter().map(|l| row(l.0));
                let [more, less, left_out] = match inner.contains(id) {
                    true => ["an inner round more", "an inner round less", "an inner round left out"],
                    false => ["a layer more", "a layer less", "a layer left out"],
                };
                all.push(of(more, Change::Rounds(*id, n + 1), made.chain([row(*at)]).collect()));
                all.push(of(less, Change::Rounds(*id, n - 1), rows(&[*at])));
                all.push(of(left_out, Change::Skip(*id, n / 2), rows(&[*skip_at, *at])));
            }
            Stmt::If { at, id, then, other } => {
                let mut lines = rows_of_ops(p, then);
                lines.extend(rows_of_ops(p, other));
                lines.insert(row(*at));
                let mut inside = rows_of(p, then);
                inside.extend(rows_of(p, other));
                let told = Root { rows: inside.clone(), texts: vec![] };
                let m = Mutation::new("a branch", Change::Condition(*id), &[Structure], lines).roots(vec![told]);
                all.push(m.follows(inside).follows(behind(p)));
            }
            _ => {}
        }
    }
}

/// Rows of ops alone, not of the layers.
fn rows_of_ops(p: &Program, body: &[Stmt]) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    for s in body {
        match s {
            Stmt::Op { at, .. } | Stmt::Join { at, .. } | Stmt::Aux { at, .. } => {
                out.insert(row(*at));
            }
            Stmt::Call { at, helper } => {
                out.insert(row(*at));
                out.extend(rows_of_ops(p, &p.helpers[*helper].body));
            }
            Stmt::Residual { at, body } | Stmt::Loop { at, body, .. } | Stmt::Region { at, body, .. } => {
                out.insert(row(*at));
                out.extend(rows_of_ops(p, body));
            }
            Stmt::If { at, then, other, .. } => {
                out.insert(row(*at));
                out.extend(rows_of_ops(p, then));
                out.extend(rows_of_ops(p, other));
            }
        }
    }
    out
}

fn training(p: &Program, t: &Text, all: &mut Vec<Mutation>) {
    let pl = p.places;
    let weighted: Vec<usize> = used_layers(p).into_iter().filter(|&l| parameters(p, l)).collect();
    if p.trains() && weighted.len() > 2 {
        let frozen = weighted[..1 + weighted.len() / 3].to_vec();
        let mut follows: BTreeSet<usize> = frozen.iter().map(|&l| row(p.layers[l].0)).collect();
        follows.extend(behind(p));
        follows.extend(p.statements().iter().filter_map(|s| match s {
            Stmt::Op { at, .. } => Some(row(*at)),
            _ => None,
        }));
        for (name, change) in
            [("frozen parameters", Change::Freeze(frozen.clone())), ("thawed parameters", Change::Thaw(frozen))]
        {
            let m = Mutation::new(name, change, &[Structure, Mode], rows(&[pl.freeze]));
            all.push(m.follows(follows.clone()));
        }
    }
    for s in p.statements() {
        let Stmt::Region { at, id, body } = s else { continue };
        let mut lines = rows_of_ops(p, body);
        lines.insert(row(*at));
        let follows: BTreeSet<usize> =
            p.statements().iter().flat_map(|s| rows_of(p, std::slice::from_ref(s))).collect();
        for (name, change) in
            [("no gradients in a region", Change::NoGrad(*id)), ("gradients in a region", Change::Grad(*id))]
        {
            let m = Mutation::new(name, change, &[Structure], lines.clone());
            all.push(m.follows(behind(p)).follows(follows.clone()));
        }
    }
    if p.train.second {
        let lines = rows(&[pl.second_step, pl.second_guard]);
        for (name, change) in [("an optimizer less", Change::Unstepped), ("an optimizer more", Change::Stepped)] {
            let m = Mutation::new(name, change, &[Structure], lines.clone());
            let made = p.layers.iter().map(|l| row(l.0));
            all.push(m.follows(behind(p)).follows(made).follows(t.model.clone()));
        }
    }
    let m = Mutation::new("parameters drawn otherwise", Change::Init, &[Structure, Constant], rows(&[pl.init]));
    all.push(m.follows(rows(&[pl.init_sync])).follows(behind(p)).follows(p.layers.iter().map(|l| row(l.0))));
    if p.train.clips {
        let m = Mutation::new("clipped gradients", Change::Clip, &[Structure], rows(&[pl.clip, pl.clip_guard]));
        all.push(m.follows(behind(p)));
    }
    if p.train.micro > 1 {
        let body: BTreeSet<usize> = (row(pl.micro)..row(pl.step)).collect();
        let m = Mutation::new("a round more", Change::Micro, &[Structure], body.clone());
        all.push(m.follows(0..row(pl.barrier) + 1));
        let lines = rows(&[pl.between, pl.between_guard]);
        let m = Mutation::new("a barrier in the middle", Change::Between, &[Structure, Roots, EarlyRead], lines);
        // What the evaluation leaves pending runs at another barrier, too.
        all.push(m.follows(0..row(pl.barrier) + 1).follows(behind(p)));
    }
    let modes = |l: usize| matches!(p.layers[l].1, Spec::Dropout | Spec::BatchNorm(_));
    if p.live().iter().any(|s| matches!(s, Stmt::Op { op: Op::Layer(l), .. } if modes(*l))) {
        let m = Mutation::new("evaluation mode", Change::Eval, &[Mode], rows(&[pl.mode]));
        let lines = (0..p.layers.len()).filter(|&l| modes(l)).map(|l| row(p.layers[l].0));
        let ops = p.statements().into_iter().filter_map(|s| match s {
            Stmt::Op { at, op: Op::Layer(l), .. } if modes(*l) => Some(row(*at)),
            _ => None,
        });
        let mut told: BTreeSet<usize> = rows(&[pl.mode]);
        told.extend(ops);
        let root = Root { rows: told.clone(), texts: vec![] };
        all.push(m.roots(vec![root]).follows(lines).follows(told).follows(behind(p)));
    }
}

fn parameters(p: &Program, layer: usize) -> bool {
    !matches!(p.layers[layer].1, Spec::Dropout)
}

/// Layers that the program uses as it was drawn, outside of loops.
fn used_layers(p: &Program) -> Vec<usize> {
    let in_loops: Vec<(usize, usize)> = p
        .statements()
        .iter()
        .filter_map(|s| match s {
            Stmt::Loop { first, stride, id, .. } => Some((*first, first + stride * (p.rounds[*id] + 1))),
            _ => None,
        })
        .collect();
    let layer = |s: &Stmt| match s {
        Stmt::Op { op: Op::Layer(l), .. } => Some(*l),
        _ => None,
    };
    let mut used: Vec<usize> = p.live().into_iter().filter_map(layer).collect();
    used.retain(|l| !in_loops.iter().any(|(a, b)| (a..b).contains(&l)));
    used
}

fn surroundings(p: &Program, t: &Text, contexts: &[usize], all: &mut Vec<Mutation>) {
    let pl = p.places;
    all.push(Mutation::new("precision", Change::Precision, &[Environment], rows(&[pl.precision])));
    if !p.trains() && !p.state && p.times == 0 {
        let mut lines = rows(&[pl.moves, pl.barrier]);
        lines.extend(evaluations(p));
        lines.extend(p.inputs.iter().map(|i| row(i.at)));
        all.push(Mutation::new("device", Change::Device, &[Device], lines));
    }
    if let [a, b, ..] = *contexts {
        let lines = rows(&[p.inputs[a].at, p.inputs[b].at]);
        let mut more = joins(p, &[a, b]);
        more.extend(&lines);
        let m = Mutation::new("inputs swapped", Change::Swap(a, b), &[Aliasing, Shape], more);
        all.push(m.of_shape(t));
    }
    let alike = |&i: &usize| i > 0 && p.inputs[i].data == p.inputs[0].data;
    if let Some(b) = (0..p.inputs.len()).find(alike) {
        let mut lines = joins(p, &[b]);
        lines.extend(rows(&[p.inputs[0].at, p.inputs[b].at]));
        all.push(Mutation::new("two inputs are one", Change::Same(0, b), &[Aliasing], lines).follows(behind(p)));
    }
    if p.state {
        let lines = rows(&[pl.assign, pl.hold, pl.hold_guard, pl.state]);
        all.push(Mutation::new("a buffer no longer held", Change::Release, &[Aliasing], lines));
    }
    if !p.trains() {
        let m = Mutation::new("growth by cat", Change::Grown, &[Shape], rows(&[pl.history]));
        all.push(m.follows(behind(p)));
    }
    let mut sites = rows(&[pl.barrier]);
    sites.extend(evaluations(p));
    all.push(Mutation::new("eviction", Change::Evicted, &[Eviction], sites));
    let m = Mutation::new(
        "pending work picked up",
        Change::LeftOver,
        &[Structure, Roots],
        rows(&[pl.leftover, pl.validation]),
    );
    all.push(m.follows(rows(&[pl.barrier])));
}

/// Rows where the evaluation runs.
fn evaluations(p: &Program) -> Vec<usize> {
    let pl = p.places;
    let places = [pl.evaluated, pl.accuracy_read, pl.accuracy];
    if p.evaluates.is_some() { places.map(row).to_vec() } else { vec![] }
}

/// Rows where these inputs are used.
fn joins(p: &Program, inputs: &[usize]) -> BTreeSet<usize> {
    let one = |s: &&Stmt| match s {
        Stmt::Join { at, input, .. } if inputs.contains(input) => Some(row(*at)),
        _ => None,
    };
    p.statements().iter().filter_map(one).collect()
}

/// What of a change the step's variables say.
pub fn apply_knobs(change: &Change, k: &mut Knobs, p: &Program) {
    match *change {
        Change::Batch(n) => k.batch = n,
        Change::Time(n) => k.time = n,
        Change::Side(n) => k.side = n,
        Change::Rows(i, n) => k.rows[i] = n,
        Change::Deeper(i) => k.deeper[i] = true,
        Change::Dtype(i, dtype) => k.dtypes[i] = Some(dtype),
        Change::Attr(a) => k.attrs[a] = p.attrs[a].1,
        Change::Rounds(id, n) => k.rounds[id] = n,
        Change::Skip(id, round) => k.skips[id] = Some(round),
        Change::Condition(id) => k.conditions[id] = false,
        Change::NoGrad(id) => k.regions[id] = true,
        Change::Grad(id) => k.regions[id] = false,
        Change::Unstepped => k.second = false,
        Change::Stepped => k.second = true,
        Change::Init => k.init = Some(true),
        Change::Read(id) => k.reads[id] = true,
        Change::Keep(id) => k.keeps[id] = true,
        Change::Number(i) => k.numbers[i] = true,
        Change::Micro => k.micro += 1,
        Change::Between => k.between = true,
        Change::Device => k.device = "cpu:1",
        Change::Same(a, b) => k.same = Some((a, b)),
        Change::Swap(a, b) => k.swapped = Some((a, b)),
        Change::Release => k.holds = false,
        Change::Clip => k.clips = true,
        _ => {}
    }
}

/// Brings a program's world to where the change is one: what must have been so from the start.
pub fn prepare(change: &Change, k: &mut Knobs, w: &mut World) {
    match change {
        Change::Release => k.holds = true,
        Change::Grad(id) => k.regions[*id] = true,
        Change::Stepped => k.second = false,
        Change::Init => k.init = Some(false),
        Change::Grown => k.grows = true,
        Change::Thaw(layers) => trains(w, layers, false),
        _ => {}
    }
}

fn trains(w: &mut World, layers: &[usize], on: bool) {
    let all: Vec<Tensor> = layers.iter().flat_map(|&l| w.layers[l].module().parameters()).collect();
    at(w.p.places.freeze, Act::Trains(&all, on));
}

/// Changes the program's world.
pub fn apply(change: &Change, k: &mut Knobs, w: &mut World) {
    let p = w.p;
    apply_knobs(change, k, p);
    match change {
        Change::Freeze(layers) => trains(w, layers, false),
        Change::Thaw(layers) => trains(w, layers, true),
        Change::Eval => drop(at(p.places.mode, Act::Mode(&w.layers, false))),
        Change::Precision => drop(at(p.places.precision, Act::Precision("highest"))),
        Change::Device => drop(at(p.places.moves, Act::MovesLayers(&w.layers, k.device))),
        Change::Evicted => {
            xlazy::insight::set_cache_capacity(1);
            let _other = at(p.places.other, Act::Zeros(&[31])).tensor();
            at(p.places.other_sync, Act::Sync);
        }
        Change::LeftOver => {
            let validation = at(p.places.validation, Act::Data(&[2, 3], F32)).tensor();
            w.left = Some(at(p.places.leftover, Act::Op(&Op::Unary(0), &validation, Default::default())).tensor());
        }
        _ => {}
    }
}
