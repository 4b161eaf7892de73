//! A graph as one piece of HTML: a drawing that is there without scripts, and the data and the script that make it fold.
use super::fold::{Picture, open_at_first};
use super::label;
use super::scene::{Kind, Phase, Scene};
use super::svg::svg;
use crate::display::ir::NodeState;
use crate::display::picture::{fresh_id, script, script_safe, still};
use crate::json::{Value, json};
use std::collections::HashMap;
use xlazy_core::text;
use xlazy_mime::escape_html;

const SCRIPT: &str = include_str!("graph.js");

pub(super) fn html(scene: &Scene, picture: &Picture, head: &str) -> String {
    let data = data(scene).to_string();
    let id = fresh_id("graph");
    format!(
        "<div id=\"{id}\" style=\"line-height:1.35\"><div style=\"opacity:.75;font-size:.9em\">{}</div>\
         <div data-still=\"1\" style=\"overflow:auto;max-height:640px\">{}</div>{LEGEND}{}</div><script>{}(\"{id}\",{});</script>",
        escape_html(head),
        still(&svg(scene, picture), head),
        ways(scene),
        script(SCRIPT),
        script_safe(&data)
    )
}

const LEGEND: &str = "<div style=\"font-size:.8em;opacity:.8;padding-top:4px\">\
<span style=\"border-left:10px solid #4878d0;padding-left:5px\">a sync would run it</span> &#160; \
<span style=\"border-left:10px solid #8c6bb1;padding-left:5px\">pending, value cached by a read</span> &#160; \
<span style=\"border-left:10px solid #3a9e5c;padding-left:5px\">device data</span> &#160; \
<span style=\"border-left:10px solid #c44e6a;padding-left:5px\">parameter</span> &#160; \
<span style=\"border-left:10px solid #937860;padding-left:5px\">optimizer state</span> &#160; \
<span style=\"border-left:10px solid #d08a2e;padding-left:5px\">scalar</span> &#160; \
thick border: result &#160; ×n: used n times &#160; ∇: requires grad</div>";

/// How values lie on meshes, each in its colour.
fn ways(scene: &Scene) -> String {
    if scene.lies.is_empty() {
        return String::new();
    }
    let one = |(way, lies): (usize, &&str)| {
        let colour = label::way_colour(way);
        format!("<span style=\"border-left:7px solid {colour};padding-left:5px\">{}</span>", escape_html(lies))
    };
    let all: Vec<String> = scene.lies.iter().enumerate().map(one).collect();
    format!(
        "<div style=\"font-size:.8em;opacity:.8\">left edge, how it lies: {} &#160; none: as XLA chooses</div>",
        all.join(" &#160; ")
    )
}

/// Texts by number, each once.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    of: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: String) -> usize {
        let next = self.all.len();
        *self.of.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            next
        })
    }
}

fn data(scene: &Scene) -> Value {
    let (mut ops, mut types, mut places) = (Texts::default(), Texts::default(), Texts::default());
    let mut located: HashMap<(*const u8, u32), usize> = HashMap::new();
    let mut nodes = Vec::with_capacity(scene.view.nodes.len());
    for (i, n) in scene.view.nodes.iter().enumerate() {
        let state = match n.state {
            NodeState::Pending => 0,
            NodeState::Cached => 1,
            NodeState::Data => 2,
            NodeState::Scalar => 3,
        };
        let flags = u8::from(n.requires_grad) | u8::from(n.root.is_some()) << 1;
        let key = (n.at.file().as_ptr(), n.at.line());
        let place = *located.entry(key).or_insert_with(|| places.number(text::location(n.at)));
        let mut row = json!([
            ops.number(n.op.to_owned()),
            types.number(n.ty.to_string()),
            label::short(&n.attrs, 80),
            n.inputs,
            state,
            n.users,
            flags,
            place,
            scene.phases[i] as u8,
            scene.home[i].map_or(-1, |g| g as i64),
            scene.way(i).map_or(-1, |w| w as i64),
        ]);
        if let (Some((name, _)), Some(row)) = (&n.name, row.as_array_mut()) {
            row.extend([Value::from(name.as_str()), Value::from(label::role(n).unwrap_or_default())]);
        }
        nodes.push(row);
    }
    let group = |g: usize| {
        let group = &scene.groups[g];
        let last = label::of_group(scene, g)[2].clone();
        json!([
            group.label,
            group.kind.name(),
            group.parent.map_or(-1, |p| p as i64),
            group.ops.len(),
            group.times,
            group.phase as u8,
            if group.kind == Kind::Rounds { format!("{} ×{}", group.label, group.times) } else { group.path.clone() },
            last,
        ])
    };
    let uses = scene.uses.iter().map(|(&(i, phase), home)| {
        let phase: Phase = phase;
        json!([i, phase as u8, home.map_or(-1, |g| g as i64)])
    });
    let mut open: Vec<usize> = open_at_first(scene).into_iter().collect();
    open.sort_unstable();
    json!({
        "n": nodes,
        "g": (0..scene.groups.len()).map(group).collect::<Value>(),
        "u": uses.collect::<Value>(),
        "ops": ops.all,
        "tys": types.all,
        "places": places.all,
        "lies": scene.lies.iter().enumerate().map(|(w, lies)| json!([lies, label::way_colour(w)])).collect::<Value>(),
        "open": open,
    })
}
