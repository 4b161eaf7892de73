//! The collectives of an optimised program: what the devices tell one another, how much, in which groups, and which line of the
//! user's is behind it.
use super::hlo::{element_type, shape_text};
use crate::json::{Value, json};
use std::fmt::Write;
use xlazy_core::mesh::Mesh;
use xlazy_core::proto::Message;
use xlazy_core::run::Program;
use xlazy_core::text::{Source, location};
use xlazy_mime::units::bytes;
use xlazy_mime::{Bundle, Cell, Table, count};

/// One collective of a program.
pub(crate) struct Collective {
    /// `all-reduce`
    pub kind: String,
    /// What it gives each device, as XLA writes it.
    pub shape: String,
    /// Of that.
    pub bytes: u64,
    /// As XLA writes them.
    pub groups: String,
    /// It runs beside other work of the program.
    pub is_async: bool,
    pub why: Why,
    /// The op it is for and its line, where XLA says that.
    pub of: Option<(&'static str, &'static Source)>,
}

/// What a collective is there for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Why {
    /// The code has it: `spmd::all_reduce` and its kin.
    Asked,
    /// Each device has a part of a sum.
    PartsOfASum,
    /// What one op gives is not split as another one takes it.
    Resharding,
}

impl Why {
    fn says(self) -> &'static str {
        match self {
            Why::Asked => "asked for",
            Why::PartsOfASum => "sum of parts",
            Why::Resharding => "resharding",
        }
    }
}

const KINDS: [&str; 7] = [
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
];

/// The collectives of a program, in its order.
pub(crate) fn of(program: &Program, format: &str, proto: &[u8]) -> Vec<Collective> {
    let Some(outer) = Message::read(proto) else { return vec![] };
    let module = if format == "hlo_with_config" { outer.message(1) } else { outer };
    let mut found = Vec::new();
    // There XLA has none of its own.
    let ranks = Mesh::at(program.device).is_some_and(Mesh::is_ranks);
    for computation in module.messages(3) {
        for i in computation.messages(2) {
            let opcode = i.str(2);
            let kind = opcode.strip_suffix("-start").unwrap_or(opcode);
            // A pair of which the second part is told of by the first.
            if !KINDS.contains(&kind) {
                continue;
            }
            let shape = i.message(3);
            let of = mark_of(program, i.message(7).str(2));
            let asked = ranks || of.is_some_and(|(op, _)| op == "manual");
            let why = match kind {
                _ if asked => Why::Asked,
                "all-reduce" | "reduce-scatter" => Why::PartsOfASum,
                _ => Why::Resharding,
            };
            found.push(Collective {
                kind: kind.to_owned(),
                shape: shape_text(&shape, false),
                bytes: size(&shape),
                groups: groups(&i),
                is_async: kind != opcode,
                why,
                of,
            });
        }
    }
    found
}

/// What XLA compiles has the number of a part behind the name of its op.
fn mark_of(program: &Program, name: &str) -> Option<(&'static str, &'static Source)> {
    // One made of several ops has their names.
    let first = name.split([';', '/']).find(|n| n.contains('#'))?;
    let mark = program.marks.get(first.rsplit_once('#')?.1.parse::<usize>().ok()?)?;
    Some((mark.op.torch_name(), mark.at))
}

const TUPLE: i64 = 13;

fn size(shape: &Message) -> u64 {
    if shape.int(2) == TUPLE {
        return shape.messages(4).iter().map(size).sum();
    }
    let elements: u64 = shape.ints(3).iter().map(|&d| d.max(0) as u64).product();
    elements * element_type(shape.int(2)).1 / 8
}

