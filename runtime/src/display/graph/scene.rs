//! The graph as a tree that folds: forward, gradients and update; modules by the names of their parameters; cells and lines;
//! what repeats. Each group is a stretch of ops in the order of creation, so that what is left when any of them are folded is
//! still without circles.
use crate::display::ir::{View, ViewNode};
use crate::insight::mode::Derived;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::panic::Location;
use xlazy_core::text::{self, Spot};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    Forward,
    Gradients,
    Update,
}

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::Forward, Phase::Gradients, Phase::Update];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Gradients => "gradients",
            Phase::Update => "update",
        }
    }

    fn of(n: &ViewNode) -> Phase {
        match n.derived {
            None => Phase::Forward,
            Some(Derived::Gradient) => Phase::Gradients,
            Some(Derived::Update) => Phase::Update,
        }
    }
}

/// What holds the ops of a group together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Phase,
    Module,
    Cell,
    Line,
    /// The same over and over.
    Rounds,
    /// One time of those.
    Round,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Phase => "phase",
            Kind::Module => "module",
            Kind::Cell => "cell",
            Kind::Line => "line",
            Kind::Rounds => "rounds",
            Kind::Round => "round",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Item {
    Node(usize),
    Group(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub kind: Kind,
    /// `attn` in `net.layers.3`; `cell 2, line 7`.
    pub label: String,
    /// The whole name of a module; else as the label.
    pub path: String,
    pub parent: Option<usize>,
    /// In the order of creation.
    pub children: Vec<Item>,
    /// Positions of its ops.
    pub ops: Range<usize>,
    /// How often the same stands there, where it is more than once.
    pub times: usize,
    pub phase: Phase,
}

pub(super) struct Scene<'a> {
    pub view: &'a View,
    pub groups: Vec<Group>,
    pub top: Vec<Item>,
    /// Nodes with operands, in the order of creation.
    pub ops: Vec<usize>,
    pub phases: Vec<Phase>,
    /// The innermost group around each op.
    pub home: Vec<Option<usize>>,
    /// Where what has no operands is used, and the innermost group around its uses there.
    pub uses: BTreeMap<(usize, Phase), Option<usize>>,
    /// The ways in which values lie on meshes.
    pub lies: Vec<&'a str>,
}

/// One step of an op's way to its group.
type Token = (Kind, String);

