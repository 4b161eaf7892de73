//! The pending graph drawn: nodes in layers from inputs to results, as SVG in HTML, with a tree of text as its twin.
use super::layout::{Box2, layout};
use crate::display::ir::{NodeState, View, ViewNode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use xlazy_core::text;
use xlazy_mime::{Bundle, count, escape_html, plural};

/// More nodes than this are not drawn: nobody can read them, and front ends choke.
const MOST: usize = 200;
const HEIGHT: f64 = 50.0;

/// The whole graph, or what is nearest to its results where it is too large.
pub(crate) fn bundle(view: &View) -> Bundle {
    if view.nodes.is_empty() {
        return Bundle::text("nothing is pending").passing();
    }
    let (drawn, left_out) = nearest(view);
    let head = headline(view, left_out);
    let html = format!(
        "<div style=\"line-height:1.35\"><div style=\"opacity:.75;font-size:.9em\">{}</div>\
         <div style=\"overflow:auto;max-height:640px\">{}</div>{LEGEND}</div>",
        escape_html(&head),
        svg(view, &drawn)
    );
    Bundle::html(html, format!("{head}\n{}", tree(view, &drawn))).passing()
}

fn headline(view: &View, left_out: usize) -> String {
    let of_state = |s: NodeState| view.nodes.iter().filter(|n| n.state == s).count();
    let mut parts = Vec::new();
    for state in [NodeState::Pending, NodeState::Cached, NodeState::Data, NodeState::Scalar] {
        match of_state(state) {
            0 => {}
            n => parts.push(format!("{n} {}", state.name())),
        }
    }
    let shared = view.nodes.iter().filter(|n| n.users > 1).count();
    if shared > 0 {
        parts.push(format!("{shared} used more than once"));
    }
    let mut out = format!("{}: {}", count(view.nodes.len(), "node"), parts.join(", "));
    if left_out > 0 {
        let mut ops: BTreeMap<&str, usize> = BTreeMap::new();
        view.nodes.iter().for_each(|n| *ops.entry(n.op).or_default() += 1);
        let mut ops: Vec<(&str, usize)> = ops.into_iter().collect();
        ops.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        let ops: Vec<String> = ops.iter().take(12).map(|(op, n)| format!("{n} × {op}")).collect();
        let _ = write!(
            out,
            " ({})\n{left_out} {} further from the results {} not drawn",
            ops.join(", "),
            plural(left_out as u64, "node"),
            if left_out == 1 { "is" } else { "are" }
        );
    }
    out
}

/// The nodes to draw, breadth first from the results.
fn nearest(view: &View) -> (BTreeSet<usize>, usize) {
    if view.nodes.len() <= MOST {
        return ((0..view.nodes.len()).collect(), 0);
    }
    let mut drawn = BTreeSet::new();
    let mut queue: std::collections::VecDeque<usize> = view.roots.iter().copied().collect();
    while let Some(i) = queue.pop_front() {
        if drawn.len() < MOST && drawn.insert(i) {
            queue.extend(&view.nodes[i].inputs);
        }
    }
    let left_out = view.nodes.len() - drawn.len();
    (drawn, left_out)
}

const LEGEND: &str = "<div style=\"font-size:.8em;opacity:.8;padding-top:4px\">\
<span style=\"border-left:10px solid #4878d0;padding-left:5px\">pending</span> &#160; \
<span style=\"border-left:10px solid #8c6bb1;padding-left:5px\">pending, value cached by a read</span> &#160; \
<span style=\"border-left:10px solid #3a9e5c;padding-left:5px\">device data</span> &#160; \
<span style=\"border-left:10px solid #d08a2e;padding-left:5px\">scalar</span> &#160; \
thick border: result &#160; ×n: used n times &#160; ∇: requires grad</div>";

fn colour(state: NodeState) -> &'static str {
    match state {
        NodeState::Pending => "#4878d0",
        NodeState::Cached => "#8c6bb1",
        NodeState::Data => "#3a9e5c",
        NodeState::Scalar => "#d08a2e",
    }
}

