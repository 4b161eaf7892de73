//! Bodies of loops and branches: what closures recorded, taken out of the graph to be a part of one op.
use super::attr::{Attr, Region};
use super::cut::{Input, LEAF_BIT};
use super::graph::{Graph, LEAF, NodeId, Payload, REQUIRES_GRAD};
use super::op::{ARGUMENT, OpDef};
use crate::emit::{Emit, Val};
use crate::text::{Source, sources};
use crate::ty::TypeRef;
use smallvec::SmallVec;

/// One op of a body. Its operands are earlier ones of the body, or, as leaves, the body's own arguments and, behind these, what
/// all bodies of the op took from outside.
pub struct BodyStep {
    pub op: &'static OpDef,
    pub attrs: Box<[Attr]>,
    pub ty: TypeRef,
    pub inputs: SmallVec<[Input; 2]>,
    pub at: &'static Source,
    /// Whether gradients flow through it.
    pub recorded: bool,
}

/// What one closure recorded.
pub struct Body {
    /// The types of its own arguments.
    pub arguments: Vec<TypeRef>,
    pub steps: Vec<BodyStep>,
    pub results: Vec<Input>,
    /// Their types.
    pub gives: Vec<TypeRef>,
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
pub struct Bodies(pub Vec<Body>);

/// The nodes of one closure, still in the graph.
pub struct RecordedBody<'a> {
    pub arguments: &'a [NodeId],
    pub results: &'a [NodeId],
    /// In how many bodies they were recorded, this one included, and how many nodes there had been when it began.
    pub depth: u8,
    pub since: u64,
    /// They are no body but a part of what is recorded: what is older, or has a value, is from outside.
    pub part: bool,
}

/// A tensor of another body: it has a value only there.
pub struct Elsewhere(pub NodeId);

impl Graph {
    /// Copies a body out of the graph. What it takes from outside is added to `captured`, each once.
    pub fn body(&mut self, of: &RecordedBody, captured: &mut Vec<NodeId>) -> Result<Body, Elsewhere> {
        self.mark += 1;
        let mark = self.mark;
        let own = of.arguments.len() as u32;
        let leaves = (0..).zip(of.arguments.iter().chain(captured.iter()));
        let numbered: Vec<(u32, NodeId)> = leaves.map(|(k, &id)| (k, id)).collect();
        for (k, id) in numbered {
            let n = self.node_mut(id);
            (n.mark, n.pos) = (mark, LEAF_BIT | k);
        }
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut open: Vec<NodeId> = of.results.to_vec();
        while let Some(id) = open.pop() {
            let n = self.node_mut(id);
            let valued = !matches!(n.payload, Payload::Pending | Payload::Cached(_));
            let given = valued || n.seq <= of.since || n.flags & LEAF != 0;
            if n.mark == mark || n.depth < of.depth || of.part && given {
                continue;
            }
            if n.depth > of.depth || n.seq <= of.since || n.op.id == ARGUMENT.id {
                return Err(Elsewhere(id));
            }
            n.mark = mark;
            open.extend_from_slice(&n.inputs);
            nodes.push(id);
        }
        nodes.sort_unstable_by_key(|&id| self.node(id).seq);
        nodes.iter().enumerate().for_each(|(i, &id)| self.node_mut(id).pos = i as u32);
        let mut sources = sources();
        let mut operand = |g: &mut Graph, id: NodeId| {
            let n = g.node_mut(id);
            if n.mark != mark {
                (n.mark, n.pos) = (mark, LEAF_BIT | (own + captured.len() as u32));
                captured.push(id);
            }
            match n.pos & LEAF_BIT == 0 {
                true => Input::Step(n.pos),
                false => Input::Leaf(n.pos & !LEAF_BIT),
            }
        };
        let mut steps = Vec::with_capacity(nodes.len());
        for id in nodes {
            let inputs = self.node(id).inputs.clone().into_iter().map(|i| operand(self, i)).collect();
            let n = self.node(id);
            let recorded = n.flags & REQUIRES_GRAD != 0;
            let (op, attrs, ty, at) = (n.op, n.attrs.clone(), n.ty, sources.of(n.at));
            steps.push(BodyStep { op, attrs, ty, inputs, at, recorded });
        }
        let results = of.results.iter().map(|&id| operand(self, id)).collect();
        let types = |ids: &[NodeId]| ids.iter().map(|&id| self.node(id).ty).collect();
        Ok(Body { arguments: types(of.arguments), steps, results, gives: types(of.results) })
    }
}

impl Body {
    /// Writes the body into a program: what it gives of its arguments and what was taken from outside.
    pub fn write(&self, e: &mut Emit, leaves: &[Val]) -> Vec<Val> {
        let mut values: Vec<Val> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let inputs: Vec<Val> = step.inputs.iter().map(|i| i.of(leaves, &values)).collect();
            values.push(step.op.write(e, &inputs, &step.attrs, &step.ty));
        }
        self.results.iter().map(|r| r.of(leaves, &values)).collect()
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
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(body)
    }

    /// The first that differs: in a loop within, where that is all of its op that does.
    pub fn differs<'a>(&'a self, other: &'a Bodies) -> Option<BodyDifference<'a>> {
        for (a, b) in self.0.iter().zip(&other.0) {
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
        (self.0.len() != other.0.len()).then_some(BodyDifference::Branches(self.0.len(), other.0.len()))
    }

    /// As an attribute.
    pub fn attr(self) -> Attr {
        let mut words = Vec::new();
        self.0.iter().for_each(|body| body.words(&mut words));
        let says: Vec<String> = self.0.iter().map(Body::to_string).collect();
        Attr::Region(Region::new(words, says.join(" "), self))
    }

    /// What an attribute holds.
    pub fn of(attr: &Attr) -> &Bodies {
        match attr {
            Attr::Region(region) => region.get(),
            a => unreachable!("no bodies: {a:?}"),
        }
    }
}
