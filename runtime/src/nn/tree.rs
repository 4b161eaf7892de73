//! A module as a tree: what it is made of, shapes, how many numbers are trained, and which lines made them.
use crate::tensor::Tensor;
use xlazy_core::text;
use xlazy_mime::{Bundle, Cell, Table, columns, units};

/// What is found in a module, under a dotted name.
pub(super) enum Entry {
    /// By the name of its type.
    Module(&'static str),
    /// Of the module of that name: `p=0.5`.
    Setting(String),
    Parameter(Tensor),
    Buffer(Tensor),
}

/// A module inside of another, or several of them under one name.
#[derive(Default)]
struct Branch {
    name: String,
    kind: Option<&'static str>,
    settings: Vec<String>,
    leaves: Vec<Leaf>,
    branches: Vec<Branch>,
}

/// A parameter or a buffer.
struct Leaf {
    name: String,
    tensor: Tensor,
    trained: bool,
    buffer: bool,
    /// It has been met before, under another name.
    again: bool,
}

impl Branch {
    fn of(kind: &'static str, entries: &[(String, Entry)]) -> Branch {
        let mut root = Branch { kind: Some(kind), ..Branch::default() };
        let mut seen: Vec<&Tensor> = Vec::new();
        for (path, entry) in entries {
            let (tensor, buffer) = match entry {
                Entry::Module(kind) => {
                    root.at(path).kind = Some(kind);
                    continue;
                }
                Entry::Setting(text) => {
                    root.at(path).settings.push(text.clone());
                    continue;
                }
                Entry::Parameter(t) => (t, false),
                Entry::Buffer(t) => (t, true),
            };
            let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
            let again = seen.iter().any(|t| t.is_same(tensor));
            seen.push(tensor);
            let trained = !buffer && tensor.requires_grad();
            root.at(above).leaves.push(Leaf { name: name.to_owned(), tensor: tensor.clone(), trained, buffer, again });
        }
        root
    }

    /// The branch of a dotted name.
    fn at(&mut self, path: &str) -> &mut Branch {
        path.split('.').filter(|name| !name.is_empty()).fold(self, |branch, name| {
            let known = branch.branches.iter().position(|b| b.name == name).unwrap_or_else(|| {
                branch.branches.push(Branch { name: name.to_owned(), ..Branch::default() });
                branch.branches.len() - 1
            });
            &mut branch.branches[known]
        })
    }

    /// Numbers in it, each tensor once.
    fn count(&self) -> Count {
        let own = self.leaves.iter().filter(|l| !l.again).map(Leaf::count);
        own.chain(self.branches.iter().map(Branch::count)).fold(Count::default(), |a, b| Count {
            trained: a.trained + b.trained,
            frozen: a.frozen + b.frozen,
            buffers: a.buffers + b.buffers,
        })
    }

    /// `fc: Linear`, or either.
    fn name(&self) -> String {
        match (self.name.as_str(), self.kind.map(short)) {
            ("", kind) => kind.unwrap_or_default().to_owned(),
            (name, Some(kind)) => format!("{name}: {kind}"),
            (name, None) => name.to_owned(),
        }
    }

    /// `drop: Dropout(p=0.5)`.
    fn title(&self) -> String {
        match self.settings.is_empty() {
            true => self.name(),
            false => format!("{}({})", self.name(), self.settings.join(", ")),
        }
    }

    fn shapes(&self, of: impl Fn(&Leaf) -> bool) -> String {
        let leaf = |l: &Leaf| {
            let aside = if l.again { " (shared)" } else { "" };
            format!("{} {}{aside}", l.name, l.tensor.shape())
        };
        self.leaves.iter().filter(|l| of(l)).map(leaf).collect::<Vec<_>>().join(", ")
    }

    /// Parameters, and behind them the buffers, which nothing trains.
    fn tensors(&self) -> String {
        match (self.shapes(|l| !l.buffer), self.shapes(|l| l.buffer)) {
            (parameters, buffers) if buffers.is_empty() => parameters,
            (parameters, buffers) if parameters.is_empty() => format!("buffers: {buffers}"),
            (parameters, buffers) => format!("{parameters}; buffers: {buffers}"),
        }
    }