impl<'a> Scene<'a> {
    pub fn of(view: &'a View) -> Scene<'a> {
        let phases: Vec<Phase> = view.nodes.iter().map(Phase::of).collect();
        let ops: Vec<usize> = (0..view.nodes.len()).filter(|&i| !view.nodes[i].inputs.is_empty()).collect();
        let none = vec![None; view.nodes.len()];
        let lies: BTreeSet<&str> = view.nodes.iter().filter_map(|n| n.lies.as_deref()).collect();
        let (uses, lies) = (BTreeMap::new(), lies.into_iter().collect());
        let mut scene = Scene { view, groups: vec![], top: vec![], ops, phases, home: none, uses, lies };
        let ways = scene.ways();
        let hashes = Hashes::of(&scene);
        scene.top = scene.build(0..scene.ops.len(), 0, &ways, &hashes, "");
        for g in 0..scene.groups.len() {
            for child in scene.groups[g].children.clone() {
                match child {
                    Item::Node(n) => scene.home[n] = Some(g),
                    Item::Group(inner) => scene.groups[inner].parent = Some(g),
                }
            }
        }
        scene.find_uses();
        scene
    }

    /// Which of the ways in which values lie on meshes is a node's.
    pub fn way(&self, node: usize) -> Option<usize> {
        let lies = self.view.nodes[node].lies.as_deref()?;
        self.lies.iter().position(|l| *l == lies)
    }

    pub fn is_op(&self, node: usize) -> bool {
        !self.view.nodes[node].inputs.is_empty()
    }

    /// The groups around a group, itself first.
    pub fn around(&self, group: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(group, |&g| self.groups[g].parent)
    }

    /// The whole name of the module that a node is in.
    pub fn module(&self, node: usize) -> Option<&str> {
        let module = |g: &usize| matches!(self.groups[*g].kind, Kind::Module);
        self.around(self.home[node]).find(module).map(|g| self.groups[g].path.as_str())
    }

    fn find_uses(&mut self) {
        for &op in &self.ops {
            let home = self.home[op];
            for &input in &self.view.nodes[op].inputs {
                if self.is_op(input) {
                    continue;
                }
                let key = (input, self.phases[op]);
                let common = match self.uses.get(&key) {
                    None => home,
                    Some(&before) => self.common(before, home),
                };
                self.uses.insert(key, common);
            }
        }
        // What nothing uses is a result by itself.
        for i in 0..self.view.nodes.len() {
            if !self.is_op(i) && self.view.nodes[i].users == 0 {
                self.uses.insert((i, self.phases[i]), None);
            }
        }
    }

    fn common(&self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        let of_a: Vec<usize> = self.around(a).collect();
        self.around(b).find(|g| of_a.contains(g))
    }

    /// For each op by its position, from the outside in.
    fn ways(&self) -> Vec<Vec<Token>> {
        let nodes = &self.view.nodes;
        let mut several: Vec<Phase> = self.ops.iter().map(|&i| self.phases[i]).collect();
        several.dedup();
        let modules = self.modules();
        let mut sites: Vec<usize> = (0..nodes.len()).collect();
        for &i in &self.ops {
            // A gradient belongs to the line of what it is the gradient of.
            let forward = |&&n: &&usize| self.phases[n] == Phase::Forward && self.is_op(n);
            if self.phases[i] == Phase::Gradients {
                let of = nodes[i].inputs.iter().filter(forward).max();
                let passed =
                    nodes[i].inputs.iter().filter(|&&n| self.phases[n] == Phase::Gradients && self.is_op(n)).max();
                sites[i] = of.or(passed).map_or(i, |&n| sites[n]);
            }
        }
        let outer = |i: usize| nodes[sites[i]].statement.unwrap_or(nodes[sites[i]].at);
        let mut cells: Vec<Option<u64>> = self.ops.iter().map(|&i| text::cell(outer(i))).collect();
        cells.sort_unstable();
        cells.dedup();
        let mut known: HashMap<(*const u8, u32), String> = HashMap::new();
        let mut told = |at: &'static std::panic::Location<'static>| {
            known.entry((at.file().as_ptr(), at.line())).or_insert_with(|| text::location(at)).clone()
        };
        let way = |(&i, module): (&usize, &Vec<String>)| {
            let mut way: Vec<Token> = Vec::new();
            if several.len() > 1 {
                way.push((Kind::Phase, self.phases[i].name().to_owned()));
            }
            if !module.is_empty() {
                way.extend(module.iter().map(|m| (Kind::Module, m.clone())));
                return way;
            }
            if let (Some(cell), true) = (text::cell(outer(i)), cells.len() > 1) {
                way.push((Kind::Cell, format!("cell {cell}")));
            }
            let (line, inner) = (told(outer(i)), told(nodes[sites[i]].at));
            let other = inner != line;
            way.push((Kind::Line, line));
            if other {
                way.push((Kind::Line, inner));
            }
            way
        };
        self.ops.iter().zip(&modules).map(way).collect()
    }

    /// The module that each op belongs to. The op that takes a parameter is in the parameter's module; what is recorded
    /// between two such ops is in the module that both are in. So nothing has to be noted while ops are recorded.
    fn modules(&self) -> Vec<Vec<String>> {
        let nodes = &self.view.nodes;
        let split = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<String>>();
        let mut of_node: Vec<Vec<String>> = vec![Vec::new(); nodes.len()];
        let mut functions = HashMap::new();
        let mut out: Vec<Vec<String>> = Vec::with_capacity(self.ops.len());
        let mut from = 0;
        while from < self.ops.len() {
            let phase = self.phases[self.ops[from]];
            let to = (from..self.ops.len()).find(|&p| self.phases[self.ops[p]] != phase).unwrap_or(self.ops.len());
            let run = &self.ops[from..to];
            let anchor = |of_node: &[Vec<String>], i: usize| {
                let own = nodes[i].inputs.iter().filter_map(|&n| {
                    let name = nodes[n].parameter.as_deref().filter(|_| !self.is_op(n));
                    match (name, phase) {
                        // All that is done to one parameter.
                        (Some(name), Phase::Update) => Some(split(name)),
                        (Some(name), _) => name.rsplit_once('.').map(|(module, _)| split(module)),
                        (None, Phase::Gradients) if self.phases[n] == Phase::Forward => {
                            Some(of_node[n].clone()).filter(|m| !m.is_empty())
                        }
                        _ => None,
                    }
                });
                own.max_by_key(Vec::len)
            };
            let anchors: Vec<Option<Vec<String>>> = run.iter().map(|&i| anchor(&of_node, i)).collect();
            let places: Vec<usize> = (0..run.len()).filter(|&p| anchors[p].is_some()).collect();
            let mut next = 0;
            for (p, &i) in run.iter().enumerate() {
                while next < places.len() && places[next] < p {
                    next += 1;
                }
                let after = places.get(next).and_then(|&a| anchors[a].as_ref());
                let before = next.checked_sub(1).and_then(|n| anchors[places[n]].as_ref());
                let site = |n: Option<&usize>| n.map(|&a| (nodes[run[a]].at, nodes[run[a]].statement));
                let here = (nodes[i].at, nodes[i].statement);
                let prev = next.checked_sub(1).map(|n| &places[n]);
                // All gradients are of one line, that of the call.
                let alike = |n| phase != Phase::Gradients && site(n) == Some(here);
                let [same_before, same_after] = [prev, places.get(next)].map(alike);
                let function = |at: &'static Location<'static>| function_of(at, &mut functions);
                let module = match (&anchors[p], before, after) {
                    (Some(own), ..) => own.clone(),
                    // A library's module is one call of the user's: what it begins with may take no parameter yet.
                    (None, _, Some(after)) if same_after && !same_before => after.clone(),
                    (None, Some(before), _) if same_before && !same_after => before.clone(),
                    // What stands in the function that called the last module is its owner's: a residual addition.
                    (None, Some(before), _)
                        if !same_before && prev.is_some_and(|&a| same_function(here.0, nodes[run[a]].at, function)) =>
                    {
                        before[..before.len() - 1].to_vec()
                    }
                    (None, Some(before), Some(after)) => {
                        let common = before.iter().zip(after).take_while(|(a, b)| a == b).count();
                        // What ends a block takes something that the block made.
                        let number = |m: &[String]| m.get(common).and_then(|n| n.parse::<usize>().ok());
                        let successive =
                            matches!((number(before), number(after)), (Some(a), Some(b)) if a.abs_diff(b) == 1);
                        let block = &before[..(common + 1).min(before.len())];
                        let made_there = || nodes[i].inputs.iter().any(|&n| of_node[n].starts_with(block));
                        if successive && made_there() { block.to_vec() } else { before[..common].to_vec() }
                    }
                    // The last gradients are those of the first module.
                    (None, Some(before), None) if phase == Phase::Gradients => before.clone(),
                    _ => Vec::new(),
                };
                of_node[i] = module.clone();
                out.push(module);
            }
            from = to;
        }
        out
    }

    fn build(
        &mut self,
        run: Range<usize>,
        depth: usize,
        ways: &[Vec<Token>],
        hashes: &Hashes,
        path: &str,
    ) -> Vec<Item> {
        let mut items = Vec::new();
        let mut from = run.start;
        while from < run.end {
            let Some(token) = ways[from].get(depth) else {
                items.push(Item::Node(self.ops[from]));
                from += 1;
                continue;
            };
            let to = (from..run.end).find(|&p| ways[p].get(depth) != Some(token)).unwrap_or(run.end);
            let (kind, label) = token.clone();
            let inner_path = match kind {
                Kind::Module if !path.is_empty() => format!("{path}.{label}"),
                Kind::Module => label.clone(),
                _ => String::new(),
            };
            let children = self.build(from..to, depth + 1, ways, hashes, &inner_path);
            from = to;
            let path = if inner_path.is_empty() { label.clone() } else { inner_path };
            match children[..] {
                [Item::Node(_)] if kind != Kind::Phase => items.extend(children),
                // One name for what has nothing beside it.
                [Item::Group(only)] if kind == self.groups[only].kind && kind == Kind::Module => {
                    let inner = &mut self.groups[only];
                    inner.label = format!("{label}.{}", inner.label);
                    items.extend(children);
                }
                [Item::Group(_)] if matches!(kind, Kind::Cell | Kind::Line) => items.extend(children),
                _ => items.push(self.group(kind, label, path, children)),
            }
        }
        self.rounds(items, hashes)
    }

    fn span(&self, item: Item) -> Range<usize> {
        match item {
            Item::Group(g) => self.groups[g].ops.clone(),
            Item::Node(n) => {
                let at = self.ops.partition_point(|&o| o < n);
                at..at + 1
            }
        }
    }

    fn group(&mut self, kind: Kind, label: String, path: String, children: Vec<Item>) -> Item {
        let ops = match (children.first(), children.last()) {
            (Some(&first), Some(&last)) => self.span(first).start..self.span(last).end,
            _ => 0..0,
        };
        let phase = self.ops.get(ops.start).map_or(Phase::Forward, |&i| self.phases[i]);
        self.groups.push(Group { kind, label, path, parent: None, children, ops, times: 1, phase });
        Item::Group(self.groups.len() - 1)
    }

    /// Puts together what repeats: the layers of a model, the rounds of a loop.
    fn rounds(&mut self, items: Vec<Item>, hashes: &Hashes) -> Vec<Item> {
        const LONGEST: usize = 64;
        let look = |item: Item| {
            let named = match item {
                Item::Group(g) => self.groups[g].label.replace(|c: char| c.is_ascii_digit(), ""),
                Item::Node(_) => String::new(),
            };
            (hashes.of_range(self, self.span(item)), named)
        };
        let looks: Vec<(u64, String)> = items.iter().map(|&i| look(i)).collect();
        let mut out = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let mut best: Option<(usize, usize)> = None;
            for period in 1..=LONGEST.min((items.len() - at) / 2) {
                let same = (at + period..items.len()).take_while(|&i| looks[i] == looks[i - period]).count();
                let times = same / period + 1;
                let first: usize = items[at..at + period].iter().map(|&i| self.span(i).len()).sum();
                let worth = times >= 3 && first * times >= 6 || times == 2 && first >= 4;
                if worth && best.is_none_or(|(p, t)| p * t < period * times) {
                    best = Some((period, times));
                }
            }
            let Some((period, times)) = best else {
                out.push(items[at]);
                at += 1;
                continue;
            };
            let rounds: Vec<Item> = (0..times)
                .map(|r| {
                    let part = &items[at + r * period..at + (r + 1) * period];
                    match *part {
                        [one] => one,
                        _ => {
                            let label = format!("round {} of {times}", r + 1);
                            self.group(Kind::Round, label.clone(), label, part.to_vec())
                        }
                    }
                })
                .collect();
            let label = self.label_of(&items[at..at + period], items[at + (times - 1) * period]);
            let Item::Group(all) = self.group(Kind::Rounds, label.clone(), label, rounds) else { unreachable!() };
            self.groups[all].times = times;
            out.push(Item::Group(all));
            at += period * times;
        }
        out
    }

