//! What stands in the boxes of a graph.
use super::fold::{Picture, Seen};
use super::scene::{Kind, Phase, Scene};
use crate::display::ir::{NodeState, ViewNode};
use std::fmt::Write;
use xlazy_core::host::Holder;
use xlazy_core::text;
use xlazy_mime::count;

/// Three lines, a title for who points at it, and its colour.
pub(super) struct Label {
    pub lines: [String; 3],
    pub title: String,
    pub colour: &'static str,
    /// How it lies on a mesh has a colour of its own.
    pub edge: Option<String>,
    /// A result, or a group with one.
    pub result: bool,
}

pub(super) fn short(s: &str, most: usize) -> String {
    match s.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &s[..cut]),
        None => s.to_owned(),
    }
}

/// What holds a value, in a word.
pub(super) fn role(n: &ViewNode) -> Option<&'static str> {
    match n.name.as_ref()?.1 {
        Holder::Module => Some(if n.requires_grad { "parameter" } else { "buffer" }),
        Holder::Variable if n.parameter.is_some() && n.inputs.is_empty() => Some("parameter"),
        Holder::Optimizer(_) => Some("optimizer state"),
        Holder::Gradient => Some("gradient"),
        Holder::Variable => Some("variable"),
    }
}

pub(super) fn colour(n: &ViewNode) -> &'static str {
    match (n.state, role(n)) {
        (NodeState::Pending, _) => "#4878d0",
        (NodeState::Cached, _) => "#8c6bb1",
        (NodeState::Data, Some("parameter" | "buffer")) => "#c44e6a",
        (NodeState::Data, Some("optimizer state")) => "#937860",
        (NodeState::Data, _) => "#3a9e5c",
        (NodeState::Scalar, _) => "#d08a2e",
    }
}

pub(super) fn phase_colour(phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => "#4878d0",
        Phase::Gradients => "#b0559a",
        Phase::Update => "#2f8f9d",
    }
}

/// What a node is called: by its variable where it is data, else by its op.
pub(super) fn headline(n: &ViewNode) -> String {
    let mut name = match (n.state, &n.name) {
        (NodeState::Scalar, _) => n.attrs.clone(),
        (NodeState::Data, Some((name, _))) => name.clone(),
        (_, Some((name, Holder::Variable))) => format!("{name} = {}", n.op),
        _ => n.op.to_owned(),
    };
    if n.requires_grad {
        name += " ∇";
    }
    if n.users > 1 {
        let _ = write!(name, " ×{}", n.users);
    }
    name
}

/// The golden angle: neighbours differ.
pub(super) fn way_colour(way: usize) -> String {
    format!("hsl({},70%,45%)", (20 + way * 137) % 360)
}

fn of_node(scene: &Scene, i: usize) -> Label {
    let n = &scene.view.nodes[i];
    let mut ty = n.ty.to_string();
    if n.state != NodeState::Scalar && !n.attrs.is_empty() {
        let _ = write!(ty, " {}", n.attrs);
    }
    let mut title = format!("{} {} {}", n.op, n.ty, n.attrs).trim().to_owned();
    if let Some(role) = role(n) {
        let _ = write!(title, " · {role} {}", n.name.as_ref().map_or("", |n| &n.0));
    }
    if let Some(lies) = &n.lies {
        let _ = write!(title, " · {lies}");
    }
    let _ = write!(title, " · {}", text::told(n.at, n.statement));
    Label {
        lines: [short(&headline(n), 44), short(&ty, 34), short(&text::location(n.at), 28)],
        title,
        colour: colour(n),
        edge: scene.way(i).map(way_colour),
        result: n.root.is_some(),
    }
}

/// What a folded group says of itself.
pub(super) fn of_group(scene: &Scene, g: usize) -> [String; 3] {
    let group = &scene.groups[g];
    let name = match group.kind {
        Kind::Rounds => format!("{} ×{}", group.label, group.times),
        _ => group.label.clone(),
    };
    let ops = &scene.ops[group.ops.clone()];
    let runs = match group.kind {
        Kind::Rounds => format!("{} each", count(ops.len() / group.times.max(1), "op")),
        _ => count(ops.len(), "op"),
    };
    let last = ops.last().map_or(String::new(), |&i| format!("→ {}", scene.view.nodes[i].ty));
    [name, runs, last]
}

pub(super) fn of(scene: &Scene, picture: &Picture, n: usize) -> Label {
    match picture.seen[n] {
        Seen::Op(i) | Seen::Source(i, _) => of_node(scene, i),
        Seen::Group(g) => {
            let lines = of_group(scene, g);
            let group = &scene.groups[g];
            let title = format!("{} · {}", group.path, lines[1]);
            let result = scene.ops[group.ops.clone()].iter().any(|&i| scene.view.nodes[i].root.is_some());
            let lines = lines.map(|l| short(&l, 44));
            Label { lines, title, colour: phase_colour(group.phase), edge: None, result }
        }
        Seen::Stub(n) => {
            let values = &picture.stubs[n].1;
            let names: Vec<String> =
                values.iter().take(2).map(|&i| format!("%{i} {}", scene.view.nodes[i].op)).collect();
            let more = if values.len() > 2 { format!(" and {} more", values.len() - 2) } else { String::new() };
            Label {
                lines: ["from forward".into(), short(&(names.join(", ") + &more), 44), String::new()],
                title: "values of the forward ops that these gradients need".into(),
                colour: "#888888",
                edge: None,
                result: false,
            }
        }
    }
}