fn labels(n: &ViewNode) -> [String; 3] {
    let short = |s: &str, most: usize| match s.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &s[..cut]),
        None => s.to_owned(),
    };
    let mut name = if n.state == NodeState::Scalar { n.attrs.clone() } else { n.op.to_owned() };
    if n.requires_grad {
        name += " ∇";
    }
    if n.users > 1 {
        let _ = write!(name, " ×{}", n.users);
    }
    let mut ty = n.ty.to_string();
    if n.state != NodeState::Scalar && !n.attrs.is_empty() {
        let _ = write!(ty, " {}", n.attrs);
    }
    [name, short(&ty, 34), short(&text::location(n.at), 28)]
}

fn svg(view: &View, drawn: &BTreeSet<usize>) -> String {
    let number: HashMap<usize, usize> = drawn.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    let nodes: Vec<&ViewNode> = drawn.iter().map(|&n| &view.nodes[n]).collect();
    let texts: Vec<[String; 3]> = nodes.iter().map(|n| labels(n)).collect();
    let width = |t: &[String; 3]| t.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64 * 6.7 + 18.0;
    let widths: Vec<f64> = texts.iter().map(|t| width(t).max(60.0)).collect();
    let edges: Vec<Vec<usize>> =
        nodes.iter().map(|n| n.inputs.iter().filter_map(|i| number.get(i).copied()).collect()).collect();
    let plan = layout(&widths, HEIGHT, &edges);
    let (w, h) = (plan.width.ceil(), plan.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" fill=\"currentColor\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,monospace\" font-size=\"11\" style=\"color:inherit\">"
    );
    for edge in &plan.edges {
        let (x, y) = edge[0];
        let mut path = format!("M{x:.0} {y:.0}");
        for pair in edge.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let middle = (y0 + y1) / 2.0;
            let _ = write!(path, "C{x0:.0} {middle:.0} {x1:.0} {middle:.0} {x1:.0} {y1:.0}");
        }
        let (x, y) = edge[edge.len() - 1];
        let _ = write!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\".45\"/>\
             <path d=\"M{x:.0} {y:.0}l-3.5 -6h7z\" fill-opacity=\".6\"/>"
        );
    }
    for ((n, t), Box2 { x, y, width }) in nodes.iter().zip(&texts).zip(&plan.boxes) {
        let colour = colour(n.state);
        let border = if n.root.is_some() { 2.5 } else { 1.0 };
        let title = format!("{} {} {}", n.op, n.ty, n.attrs);
        let _ = write!(
            out,
            "<g><title>{}</title><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{HEIGHT:.0}\" rx=\"5\" \
             fill=\"{colour}\" fill-opacity=\".16\" stroke=\"{colour}\" stroke-width=\"{border}\"/>",
            escape_html(title.trim())
        );
        let middle = x + width / 2.0;
        for (i, (text, style)) in t
            .iter()
            .zip(["font-weight=\"bold\" font-size=\"12\"", "", "fill-opacity=\".6\" font-size=\"10\""])
            .enumerate()
        {
            let _ = write!(
                out,
                "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" {style}>{}</text>",
                y + 16.0 + 14.0 * i as f64,
                escape_html(text)
            );
        }
        out += "</g>";
    }
    out + "</svg>"
}

/// Results first, operands indented below; a node that was told before is only named.
fn tree(view: &View, drawn: &BTreeSet<usize>) -> String {
    let mut out = String::new();
    let mut told = BTreeSet::new();
    let mut stack: Vec<(usize, usize)> = view.roots.iter().rev().map(|&r| (r, 0)).collect();
    while let Some((i, depth)) = stack.pop() {
        let n = &view.nodes[i];
        let indent = "  ".repeat(depth.min(40));
        if !drawn.contains(&i) {
            let _ = writeln!(out, "{indent}%{i} …");
            continue;
        }
        if !told.insert(i) {
            let _ = writeln!(out, "{indent}%{i} (above)");
            continue;
        }
        let attrs = match n.attrs.as_str() {
            "" => String::new(),
            a if n.state == NodeState::Scalar => format!(" {a}"),
            a => format!(" {{{a}}}"),
        };
        let mut notes = String::new();
        if n.state == NodeState::Cached {
            notes += ", cached";
        }
        if n.users > 1 {
            let _ = write!(notes, ", used {} times", n.users);
        }
        let _ = writeln!(out, "{indent}%{i} {} {}{attrs}{notes}  # {}", n.op, n.ty, text::told(n.at, n.statement));
        stack.extend(n.inputs.iter().rev().map(|&input| (input, depth + 1)));
    }
    out.truncate(out.trim_end().len());
    out
}
