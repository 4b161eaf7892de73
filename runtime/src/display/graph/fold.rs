//! What is seen of a scene while some of its groups are open: boxes, and the edges between them.
use super::scene::{Item, Kind, Phase, Scene};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A box of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Seen {
    Op(usize),
    Group(usize),
    /// What has no operands, once in each phase that uses it.
    Source(usize, Phase),
    /// Values of another phase that this box takes, so many of them.
    Stub(usize),
}

pub(super) struct Picture {
    pub seen: Vec<Seen>,
    /// For each box those that it takes something from, all earlier ones.
    pub inputs: Vec<Vec<usize>>,
    /// For each stub: the box that takes the values, and the nodes that they are.
    pub stubs: Vec<(usize, Vec<usize>)>,
}

/// As many boxes as are shown at first.
const AT_FIRST: usize = 48;
/// Graphs of no more nodes are shown whole.
const WHOLE: usize = 40;

/// The groups that are open at first: from the outside in, as long as there is room.
pub(super) fn open_at_first(scene: &Scene) -> HashSet<usize> {
    let whole = scene.view.nodes.len() <= WHOLE;
    let mut open = HashSet::new();
    let mut sources: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    scene.uses.values().for_each(|&home| *sources.entry(home).or_default() += 1);
    let inside = |g: usize| scene.groups[g].children.len() + sources.get(&Some(g)).copied().unwrap_or(0);
    let mut seen = scene.top.len() + sources.get(&None).copied().unwrap_or(0);
    let mut queue: std::collections::VecDeque<Item> = scene.top.iter().copied().collect();
    while let Some(item) = queue.pop_front() {
        let Item::Group(g) = item else { continue };
        let rounds = scene.groups[g].kind == Kind::Rounds;
        if !whole && (rounds || seen + inside(g) - 1 > AT_FIRST) {
            continue;
        }
        seen += inside(g) - 1;
        open.insert(g);
        queue.extend(&scene.groups[g].children);
    }
    open
}

/// The outermost box around a node that is not open.
fn shown(scene: &Scene, home: Option<usize>, itself: Seen, open: &HashSet<usize>) -> Seen {
    let mut seen = itself;
    for g in scene.around(home) {
        if !open.contains(&g) {
            seen = Seen::Group(g);
        }
    }
    seen
}

pub(super) fn picture(scene: &Scene, open: &HashSet<usize>) -> Picture {
    let nodes = &scene.view.nodes;
    let of_op = |i: usize| shown(scene, scene.home[i], Seen::Op(i), open);
    let of_source = |i: usize, phase: Phase| {
        let home = scene.uses.get(&(i, phase)).copied().flatten();
        shown(scene, home, Seen::Source(i, phase), open)
    };
    // In the order of creation; what has no operands comes first.
    let mut order: Vec<Seen> = scene.uses.keys().map(|&(i, phase)| of_source(i, phase)).collect();
    order.retain(|s| matches!(s, Seen::Source(..)));
    let mut number: BTreeMap<Seen, usize> = order.iter().enumerate().map(|(n, &s)| (s, n)).collect();
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut away: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let is_phase = |s: Seen| matches!(s, Seen::Group(g) if scene.groups[g].kind == Kind::Phase);
    for &i in &scene.ops {
        let here = of_op(i);
        let to = *number.entry(here).or_insert_with(|| {
            order.push(here);
            order.len() - 1
        });
        for &input in &nodes[i].inputs {
            let from = match scene.is_op(input) {
                true => of_op(input),
                false => of_source(input, scene.phases[i]),
            };
            if from == here {
                continue;
            }
            let across =
                scene.is_op(input) && scene.phases[input] == Phase::Forward && scene.phases[i] != Phase::Forward;
            if across && !(is_phase(from) && is_phase(here)) {
                let all = away.entry(to).or_default();
                if !all.contains(&input) {
                    all.push(input);
                }
            } else {
                edges.insert((to, number[&from]));
            }
        }
    }
    let mut inputs = vec![Vec::new(); order.len()];
    edges.into_iter().for_each(|(to, from)| inputs[to].push(from));
    // Stubs come before all that takes them.
    let stubs: Vec<(usize, Vec<usize>)> = away.into_iter().collect();
    let shift = stubs.len();
    let mut picture = Picture { seen: (0..shift).map(Seen::Stub).collect(), inputs: vec![Vec::new(); shift], stubs };
    picture.seen.extend(order);
    picture.inputs.extend(inputs.into_iter().map(|all| all.into_iter().map(|i| i + shift).collect::<Vec<usize>>()));
    for (n, (to, _)) in picture.stubs.iter_mut().enumerate() {
        *to += shift;
        picture.inputs[*to].push(n);
    }
    picture
}
