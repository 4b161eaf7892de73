//! Before and after for Google's Model Explorer: two graphs, and which nodes belong together (its "sync navigation").
use super::link::{Linked, Op, Optimised};
use crate::json::{Value, json};
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::Path;
use xlazy_mime::{Bundle, whole};

/// Writes `before.json`, `after.json` and `sync.json` into a folder.
pub(super) fn write(l: &Linked, folder: &str) -> Result<Bundle> {
    let refused = |e: std::io::Error| Error::Usage { message: format!("nothing was written to {folder}: {e}") };
    let there = Path::new(folder);
    std::fs::create_dir_all(there).map_err(refused)?;
    let after = l.optimised.last().ok_or_else(|| Error::Usage { message: "nothing was compiled".into() })?;
    let files = [("before.json", before(l)), ("after.json", optimised(l, after)), ("sync.json", sync(after))];
    for (name, json) in files {
        whole::write(&there.join(name), json.to_string().as_bytes()).map_err(refused)?;
    }
    let told = format!(
        "before.json, after.json and sync.json written to {folder}: open the first two side by side in Model Explorer, and \
         load the third as its sync navigation"
    );
    Ok(Bundle::text(told).passing())
}

fn graph(id: &str, nodes: Vec<Value>) -> Value {
    json!({ "graphs": [{ "id": id, "nodes": nodes }] })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": value })
}

fn edge(from: &str) -> Value {
    json!({ "sourceNodeId": from, "sourceNodeOutputId": "0", "targetNodeInputId": "0" })
}

/// The recorded ops, by their lines.
fn before(l: &Linked) -> Value {
    let numbers: HashMap<&str, usize> = l.ops.iter().enumerate().map(|(n, o)| (o.label.as_str(), n)).collect();
    let node = |(n, o): (usize, &Op)| {
        let at: Vec<String> = o.lines.iter().map(|&n| l.lines[n].at()).collect();
        let code = o.text.split_once(" = ").map_or("", |(_, code)| code);
        let (ty, op) = code.split_once(' ').unwrap_or(("", code));
        let inputs = words(op).into_iter().filter_map(|w| numbers.get(w)).map(|n| edge(&format!("op{n}")));
        let mut attrs = vec![attribute("line", &at.join(", called from "))];
        attrs.extend(o.gone.as_ref().map(|why| attribute("in the optimised program", why)));
        json!({
            "id": format!("op{n}"),
            "label": op.split('(').next().unwrap_or(op),
            "namespace": format!("{}/{}", o.kind.name(), at.last().map_or("", String::as_str).replace('/', "_")),
            "attrs": attrs,
            "incomingEdges": inputs.collect::<Vec<_>>(),
            "outputsMetadata": [{ "id": "0", "attrs": [attribute("tensor_shape", ty)] }],
        })
    };
    graph("recorded ops", l.ops.iter().enumerate().map(node).collect())
}

/// The instructions, by the kernel that they are in.
fn optimised(l: &Linked, o: &Optimised) -> Value {
    // The names of what each row stands in, and for each depth the rows there by name.
    let (mut around, mut names): (Vec<String>, Vec<HashMap<String, usize>>) = (vec![], vec![]);
    let mut nodes = Vec::new();
    for (n, row) in o.rows.iter().enumerate() {
        let depth = row.depth as usize;
        around.truncate(depth);
        names.truncate(depth + 1);
        names.resize_with(depth + 1, HashMap::new);
        let text = row.text.trim_start_matches("ROOT ");
        let Some((name, code)) = text.split_once(" = ") else {
            around.resize(depth + 1, text.trim_end_matches(':').to_owned());
            continue;
        };
        let taken = words(code.split("), ").next().unwrap_or(code)).into_iter().filter_map(|w| names[depth].get(w));
        let inputs: Vec<Value> = taken.map(|n| edge(&format!("hlo{n}"))).collect();
        let at: Vec<String> =
            row.ops.iter().flat_map(|&op| l.ops[op as usize].lines.first()).map(|&n| l.lines[n].at()).collect();
        let mut attrs = vec![attribute("instruction", text)];
        if !at.is_empty() {
            attrs.push(attribute("lines", &at.join("; ")));
        }
        if let Some(k) = o.kernels.iter().find(|k| k.row == n) {
            attrs.push(attribute("costs", &super::words::costs(k)));
        }
        let shape = if code.starts_with('(') { "tuple" } else { code.split(' ').next().unwrap_or_default() };
        let op = code.strip_prefix(shape).unwrap_or(code).trim_start();
        around.push(name.trim_start_matches('%').to_owned());
        // What holds others stands with them in a layer of its name.
        let holds = o.rows.get(n + 1).is_some_and(|next| next.depth > row.depth);
        let layer = &around[..depth + usize::from(holds)];
        nodes.push(json!({
            "id": format!("hlo{n}"),
            "label": if shape == "tuple" { name.trim_start_matches('%') } else { op.split('(').next().unwrap_or(op) },
            "namespace": layer.join("/"),
            "attrs": attrs,
            "incomingEdges": inputs,
            "outputsMetadata": [{ "id": "0", "attrs": [attribute("tensor_shape", shape)] }],
        }));
        names[depth].insert(name.to_owned(), n);
    }
    graph(&format!("optimised for {}", o.target), nodes)
}

/// Which op went where: each instruction with the ops that it is of, kernels left to what stands in them.
fn sync(o: &Optimised) -> Value {
    let mut of: HashMap<u32, Vec<String>> = HashMap::new();
    for (n, row) in o.rows.iter().enumerate().filter(|(_, r)| r.text.contains(" = ")) {
        row.ops.iter().for_each(|&op| of.entry(op).or_default().push(format!("hlo{n}")));
    }
    let mut all: Vec<(u32, Vec<String>)> = of.into_iter().collect();
    all.sort();
    let entry = |(op, right): &(u32, Vec<String>)| json!({ "leftNodeIds": [format!("op{op}")], "rightNodeIds": right });
    json!({ "type": "sync_navigation", "mappingEntries": all.iter().map(entry).collect::<Value>() })
}

/// What may be a name of a value: `%3`, `p0`.
fn words(code: &str) -> Vec<&str> {
    code.split(|c: char| c.is_whitespace() || "(),{}=".contains(c)).filter(|w| !w.is_empty()).collect()
}