    /// `layers.0 … layers.11`, or what the first round begins with.
    fn label_of(&self, first: &[Item], last: Item) -> String {
        let label = |item: Item| match item {
            Item::Group(g) => self.groups[g].label.clone(),
            Item::Node(n) => self.view.nodes[n].op.to_owned(),
        };
        let modules: Vec<String> = first
            .iter()
            .filter(|i| matches!(i, Item::Group(g) if self.groups[*g].kind == Kind::Module))
            .map(|&i| label(i))
            .collect();
        match (first, &modules[..]) {
            ([one], [name]) => {
                let end = label(last);
                if end == *name { label(*one) } else { format!("{name} … {end}") }
            }
            (_, []) => {
                let mut names: Vec<String> = Vec::new();
                first.iter().map(|&i| label(i)).for_each(|n| {
                    if !names.contains(&n) {
                        names.push(n)
                    }
                });
                let more = if names.len() > 3 { ", …" } else { "" };
                names.truncate(3);
                names.join(", ") + more
            }
            (_, names) => names.join(", "),
        }
    }
}

/// The functions of the notebook's that places are in, as they were asked for.
type Functions = HashMap<(*const u8, u32, u32), Option<(Spot, Spot)>>;

fn function_of(at: &'static Location<'static>, known: &mut Functions) -> Option<(Spot, Spot)> {
    let look = || text::function(at).map(|f| (f.from, f.to));
    known.entry((at.file().as_ptr(), at.line(), at.column())).or_insert_with(look).clone()
}

