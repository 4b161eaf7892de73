//! The graph as it stands, copied out for people to look at: as text in torch_xla's manner, and as JSON.
use crate::insight::mode::{self, Derived};
use crate::json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::panic::Location;
use xlazy_core::host::{Holder, Named};
use xlazy_core::ir::{Attr, Bodies, Body, BodyStep, Graph, Input, Node, NodeId, Payload, REQUIRES_GRAD};
use xlazy_core::mesh::Sharding;
use xlazy_core::text::{self, Source};
use xlazy_core::ty::Type;

/// What stands behind a node, as far as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NodeState {
    /// To be run.
    Pending,
    /// Pending for the next barrier, but a read has computed the value.
    Cached,
    /// On the device.
    Data,
    /// A number of user code.
    Scalar,
}

impl NodeState {
    pub fn name(self) -> &'static str {
        match self {
            NodeState::Pending => "pending",
            NodeState::Cached => "cached",
            NodeState::Data => "device data",
            NodeState::Scalar => "scalar",
        }
    }
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct ViewNode {
    pub op: &'static str,
    pub ty: Type,
    /// Numbers of earlier nodes of the view.
    pub inputs: Vec<usize>,
    /// `dim=[0], keepdim=false`; of a scalar its value.
    pub attrs: String,
    /// The ops of what it runs, a line each, with their places.
    pub bodies: Vec<(String, &'static Source)>,
    pub state: NodeState,
    pub requires_grad: bool,
    /// Nodes of the view that use this one.
    pub users: usize,
    /// Which result it is, if one.
    pub root: Option<usize>,
    pub at: &'static Location<'static>,
    /// The statement of the cell that ran when it was recorded.
    pub statement: Option<&'static Location<'static>>,
    /// What follows from other ops: a gradient, an optimizer's step.
    pub derived: Option<Derived>,
    /// What holds it, and by which name.
    pub name: Option<(String, Holder)>,
    /// Of a parameter and of an optimizer's state for it: the parameter's name.
    pub parameter: Option<String>,
    /// How it lies on its mesh, where that is said and not left to XLA: `(data, None) of mesh(data=4, model=2)`.
    pub lies: Option<String>,
}

/// Longer texts are told from their end: nobody reads more, and front ends choke.
const MOST_LINES: usize = 2000;

/// A part of the graph, numbered in the order of creation.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub nodes: Vec<ViewNode>,
    pub roots: Vec<usize>,
}

impl View {
    /// What the roots need. Nodes that have their value are where it ends; `through_cached` looks behind values that reads
    /// computed, as a barrier does.
    pub fn of(g: &Graph, roots: &[NodeId], through_cached: bool, named: &[Named]) -> View {
        let expands = |id: NodeId| match g.node(id).payload {
            Payload::Pending => true,
            Payload::Cached(_) => through_cached || roots.contains(&id),
            _ => false,
        };
        let mut seen: HashMap<NodeId, usize> = HashMap::new();
        let mut order: Vec<NodeId> = Vec::new();
        let mut next = roots.to_vec();
        while let Some(id) = next.pop() {
            if seen.insert(id, 0).is_none() {
                order.push(id);
                if expands(id) {
                    next.extend(g.node(id).inputs.iter().copied());
                }
            }
        }
        order.sort_unstable_by_key(|&id| g.node(id).seq);
        order.iter().enumerate().for_each(|(i, &id)| _ = seen.insert(id, i));
        let mut nodes: Vec<ViewNode> = order.iter().map(|&id| node(g, id, expands(id), &seen)).collect();
        name(&mut nodes, g, &order, named);
        for i in 0..nodes.len() {
            for input in nodes[i].inputs.clone() {
                nodes[input].users += 1;
            }
        }
        let roots: Vec<usize> = roots.iter().map(|r| seen[r]).collect();
        for (n, &r) in roots.iter().enumerate() {
            nodes[r].root.get_or_insert(n);
        }
        View { nodes, roots }
    }

    /// One node a line, such as `%3 = f32[2,3] mul(%1, %2)  # cell 7, line 3`; results are marked `ROOT`.
    pub fn text(&self) -> String {
        let first = self.nodes.len().saturating_sub(MOST_LINES);
        let lines: Vec<String> = self.nodes.iter().enumerate().skip(first).map(|(i, n)| n.line(i)).collect();
        let width = lines.iter().map(|l| l.chars().count()).filter(|&w| w <= 72).max().unwrap_or(0);
        let mut out = String::from("IR {\n");
        if first > 0 {
            let _ = writeln!(out, "  … {first} earlier nodes");
        }
        for (line, n) in lines.iter().zip(&self.nodes[first..]) {
            let _ = writeln!(out, "  {line:width$}  # {}", text::told(n.at, n.statement));
            for (line, at) in &n.bodies {
                let _ = writeln!(out, "    {line:0$}  # {1}", width.saturating_sub(2), text::location(*at));
            }
        }
        out + "}"
    }

    /// `{"nodes": […], "roots": […]}`.
    pub fn json(&self) -> Value {
        let nodes: Value = self.nodes.iter().enumerate().map(|(i, n)| n.json(i)).collect();
        json!({ "nodes": nodes, "roots": self.roots })
    }
}

