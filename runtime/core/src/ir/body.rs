//! Bodies of loops and branches: an attribute of the op that runs them.
use super::attr::{Attr, Region};
use super::input::{Input, LEAF_BIT};
use super::looks::{Asked, Looked};
use super::op::OpDef;
use crate::emit::{Emit, Looking, Val};
use crate::options::Numbers;
use crate::text::{Place, Source};
use crate::ty::TypeRef;
use smallvec::SmallVec;

/// One op of a body. Its operands are earlier ones of the body, or, as leaves, the body's own arguments and, behind these, what
/// all bodies of the op took from outside.
#[derive(Clone)]
pub struct BodyStep {
    pub op: &'static OpDef,
    pub attrs: Box<[Attr]>,
    pub ty: TypeRef,
    pub inputs: SmallVec<[Input; 2]>,
    pub at: &'static Source,
    /// The same in the code that runs, and the statement of the cell that ran when it was traced.
    pub line: Place,
    pub statement: Option<Place>,
    /// Whether gradients flow through it.
    pub recorded: bool,
}

/// What one closure recorded.
#[derive(Clone)]
pub struct Body {
    /// Which one of its op's.
    pub number: u32,
    /// The types of its own arguments.
    pub arguments: Vec<TypeRef>,
    pub steps: Vec<BodyStep>,
    pub results: Vec<Input>,
    /// Their types.
    pub gives: Vec<TypeRef>,
    /// Which of what was taken from outside are numbers of the host's.
    pub numbers: Vec<bool>,
}

/// How what an op runs differs from what another one does.
pub enum BodyDifference<'a> {
    /// An op, here and there.
    Op(&'a BodyStep, &'a BodyStep),
    /// An op that the other has not, or that this one has no more.
    Came(&'a BodyStep),
    Went(&'a BodyStep),
    /// The same ops are given, or give, something else.
    Arguments(&'a Body, &'a Body),
    Results(&'a Body, &'a Body),
    /// How many there are.
    Branches(usize, usize),
}

/// What an op runs.
#[derive(Clone)]
pub struct Bodies {
    pub all: Vec<Body>,
    /// How many tensors they took from outside: the op's last operands.
    pub captured: usize,
}

impl Body {
    /// Writes the body into a program: what it gives of its arguments and what was taken from outside.
    pub fn write(&self, e: &mut Emit, leaves: &[Val]) -> Vec<Val> {
        let mut values: Vec<Val> = Vec::with_capacity(self.steps.len());
        let mut looked = Looked::within();
        let own = self.arguments.len();
        let number = |l: u32| (l as usize).checked_sub(own).is_some_and(|l| self.numbers.get(l) == Some(&true));
        for (step, n) in self.steps.iter().zip(0..) {
            let inputs: Vec<Val> = step.inputs.iter().map(|i| i.of(leaves, &values)).collect();
            e.enter(self.number, n);
            let value = step.op.write(e, &inputs, &step.attrs, &step.ty);
            let BodyStep { op, attrs, inputs: from, .. } = step;
            looked.at(e, Asked { op, attrs, from, inputs: &inputs, value: &value }, number);
            e.leave();
            values.push(value);
        }
        self.results.iter().map(|r| r.of(leaves, &values)).collect()
    }

    /// Whether checks would find anything in it.
    pub fn is_looked_at(&self, looking: Looking) -> bool {
        let asks = |s: &BodyStep| looking.refused && s.op.checks.is_some();
        looking.numbers != Numbers::Any || self.steps.iter().any(asks)
    }

    fn words(&self, words: &mut Vec<u64>) {
        words.push(self.arguments.len() as u64 | (self.steps.len() as u64) << 16 | (self.results.len() as u64) << 48);
        for ty in &self.arguments {
            words.push(ty.dtype as u64 | (ty.shape.len() as u64) << 8);
            words.extend(ty.shape.iter().map(|&d| d as u64));
        }
        let word = |input: &Input| match *input {
            Input::Leaf(l) => (LEAF_BIT | l) as u64,
            Input::Step(s) => s as u64,
        };
        for step in &self.steps {
            words.push(step.op.id as u64 | (step.inputs.len() as u64) << 32 | (step.attrs.len() as u64) << 48);
            step.attrs.iter().for_each(|a| a.words(words));
            words.extend(step.inputs.iter().map(word));
        }
        words.extend(self.results.iter().map(word));
    }
}

/// Ops of a body that are named at most.
const NAMED: usize = 8;

impl Body {
    /// What it gives, each by the op that made it, as `(mul f32[2], an argument)`.
    pub fn given(&self) -> String {
        let one = |(r, ty): (&Input, &TypeRef)| match *r {
            Input::Step(s) => format!("{} {ty}", self.steps[s as usize].op.torch_name()),
            Input::Leaf(l) if (l as usize) < self.arguments.len() => format!("argument {} {ty}", l + 1),
            Input::Leaf(_) => format!("{ty} from outside"),
        };
        format!("({})", self.results.iter().zip(&self.gives).map(one).collect::<Vec<_>>().join(", "))
    }

    /// The types of what it is given.
    pub fn taken(&self) -> String {
        format!("({})", self.arguments.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", "))
    }
}