/// Whether two places are in one function of the notebook's.
fn same_function(
    a: &'static Location<'static>,
    b: &'static Location<'static>,
    mut function: impl FnMut(&'static Location<'static>) -> Option<(Spot, Spot)>,
) -> bool {
    a.file() == b.file() && function(a).is_some_and(|f| function(b) == Some(f))
}

/// What each op is, but for where its operands come from.
struct Hashes {
    own: Vec<u64>,
    /// Positions of ops; `usize::MAX` for what is none.
    at: Vec<usize>,
}

impl Hashes {
    fn of(scene: &Scene) -> Hashes {
        let mut at = vec![usize::MAX; scene.view.nodes.len()];
        scene.ops.iter().enumerate().for_each(|(p, &i)| at[i] = p);
        let one = |&i: &usize| {
            let n = &scene.view.nodes[i];
            let mut h = DefaultHasher::new();
            (n.op, &n.ty.dtype, &n.ty.shape[..], &n.attrs, scene.phases[i]).hash(&mut h);
            for &input in &n.inputs {
                let from = &scene.view.nodes[input];
                (&from.ty.dtype, &from.ty.shape[..], scene.is_op(input)).hash(&mut h);
            }
            h.finish()
        };
        Hashes { own: scene.ops.iter().map(one).collect(), at }
    }

    /// Of a stretch of ops: what they are, and how they are wired among themselves.
    fn of_range(&self, scene: &Scene, range: Range<usize>) -> u64 {
        let mut h = DefaultHasher::new();
        for p in range.clone() {
            self.own[p].hash(&mut h);
            for &input in &scene.view.nodes[scene.ops[p]].inputs {
                let from = self.at[input];
                if range.contains(&from) {
                    (p - from).hash(&mut h);
                }
            }
        }
        h.finish()
    }
}