    /// The lines that made its own tensors.
    fn made(&self) -> String {
        let mut places: Vec<String> = self.leaves.iter().map(|l| text::location(l.tensor.made_at())).collect();
        places.dedup();
        places.join("; ")
    }

    /// What it has in it, with the lines of the tree before each.
    fn rows(&self, before: &str, rows: &mut Vec<[String; 4]>) {
        let last = self.branches.len();
        for (i, branch) in self.branches.iter().enumerate() {
            let (here, below) = if i + 1 == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            rows.push(branch.row(&format!("{before}{here}")));
            branch.rows(&format!("{before}{below}"), rows);
        }
    }

    fn row(&self, before: &str) -> [String; 4] {
        let count = self.count();
        let numbers = match count.trained + count.frozen {
            0 => String::new(),
            n => units::thousands(n as u64),
        };
        [format!("{before}{}", self.title()), self.tensors(), numbers, self.made()]
    }

    /// In one line: `Linear(weight [2,3], bias [2])`.
    fn line(&self) -> String {
        let leaves = (!self.leaves.is_empty()).then(|| self.tensors());
        let branches = self.branches.iter().map(Branch::line);
        let inside: Vec<String> = self.settings.iter().cloned().chain(leaves).chain(branches).collect();
        if inside.is_empty() { self.name() } else { format!("{}({})", self.name(), inside.join(", ")) }
    }
}

/// How many numbers there are.
#[derive(Default)]
struct Count {
    trained: usize,
    /// In parameters that no gradient reaches.
    frozen: usize,
    buffers: usize,
}

impl Count {
    /// `8,352 numbers to train, 17 in buffers`.
    fn text(&self) -> String {
        let rest = [(self.frozen, "frozen"), (self.buffers, "in buffers")];
        let rest =
            rest.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {} {what}", units::thousands(*n as u64)));
        format!("{} numbers to train{}", units::thousands(self.trained as u64), rest.collect::<String>())
    }
}

impl Leaf {
    fn count(&self) -> Count {
        let n = self.tensor.numel();
        match (self.buffer, self.trained) {
            (true, _) => Count { buffers: n, ..Count::default() },
            (_, true) => Count { trained: n, ..Count::default() },
            _ => Count { frozen: n, ..Count::default() },
        }
    }
}

/// The last part of a type's name.
pub(super) fn short(kind: &'static str) -> &'static str {
    let path = kind.split('<').next().unwrap_or(kind);
    path.rsplit("::").next().unwrap_or(path)
}

/// In one line.
pub(super) fn line(kind: &'static str, entries: &[(String, Entry)]) -> String {
    Branch::of(kind, entries).line()
}

/// The module as a tree.
pub(super) fn bundle(kind: &'static str, entries: &[(String, Entry)]) -> Bundle {
    let root = Branch::of(kind, entries);
    let mut rows = vec![root.row("")];
    root.rows("", &mut rows);
    let total = root.count().text();
    let plain = format!("{}\n{total}", columns(&rows, &[2]));
    let mut table = Table::new("border-collapse:collapse;margin:0;font-size:.92em;color:inherit;background:none");
    table.head(
        ["module", "parameters", "numbers", "made at"]
            .map(|head| Cell::text(head).style(CELL).left().style("opacity:.6")),
    );
    for [title, shapes, numbers, made] in &rows {
        let cell = |text: &str| Cell::text(text).style(CELL);
        table.row([
            cell(title).style("font-family:ui-monospace,monospace").left(),
            cell(shapes).style("font-family:ui-monospace,monospace").left(),
            cell(numbers).right(),
            cell(made).left().style("opacity:.65"),
        ]);
    }
    let note = format!("<div style=\"opacity:.65;font-size:.85em;padding-top:3px\">{total}</div>");
    let html = format!(
        "<div style=\"line-height:1.35\"><div style=\"overflow:auto;max-height:520px\">{}</div>{note}</div>",
        table.html()
    );
    Bundle::html(html, plain)
}

const CELL: &str = "padding:1px 8px;white-space:pre;border:none";
