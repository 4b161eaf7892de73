//! A graph for other programs: JSON, Graphviz, Google's Model Explorer.
use super::label;
use super::scene::{Item, Kind, Scene};
use crate::json::{Value, json};
use std::fmt::Write;
use xlazy_core::text;

/// `{"nodes": […], "roots": […], "groups": […], "top": […]}`.
pub(super) fn json(scene: &Scene) -> Value {
    let mut out = scene.view.json();
    if let Some(nodes) = out["nodes"].as_array_mut() {
        for (i, n) in nodes.iter_mut().enumerate() {
            n["phase"] = scene.phases[i].name().into();
            n["module"] = scene.module(i).into();
            n["group"] = scene.home[i].into();
            n["role"] = label::role(&scene.view.nodes[i]).into();
        }
    }
    let children = |items: &[Item]| -> Value {
        let one = |i: &Item| match *i {
            Item::Node(n) => json!({ "node": n }),
            Item::Group(g) => json!({ "group": g }),
        };
        items.iter().map(one).collect()
    };
    let group = |g: usize| {
        let group = &scene.groups[g];
        json!({
            "id": g,
            "kind": group.kind.name(),
            "label": group.label,
            "path": group.path,
            "phase": group.phase.name(),
            "parent": group.parent,
            "ops": group.ops.len(),
            "times": group.times,
            "children": children(&group.children),
        })
    };
    out["groups"] = (0..scene.groups.len()).map(group).collect();
    out["top"] = children(&scene.top);
    out
}

/// A digraph with a cluster for each group.
pub(super) fn dot(scene: &Scene) -> String {
    let mut out = String::from(
        "digraph xlazy {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=monospace, fontsize=10];\n",
    );
    for (&(i, phase), home) in &scene.uses {
        if home.is_none() {
            dot_node(scene, &format!("n{i}_{}", phase as u8), i, 1, &mut out);
        }
    }
    dot_items(scene, &scene.top, 1, &mut out);
    for &i in &scene.ops {
        for &from in &scene.view.nodes[i].inputs {
            let name = match scene.is_op(from) {
                true => format!("n{from}"),
                false => format!("n{from}_{}", scene.phases[i] as u8),
            };
            let _ = writeln!(out, "  {name} -> n{i};");
        }
    }
    out + "}\n"
}

fn dot_items(scene: &Scene, items: &[Item], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for item in items {
        let g = match *item {
            Item::Node(i) => {
                dot_node(scene, &format!("n{i}"), i, depth, out);
                continue;
            }
            Item::Group(g) => g,
        };
        let [name, ops, _] = label::of_group(scene, g);
        let _ =
            writeln!(out, "{indent}subgraph cluster_{g} {{\n{indent}  label={};", quoted(&format!("{name} · {ops}")));
        for (&(i, phase), _) in scene.uses.iter().filter(|(_, home)| **home == Some(g)) {
            dot_node(scene, &format!("n{i}_{}", phase as u8), i, depth + 1, out);
        }
        dot_items(scene, &scene.groups[g].children, depth + 1, out);
        let _ = writeln!(out, "{indent}}}");
    }
}

fn dot_node(scene: &Scene, name: &str, i: usize, depth: usize, out: &mut String) {
    let n = &scene.view.nodes[i];
    let text = quoted(&format!("{}\n{}\n{}", label::headline(n), n.ty, text::location(n.at)));
    let colour = label::colour(n);
    let bold = if n.root.is_some() { ", penwidth=2.5" } else { "" };
    let indent = "  ".repeat(depth);
    let _ = writeln!(out, "{indent}{name} [label={text}, color=\"{colour}\", fillcolor=\"{colour}28\"{bold}];");
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// What Model Explorer loads: nodes with namespaces.
pub(super) fn model_explorer(scene: &Scene) -> Value {
    let namespace = |home: Option<usize>| {
        let mut parts: Vec<String> = scene.around(home).map(|g| name_of(scene, g)).collect();
        parts.reverse();
        parts.join("/")
    };
    let pair = |key: &str, value: &str| json!({ "key": key, "value": value });
    let node = |id: String, i: usize, home: Option<usize>| {
        let n = &scene.view.nodes[i];
        let edge = |(k, &from): (usize, &usize)| {
            let source = if scene.is_op(from) { from.to_string() } else { format!("{from}.{}", scene.phases[i] as u8) };
            json!({ "sourceNodeId": source, "sourceNodeOutputId": "0", "targetNodeInputId": k.to_string() })
        };
        let mut attrs = vec![
            pair("state", n.state.name()),
            pair("line", &text::told(n.at, n.statement)),
            pair("phase", scene.phases[i].name()),
        ];
        if !n.attrs.is_empty() {
            attrs.push(pair("attributes", &n.attrs));
        }
        if let (Some((name, _)), Some(role)) = (&n.name, label::role(n)) {
            attrs.push(pair(role, name));
        }
        json!({
            "id": id,
            "label": label::headline(n),
            "namespace": namespace(home),
            "attrs": attrs,
            "incomingEdges": n.inputs.iter().enumerate().map(edge).collect::<Value>(),
            "outputsMetadata": [{ "id": "0", "attrs": [pair("tensor_shape", &n.ty.to_string())] }],
        })
    };
    let sources = scene.uses.iter().map(|(&(i, phase), &home)| node(format!("{i}.{}", phase as u8), i, home));
    let ops = scene.ops.iter().map(|&i| node(i.to_string(), i, scene.home[i]));
    json!({ "label": "xlazy", "graphs": [{ "id": "pending graph", "nodes": sources.chain(ops).collect::<Value>() }] })
}

/// One name among its siblings.
fn name_of(scene: &Scene, g: usize) -> String {
    let group = &scene.groups[g];
    let name = match group.kind {
        Kind::Rounds => format!("{} ×{}", group.label, group.times),
        _ => group.label.clone(),
    };
    let siblings = match group.parent {
        Some(p) => &scene.groups[p].children,
        None => &scene.top,
    };
    let same = |i: &&Item| matches!(i, Item::Group(o) if *o < g && scene.groups[*o].label == group.label);
    let name = name.replace('/', "∕");
    match siblings.iter().filter(same).count() {
        0 => name,
        n => format!("{name} ({})", n + 1),
    }
}