impl std::fmt::Display for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let named: Vec<&str> = self.steps.iter().take(NAMED).map(|s| s.op.torch_name()).collect();
        let more = self.steps.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", … {more} more") } else { String::new() };
        write!(f, "{{{}{more}}}", named.join(", "))
    }
}

impl Bodies {
    /// Whether both are the same ops, wired alike; their attributes and types may differ.
    pub fn is_like(&self, other: &Bodies) -> bool {
        let step = |(a, b): (&BodyStep, &BodyStep)| a.op.base == b.op.base && a.inputs == b.inputs;
        let body = |(a, b): (&Body, &Body)| {
            a.steps.len() == b.steps.len() && a.results == b.results && a.steps.iter().zip(&b.steps).all(step)
        };
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(body)
    }

    /// The first that differs: in a loop within, where that is all of its op that does.
    pub fn differs<'a>(&'a self, other: &'a Bodies) -> Option<BodyDifference<'a>> {
        for (a, b) in self.all.iter().zip(&other.all) {
            let pairs = || a.steps.iter().zip(&b.steps);
            let same = |(a, b): &(&BodyStep, &BodyStep)| {
                a.op.id == b.op.id && a.attrs == b.attrs && a.inputs == b.inputs && a.ty == b.ty
            };
            if let Some((now, was)) = { pairs() }.find(|pair| !same(pair)) {
                let inner = now.attrs.iter().zip(&was.attrs).find(|(x, y)| x != y);
                if let Some((Attr::Region(x), Attr::Region(y))) = inner
                    && let Some(within) = x.get::<Bodies>().differs(y.get())
                {
                    return Some(within);
                }
                return Some(BodyDifference::Op(now, was));
            }
            let n = a.steps.len().min(b.steps.len());
            match (a.steps.get(n), b.steps.get(n)) {
                (Some(now), _) => return Some(BodyDifference::Came(now)),
                (_, Some(was)) => return Some(BodyDifference::Went(was)),
                _ if a.arguments != b.arguments => return Some(BodyDifference::Arguments(a, b)),
                _ if a.results != b.results || a.gives != b.gives => return Some(BodyDifference::Results(a, b)),
                _ => {}
            }
        }
        (self.all.len() != other.all.len()).then_some(BodyDifference::Branches(self.all.len(), other.all.len()))
    }

    /// The ops, each with its line, that differ from what they were in nothing but an attribute that can become a parameter;
    /// `None` where more than that differs.
    pub fn lifts(&self, was: &Bodies) -> Option<Vec<(&'static OpDef, &'static Source)>> {
        let mut lifts = Vec::new();
        if self.all.len() != was.all.len() || self.captured != was.captured {
            return None;
        }
        for (a, b) in self.all.iter().zip(&was.all) {
            let same = a.steps.len() == b.steps.len() && a.arguments == b.arguments;
            if !same || a.results != b.results || a.gives != b.gives {
                return None;
            }
            for (now, was) in a.steps.iter().zip(&b.steps) {
                if now.op.id != was.op.id || now.inputs != was.inputs || now.ty != was.ty {
                    return None;
                }
                if now.attrs == was.attrs {
                    continue;
                }
                match now.op.heals(&was.attrs, &now.attrs) {
                    true => lifts.push((now.op, now.at)),
                    false => lifts.extend(Bodies::lifted(&now.attrs, &was.attrs)?),
                }
            }
        }
        Some(lifts)
    }

    /// As [`Bodies::lifts`], of the attributes of an op that runs bodies, where nothing else of them differs.
    pub fn lifted(now: &[Attr], was: &[Attr]) -> Option<Vec<(&'static OpDef, &'static Source)>> {
        let k = Bodies::place(now)?;
        let others = |attrs: &[Attr]| {
            attrs.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, a)| a.clone()).collect::<Vec<_>>()
        };
        let lifts = Bodies::of(&now[k]).lifts(Bodies::of(was.get(k)?))?;
        (others(now) == others(was)).then_some(lifts)
    }

    /// As an attribute.
    pub fn attr(mut self) -> Attr {
        self.all.iter_mut().zip(0..).for_each(|(body, n)| body.number = n);
        let mut words = Vec::new();
        self.all.iter().for_each(|body| body.words(&mut words));
        let says: Vec<String> = self.all.iter().map(Body::to_string).collect();
        Attr::Region(Region::new(words, says.join(" "), self))
    }

    /// Which of an op's attributes they are.
    pub(super) fn place(attrs: &[Attr]) -> Option<usize> {
        attrs.iter().position(|a| matches!(a, Attr::Region(_)))
    }

    /// What an op of these attributes runs.
    pub fn among(attrs: &[Attr]) -> Option<&Bodies> {
        Bodies::place(attrs).map(|k| Bodies::of(&attrs[k]))
    }

    /// The step at the end of a way from one of these bodies on: see [`Checked::way`](crate::emit::Checked::way).
    pub fn step(&self, way: &[(u32, u32)]) -> Option<&BodyStep> {
        let (&(body, step), rest) = way.split_first()?;
        let step = self.all.get(body as usize)?.steps.get(step as usize)?;
        match rest {
            [] => Some(step),
            rest => Bodies::among(&step.attrs)?.step(rest),
        }
    }

    /// What an attribute holds.
    pub fn of(attr: &Attr) -> &Bodies {
        match attr {
            Attr::Region(region) => region.get(),
            a => unreachable!("no bodies: {a:?}"),
        }
    }
}
