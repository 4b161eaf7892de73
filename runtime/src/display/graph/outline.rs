//! A graph as text: a tree of operands where it is small, else an outline of its groups.
use super::label;
use super::scene::{Item, Scene};
use crate::display::ir::{NodeState, View};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use xlazy_core::host::Holder;
use xlazy_core::text;
use xlazy_mime::count;

/// Results first, operands indented below; a node that was told before is only named.
pub(super) fn tree(view: &View) -> String {
    let mut out = String::new();
    let mut told = BTreeSet::new();
    let mut stack: Vec<(usize, usize)> = view.roots.iter().rev().map(|&r| (r, 0)).collect();
    while let Some((i, depth)) = stack.pop() {
        let indent = "  ".repeat(depth.min(40));
        if !told.insert(i) {
            let _ = writeln!(out, "{indent}%{i} (above)");
            continue;
        }
        let _ = writeln!(out, "{indent}{}", line(view, i));
        stack.extend(view.nodes[i].inputs.iter().rev().map(|&input| (input, depth + 1)));
    }
    out.truncate(out.trim_end().len());
    out
}

fn line(view: &View, i: usize) -> String {
    let n = &view.nodes[i];
    let attrs = match n.attrs.as_str() {
        "" => String::new(),
        a if n.state == NodeState::Scalar => format!(" {a}"),
        a => format!(" {{{a}}}"),
    };
    let name = n.name.as_ref().map_or(String::new(), |(name, _)| format!(" `{name}`"));
    let lies = n.lies.as_ref().filter(|_| n.state == NodeState::Data).map_or(String::new(), |l| format!(" {l}"));
    let mut notes = String::new();
    if n.state == NodeState::Cached {
        notes += ", cached";
    }
    if n.users > 1 {
        let _ = write!(notes, ", used {} times", n.users);
    }
    format!("%{i} {} {}{attrs}{name}{lies}{notes}  # {}", n.op, n.ty, text::told(n.at, n.statement))
}

/// What is used, by its name, and the groups in the order of creation; those that are open with what is in them.
pub(super) fn outline(scene: &Scene, open: &HashSet<usize>) -> String {
    let mut out = String::new();
    let held = held(scene.view);
    if !held.is_empty() {
        let _ = writeln!(out, "from {}", held.join(", "));
    }
    let mut stack: Vec<(Item, usize)> = scene.top.iter().rev().map(|&i| (i, 0)).collect();
    while let Some((item, depth)) = stack.pop() {
        let indent = "  ".repeat(depth);
        match item {
            Item::Node(i) => _ = writeln!(out, "{indent}{}", line(scene.view, i)),
            Item::Group(g) => {
                let [name, ops, last] = label::of_group(scene, g);
                if open.contains(&g) {
                    let _ = writeln!(out, "{indent}{name} · {ops}");
                    stack.extend(scene.groups[g].children.iter().rev().map(|&c| (c, depth + 1)));
                } else {
                    let values: usize = scene.groups[g].ops.len();
                    let folded = if values > 0 { " …" } else { "" };
                    let _ = writeln!(out, "{indent}{name} · {ops} {last}{folded}");
                }
            }
        }
    }
    let sources = scene.view.nodes.len() - scene.ops.len();
    let _ = write!(out, "{} and {} without operands", count(scene.ops.len(), "op"), count(sources, "node"));
    out
}

/// What the graph starts from: variables by name, what models and optimizers hold by how much it is.
fn held(view: &View) -> Vec<String> {
    let mut of: Vec<(&str, Holder, BTreeSet<&str>)> = Vec::new();
    for n in &view.nodes {
        let (NodeState::Data, Some((name, holder))) = (n.state, &n.name) else { continue };
        let holder = if let Holder::Optimizer(_) = holder { Holder::Optimizer(None) } else { *holder };
        let owner = if holder == Holder::Variable { name } else { name.split('.').next().unwrap_or(name) };
        match of.iter_mut().find(|o| o.0 == owner && o.1 == holder) {
            Some((.., names)) => _ = names.insert(name),
            None => of.push((owner, holder, BTreeSet::from([name.as_str()]))),
        }
    }
    let told = |(owner, holder, names): (&str, Holder, BTreeSet<&str>)| match holder {
        Holder::Variable => owner.to_owned(),
        Holder::Module => format!("{owner} ({})", count(names.len(), "parameter")),
        Holder::Optimizer(_) => format!("{owner} ({} of state)", count(names.len(), "tensor")),
        Holder::Gradient => format!("{owner} ({})", count(names.len(), "gradient")),
    };
    of.into_iter().map(told).collect()
}
