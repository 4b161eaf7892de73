//! A program as the explainer keeps it: its ops with their lines, what feeds it, what was read before.
use super::batches::{self, Batch};
use super::log::runs;
use super::marks::{Marks, mix};
use super::mode::{self, Derived};
use super::report::Place;
use foldhash::{HashMap, HashMapExt, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use xlazy_core::ir::{Attr, Input, NodeId, OpDef, Step, graph};
use xlazy_core::mesh::Sharding;
use xlazy_core::options::Options;
use xlazy_core::run::{Cause, LeafOrigin, Miss, Room, Rounds};
use xlazy_core::sys::statement;
use xlazy_core::text::{self, Source, binding, identity, receiver};
use xlazy_core::ty::{Type, TypeRef};

/// A parameter of a program, with the line that made its value and when.
#[derive(Clone)]
pub(crate) struct LeafRecord {
    pub ty: Type,
    pub scalar: bool,
    pub donate: bool,
    pub at: Place,
    pub statement: Option<Place>,
    pub line: u64,
    pub seq: u64,
    /// The same for all values that a tensor is given in place.
    pub lineage: u64,
    /// The op that made it.
    pub made_by: &'static OpDef,
    /// It was made as a gradient or by an update.
    pub derived: Option<Derived>,
    /// Some of it is padding up to a bucket's size.
    pub bucketed: bool,
    /// Gradients accumulate in it.
    pub parameter: bool,
    /// The batch of a loader that it is of.
    pub batch: Option<Batch>,
    /// The op that found it, where it is positions that depend on values.
    pub finder: Option<&'static str>,
    /// An op made it; it is no data of the host's.
    pub computed: bool,
    /// Where it was frozen, if it is a parameter that was trained before.
    pub frozen: Option<Place>,
    /// How it is split over a mesh; none where every device has the whole.
    pub sharding: Option<Sharding>,
    /// A variable that keeps its buffer from being reused.
    pub holder: Option<String>,
    /// The variable that holds it, or what its line calls it.
    pub name: Option<String>,
}

impl LeafRecord {
    /// A parameter is one for good, and so is what was changed in place, whether another program has it or not.
    pub fn lasts(&self) -> bool {
        !self.scalar && (self.parameter || self.lineage != self.seq)
    }
}

/// A value that user code read, and how many nodes there had been by then.
#[derive(Clone, Copy)]
pub(crate) struct Read {
    pub at: Place,
    pub statement: Option<Place>,
    pub seq: u64,
}

/// Tells source lines apart by their text where that is known: a cell that was edited and run again has other places, but
/// most of its lines are those of before.
#[derive(Default)]
pub(crate) struct Lines {
    known: HashMap<Place, u64>,
    last: Option<(Place, u64)>,
}

impl Lines {
    pub fn of(&mut self, at: Place) -> u64 {
        if let Some((_, line)) = self.last.filter(|(last, _)| std::ptr::eq(*last, at)) {
            return line;
        }
        let line = *self.known.entry(at).or_insert_with(|| {
            let mut h = DefaultHasher::new();
            match identity(at) {
                Some(line) => line.hash(&mut h),
                None => (at.file(), at.line(), at.column()).hash(&mut h),
            }
            h.finish()
        });
        self.last = Some((at, line));
        line
    }
}

/// A program as the explainer keeps it, after it may have been evicted from the cache.
pub(crate) struct Record {
    pub number: u64,
    /// It was traced here: what was read before, what was pending and what holds its data is known.
    pub session: bool,
    pub cause: Cause,
    pub site: Place,
    /// The statement of the cell that ran then.
    pub statement: Option<Place>,
    pub hash: u128,
    pub device: u8,
    /// The hash that the program has whatever its device.
    pub anywhere: u128,
    pub steps: Arc<[Step]>,
    /// The source line of every step, as [`Lines`] tells them apart.
    pub lines: Marks,
    /// Which steps are gradients or updates: they follow from others.
    derived: Vec<Option<Derived>>,
    /// Of a text: the framework's op of which each step is a part.
    parts: Vec<Option<Arc<str>>>,
    pub leaves: Vec<LeafRecord>,
    pub roots: Vec<u32>,
    pub options: Options,
    /// Values that were read since the last barrier.
    pub reads: Vec<Read>,
    /// Results that it left out, as reads had computed them: ops of a line, as [`token`] tells them apart.
    pub taken: Vec<u64>,
    /// Ops traced since the last barrier, in the cut or not.
    pub traced: u64,
    /// Lines that do one thing in training and another in evaluation, and which of them they did last.
    pub training: HashMap<Place, bool>,
    /// How many nodes there had been when this line read last, if nothing was synced since.
    pub read_before: Option<u64>,
    /// How often it has.
    pub reads_here: usize,
    /// Pending results that a read neither gives nor needs: it ran a part of what was there.
    pub left_pending: usize,
    /// The rounds that it is one or a few of, or comes before, where these run one after another.
    pub rounds: Option<Arc<Rounds>>,
    /// What there is for it in the cache.
    pub room: Room,
    sketch: OnceLock<Sketch>,
}

/// What programs are compared by without looking at their ops, written in one pass over these.
struct Sketch {
    tokens: Marks,
    typed: Marks,
    forms: Marks,
    takers: Box<[u32]>,
}

/// An op as one number, whatever its line and its type; `i` is its place in the program.
fn form(s: &Step, i: usize) -> u64 {
    let attr = |mark: u64, a: &Attr| match a {
        Attr::Int(v) => mix(mark, *v as u64),
        Attr::Float(v) => mix(mark, v.to_bits()),
        Attr::Bool(v) => mix(mark, u64::from(*v)),
        Attr::Ints(all) => all.iter().fold(mix(mark, all.len() as u64), |mark, v| mix(mark, *v as u64)),
        Attr::Floats(all) => all.iter().fold(mix(mark, all.len() as u64), |mark, v| mix(mark, v.to_bits())),
        Attr::DType(dtype) => mix(mark, *dtype as u64),
        Attr::Name(name) => name.bytes().fold(mark, |mark, byte| mix(mark, u64::from(byte))),
        Attr::Region(of) => of.words().iter().fold(mark, |mark, &word| mix(mark, word)),
        Attr::Kept(_) => mark,
    };
    let operand = |mark: u64, input: &Input| match *input {
        Input::Leaf(l) => mix(mark, u64::from(l) << 1),
        Input::Step(x) => mix(mark, (i as u64 - u64::from(x)) << 1 | 1),
    };
    s.inputs.iter().fold(s.attrs.iter().fold(u64::from(s.op.id), attr), operand)
}

/// Types as numbers: ops in a row mostly share theirs.
#[derive(Default)]
struct TypeMarks(Option<(TypeRef, u64)>);

impl TypeMarks {
    fn of(&mut self, ty: TypeRef) -> u64 {
        let known = self.0.filter(|(last, _)| *last == ty).map(|(_, mark)| mark);
        let new = || ty.shape.iter().fold(mix(0, ty.dtype as u64), |mark, &size| mix(mark, size as u64));
        let mark = known.unwrap_or_else(new);
        self.0 = Some((ty, mark));
        mark
    }
}

/// An op of a line as one number, whichever form of it healing chose.
pub(crate) fn token(op: &'static OpDef, line: u64) -> u64 {
    mix(line, u64::from(op.base))
}

/// What is kept of a miss: with the lines as they read, and the names of its data.
///
/// `reads`: of other lines, and of this one, since the last barrier; `taken`: what the barrier leaves out.
pub(super) fn of_miss(miss: Miss, [reads, here]: [Vec<Read>; 2], taken: &[(&'static OpDef, Place)]) -> Record {
    let mut places = Lines::default();
    let lines: Marks = miss.steps.iter().map(|s| places.of(s.at)).collect();
    let leaves = named(miss.leaves, &mut places, &lines, &miss.steps);
    Record {
        number: 0,
        session: true,
        cause: miss.cause,
        site: Source::of(miss.at),
        statement: statement().map(Source::of),
        hash: miss.hash,
        device: miss.device,
        anywhere: miss.anywhere,
        derived: derived_of(&miss.steps),
        taken: taken.iter().map(|&(op, at)| token(op, places.of(at))).collect(),
        parts: vec![],
        steps: miss.steps,
        lines,
        leaves,
        roots: miss.roots,
        options: miss.options,
        reads,
        training: mode::of_lines(),
        traced: miss.traced,
        read_before: here.last().map(|r| r.seq),
        reads_here: here.len(),
        left_pending: miss.left_pending,
        rounds: miss.rounds,
        room: miss.room,
        sketch: OnceLock::new(),
    }
}

/// Which steps follow from others, those that only pass such a value on among them.
fn derived_of(steps: &[Step]) -> Vec<Option<Derived>> {
    let mut all = mode::derived_of(steps.iter().map(|s| s.seq));
    let first = all.iter().position(Option::is_some).unwrap_or(steps.len());
    for i in first..steps.len() {
        if let [Input::Step(of)] = steps[i].inputs[..]
            && all[i].is_none()
            && steps[i].op.is_identity()
        {
            all[i] = all[of as usize];
        }
    }
    all
}

/// The parameters of a program with the names that variables and lines give them.
fn named(leaves: Vec<LeafOrigin>, places: &mut Lines, lines: &Marks, steps: &[Step]) -> Vec<LeafRecord> {
    let variables = xlazy_core::host::variables();
    let names: HashMap<NodeId, &String> = variables.iter().map(|(name, id)| (*id, name)).collect();
    let holders: Vec<Option<String>> = {
        let g = graph();
        let holder = |l: &LeafOrigin| {
            let data = l.data.as_ref()?;
            let held = |v: &&(String, NodeId)| g.node(v.1).data().is_some_and(|other| Arc::ptr_eq(data, other));
            variables.iter().find(held).map(|(name, _)| name.clone())
        };
        leaves.iter().map(holder).collect()
    };
    // When each line that made a leaf ran last.
    let mut latest: HashMap<u64, u64> = leaves.iter().map(|l| (places.of(l.at), 0)).collect();
    for (line, s) in lines.iter().zip(steps) {
        if let Some(seq) = latest.get_mut(line) {
            *seq = s.seq;
        }
    }
    // A line that makes several kinds of things (a model, an optimizer) has no name for one of them.
    let mut kinds: HashMap<u64, Option<&Type>> = HashMap::new();
    for l in leaves.iter().filter(|l| !l.scalar) {
        let kind = kinds.entry(places.of(l.at)).or_insert(Some(&l.ty));
        *kind = kind.filter(|ty| **ty == l.ty);
    }
    let several: HashSet<u64> = kinds.into_iter().filter(|(_, kind)| kind.is_none()).map(|(line, _)| line).collect();
    let record = |(l, holder): (LeafOrigin, Option<String>)| {
        let line = places.of(l.at);
        // A line names the last thing that it makes.
        let last = || !l.scalar && !several.contains(&line) && latest.get(&line).is_none_or(|&later| later <= l.seq);
        let name = names.get(&l.node).map(|n| n.to_string()).or_else(|| last().then(|| binding(l.at)).flatten());
        LeafRecord {
            scalar: l.scalar,
            donate: l.donate,
            at: l.at,
            statement: l.statement,
            line,
            seq: l.seq,
            lineage: l.lineage,
            made_by: l.op,
            derived: mode::derived_of([l.seq])[0],
            batch: (!l.scalar && !l.parameter).then(|| batches::of(l.seq)).flatten(),
            bucketed: l.bucketed,
            parameter: l.parameter,
            computed: !l.op.kind.is_data(),
            frozen: mode::frozen_at(l.seq).filter(|_| !l.parameter),
            sharding: l.sharding.filter(|s| !s.is_replicated()),
            finder: l.op.kind.is_found().then_some(l.op.name),
            holder,
            name,
            ty: l.ty,
        }
    };
    leaves.into_iter().zip(holders).map(record).collect()
}

/// A program that was read from a text.
pub(crate) struct Text {
    pub number: u64,
    pub cause: Cause,
    pub reads: Vec<Read>,
    pub hash: u128,
    pub site: Place,
    pub steps: Vec<Step>,
    pub lines: Vec<u64>,
    pub derived: Vec<Option<Derived>>,
    pub parts: Vec<Option<Arc<str>>>,
    pub leaves: Vec<LeafRecord>,
    pub roots: Vec<u32>,
}

impl LeafRecord {
    /// An input as a text names it.
    pub fn read(
        ty: Type,
        donate: bool,
        at: Place,
        line: u64,
        seq: u64,
        op: &'static OpDef,
        name: Option<String>,
    ) -> LeafRecord {
        LeafRecord {
            ty,
            scalar: false,
            donate,
            at,
            statement: None,
            line,
            seq,
            lineage: seq,
            made_by: op,
            derived: None,
            batch: None,
            bucketed: false,
            parameter: false,
            finder: None,
            computed: false,
            frozen: None,
            sharding: None,
            holder: None,
            name,
        }
    }
}

impl Record {
    /// Whether it took this tensor, or what it was before it was changed in place.
    pub fn has(&self, leaf: &LeafRecord) -> bool {
        self.leaves.iter().any(|l| l.lineage == leaf.lineage)
    }

    /// Whether one of its tensors of that kind is the other program's, too.
    pub fn shares(&self, other: &Record, of: impl Fn(&LeafRecord) -> bool) -> bool {
        self.leaves.iter().any(|l| of(l) && other.has(l))
    }

    /// The type of an op's operand.
    pub fn type_of(&self, operand: Input) -> &Type {
        match operand {
            Input::Leaf(l) => &self.leaves[l as usize].ty,
            Input::Step(s) => &self.steps[s as usize].ty,
        }
    }

    /// The same with leaves that may be told apart otherwise.
    pub fn again(&self) -> Record {
        Record {
            steps: self.steps.clone(),
            lines: self.lines.clone(),
            derived: self.derived.clone(),
            parts: self.parts.clone(),
            leaves: self.leaves.clone(),
            roots: self.roots.clone(),
            reads: self.reads.clone(),
            taken: self.taken.clone(),
            training: self.training.clone(),
            rounds: self.rounds.clone(),
            room: Room { capacity: self.room.capacity.clone(), ..self.room },
            sketch: OnceLock::new(),
            ..*self
        }
    }

    /// A program of which nothing is known but its text.
    pub fn read(text: Text) -> Record {
        let Text { number, cause, reads, hash, site, steps, lines, derived, parts, leaves, roots } = text;
        let room = Room { evicted: false, capacity: String::new(), programs: usize::MAX, full: false };
        Record {
            number,
            session: false,
            cause,
            site,
            statement: None,
            hash,
            device: 0,
            anywhere: hash,
            traced: steps.len() as u64,
            steps: steps.into(),
            lines: lines.into_iter().collect(),
            derived,
            parts,
            leaves,
            roots,
            options: Options::DEFAULT,
            reads,
            taken: vec![],
            training: HashMap::new(),
            read_before: None,
            reads_here: 0,
            left_pending: 0,
            rounds: None,
            room,
            sketch: OnceLock::new(),
        }
    }

    pub fn bytes(&self) -> usize {
        // Ops with what they take, and what tells them apart.
        self.steps.len() * (size_of::<Step>() + 56) + self.leaves.len() * size_of::<LeafRecord>() + 256
    }

    /// The framework's op of which a step of a text is a part.
    pub fn part_of(&self, step: u32) -> Option<&str> {
        self.parts.get(step as usize)?.as_deref()
    }

    /// Whether a step is a gradient or an update, which follows from other ops.
    pub fn derived(&self, step: u32) -> Option<Derived> {
        self.derived[step as usize]
    }

    fn sketch(&self) -> &Sketch {
        self.sketch.get_or_init(|| {
            let n = self.steps.len();
            let (mut tokens, mut typed, mut forms) =
                (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
            let (mut takers, mut types) = (Vec::new(), TypeMarks::default());
            for (i, (s, line)) in self.steps.iter().zip(self.lines.iter()).enumerate() {
                let token = token(s.op, *line);
                tokens.push(token);
                typed.push(mix(token, types.of(s.ty)));
                forms.push(form(s, i));
                if s.inputs.iter().any(|input| matches!(input, Input::Leaf(_))) {
                    takers.push(i as u32);
                }
            }
            let [tokens, typed, forms] = [tokens, typed, forms].map(Marks::from);
            Sketch { tokens, typed, forms, takers: takers.into() }
        })
    }

    /// What tells ops apart: the op and its line.
    pub fn tokens(&self) -> &Marks {
        &self.sketch().tokens
    }

    /// The same with the type of the result.
    pub fn typed(&self) -> &Marks {
        &self.sketch().typed
    }

    /// The op with its attributes and where its operands are: numbers of parameters, and how far behind other ops are.
    pub fn forms(&self) -> &Marks {
        &self.sketch().forms
    }

    /// The steps that take data, in order.
    pub fn takers(&self) -> &[u32] {
        &self.sketch().takers
    }

    /// Marks of the ops, with the types of their results.
    pub fn with_types(&self, ops: &Marks) -> Marks {
        let mut types = TypeMarks::default();
        self.steps.iter().zip(ops.iter()).map(|(s, op)| mix(*op, types.of(s.ty))).collect()
    }

    /// How many (op, line) pairs two programs have in common.
    pub fn common(&self, other: &Record) -> usize {
        self.tokens().common(other.tokens())
    }

    /// How much alike two programs are, 0 to 1. A read is like a barrier's program that contains it.
    pub fn likeness(&self, new: &Record) -> f64 {
        self.common(new) as f64 / self.whole(new)
    }

    /// The same where the types count, too: of programs that run the same lines, those on the same data are nearer.
    pub fn likeness_of_types(&self, new: &Record) -> f64 {
        self.typed().common_where(self.tokens(), new.typed(), new.tokens()) as f64 / self.whole(new)
    }

    /// As many ops as two programs could have in common.
    fn whole(&self, new: &Record) -> f64 {
        let whole = match new.is_read() && !self.is_read() && self.steps.len() > new.steps.len() {
            true => new.steps.len() as f64,
            false => (self.steps.len() + new.steps.len()) as f64 / 2.0,
        };
        whole.max(1.0)
    }

    /// How much alike the ops of two programs are, from whatever lines, 0 to 1.
    pub fn likeness_of_ops(&self, other: &Record) -> f64 {
        let ops = |r: &Record| r.steps.iter().map(|s| u64::from(s.op.id)).collect::<Marks>();
        2.0 * ops(self).common(&ops(other)) as f64 / (self.steps.len() + other.steps.len()).max(1) as f64
    }

    pub fn same_inputs(&self, other: &Record) -> bool {
        self.inputs_apart(other) == 0
    }

    /// In how many dtypes and shapes the inputs of two programs differ.
    pub fn inputs_apart(&self, other: &Record) -> usize {
        let apart = |(a, b): (&LeafRecord, &LeafRecord)| {
            usize::from(a.ty.dtype != b.ty.dtype)
                + usize::from(a.ty.shape != b.ty.shape)
                + usize::from(a.scalar != b.scalar)
        };
        let more = self.leaves.len().abs_diff(other.leaves.len());
        self.leaves.iter().zip(&other.leaves).map(apart).sum::<usize>() + 2 * more
    }

    /// Whether no line of the two is the same.
    pub fn strangers(&self, other: &Record) -> bool {
        self.tokens().strangers(other.tokens())
    }

    /// Whether both run the same ops in the same order, whatever lines they are from.
    pub fn same_ops(&self, other: &Record) -> bool {
        let alike = || self.steps.iter().zip(other.steps.iter()).all(|(a, b)| a.op.id == b.op.id);
        self.forms()[..] == other.forms()[..] || self.steps.len() == other.steps.len() && alike()
    }

    /// Whether this is the next round of a loop whose first round, and only that, was `first`.
    pub fn second_of(&self, first: &Record) -> bool {
        !self.is_read() && !first.is_read() && same_place(self.site, first.site) && runs(first.hash) == 1
    }

    /// What a step computes, with the name that its line gives it.
    pub fn written(&self, step: &Step) -> String {
        let name = self.named(step).map_or(String::new(), |n| format!("`{n}` = "));
        format!("{name}{} → {}", step.op.name, step.ty)
    }

    /// The name that its line gives to what a step computes.
    pub fn named(&self, step: &Step) -> Option<String> {
        // A line names the last thing that it makes.
        let last = !self.steps.iter().any(|s| s.seq > step.seq && same_place(s.at, step.at));
        binding(step.at).filter(|_| last)
    }

    /// Where what this program has at a place was called from, if from elsewhere.
    pub fn called_from(&self, at: Place) -> Option<Place> {
        let of = |there: Place, statement: Option<Place>| same_place(there, at).then_some(statement);
        let site = of(self.site, self.statement);
        let step = || self.steps.iter().find_map(|s| of(s.at, s.statement));
        let leaf = || self.leaves.iter().find_map(|l| of(l.at, l.statement));
        let read = || self.reads.iter().rev().find_map(|r| of(r.at, r.statement));
        text::called_from(at, site.or_else(step).or_else(leaf).or_else(read).flatten())
    }

    /// Whether an optimizer takes a step in it.
    pub fn stepped(&self) -> bool {
        self.cause == Cause::OptimizerStep || self.derived.contains(&Some(Derived::Update))
    }

    /// The name of the one optimizer that steps in it, where the line says so: `opt` for `opt.step()`.
    pub fn optimizer(&self) -> Option<String> {
        let mut lines = self.steps.iter().zip(self.derived.iter()).filter(|(_, d)| **d == Some(Derived::Update));
        let at = lines.next()?.0.at;
        lines.all(|(s, _)| same_place(s.at, at)).then(|| receiver(at)).flatten()
    }

    pub fn is_read(&self) -> bool {
        use Cause::{Concrete, ControlFlow, DeviceChange, Display, Read, UnendedRounds};
        matches!(self.cause, Display | Read | ControlFlow | Concrete | DeviceChange | UnendedRounds)
    }
}

pub(crate) fn same_place(a: Place, b: Place) -> bool {
    a == b
}