/// Says what follows from other ops, and what variables call each value. A parameter that is changed in place keeps its name.
fn name(nodes: &mut [ViewNode], g: &Graph, order: &[NodeId], named: &[Named]) {
    let derived = mode::derived_of(order.iter().map(|&id| g.node(id).seq));
    let mut names: HashMap<u64, &Named> = HashMap::new();
    for n in named.iter().rev() {
        names.insert(g.node(n.node).lineage, n);
    }
    let own: HashMap<u64, &Named> = named.iter().rev().map(|n| (g.node(n.node).seq, n)).collect();
    for ((node, &id), derived) in nodes.iter_mut().zip(order).zip(derived) {
        node.derived = derived;
        let (seq, lineage) = (g.node(id).seq, g.node(id).lineage);
        let Some(n) = names.get(&lineage).copied() else { continue };
        // The value that an op of the same tensor starts from is known by its name as well; a later one is what the name means.
        let n = if node.inputs.is_empty() { Some(n) } else { own.get(&seq).copied() };
        let Some(n) = n else { continue };
        node.name = Some((n.name.clone(), n.holder));
        node.parameter = match n.holder {
            Holder::Module => Some(n.name.clone()),
            Holder::Optimizer(Some(of)) => names.get(&g.node(of).lineage).map(|n| n.name.clone()),
            Holder::Variable if g.node(id).flags & REQUIRES_GRAD != 0 => Some(n.name.clone()),
            _ => None,
        };
    }
}

fn node(g: &Graph, id: NodeId, expanded: bool, numbers: &HashMap<NodeId, usize>) -> ViewNode {
    let n = g.node(id);
    let state = match n.payload {
        Payload::Pending => NodeState::Pending,
        Payload::Cached(_) => NodeState::Cached,
        Payload::Data(_) => NodeState::Data,
        Payload::Scalar(_) => NodeState::Scalar,
    };
    let attrs = match n.payload {
        Payload::Scalar(bits) if n.ty.dtype.is_differentiable() => f64::from_bits(bits).to_string(),
        Payload::Scalar(bits) => (bits as i64).to_string(),
        _ if !expanded => String::new(),
        _ => {
            let named = n.op.attrs.iter().zip(&n.attrs).map(|(attr, value)| format!("{}={value}", attr.name));
            named.collect::<Vec<_>>().join(", ")
        }
    };
    let inputs = if expanded { n.inputs.iter().map(|i| numbers[i]).collect() } else { Vec::new() };
    let op = match state {
        NodeState::Data => "device_data",
        _ => n.op.name,
    };
    let regions = n.attrs.iter().filter(|a| expanded && matches!(a, Attr::Region(_)));
    let bodies =
        regions.flat_map(|a| &Bodies::of(a).all).enumerate().flat_map(|(k, body)| body_lines(k, body)).collect();
    let requires_grad = n.flags & REQUIRES_GRAD != 0;
    ViewNode {
        op,
        ty: Type::clone(&n.ty),
        inputs,
        attrs,
        bodies,
        state,
        requires_grad,
        users: 0,
        root: None,
        at: n.at,
        statement: n.statement,
        derived: None,
        name: None,
        parameter: None,
        lies: lies(n),
    }
}

fn lies(n: &Node) -> Option<String> {
    let mesh = n.placement.mesh().filter(|m| !m.is_ranks())?;
    let sharding = match (n.value(), n.op.name, n.attrs.first()) {
        (Some(data), ..) => data.sharding_on(mesh),
        (None, "mark_sharding", Some(Attr::Name(spec))) => Sharding::parse(mesh, spec)?,
        _ => return None,
    };
    Some(format!("{sharding:?}"))
}

/// The ops of a body, such as `| %2 = f32[] add(argument 0, %1)`.
fn body_lines(k: usize, body: &Body) -> Vec<(String, &'static Source)> {
    let operand = |i: &Input| match *i {
        Input::Step(s) => format!("%{s}"),
        Input::Leaf(l) if (l as usize) < body.arguments.len() => format!("argument {l}"),
        Input::Leaf(l) => format!("outside {}", l as usize - body.arguments.len()),
    };
    let line = |(i, s): (usize, &BodyStep)| {
        let inputs = s.inputs.iter().map(operand).collect::<Vec<_>>().join(", ");
        (format!("{k} | %{i} = {} {}({inputs})", s.ty, s.op.name), s.at)
    };
    body.steps.iter().enumerate().map(line).collect()
}

impl ViewNode {
    fn line(&self, number: usize) -> String {
        let inputs: Vec<String> = self.inputs.iter().map(|i| format!("%{i}")).collect();
        let mut out = format!("%{number} = {} {}", self.ty, self.op);
        match self.state {
            NodeState::Scalar => _ = write!(out, "({})", self.attrs),
            _ => {
                let _ = write!(out, "({})", inputs.join(", "));
                if !self.attrs.is_empty() {
                    let _ = write!(out, " {{{}}}", self.attrs);
                }
            }
        }
        if self.state == NodeState::Cached {
            out += ", cached";
        }
        if let Some(root) = self.root {
            let _ = write!(out, ", ROOT {root}");
        }
        out
    }

    fn json(&self, number: usize) -> Value {
        json!({
            "id": number,
            "op": self.op,
            "dtype": self.ty.dtype.to_string(),
            "shape": self.ty.shape[..],
            "inputs": self.inputs,
            "attributes": self.attrs,
            "body": self.bodies.iter().map(|(line, _)| line.clone()).collect::<Vec<String>>(),
            "state": self.state.name(),
            "requires_grad": self.requires_grad,
            "users": self.users,
            "root": self.root,
            "name": self.name.as_ref().map(|n| n.0.as_str()),
            "sharding": self.lies,
            "file": self.at.file(),
            "line": text::line(self.at),
            "cell": text::cell(self.at),
        })
    }
}