fn list(items: &[i64]) -> String {
    items.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The groups as XLA writes them: a list, numbers in a shape, the same with dimensions exchanged, or axes of a mesh.
fn groups(i: &Message) -> String {
    let lists = |all: &[Message]| {
        let one = |g: &Message| format!("{{{}}}", list(&g.ints(1)));
        format!("{{{}}}", all.iter().map(one).collect::<Vec<_>>().join(","))
    };
    let pairs = i.messages(52);
    if !pairs.is_empty() {
        let one = |p: &Message| format!("{{{},{}}}", p.int(1), p.int(2));
        return format!("{{{}}}", pairs.iter().map(one).collect::<Vec<_>>().join(","));
    }
    let devices = i.message(87);
    let iota = devices.message(2);
    if iota.int(1) > 0 {
        let (shape, order) = (iota.ints(3), iota.ints(4));
        let exchanged = order.iter().enumerate().any(|(k, &d)| k as i64 != d);
        let exchanged = if exchanged { format!("T({})", list(&order)) } else { String::new() };
        return format!("[{},{}]<=[{}]{exchanged}", iota.int(1), iota.int(2), list(&shape));
    }
    let own = devices.messages(1);
    match own.is_empty() {
        true => lists(&i.messages(49)),
        false => lists(&own),
    }
}

/// What is said where a program has none.
fn none(program: &Program) -> String {
    match Mesh::at(program.device) {
        None => "no collectives: the program is for one device, which has nobody to tell anything".into(),
        Some(mesh) => {
            format!("no collectives: on {mesh} each device computes its part by itself")
        }
    }
}

/// As a table.
pub(crate) fn bundle(program: &Program, all: &[Collective]) -> Bundle {
    if all.is_empty() {
        return Bundle::text(none(program)).passing();
    }
    let total: u64 = all.iter().map(|c| c.bytes).sum();
    let head = format!(
        "{} on {}: each device gets {}",
        count(all.len(), "collective"),
        xlazy_core::device::name_of(program.device),
        bytes(total),
    );
    let rows: Vec<[String; 6]> = all.iter().map(row).collect();
    let names = ["kind", "gives", "bytes", "groups", "for", "op and line"];
    let mut text = format!("{head}\n");
    let wide = |k: usize| rows.iter().map(|r| r[k].chars().count()).chain([names[k].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(wide).collect();
    let mut line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        let _ = writeln!(text, "  {}", padded.join("  ").trim_end());
    };
    line(&names.map(str::to_owned));
    rows.iter().for_each(|r| line(r));
    let mut table = Table::new("font-family:monospace");
    table.head(names);
    rows.iter().for_each(|r| table.row(r.iter().map(|c| Cell::text(c).left())));
    let resharded: Vec<&Collective> = all.iter().filter(|c| c.why == Why::Resharding).collect();
    let mut html = format!("<div>{}</div>{}", xlazy_mime::escape_html(&head), table.html());
    if let Some(worst) = resharded.iter().max_by_key(|c| c.bytes) {
        let at = worst.of.map_or(String::new(), |(op, at)| format!(" for `{op}` at {}", location(at)));
        let fix = format!(
            "{} moved only because what one op gives is not split as another takes it; the most, {}, is moved{at}: \
             `mark_sharding` of one of the two as the other is may save it",
            bytes(resharded.iter().map(|c| c.bytes).sum()),
            bytes(worst.bytes),
        );
        let _ = writeln!(text, "{fix}");
        let _ = write!(html, "<div>{}</div>", xlazy_mime::prose_html(&fix));
    }
    Bundle::html(html, text).passing()
}

fn row(c: &Collective) -> [String; 6] {
    let kind = if c.is_async { format!("{} (async)", c.kind) } else { c.kind.clone() };
    let of = c.of.map_or_else(|| "XLA does not say".to_owned(), |(op, at)| format!("{op} at {}", location(at)));
    [kind, c.shape.clone(), bytes(c.bytes), c.groups.clone(), c.why.says().to_owned(), of]
}

/// As data.
pub(crate) fn data(all: &[Collective]) -> Value {
    let one = |c: &Collective| {
        let at = c.of.map(|(_, at)| json!({ "file": at.file(), "line": at.line() }));
        json!({
            "kind": c.kind, "gives": c.shape, "bytes": c.bytes, "groups": c.groups, "async": c.is_async,
            "for": c.why.says(), "op": c.of.map(|(op, _)| op), "at": at,
        })
    };
    all.iter().map(one).collect()
}
