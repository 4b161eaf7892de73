//! The collectives of an optimised program: what the devices tell one another, how much, in which groups, and which line of the
//! user's is behind it.
use super::transfers::{Transfer, transfers};
use crate::json::{Value, json};
use std::fmt::Write;
use xlazy_core::mesh::Mesh;
use xlazy_core::run::Program;
use xlazy_core::text::{Source, location};
use xlazy_mime::units::bytes;
use xlazy_mime::{Bundle, Cell, Table, count};

/// One collective of a program.
pub(crate) struct Collective {
    pub is: Transfer,
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

/// The collectives of a program, in its order.
pub(crate) fn of(program: &Program, format: &str, proto: &[u8]) -> Vec<Collective> {
    // There XLA has none of its own.
    let ranks = Mesh::at(program.device).is_some_and(Mesh::is_ranks);
    let one = |is: Transfer| {
        let of = mark_of(program, &is.op);
        let why = match &*is.kind {
            _ if ranks || of.is_some_and(|(op, _)| op == "manual") => Why::Asked,
            "all-reduce" | "reduce-scatter" => Why::PartsOfASum,
            _ => Why::Resharding,
        };
        Collective { is, why, of }
    };
    transfers(format, proto).into_iter().map(one).collect()
}

/// What XLA compiles has the number of a part behind the name of its op.
fn mark_of(program: &Program, name: &str) -> Option<(&'static str, &'static Source)> {
    // One made of several ops has their names.
    let first = name.split([';', '/']).find(|n| n.contains('#'))?;
    let mark = program.marks.get(first.rsplit_once('#')?.1.parse::<usize>().ok()?)?;
    Some((mark.op.torch_name(), mark.at))
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
    let total: u64 = all.iter().map(|c| c.is.bytes).sum();
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
    if let Some(worst) = resharded.iter().max_by_key(|c| c.is.bytes) {
        let at = worst.of.map_or(String::new(), |(op, at)| format!(" for `{op}` at {}", location(at)));
        let fix = format!(
            "{} moved only because what one op gives is not split as another takes it; the most, {}, is moved{at}: \
             `mark_sharding` of one of the two as the other is may save it",
            bytes(resharded.iter().map(|c| c.is.bytes).sum()),
            bytes(worst.is.bytes),
        );
        let _ = writeln!(text, "{fix}");
        let _ = write!(html, "<div>{}</div>", xlazy_mime::prose_html(&fix));
    }
    Bundle::html(html, text).passing()
}

fn row(c: &Collective) -> [String; 6] {
    let t = &c.is;
    let kind = if t.is_async { format!("{} (async)", t.kind) } else { t.kind.clone() };
    let kind = if t.algorithm.is_empty() { kind } else { format!("{kind} by {}", t.algorithm) };
    let of = c.of.map_or_else(|| "XLA does not say".to_owned(), |(op, at)| format!("{op} at {}", location(at)));
    [kind, t.shape.clone(), bytes(t.bytes), t.groups.clone(), c.why.says().to_owned(), of]
}

/// As data.
pub(crate) fn data(all: &[Collective]) -> Value {
    let one = |c: &Collective| {
        let t = &c.is;
        let at = c.of.map(|(_, at)| json!({ "file": at.file(), "line": at.line() }));
        json!({
            "kind": t.kind, "gives": t.shape, "bytes": t.bytes, "groups": t.groups, "group_size": t.size,
            "algorithm": t.algorithm, "async": t.is_async, "for": c.why.says(), "op": c.of.map(|(op, _)| op), "at": at,
        })
    };
    all.iter().map(one).collect()
}
