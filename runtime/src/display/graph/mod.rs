//! The pending graph to look at: folded boxes that unfold where they are clicked, a drawing that needs no script, text, and
//! what other programs read.
mod export;
mod fold;
mod label;
mod outline;
pub(crate) mod page;
mod scene;
mod svg;

use crate::display::ir::{NodeState, View};
use crate::json;
use scene::Scene;
use xlazy_mime::{Bundle, count};

/// Graphs of no more nodes are told as a tree of operands.
const SMALL: usize = 40;

/// How a graph is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Picture,
    Json,
    Dot,
    ModelExplorer,
}

impl Form {
    /// By the option that asks for it; none for the picture.
    pub fn named(option: &str) -> Option<Form> {
        Some(match option {
            "" => Form::Picture,
            "--json" => Form::Json,
            "--dot" => Form::Dot,
            "--model-explorer" => Form::ModelExplorer,
            _ => return None,
        })
    }
}

pub(crate) fn bundle(view: &View, form: Form) -> Bundle {
    let scene = Scene::of(view);
    match form {
        Form::Json => return json::bundle(export::json(&scene)),
        Form::ModelExplorer => return json::bundle(export::model_explorer(&scene)),
        Form::Dot => return Bundle::text(export::dot(&scene)).passing(),
        Form::Picture => {}
    }
    if view.nodes.is_empty() {
        return Bundle::text("nothing is pending").passing();
    }
    let open = fold::open_at_first(&scene);
    let picture = fold::picture(&scene, &open);
    let head = headline(view, &scene);
    let text = if view.nodes.len() <= SMALL { outline::tree(view) } else { outline::outline(&scene, &open) };
    Bundle::html(page::html(&scene, &picture, &head), format!("{head}\n{text}"))
        .with("image/svg+xml", svg::svg(&scene, &picture))
        .passing()
}

fn headline(view: &View, scene: &Scene) -> String {
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
    let mut phases: Vec<&str> = Vec::new();
    for phase in scene::Phase::ALL {
        if scene.ops.iter().any(|&i| scene.phases[i] == phase) {
            phases.push(phase.name());
        }
    }
    let phases = if phases.len() > 1 { format!("; {}", phases.join(", ")) } else { String::new() };
    format!("{}: {}{phases}", count(view.nodes.len(), "node"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::fold::{Seen, open_at_first, picture};
    use super::scene::{Item, Scene};
    use crate::display::ir::{NodeState, View, ViewNode};
    use crate::insight::mode::Derived;
    use std::collections::{BTreeSet, HashSet};
    use std::panic::Location;
    use xlazy_core::host::Holder;
    use xlazy_core::ty::{DType, Shape, Type};

    /// A graph of any form: ops of some lines, of modules, of gradients; what repeats and what does not.
    fn any(rng: &mut fastrand::Rng, size: usize) -> View {
        let at = [Location::caller(), Location::caller(), Location::caller()];
        let mut nodes: Vec<ViewNode> = Vec::new();
        let mut phase = 0;
        for i in 0..size {
            let source = i < 3 || rng.u8(0..5) == 0;
            let pick =
                |rng: &mut fastrand::Rng| if rng.bool() { i - 1 - rng.usize(0..i.min(4)) } else { rng.usize(0..i) };
            let inputs: Vec<usize> = if source { vec![] } else { (0..rng.usize(1..4)).map(|_| pick(rng)).collect() };
            let module = format!("net.layers.{}.fc{}.weight", rng.u8(0..3), rng.u8(0..2));
            let name = (source && rng.bool()).then(|| (module.clone(), Holder::Module));
            if phase < 2 && rng.usize(0..size) < 2 {
                phase += 1;
            }
            nodes.push(ViewNode {
                op: ["add", "mul", "exp"][rng.usize(0..3)],
                ty: Type::new(DType::F32, Shape::new(&[rng.usize(1..3)])),
                inputs,
                attrs: String::new(),
                bodies: vec![],
                state: if source { NodeState::Data } else { NodeState::Pending },
                requires_grad: false,
                users: 0,
                root: None,
                at: at[rng.usize(0..3)],
                statement: None,
                derived: [None, Some(Derived::Gradient), Some(Derived::Update)][phase],
                parameter: name.as_ref().map(|n: &(String, Holder)| n.0.clone()),
                name,
                lies: None,
            });
        }
        for i in 0..size {
            for input in nodes[i].inputs.clone() {
                nodes[input].users += 1;
            }
        }
        View { nodes, roots: vec![size - 1] }
    }

    #[test]
    fn whatever_is_open_each_op_is_in_one_box_and_edges_go_forward() {
        let mut rng = fastrand::Rng::with_seed(20);
        for round in 0..60 {
            let view = any(&mut rng, 4 + round * 3);
            let scene = Scene::of(&view);
            // Every op is in the tree once.
            let mut leaves = Vec::new();
            let mut todo: Vec<Item> = scene.top.clone();
            while let Some(item) = todo.pop() {
                match item {
                    Item::Node(n) => leaves.push(n),
                    Item::Group(g) => {
                        assert!(!scene.groups[g].children.is_empty());
                        todo.extend(&scene.groups[g].children);
                    }
                }
            }
            leaves.sort_unstable();
            assert_eq!(leaves, scene.ops, "round {round}");
            for turn in 0..4 {
                let open: HashSet<usize> = match turn {
                    0 => open_at_first(&scene),
                    1 => HashSet::new(),
                    2 => (0..scene.groups.len()).collect(),
                    _ => (0..scene.groups.len()).filter(|_| rng.bool()).collect(),
                };
                let picture = picture(&scene, &open);
                let seen: HashSet<Seen> = picture.seen.iter().copied().collect();
                assert_eq!(seen.len(), picture.seen.len());
                for (to, inputs) in picture.inputs.iter().enumerate() {
                    assert!(inputs.iter().all(|&from| from < to), "round {round}, {:?}", picture.seen[to]);
                }
                if turn == 2 {
                    // All of it: an edge for each operand, but for those that a stub stands for.
                    let edges: usize = picture.inputs.iter().map(Vec::len).sum();
                    let away: usize = picture.stubs.iter().map(|(_, v)| v.len()).sum();
                    let operands: usize =
                        view.nodes.iter().map(|n| n.inputs.iter().collect::<BTreeSet<_>>().len()).sum();
                    assert_eq!(edges - picture.stubs.len() + away, operands, "round {round}");
                }
            }
        }
    }

    #[test]
    fn what_a_name_says_ends_no_script() {
        let json = crate::display::picture::script_safe("{\"a\":\"</script><!--\u{2028}\"}");
        assert_eq!(json, "{\"a\":\"\\u003c/script>\\u003c!--\\u2028\"}");
    }
}
